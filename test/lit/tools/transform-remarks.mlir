// Remarks of MLIR's own passes are shown with place, source line and caret, types as users write them, and can be expected.
// RUN: mx-opt %s --transform-interpreter -o /dev/null 2>&1 | filecheck %s
// RUN: mx-opt %s --transform-interpreter --verify-diagnostics -o /dev/null
// RUN: mx-opt %s --transform-interpreter --mlir-print-op-on-diagnostic=false -o /dev/null 2>&1 | filecheck %s --check-prefix=BARE

module attributes {transform.with_named_sequence} {
  func.func @f(%x: !mx.tensor<4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> tensor<4x32xf32> {
    // expected-remark @below {{found one}}
    %0 = mx.dequantize_block %x : <4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<4x32xf32>
    return %0 : tensor<4x32xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["mx.dequantize_block"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.debug.emit_remark_at %op, "found one" : !transform.any_op
    transform.yield
  }
}

// CHECK: transform-remarks.mlir:9:10: remark: found one
// CHECK-NEXT: {{^}}    %0 = mx.dequantize_block %x : <4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<4x32xf32>
// CHECK-NEXT: {{^         \^$}}
// CHECK-NEXT: transform-remarks.mlir:9:10: note: see current operation: %0 = "mx.dequantize_block"(%arg0) : (!mx.tensor<4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> tensor<4x32xf32>
// CHECK-NOT: mx.dequantize_block

// BARE: remark: found one
// BARE-NOT: note:
