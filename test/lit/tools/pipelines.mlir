// Python and upstream passes mix, as flags and in a pipeline; a func-only pass is nested for the user.
// RUN: mx-opt %s --mx-to-linalg --canonicalize --cse | filecheck %s
// RUN: mx-opt %s --pass-pipeline='builtin.module(mx-to-linalg,func.func(canonicalize),cse)' | filecheck %s
// RUN: mx-opt %s -mx-to-linalg -canonicalize=top-down=0 | filecheck %s
// RUN: mx-opt %s --mx-to-linalg --buffer-hoisting | filecheck %s
// RUN: mx-opt %s --mx-to-linalg --affine-loop-unroll | filecheck %s
// RUN: mx-opt --mx-to-linalg < %s | filecheck %s
// RUN: mx-opt %s --pass-pipeline='builtin.module(func.func(mx-canonicalize),mx-to-linalg)' -o %t && filecheck %s < %t
// RUN: mx-opt %s --emit-bytecode | mx-opt --mx-to-linalg | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | mx-opt --mx-to-linalg | filecheck %s

// CHECK-LABEL: func.func @f(
// CHECK: linalg.generic
// CHECK-NOT: mx.
func.func @f(%a: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %b: tensor<64x8xf32>, %c: tensor<32x8xf32>) -> tensor<32x8xf32> {
  %0 = mx.block_matmul %a, %b, %c : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<64x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}
