// RUN: mx-opt %s | filecheck %s
// RUN: mx-opt %s | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC

!scales = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[S:.*]]: tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %[[N:.*]]: index)
func.func @views(%s: !scales, %n: index) {
  // CHECK: %[[FLAT:.*]] = mx.tensor_view %[[S]][1, 256] : tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> tensor<1x256xf8E8M0FNU>
  // GENERIC: "mx.tensor_view"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0>, static_sizes = array<i64: 1, 256>}
  %0 = mx.tensor_view %s[1, 256] : !scales -> tensor<1x256xf8E8M0FNU>
  // CHECK: mx.tensor_view %[[FLAT]][4, %[[N]]] : tensor<1x256xf8E8M0FNU> -> tensor<4x?xf8E8M0FNU, #mx.layout<"MX_B_NN">>
  // GENERIC: "mx.tensor_view"(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1>, static_sizes = array<i64: 4, -9223372036854775808>}
  %1 = mx.tensor_view %0 [4, %n] : tensor<1x256xf8E8M0FNU> -> tensor<4x?xf8E8M0FNU, #mx.layout<"MX_B_NN">>
  // A size that an operand gives may have a static extent in the type.
  // CHECK: mx.tensor_view %[[FLAT]][%[[N]], 4] : tensor<1x256xf8E8M0FNU> -> tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  %2 = mx.tensor_view %0[%n, 4] : tensor<1x256xf8E8M0FNU> -> !scales
  return
}

// CHECK-LABEL: func.func @loads(
// CHECK-SAME: %[[X:.*]]: tensor<64x128xf8E4M3FN>, %[[S:.*]]: tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %[[B:.*]]: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %[[I:.*]]: index)
func.func @loads(%x: tensor<64x128xf8E4M3FN>, %s: !scales, %b: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %i: index) {
  // CHECK: mx.tile_load %[[X]][0, 64] [16, 64] : tensor<64x128xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN>
  // GENERIC: "mx.tile_load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0, 64>, static_valid = array<i64>, static_window = array<i64: 16, 64>}
  %0 = mx.tile_load %x[0, 64] [16, 64] [] : tensor<64x128xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN>
  // CHECK: mx.tile_load %[[X]][%[[I]], 64] [%[[I]], 64] [%[[I]], 32] {target = "vec"} : tensor<64x128xf8E4M3FN> -> !mx.tile<?x64xf8E4M3FN, vec, valid = ?x32>
  // GENERIC: "mx.tile_load"(%{{.*}}, %[[I:.*]], %[[I]], %[[I]]) {operandSegmentSizes = array<i32: 1, 1, 1, 1>,
  %1 = mx.tile_load %x[%i, 64] [%i, 64] [%i, 32] {target = "vec"} : tensor<64x128xf8E4M3FN> -> !mx.tile<?x64xf8E4M3FN, vec, valid = ?x32>
  // The window may leave the tensor where the valid part does not.
  // CHECK: mx.tile_load %[[X]][56, 64] [16, 64] [8, 64]
  %2 = mx.tile_load %x[56, 64] [16, 64] [8, 64] : tensor<64x128xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN, valid = 8x64>
  // CHECK: mx.tile_load %[[S]][16, 2] [16, 2] {target = "mat"} : tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU, mat>
  %3 = mx.tile_load %s[16, 2] [16, 2] {target = "mat"} : !scales -> !mx.tile<16x2xf8E8M0FNU, mat>
  // CHECK: mx.tile_load %[[B]][0, %[[I]], 1, 0, 0] [1, 2, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<32x2xf8E8M0FNU, mat, valid = 16x2>
  %4 = mx.tile_load %b[0, %i, 1, 0, 0] [1, 2, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<32x2xf8E8M0FNU, mat, valid = 16x2>
  // CHECK: mx.tile_load %[[B]][0, 0, 0, 0, 0] [1, 2, 1, 16, 2] [1, 2, 1, 16, 2]
  %5 = mx.tile_load %b[0, 0, 0, 0, 0] [1, 2, 1, 16, 2] [1, 2, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<32x2xf8E8M0FNU, mat>
  return
}

// CHECK-LABEL: func.func @stores(
// CHECK-SAME: %[[T:.*]]: !mx.tile<16x32xf32, acc, valid = 8x?>, %[[U:.*]]: !mx.tile<16x32xf32>, %[[X:.*]]: tensor<64x64xf32>, %[[I:.*]]: index)
func.func @stores(%t: !mx.tile<16x32xf32, acc, valid = 8x?>, %u: !mx.tile<16x32xf32>, %x: tensor<64x64xf32>, %i: index) {
  // CHECK: %[[Y:.*]] = mx.tile_store %[[T]], %[[X]][%[[I]], 32] : !mx.tile<16x32xf32, acc, valid = 8x?>, tensor<64x64xf32> -> tensor<64x64xf32>
  // GENERIC: "mx.tile_store"(%{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 1>, static_offsets = array<i64: -9223372036854775808, 32>}
  %0 = mx.tile_store %t, %x[%i, 32] : !mx.tile<16x32xf32, acc, valid = 8x?>, tensor<64x64xf32> -> tensor<64x64xf32>
  // CHECK: mx.tile_store %[[U]], %[[Y]][48, 32] : !mx.tile<16x32xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = mx.tile_store %u, %0[48, 32] : !mx.tile<16x32xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return
}
