// A library of transforms may hold mx operations in custom syntax; what fails in it is reported at its own lines.
// RUN: mx-opt %s --transform-preload-library=transform-library-paths=%S/Inputs/transforms.mlir --transform-interpreter -o /dev/null 2>&1 | filecheck %s
// RUN: mx-opt %s --transform-preload-library=transform-library-paths=%S/Inputs/library --transform-interpreter -o /dev/null 2>&1 | filecheck %s
// RUN: cd %S && mx-opt %s --transform-preload-library=transform-library-paths=Inputs/transforms.mlir --transform-interpreter -o /dev/null 2>&1 | filecheck %s
// RUN: not mx-opt %s --transform-preload-library=transform-library-paths=%S/Inputs/transforms.mlir --transform-interpreter=entry-point=second 2>&1 | filecheck %s --check-prefix=FAILS
// RUN: not mx-opt %s --transform-preload-library=transform-library-paths=%S/Inputs/broken-transforms.mlir --transform-interpreter 2>&1 | filecheck %s --check-prefix=BROKEN
// RUN: not mx-opt %s --transform-preload-library=transform-library-paths=%S/Inputs/none.mlir 2>&1 | filecheck %s --check-prefix=NONE

// CHECK: transform-library.mlir:16:10: remark: found by the library
// FAILS: {{^}}{{.*}}Inputs/transforms.mlir:16:11: error: could not find a producer
// BROKEN: {{^}}{{.*}}Inputs/broken-transforms.mlir:4:36: error: use of undeclared SSA value name
// BROKEN-NEXT: transform.debug.emit_remark_at %wrong
// NONE: error: cannot open transform library '{{.*}}Inputs/none.mlir': No such file or directory
module attributes {transform.with_named_sequence} {
  func.func @f(%x: !mx.tensor<4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> tensor<4x32xf32> {
    %0 = mx.dequantize_block %x : <4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<4x32xf32>
    return %0 : tensor<4x32xf32>
  }
  transform.named_sequence private @remark_at_dequantize(%root: !transform.any_op {transform.readonly})
  transform.named_sequence private @fails(%root: !transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    transform.include @remark_at_dequantize failures(propagate) (%root) : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence @second(%root: !transform.any_op {transform.readonly}) {
    transform.include @fails failures(propagate) (%root) : (!transform.any_op) -> ()
    transform.yield
  }
}
