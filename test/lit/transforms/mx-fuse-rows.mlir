// RUN: mx-opt %s --mx-fuse-rows=cache-bytes=1024 | filecheck %s

#row = affine_map<(d0, d1) -> (d0, d1)>
#max = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1, d0)>

// A row-wise maximum and what uses it: eight rows of 16 floats, twice, and eight maxima are about a kilobyte.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[X:.*]]: tensor<64x16xf32>)
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[OUT:.*]] = %{{.*}})
// CHECK: %[[ROWS:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [4, 16] [1, 1]
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%[[ROWS]] : tensor<4x16xf32>)
// CHECK: %[[INTO:.*]] = tensor.extract_slice %[[OUT]][%[[I]], 0] [4, 16] [1, 1]
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[ROWS]], %[[M]] : tensor<4x16xf32>, tensor<4xf32>) outs(%[[INTO]]
// CHECK: tensor.insert_slice %[[E]] into %[[OUT]][%[[I]], 0] [4, 16] [1, 1]
// CHECK: return %[[R]]
func.func @chain(%x: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%0 : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#row, #max], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x16xf32>) outs(%1 : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<64xf32>
  %3 = tensor.empty() : tensor<64x16xf32>
  %4 = linalg.generic {indexing_maps = [#row, #max, #row], iterator_types = ["parallel", "parallel"]} ins(%x, %2 : tensor<64x16xf32>, tensor<64xf32>) outs(%3 : tensor<64x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x16xf32>
  return %4 : tensor<64x16xf32>
}

// What is updated in place stays so.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME: %{{.*}}: tensor<64x16xf32>, %[[ACC:[a-z0-9]+]]: tensor<64x16xf32>)
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ACC]])
func.func @in_place(%x: tensor<64x16xf32>, %acc: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %0 = tensor.empty() : tensor<64x16xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x16xf32>) outs(%0 : tensor<64x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<64x16xf32>
  %2 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<64x16xf32>) outs(%acc : tensor<64x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<64x16xf32>
  return %2 : tensor<64x16xf32>
}

// Small tensors are in cache anyway.
// CHECK-LABEL: func.func @small(
// CHECK-NOT: scf.for
func.func @small(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = tensor.empty() : tensor<4x16xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x16xf32>) outs(%0 : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<4x16xf32>
  %2 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x16xf32>) outs(%0 : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}

// A transposed reader needs all rows of what it reads.
// CHECK-LABEL: func.func @transposed(
// CHECK-NOT: scf.for
func.func @transposed(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = tensor.empty() : tensor<64x64xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<64x64xf32>
  %2 = linalg.generic {indexing_maps = [#column, #row], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// A result that something before the end of the chain uses cannot wait for the loop.
// CHECK-LABEL: func.func @used_early(
// CHECK-NOT: scf.for
func.func @used_early(%x: tensor<64x16xf32>) -> (tensor<64x16xf32>, f32) {
  %c0 = arith.constant 0 : index
  %0 = tensor.empty() : tensor<64x16xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x16xf32>) outs(%0 : tensor<64x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<64x16xf32>
  %e = tensor.extract %1[%c0, %c0] : tensor<64x16xf32>
  %2 = linalg.generic {indexing_maps = [#row, affine_map<(d0, d1) -> ()>, #row], iterator_types = ["parallel", "parallel"]} ins(%1, %e : tensor<64x16xf32>, f32) outs(%0 : tensor<64x16xf32>) {
  ^bb0(%a: f32, %s: f32, %b: f32):
    %m = arith.mulf %a, %s : f32
    linalg.yield %m : f32
  } -> tensor<64x16xf32>
  return %2, %e : tensor<64x16xf32>, f32
}

// A result may be used in a later block: that runs when the loop is done.
// CHECK-LABEL: func.func @later_block(
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK: cf.br
// CHECK: return %[[R]]#{{[01]}}, %[[R]]#{{[01]}}
func.func @later_block(%x: tensor<64x16xf32>) -> (tensor<64x16xf32>, tensor<64x16xf32>) {
  %0 = tensor.empty() : tensor<64x16xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x16xf32>) outs(%0 : tensor<64x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<64x16xf32>
  %2 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<64x16xf32>) outs(%0 : tensor<64x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<64x16xf32>
  cf.br ^bb1
^bb1:
  return %1, %2 : tensor<64x16xf32>, tensor<64x16xf32>
}
