// RUN: mx-opt %s --mx-expand-copies | filecheck %s

// A copy between buffers with strides becomes a linalg operation, whichever of the two has them.

// CHECK-LABEL: func.func @strided(
// CHECK-SAME: %[[A:.*]]: memref<2x4xf32>, %[[B:.*]]: memref<2x4xf32, strided<[8, 1], offset: ?>>)
// CHECK-NEXT: linalg.copy {{.*}}ins(%[[A]] : {{.*}}) outs(%[[B]] :
// CHECK-NEXT: linalg.copy {{.*}}ins(%[[B]] : {{.*}}) outs(%[[A]] :
// CHECK-NEXT: return
func.func @strided(%a: memref<2x4xf32>, %b: memref<2x4xf32, strided<[8, 1], offset: ?>>) {
  memref.copy %a, %b : memref<2x4xf32> to memref<2x4xf32, strided<[8, 1], offset: ?>>
  memref.copy %b, %a : memref<2x4xf32, strided<[8, 1], offset: ?>> to memref<2x4xf32>
  return
}

// Copies between contiguous buffers stay: they lower to memcpy.

// CHECK-LABEL: func.func @contiguous(
// CHECK-COUNT-2: memref.copy
// CHECK-NEXT: return
func.func @contiguous(%a: memref<?x4xf32>, %b: memref<?x4xf32>, %c: memref<f32>, %d: memref<f32>) {
  memref.copy %a, %b : memref<?x4xf32> to memref<?x4xf32>
  memref.copy %c, %d : memref<f32> to memref<f32>
  return
}
