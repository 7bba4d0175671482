// What failed is written with its pipeline, in the custom syntax, and fails again when it is run.
// RUN: not mx-opt %s --mx-to-linalg --pass-pipeline='builtin.module(mx-canonicalize,func.func(symbol-dce))' 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not mx-opt %s --pass-pipeline='builtin.module(mx-canonicalize,func.func(symbol-dce))' --mlir-pass-pipeline-crash-reproducer=%t.mlir 2>&1 | filecheck %s --check-prefix=ERR
// RUN: filecheck %s < %t.mlir
// RUN: not mx-opt %t.mlir --run-reproducer 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: mx-opt %s --mx-to-linalg --mlir-generate-reproducer=%t.gen.mlir -o %t.out && mx-opt %t.gen.mlir --run-reproducer -o %t.again && diff %t.out %t.again
// RUN: filecheck %s --check-prefix=OUT < %t.out

// BOTH: can't be used with individual pass options
// ERR: reproducer generated at '{{.*}}.mlir'
// ERR: error: {{.*}}symbol
// CHECK: mx.dequantize_block %arg0 : <4x8xf8E4M3FN
// CHECK: mlir_reproducer: {
// CHECK-NEXT: pipeline: "builtin.module(mx-canonicalize,func.func(symbol-dce))",
// CHECK-NEXT: disable_threading: true,
// CHECK-NEXT: verify_each: true
// AGAIN-NOT: warning:
// AGAIN: error: {{.*}}symbol
// OUT: linalg.generic
// OUT-NOT: mlir_reproducer
func.func @f(%x: !mx.tensor<4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>) -> tensor<4x8xf32> {
  %0 = mx.dequantize_block %x : <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
