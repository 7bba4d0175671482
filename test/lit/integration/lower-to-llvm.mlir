// RUN: mx-opt %s --mx-lower-to-llvm | filecheck %s --check-prefixes=CHECK,LOOPS
// RUN: mx-opt %s --mx-lower-to-llvm-vectorized | filecheck %s --check-prefixes=CHECK,VECTORS
// RUN: mx-opt %s --pass-pipeline='builtin.module(mx-lower-to-llvm)' | filecheck %s --check-prefixes=CHECK,LOOPS

// From the value level to nothing but the LLVM dialect. The result that is the accumulator is not returned. Loops need
// no buffer; a schedule has panels, which it frees.

!a = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>

// CHECK-LABEL: llvm.func @block_matmul(
// CHECK-NOT: ->
// CHECK-SAME: {
// LOOPS-NOT: llvm.alloca
// LOOPS-NOT: llvm.call
// VECTORS: llvm.call @malloc
// LOOPS: llvm.fmul %{{.*}} : f32
// VECTORS: llvm.intr.fmuladd({{.*}}vector<{{[0-9]+}}xf32>
// VECTORS: llvm.call @free
// LOOPS-NOT: llvm.call
// CHECK: llvm.return
// CHECK-NEXT: }
func.func @block_matmul(%a: !a, %b: tensor<64x64xf32>, %c: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = mx.block_matmul %a, %b, %c : !a, tensor<64x64xf32>, tensor<32x64xf32> -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Dynamic shapes lower to loops in both.

!dynamic = !mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>

// CHECK-LABEL: llvm.func @dynamic(
// CHECK-NOT: vector<
// CHECK: llvm.fmul %{{.*}} : f32
// CHECK: llvm.return
func.func @dynamic(%a: !dynamic, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = mx.block_matmul %a, %b, %c : !dynamic, tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// The scale code 255 is NaN. MLIR's folders would make it infinity.

// CHECK-LABEL: llvm.func @nan_scale(
// CHECK-NOT: 0x7F800000
// CHECK: llvm.return
func.func @nan_scale(%m: tensor<2x32xf8E4M3FN>) -> tensor<2x32xf32> {
  %scale = arith.constant dense<0xFF> : tensor<2x1xf8E8M0FNU>
  %q = mx.compose %m, %scale : tensor<2x32xf8E4M3FN>, tensor<2x1xf8E8M0FNU> -> !mx.tensor<2x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  %0 = mx.dequantize_block %q : !mx.tensor<2x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<2x32xf32>
  return %0 : tensor<2x32xf32>
}

// A copy into part of a buffer is a loop, not a call into MLIR's C runtime; an intermediate buffer is freed, a returned
// one is not.

// CHECK-LABEL: llvm.func @pad(
// CHECK: llvm.call @malloc
// CHECK-NOT: memrefCopy
// CHECK: llvm.call @malloc
// CHECK-NOT: memrefCopy
// CHECK: llvm.call @free
// CHECK-NOT: llvm.call
// CHECK: llvm.return
func.func @pad(%x: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = arith.constant 0 : index
  %n = tensor.dim %x, %rows : tensor<?x4xf32>
  %empty = tensor.empty(%n) : tensor<?x4xf32>
  %0 = linalg.exp ins(%x : tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = tensor.pad %0 low[0, 2] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x4xf32> to tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
