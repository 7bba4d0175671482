// The example, from the value level to a kernel that is ready for the engine.
// RUN: mx-opt %S/../../../examples/a5_matmul.mlir --mx-tile-matmul="m=32 n=32 k=256" --mx-tile-pipeline | filecheck %s
// RUN: mx-opt %S/../../../examples/a5_matmul.mlir --mx-tile-matmul="m=32 n=32 k=256" --mx-tile-pipeline | filecheck %s --check-prefix=BINDINGS
// RUN: mx-opt %S/../../../examples/a5_matmul.mlir --mx-tile-matmul="m=32 n=32 k=256" --mx-tile-pipeline --mx-tile-to-linalg --mx-lower-to-llvm | filecheck %s --check-prefix=LLVM

// Scales are rank 5 on both sides of the call.
// CHECK-LABEL: func.func @matmul(
// CHECK-SAME: attributes {mx_tensor_views_blocked}
// CHECK: %[[XS:.*]] = mx.tensor_view {{.*}}[1, 4, 12, 16, 2] : {{.*}} -> tensor<1x4x12x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [1536, 384, 32, 2, 1]}>>
// CHECK: %[[WS:.*]] = mx.tensor_view {{.*}}[1, 2, 12, 16, 2] : {{.*}} -> tensor<1x2x12x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_B_NN", strides = [768, 384, 32, 2, 1]}>>
// CHECK: call @[[KERNEL:[^(]*]](%{{.*}}, %[[XS]], %{{.*}}, %[[WS]], %{{.*}})

// CHECK: func.func private @[[KERNEL]](
// CHECK-SAME: %[[X:[^:]*]]: tensor<64x768xf8E4M3FN>, %[[XS:[^:]*]]: tensor<1x4x12x16x2xf8E8M0FNU,
// CHECK-SAME: %[[W:[^:]*]]: tensor<768x32xf4E2M1FN>, %[[WS:[^:]*]]: tensor<1x2x12x16x2xf8E8M0FNU,
// CHECK-SAME: %[[OUT:[^:]*]]: tensor<64x32xf32>)
// CHECK-SAME: attributes {mx.kernel = "incore", mx_tensor_views_blocked}
// CHECK: scf.for %[[M:.*]] = %c0 to %c64 step %c32 iter_args(%[[OUT1:.*]] = %[[OUT]])
// CHECK: %[[B:.*]] = arith.floordivsi %[[M]], %c16
// CHECK: mx.tile_load %[[XS]][0, %[[B]], 0, 0, 0] [1, 2, 4, 16, 2] {target = "mat"}
// CHECK: mx.tile_load %[[W]][0, 0] [256, 32] {target = "vec"}
// CHECK: mx.tile_load %[[WS]][0, 0, 0, 0, 0] [1, 2, 4, 16, 2] {target = "mat"}

// One binding on each side, right before the matmul, left then right.
// CHECK: %[[LS:.*]] = mx.tget_scale_addr %{{.*}}, %[[L:.*]] : {{.*}}, left_scale>, {{.*}}, left> ->
// CHECK-NEXT: %[[RS:.*]] = mx.tget_scale_addr %{{.*}}, %[[R:.*]] : {{.*}}, right_scale>, {{.*}}, right> ->
// CHECK-NEXT: %[[ACC:.*]] = mx.matmul_mx %[[L]], %[[LS]], %[[R]], %[[RS]] : {{.*}} -> !mx.tile<32x32xf32, acc>

// The group offset is divided as a whole. The loop binds anew.
// CHECK: %[[SUM:.*]] = scf.for %[[K:.*]] = %c256 to %c768 step %c256 iter_args(%[[ACC1:.*]] = %[[ACC]])
// CHECK: %[[G:.*]] = arith.floordivsi %[[K]], %c32
// CHECK: %[[B:.*]] = arith.floordivsi %[[M]], %c16
// CHECK: %[[BOX:.*]] = arith.floordivsi %[[G]], %c2
// CHECK: mx.tile_load %[[XS]][0, %[[B]], %[[BOX]], 0, 0] [1, 2, 4, 16, 2]
// CHECK: %[[BOX:.*]] = arith.floordivsi %[[G]], %c2
// CHECK: mx.tile_load %[[WS]][0, 0, %[[BOX]], 0, 0] [1, 2, 4, 16, 2]
// CHECK: mx.tile_cast %{{.*}} : !mx.tile<256x32xf4E2M1FN, vec> -> !mx.tile<256x32xf8E4M3FN, vec>
// CHECK: %[[LS:.*]] = mx.tget_scale_addr %{{.*}}, %[[L:.*]] : {{.*}}, left_scale>, {{.*}}, left> ->
// CHECK-NEXT: %[[RS:.*]] = mx.tget_scale_addr %{{.*}}, %[[R:.*]] : {{.*}}, right_scale>, {{.*}}, right> ->
// CHECK-NEXT: mx.matmul_mx_acc %[[ACC1]], %[[L]], %[[LS]], %[[R]], %[[RS]] :
// CHECK: mx.tile_store %[[SUM]], %[[OUT1]][%[[M]], 0]

// BINDINGS-COUNT-4: = mx.tget_scale_addr
// BINDINGS-NOT: = mx.tget_scale_addr

// LLVM: llvm.func @matmul
// LLVM-NOT: mx.
