// RUN: mx-opt %s --mx-to-linalg | filecheck %s

// Weights as checkpoints store them: [N, K], blocked along K, read where they lie.
// CHECK: #[[W:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK: #[[SW:.*]] = affine_map<(d0, d1, d2) -> (d1, d2 floordiv 32)>
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %[[X:.*]]: tensor<8x64xf32>, %[[C:.*]]: tensor<16x64xi8>, %[[S:.*]]: tensor<16x2xf8E8M0FNU>,
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[W]], #[[SW]], #{{.*}}]{{.*}} ins(%[[X]], %[[C]], %[[S]] :
// Codes of less than a byte lie in an i8 each.
// CHECK: %[[N:.*]] = arith.trunci %{{.*}} : i8 to i4
// CHECK: %[[F:.*]] = arith.bitcast %[[N]] : i4 to f4E2M1FN
// CHECK: arith.extf %[[F]] : f4E2M1FN to f32
func.func @transposed(%x: tensor<8x64xf32>, %w: !mx.tensor<16x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>, %acc: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = mx.block_matmul %x, %w, %acc {transpose_rhs} : tensor<8x64xf32>, <16x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// A side may lack batch axes, and an axis of extent 1 serves all: neither is a loop of that side.
// CHECK-LABEL: func.func @broadcast(
// CHECK: %[[ONE:.*]] = tensor.collapse_shape %{{.*}} : tensor<1x64x8xf32> into tensor<64x8xf32>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%{{.*}}, %{{.*}}, %[[ONE]] : tensor<32x64xf8E5M2>, tensor<32x2xf8E8M0FNU>, tensor<64x8xf32>)
func.func @broadcast(%a: !mx.tensor<32x64xf8E5M2, block_size = 32, scale_type = f8E8M0FNU>, %b: tensor<1x64x8xf32>, %acc: tensor<4x32x8xf32>) -> tensor<4x32x8xf32> {
  %0 = mx.block_matmul %a, %b, %acc : <32x64xf8E5M2, block_size = 32, scale_type = f8E8M0FNU>, tensor<1x64x8xf32>, tensor<4x32x8xf32> -> tensor<4x32x8xf32>
  return %0 : tensor<4x32x8xf32>
}

// MXINT8: integers times 2^-6.
// CHECK-LABEL: func.func @integers(
// CHECK: arith.sitofp %{{.*}} : i8 to f32
// CHECK: arith.constant 1.562500e-02 : f32
func.func @integers(%x: !mx.tensor<4x8xi8, block_size = 4, scale_type = f8E8M0FNU>) -> tensor<4x8xf32> {
  %0 = mx.dequantize_block %x : <4x8xi8, block_size = 4, scale_type = f8E8M0FNU> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// NVFP4: a scale with a significand is a quotient, not an exponent.
// CHECK-LABEL: func.func @nvfp4(
// CHECK-SAME: -> (tensor<4x32xi8>, tensor<4x2xf8E4M3FN>)
// CHECK: %[[Q:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f8E4M3FN
// CHECK: arith.divf
// CHECK: arith.truncf %{{.*}} : f32 to f4E2M1FN
func.func @nvfp4(%x: tensor<4x32xf32>) -> !mx.tensor<4x32xf4E2M1FN, block_size = 16, scale_type = f8E4M3FN> {
  %0 = mx.quantize_block %x : tensor<4x32xf32> -> <4x32xf4E2M1FN, block_size = 16, scale_type = f8E4M3FN>
  return %0 : !mx.tensor<4x32xf4E2M1FN, block_size = 16, scale_type = f8E4M3FN>
}
