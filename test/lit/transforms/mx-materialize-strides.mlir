// RUN: mx-opt %s --mx-materialize-strides --split-input-file | filecheck %s
// RUN: mx-opt %s --mx-materialize-strides --mx-materialize-strides --split-input-file | filecheck %s

// The packed strides of [1, X / 16, G / 2, 16, 2] are [(X / 16) * (G / 2) * 32, (G / 2) * 32, 32, 2, 1].

!a = tensor<1x4x8x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!b = tensor<1x2x1x16x2xui8, #mx.layout<"MX_B_NN">>

// CHECK-LABEL: module
// CHECK-SAME: test.scales = tensor<1x4x8x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [1024, 256, 32, 2, 1]}>>
module attributes {test.scales = !a} {

// CHECK-LABEL: func.func @everywhere(
// CHECK-SAME: %[[A:.*]]: tensor<1x4x8x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [1024, 256, 32, 2, 1]}>>
// CHECK-SAME: %{{.*}}: tensor<1x2x1x16x2xui8, #mx.layout<{layout = "MX_B_NN", strides = [64, 32, 32, 2, 1]}>>
// CHECK-SAME: %{{.*}}: tensor<64x16xf8E8M0FNU>) -> tuple<tensor<1x4x8x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [1024, 256, 32, 2, 1]}>>>
// CHECK: mx.tile_load %[[A]][0, 0, 0, 0, 0] [1, 1, 1, 16, 2] {target = "mat"} : tensor<1x4x8x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [1024, 256, 32, 2, 1]}>>
// CHECK: call @everywhere(%{{.*}}) {dump = tensor<1x2x1x16x2xui8, #mx.layout<{layout = "MX_B_NN", strides = [64, 32, 32, 2, 1]}>>}
func.func @everywhere(%a: !a, %b: !b, %x: tensor<64x16xf8E8M0FNU>) -> tuple<!a> {
  %0 = mx.tile_load %a[0, 0, 0, 0, 0] [1, 1, 1, 16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  %1 = call @everywhere(%a, %b, %x) {dump = !b} : (!a, !b, tensor<64x16xf8E8M0FNU>) -> tuple<!a>
  return %1 : tuple<!a>
}
}
