// RUN: mx-opt %s --mx-to-linalg | filecheck %s

!a = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x16xf8E4M3FN, block_size = 16, scale_type = f8E8M0FNU, axis = 0>

// The seed case: one generic, the scale read through a floordiv, no dequantized operand.
// CHECK: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: #[[SA:.*]] = affine_map<(d0, d1, d2) -> (d0, d2 floordiv 32)>
// CHECK: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: #[[SB:.*]] = affine_map<(d0, d1, d2) -> (d2 floordiv 16, d1)>

// CHECK-LABEL: func.func @lhs(
// CHECK-SAME: %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>, %[[RHS:.*]]: tensor<64x16xf32>, %[[ACC:.*]]: tensor<32x16xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[SA]], #[[B]], #[[C]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[M]], %[[S]], %[[RHS]] :
// CHECK-SAME: outs(%[[ACC]] :
// CHECK: ^bb0(%[[IN:.*]]: f8E4M3FN, %[[SCALE:.*]]: f8E8M0FNU, %[[R:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[X:.*]] = arith.extf %[[IN]] : f8E4M3FN to f32
// CHECK-NEXT: %[[P:.*]] = arith.extf %[[SCALE]] : f8E8M0FNU to f32
// CHECK-NEXT: %[[V:.*]] = arith.mulf %[[X]], %[[P]] : f32
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[V]], %[[R]] : f32
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[OUT]], %[[PRODUCT]] : f32
// CHECK-NEXT: linalg.yield %[[SUM]] : f32
// CHECK-NOT: mx.
func.func @lhs(%a: !a, %b: tensor<64x16xf32>, %acc: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = mx.block_matmul %a, %b, %acc : !a, tensor<64x16xf32>, tensor<32x16xf32> -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// CHECK-LABEL: func.func @rhs(
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[SB]], #[[C]]]
// CHECK: ^bb0(%[[L:.*]]: f32, %[[IN:.*]]: f8E4M3FN, %[[SCALE:.*]]: f8E8M0FNU, %{{.*}}: f32):
// CHECK: arith.extf %[[IN]]
// CHECK: %[[V:.*]] = arith.mulf
// CHECK: arith.mulf %[[L]], %[[V]] : f32
func.func @rhs(%a: tensor<32x64xf32>, %b: !b, %acc: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = mx.block_matmul %a, %b, %acc : tensor<32x64xf32>, !b, tensor<32x16xf32> -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// Both sides, with block sizes of their own.
// CHECK-LABEL: func.func @both(
// CHECK: linalg.generic {indexing_maps = [#[[A]], #[[SA]], #[[B]], #[[SB]], #[[C]]]
func.func @both(%a: !a, %b: !b, %acc: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<32x16xf32> -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// A dense 16-bit operand is extended in the payload, not before it.
// CHECK-LABEL: func.func @half(
// CHECK: linalg.generic
// CHECK: ^bb0({{.*}}, %[[H:.*]]: bf16, %{{.*}}: f32):
// CHECK: arith.extf %[[H]] : bf16 to f32
func.func @half(%a: !a, %b: tensor<64x16xbf16>, %acc: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = mx.block_matmul %a, %b, %acc : !a, tensor<64x16xbf16>, tensor<32x16xf32> -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// Batch dimensions are leading parallel loops; extents may be dynamic.
// CHECK-LABEL: func.func @batch(
// CHECK-SAME: tensor<4x?x64xf8E4M3FN>, %{{.*}}: tensor<4x?x2xf8E8M0FNU>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
func.func @batch(%a: !mx.tensor<4x?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %b: tensor<4x64x8xf32>, %acc: tensor<4x?x8xf32>) -> tensor<4x?x8xf32> {
  %0 = mx.block_matmul %a, %b, %acc : <4x?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<4x64x8xf32>, tensor<4x?x8xf32> -> tensor<4x?x8xf32>
  return %0 : tensor<4x?x8xf32>
}
