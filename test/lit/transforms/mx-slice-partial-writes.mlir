// RUN: mx-opt %s --mx-slice-partial-writes | filecheck %s
// RUN: mx-opt %s --mx-slice-partial-writes --one-shot-bufferize=bufferize-function-boundaries=1 | filecheck %s --check-prefix=BUFFERS

// One row: MLIR compares 5 with 7, and would leave the other rows of a copy as they are.
// CHECK-LABEL: @row
// CHECK-SAME:    %[[T:[^:]*]]: tensor<5x7xf32>
// CHECK:         %[[PART:.*]] = tensor.extract_slice %[[T]][0, 0] [1, 7] [1, 1]
// CHECK:         %[[WRITTEN:.*]] = vector.transfer_write %{{.*}}, %[[PART]][%{{.*}}] {in_bounds = [true]} : vector<7xf32>, tensor<1x7xf32>
// CHECK:         %[[WHOLE:.*]] = tensor.insert_slice %[[WRITTEN]] into %[[T]][0, 0] [1, 7] [1, 1]
// CHECK:         return %[[WHOLE]]
// BUFFERS-LABEL: @row
// BUFFERS:         memref.copy %{{.*}} : memref<5x7xf32
func.func @row(%t: tensor<5x7xf32> {bufferization.writable = false}, %v: vector<7xf32>) -> tensor<5x7xf32> {
  %c0 = arith.constant 0 : index
  %w = vector.transfer_write %v, %t[%c0, %c0] {in_bounds = [true]} : vector<7xf32>, tensor<5x7xf32>
  return %w : tensor<5x7xf32>
}

// CHECK-LABEL: @column
// CHECK:         tensor.extract_slice %{{.*}}[0, 0] [5, 1] [1, 1]
func.func @column(%t: tensor<5x7xf32>, %v: vector<5xf32>) -> tensor<5x7xf32> {
  %c0 = arith.constant 0 : index
  %w = vector.transfer_write %v, %t[%c0, %c0] {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>} : vector<5xf32>, tensor<5x7xf32>
  return %w : tensor<5x7xf32>
}

// CHECK-LABEL: @element
// CHECK:         tensor.extract_slice %{{.*}}[0, 0] [1, 1] [1, 1]
func.func @element(%t: tensor<5x7xf32>, %v: vector<f32>) -> tensor<5x7xf32> {
  %c0 = arith.constant 0 : index
  %w = vector.transfer_write %v, %t[%c0, %c0] : vector<f32>, tensor<5x7xf32>
  return %w : tensor<5x7xf32>
}

// What covers the tensor, and what MLIR sees to be partial, stays.
// CHECK-LABEL: @others
// CHECK-NOT:     extract_slice
// CHECK:         return
func.func @others(%row: tensor<1x7xf32>, %tall: tensor<9x7xf32>, %wide: tensor<5x8xf32>, %v: vector<7xf32>, %v2: vector<5x7xf32>, %i: index) -> (tensor<1x7xf32>, tensor<9x7xf32>, tensor<9x7xf32>, tensor<5x8xf32>) {
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_write %v, %row[%c0, %c0] {in_bounds = [true]} : vector<7xf32>, tensor<1x7xf32>
  %1 = vector.transfer_write %v, %tall[%c0, %c0] {in_bounds = [true]} : vector<7xf32>, tensor<9x7xf32>
  %2 = vector.transfer_write %v, %tall[%i, %c0] {in_bounds = [true]} : vector<7xf32>, tensor<9x7xf32>
  %3 = vector.transfer_write %v2, %wide[%c0, %c0] {in_bounds = [true, true]} : vector<5x7xf32>, tensor<5x8xf32>
  return %0, %1, %2, %3 : tensor<1x7xf32>, tensor<9x7xf32>, tensor<9x7xf32>, tensor<5x8xf32>
}
