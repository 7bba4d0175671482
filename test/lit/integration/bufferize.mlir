// RUN: mx-opt %s --mx-to-linalg --mx-expand-narrow-floats --mx-bufferize | filecheck %s --check-prefixes=CHECK,LOOPS
// RUN: mx-opt %s --mx-to-linalg --mx-expand-narrow-floats --mx-expand-k --mx-vectorize --loop-invariant-subset-hoisting --mx-bufferize | filecheck %s --check-prefixes=CHECK,VECTORS

// A kernel on four buffers that updates the accumulator in place: no copy of anything, and no buffer but, in vectors,
// the panel of eight decoded rows.

// CHECK-LABEL: func.func @block_matmul(
// CHECK-SAME: %[[A:.*]]: memref<32x64xf8E4M3FN>, %[[S:.*]]: memref<32x2xf8E8M0FNU>, %[[B:.*]]: memref<64x64xf32>, %[[C:.*]]: memref<32x64xf32>) -> memref<32x64xf32>
// LOOPS-NOT: memref.alloc
// LOOPS-NOT: memref.copy
// LOOPS: linalg.generic
// LOOPS-SAME: ins(%[[A]], %[[S]], %[[B]] :
// LOOPS-SAME: outs(%[[C]] :
// LOOPS-NOT: memref.alloc
// LOOPS-NOT: memref.copy
// VECTORS-NOT: memref.copy
// VECTORS: memref.alloc() {{.*}} : memref<8x2x32xf32>
// VECTORS-NOT: memref.alloc
// VECTORS-NOT: memref.copy
// VECTORS: %[[ROWS:.*]] = memref.subview %[[C]]
// VECTORS-NOT: memref.copy
// VECTORS: %[[TILE:.*]] = memref.subview %[[ROWS]]
// VECTORS: %[[ACC:.*]] = vector.transfer_read %[[TILE]][%c0, %c0]
// VECTORS: scf.for
// VECTORS-NOT: memref.copy
// VECTORS: vector.transfer_write %{{.*}}, %[[TILE]][%c1, %c0]
// VECTORS-NOT: memref.copy
// CHECK: return %[[C]] : memref<32x64xf32>
func.func @block_matmul(%a: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %b: tensor<64x64xf32>, %c: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = mx.block_matmul %a, %b, %c : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<64x64xf32>, tensor<32x64xf32> -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// What tiles do not divide is split. The parts write their slices of the accumulator in place, too.

// CHECK-LABEL: func.func @ragged(
// CHECK-SAME: %[[C:[a-z0-9]*]]: memref<19x53xf32>) -> memref<19x53xf32>
// CHECK-NOT: memref.copy
// CHECK: return %[[C]] : memref<19x53xf32>
func.func @ragged(%a: !mx.tensor<19x96xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %b: !mx.tensor<96x53xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>, %c: tensor<19x53xf32>) -> tensor<19x53xf32> {
  %0 = mx.block_matmul %a, %b, %c : !mx.tensor<19x96xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, !mx.tensor<96x53xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>, tensor<19x53xf32> -> tensor<19x53xf32>
  return %0 : tensor<19x53xf32>
}

// An argument that must keep its value is copied once.

// CHECK-LABEL: func.func @kept(
// CHECK-SAME: %[[X:.*]]: memref<8xf32>) -> (memref<8xf32>, memref<8xf32>)
// CHECK: %[[NEW:.*]] = memref.alloc()
// CHECK-NOT: memref.alloc
// CHECK: return %[[NEW]], %[[X]]
func.func @kept(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0, %x : tensor<8xf32>, tensor<8xf32>
}
