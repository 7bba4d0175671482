// RUN: mx-opt %s --mx-tile-pipeline | filecheck %s
// RUN: mx-opt %s --mx-tile-pipeline --cse --canonicalize --loop-invariant-code-motion --mx-verify-scale-binding -o /dev/null

// A kernel as a front end writes it: logical views of scales, FP4 weights, no memory spaces, no bindings. Afterwards
// scales are loaded by boxes through views with strides, FP4 is cast in vec, data and scales reach the matrix unit
// through mat, and in every iteration their bindings come right before the matmul.

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU, mat>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU, mat>
!c = !mx.tile<16x32xf32>

// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %[[X:[^:]*]]: tensor<16x256xf4E2M1FN>, %[[XS:[^:]*]]: tensor<1x1x4x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [128, 128, 32, 2, 1]}>>, %[[Y:[^:]*]]: tensor<256x32xf8E4M3FN>, %[[YS:[^:]*]]: tensor<1x2x4x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_B_NN", strides = [256, 128, 32, 2, 1]}>>
// CHECK-SAME: mx_tensor_views_blocked
// CHECK: %[[INIT:.*]] = mx.tile_create {{.*}}, acc>
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[C:.*]] = %[[INIT]]) -> (!mx.tile<16x32xf32, acc>)
// CHECK: %[[W:.*]] = mx.tile_load %[[X]][0, %[[K]]] [16, 64] {target = "vec"}
// CHECK: %[[V:.*]] = mx.tile_cast %[[W]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, vec>
// CHECK: %[[AS:.*]] = mx.tile_load %[[XS]][0, 0, %{{.*}}, 0, 0] [1, 1, 1, 16, 2] {{.*}}{target = "mat"}
// CHECK: %[[B:.*]] = mx.tile_load %[[Y]][%[[K]], 0] [64, 32] {target = "mat"}
// CHECK: %[[BS:.*]] = mx.tile_load %[[YS]][0, 0, %{{.*}}, 0, 0] [1, 2, 1, 16, 2] {{.*}}{target = "mat"}
// CHECK: %[[A:.*]] = mx.tile_move %[[V]] : {{.*}}, mat>
// CHECK: %[[L:.*]] = mx.tile_move %[[A]] : {{.*}}, left>
// CHECK: %[[LS:.*]] = mx.tile_move %[[AS]] : {{.*}}, left_scale>
// CHECK: %[[R:.*]] = mx.tile_move %[[B]] : {{.*}}, right>
// CHECK: %[[RS:.*]] = mx.tile_move %[[BS]] : {{.*}}, right_scale>
// CHECK-NEXT: %[[LB:.*]] = mx.tget_scale_addr %[[LS]], %[[L]] :
// CHECK-NEXT: %[[RB:.*]] = mx.tget_scale_addr %[[RS]], %[[R]] :
// CHECK-NEXT: %[[D:.*]] = mx.matmul_mx_acc %[[C]], %[[L]], %[[LB]], %[[R]], %[[RB]] :
// CHECK-NEXT: scf.yield %[[D]]
// CHECK: mx.tile_store
func.func @kernel(%x: tensor<16x256xf4E2M1FN>, %xs: tensor<16x8xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %y: tensor<256x32xf8E4M3FN>, %ys: tensor<8x32xf8E8M0FNU, #mx.layout<"MX_B_NN">>, %out: tensor<16x32xf32>) -> tensor<16x32xf32> attributes {mx.kernel = "incore"} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %init = mx.tile_create : () -> !c
  %acc = scf.for %k = %c0 to %c256 step %c64 iter_args(%c = %init) -> !c {
    %g = arith.floordivsi %k, %c32 : index
    %w = mx.tile_load %x[0, %k] [16, 64] : tensor<16x256xf4E2M1FN> -> !mx.tile<16x64xf4E2M1FN>
    %a = mx.tile_cast %w : !mx.tile<16x64xf4E2M1FN> -> !a
    %as = mx.tile_load %xs[0, %g] [16, 2] {target = "mat"} : tensor<16x8xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !as
    %b = mx.tile_load %y[%k, 0] [64, 32] : tensor<256x32xf8E4M3FN> -> !b
    %bs = mx.tile_load %ys[%g, 0] [2, 32] {target = "mat"} : tensor<8x32xf8E8M0FNU, #mx.layout<"MX_B_NN">> -> !bs
    %0 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
    scf.yield %0 : !c
  }
  %r = mx.tile_store %acc, %out[0, 0] : !c, tensor<16x32xf32> -> tensor<16x32xf32>
  return %r : tensor<16x32xf32>
}
