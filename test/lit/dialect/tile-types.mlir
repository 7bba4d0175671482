// RUN: mx-opt %s | filecheck %s
// RUN: mx-opt %s | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | mx-opt | filecheck %s
// RUN: mx-opt %s --emit-bytecode | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC

// The types and attributes of tiles in every way of writing them, wherever they can stand.

!byte = ui8
!bytes = !mx.tile<16x2x!byte, mat>

// CHECK-LABEL: func.func private @tiles(
// CHECK-SAME: !mx.tile<16x64xf8E4M3FN>,
// CHECK-SAME: !mx.tile<16x64xf8E4M3FN, left>,
// CHECK-SAME: !mx.tile<16x64xf8E4M3FN, valid = 8x64>,
// CHECK-SAME: !mx.tile<?x2xf8E8M0FNU, left_scale, valid = 8x?>,
// CHECK-SAME: !mx.tile<?x?xbf16, vec>,
// CHECK-SAME: !mx.tile<16x2xui8, mat>,
// CHECK-SAME: tuple<!mx.tile<0x0xi32, acc>, i32>
// CHECK-SAME: -> !mx.tile<1x32xf32, bias>
// CHECK-SAME: attributes {mx.type = !mx.tile<64x32xf4E2M1FN, right, valid = 0x32>}
// GENERIC: !mx.tile<tensor<16x64xf8E4M3FN>, "undecided", [16, 64]>
// GENERIC-SAME: !mx.tile<tensor<16x64xf8E4M3FN>, "left", [16, 64]>
// GENERIC-SAME: !mx.tile<tensor<16x64xf8E4M3FN>, "undecided", [8, 64]>
// GENERIC-SAME: !mx.tile<tensor<?x2xf8E8M0FNU>, "left_scale", [8, -9223372036854775808]>
func.func private @tiles(
    !mx.tile<16x64xf8E4M3FN>,
    !mx.tile< 16 x 64 x f8E4M3FN,left >,
    // The order of what follows the shape does not matter.
    !mx.tile<16x64xf8E4M3FN, valid=8 x 64>,
    !mx.tile<?x2xf8E8M0FNU, valid = 8x?, // Rows, columns.
             left_scale>,
    !mx.tile<?x?xbf16, vec, valid = ?x?>,
    !bytes,
    tuple<!mx.tile<tensor<0x0xi32>, "acc", [0, 0]>, i32>
  ) -> !mx.tile<1x32xf32, bias>
  attributes {mx.type = !mx.tile<64x32xf4E2M1FN, right, valid = 0x32>}

// CHECK-LABEL: func.func private @task(!mx.task) -> !mx.task
func.func private @task(!mx.task) -> !mx.task

// CHECK-LABEL: func.func private @layouts(
// CHECK-SAME: tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>,
// CHECK-SAME: tensor<?x64xi8, #mx.layout<"MX_B_NN">>,
// CHECK-SAME: tensor<1x4x2x16x2xui8, #mx.layout<"MX_A_ZZ">>,
// CHECK-SAME: tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>,
// CHECK-SAME: tensor<64x4xf8E8M0FNU, #mx.layout<{distributed, layout = "MX_A_ZZ", strides = [4, 1], valid_shape = [60, 3]}>>
#rows = #mx.layout<"MX_A_ZZ">
func.func private @layouts(
    tensor<64x4xf8E8M0FNU, #rows>,
    tensor<?x64xi8, #mx.layout<"MX_B_NN">>,
    tensor<1x4x2x16x2xui8, #rows>,
    tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>,
    tensor<64x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", valid_shape = [60, 3], strides = [4, 1], distributed}>>)
