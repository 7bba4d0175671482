// RUN: mx-opt %s --mx-tile-to-linalg | filecheck %s

// CHECK: #[[LEFT_SCALE:.*]] = affine_map<(d0, d1, d2) -> (d0, d2 floordiv 32)>
// CHECK: #[[RIGHT_SCALE:.*]] = affine_map<(d0, d1, d2) -> (d2 floordiv 32, d1)>

// A move is the tile itself; bytes become scales, FP4 codes FP8.
// CHECK-LABEL: func.func @moves(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<16x64xf8E4M3FN>,
// CHECK: arith.bitcast %{{.*}} : i8 to f8E8M0FNU
// CHECK: %[[F:.*]] = arith.extf %{{.*}} : f4E2M1FN to f32
// CHECK: arith.truncf %[[F]] : f32 to f8E4M3FN
// CHECK: linalg.fill ins(%cst{{.*}} : f32) outs(%{{.*}} : tensor<16x32xf32>)
// CHECK: return %[[X]],
func.func @moves(%x: !mx.tile<16x64xf8E4M3FN, mat>, %s: !mx.tile<16x2xui8, mat>, %c: !mx.tile<16x64xf4E2M1FN, vec>) -> (!mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x32xf32, vec>) {
  %0 = mx.tile_move %x : !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x64xf8E4M3FN, left>
  %1 = mx.tile_move %s : !mx.tile<16x2xui8, mat> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  %2 = mx.tile_cast %c : !mx.tile<16x64xf4E2M1FN, vec> -> !mx.tile<16x64xf8E4M3FN, vec>
  %3 = mx.tile_create : () -> !mx.tile<16x32xf32, vec>
  return %0, %1, %2, %3 : !mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x32xf32, vec>
}

// An extent that a type leaves open may be static in another, which is asserted.
// CHECK-LABEL: func.func @claim(
// CHECK: cf.assert %{{.*}}, "mx.tile_move: the extent of axis 0 is not 8"
// CHECK: tensor.cast %{{.*}} : tensor<?x64xf32> to tensor<8x64xf32>
func.func @claim(%x: !mx.tile<16x64xf32, vec, valid = ?x64>) -> !mx.tile<16x64xf32, mat, valid = 8x64> {
  %0 = mx.tile_move %x : !mx.tile<16x64xf32, vec, valid = ?x64> -> !mx.tile<16x64xf32, mat, valid = 8x64>
  return %0 : !mx.tile<16x64xf32, mat, valid = 8x64>
}

// Scales are read through `k floordiv 32`, each valid K is 48 here; a binding is its scale.
// CHECK-LABEL: func.func @matmul(
// CHECK-SAME: %[[A:.*]]: tensor<8x48xf8E4M3FN>, %[[S:.*]]: tensor<8x2xf8E8M0FNU>, %[[B:.*]]: tensor<48x32xf8E4M3FN>, %[[T:.*]]: tensor<2x32xf8E8M0FNU>)
// CHECK: %[[ZERO:.*]] = linalg.fill ins(%cst
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[LEFT_SCALE]], #{{.*}}, #[[RIGHT_SCALE]], #{{.*}}], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[A]], %[[S]], %[[B]], %[[T]] : {{.*}}) outs(%[[ZERO]] : tensor<8x32xf32>)
func.func @matmul(%a: !mx.tile<16x64xf8E4M3FN, left, valid = 8x48>, %s: !mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x2>, %b: !mx.tile<64x32xf8E4M3FN, right, valid = 48x32>, %t: !mx.tile<2x32xf8E8M0FNU, right_scale>) -> !mx.tile<16x32xf32, acc, valid = 8x32> {
  %0 = mx.tget_scale_addr %s, %a : !mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x2>, !mx.tile<16x64xf8E4M3FN, left, valid = 8x48> -> !mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x2>
  %1 = mx.matmul_mx %a, %0, %b, %t : !mx.tile<16x64xf8E4M3FN, left, valid = 8x48>, !mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x2>, !mx.tile<64x32xf8E4M3FN, right, valid = 48x32>, !mx.tile<2x32xf8E8M0FNU, right_scale> -> !mx.tile<16x32xf32, acc, valid = 8x32>
  return %1 : !mx.tile<16x32xf32, acc, valid = 8x32>
}

// Open extents are those of the data; scales may have more entries, of which the first are taken.
// CHECK-LABEL: func.func @matmul_dynamic(
// CHECK-SAME: %[[ACC:.*]]: tensor<?x32xf32>, %[[A:.*]]: tensor<?x?xf8E4M3FN>, %[[S:.*]]: tensor<?x?xf8E8M0FNU>,
// CHECK: %[[K:.*]] = tensor.dim %[[A]], %c1
// CHECK: cf.assert %{{.*}}, "mx.matmul_mx_acc: lhs and rhs have different valid K"
// CHECK: %[[M:.*]] = tensor.dim %[[A]], %c0
// CHECK: cf.assert %{{.*}}, "mx.matmul_mx_acc: lhs_scale has too few entries along axis 0"
// CHECK: cf.assert %{{.*}}, "mx.matmul_mx_acc: lhs_scale has too few entries along axis 1"
// CHECK: %[[F:.*]] = tensor.extract_slice %[[S]][0, 0] [%[[M]], 2] [1, 1] : tensor<?x?xf8E8M0FNU> to tensor<?x2xf8E8M0FNU>
// CHECK: cf.assert %{{.*}}, "mx.matmul_mx_acc: acc has another valid M than the product"
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[F]], {{.*}}) outs(%[[ACC]] : tensor<?x32xf32>)
func.func @matmul_dynamic(%c: !mx.tile<16x32xf32, valid = ?x32>, %a: !mx.tile<16x64xf8E4M3FN, valid = ?x?>, %s: !mx.tile<16x2xf8E8M0FNU, valid = ?x?>, %b: !mx.tile<64x32xf8E4M3FN>, %t: !mx.tile<2x32xf8E8M0FNU>) -> !mx.tile<16x32xf32, valid = ?x32> {
  %0 = mx.matmul_mx_acc %c, %a, %s, %b, %t : !mx.tile<16x32xf32, valid = ?x32>, !mx.tile<16x64xf8E4M3FN, valid = ?x?>, !mx.tile<16x2xf8E8M0FNU, valid = ?x?>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32, valid = ?x32>
  return %0 : !mx.tile<16x32xf32, valid = ?x32>
}

// CHECK-LABEL: func.func @matmul_bias(
// CHECK: %[[ROW:.*]] = tensor.collapse_shape %{{.*}} : tensor<1x32xf32> into tensor<32xf32>
// CHECK: %[[BIAS:.*]] = linalg.generic {{.*}} ins(%[[ROW]] : tensor<32xf32>) outs(%{{.*}} : tensor<16x32xf32>)
// CHECK: linalg.generic {{.*}} outs(%[[BIAS]] : tensor<16x32xf32>)
func.func @matmul_bias(%a: !mx.tile<16x64xf8E4M3FN>, %s: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %t: !mx.tile<2x32xf8E8M0FNU>, %c: !mx.tile<1x32xf32>) -> !mx.tile<16x32xf32> {
  %0 = mx.matmul_mx_bias %a, %s, %b, %t, %c : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU>, !mx.tile<1x32xf32> -> !mx.tile<16x32xf32>
  return %0 : !mx.tile<16x32xf32>
}

// A last group of fewer than 32 elements is filled up with zeros.
// CHECK-LABEL: func.func @quant(
// CHECK-SAME: %[[X:.*]]: tensor<16x48xbf16>)
// CHECK: %[[P:.*]] = tensor.insert_slice %[[X]] into %{{.*}}[0, 0] [16, 48] [1, 1] : tensor<16x48xbf16> into tensor<16x64xbf16>
// CHECK: tensor.expand_shape %[[P]] {{.*}} into tensor<16x2x32xbf16>
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [16, 48] [1, 1] : tensor<16x64xf8E4M3FN> to tensor<16x48xf8E4M3FN>
// CHECK: return %{{.*}} : tensor<16x48xf8E4M3FN>, tensor<16x2xf8E8M0FNU>
func.func @quant(%x: !mx.tile<16x64xbf16, vec, valid = 16x48>) -> (!mx.tile<16x64xf8E4M3FN, vec, valid = 16x48>, !mx.tile<16x2xf8E8M0FNU, vec>) {
  %0, %1 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec, valid = 16x48> -> (!mx.tile<16x64xf8E4M3FN, vec, valid = 16x48>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return %0, %1 : !mx.tile<16x64xf8E4M3FN, vec, valid = 16x48>, !mx.tile<16x2xf8E8M0FNU, vec>
}

// CHECK-LABEL: func.func @quant_rows(
// CHECK-NOT: tensor.insert_slice
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]] {{.*}} into tensor<2x32x16xf32>
func.func @quant_rows(%x: !mx.tile<64x16xf32, vec>) -> (!mx.tile<64x16xf8E5M2, vec>, !mx.tile<2x16xf8E8M0FNU, vec>) {
  %0, %1 = mx.quant_mx %x {layout = "MX_B_NN"} : !mx.tile<64x16xf32, vec> -> (!mx.tile<64x16xf8E5M2, vec>, !mx.tile<2x16xf8E8M0FNU, vec>)
  return %0, %1 : !mx.tile<64x16xf8E5M2, vec>, !mx.tile<2x16xf8E8M0FNU, vec>
}
