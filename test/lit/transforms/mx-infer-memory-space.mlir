// RUN: mx-opt %s --split-input-file --mx-infer-memory-space | filecheck %s

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
!c = !mx.tile<16x32xf32>
!layout_a = tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!layout_b = tensor<2x32xf8E8M0FNU, #mx.layout<"MX_B_NN">>

// Data and scales are loaded to mat and moved on before their first use, once; what is stored from acc stays there.

// CHECK-LABEL: func.func @straight_line(
// CHECK-NEXT: %[[A:.*]] = mx.tile_load {{.*}} {target = "mat"} : {{.*}} -> !mx.tile<16x64xf8E4M3FN, mat>
// CHECK-NEXT: %[[AS:.*]] = mx.tile_load {{.*}} {target = "mat"} : {{.*}} -> !mx.tile<16x2xf8E8M0FNU, mat>
// CHECK-NEXT: %[[B:.*]] = mx.tile_load
// CHECK-NEXT: %[[BS:.*]] = mx.tile_load
// CHECK-NEXT: %[[L:.*]] = mx.tile_move %[[A]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, left>
// CHECK-NEXT: %[[LS:.*]] = mx.tile_move %[[AS]] : {{.*}} -> !mx.tile<16x2xf8E8M0FNU, left_scale>
// CHECK-NEXT: %[[R:.*]] = mx.tile_move %[[B]] : {{.*}} -> !mx.tile<64x32xf8E4M3FN, right>
// CHECK-NEXT: %[[RS:.*]] = mx.tile_move %[[BS]] : {{.*}} -> !mx.tile<2x32xf8E8M0FNU, right_scale>
// CHECK-NEXT: %[[C:.*]] = mx.matmul_mx %[[L]], %[[LS]], %[[R]], %[[RS]] : {{.*}} -> !mx.tile<16x32xf32, acc>
// CHECK-NEXT: %[[D:.*]] = mx.matmul_mx_acc %[[C]], %[[L]], %[[LS]], %[[R]], %[[RS]] : {{.*}} -> !mx.tile<16x32xf32, acc>
// CHECK-NEXT: mx.tile_store %[[D]]
func.func @straight_line(%x: tensor<16x64xf8E4M3FN>, %xs: !layout_a, %y: tensor<64x32xf8E4M3FN>, %ys: !layout_b, %out: tensor<16x32xf32>) -> tensor<16x32xf32> attributes {mx.kernel = "aic"} {
  %a = mx.tile_load %x[0, 0] [16, 64] : tensor<16x64xf8E4M3FN> -> !a
  %as = mx.tile_load %xs[0, 0] [16, 2] : !layout_a -> !as
  %b = mx.tile_load %y[0, 0] [64, 32] : tensor<64x32xf8E4M3FN> -> !b
  %bs = mx.tile_load %ys[0, 0] [2, 32] : !layout_b -> !bs
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = mx.matmul_mx_acc %0, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %2 = mx.tile_store %1, %out[0, 0] : !c, tensor<16x32xf32> -> tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}

// What is decided stays; only moves are added.

// CHECK-LABEL: func.func @decided(
// CHECK-SAME: %[[A:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS:.*]]: !mx.tile<16x2xf8E8M0FNU, mat>,
// CHECK-NEXT: %[[LS:.*]] = mx.tile_move %[[AS]]
// CHECK-NEXT: mx.matmul_mx %[[A]], %[[LS]],
func.func @decided(%a: !mx.tile<16x64xf8E4M3FN, left>, %as: !mx.tile<16x2xf8E8M0FNU, mat>, %b: !mx.tile<64x32xf8E4M3FN, right>, %bs: !mx.tile<2x32xf8E8M0FNU, right_scale>) -> !mx.tile<16x32xf32, acc> attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, mat>, !mx.tile<64x32xf8E4M3FN, right>, !mx.tile<2x32xf8E8M0FNU, right_scale> -> !mx.tile<16x32xf32, acc>
  return %0 : !mx.tile<16x32xf32, acc>
}

// No kernel, nothing to decide.

// CHECK-LABEL: func.func @no_kernel(
// CHECK-SAME: -> !mx.tile<16x32xf32> {
func.func @no_kernel(%a: !a, %as: !as, %b: !b, %bs: !bs) -> !c {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  return %0 : !c
}

// Quantization is the vector unit's work: its data and scales go from vec to mat and on.

// CHECK-LABEL: func.func @quantized(
// CHECK: %[[X:.*]] = mx.tile_load {{.*}} {target = "vec"} :
// CHECK-NEXT: %[[Q:.*]]:2 = mx.quant_mx %[[X]] {{.*}} -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
// CHECK-NEXT: %[[Z:.*]] = mx.tile_load {{.*}} {target = "mat"}
// CHECK-NEXT: %[[QM:.*]] = mx.tile_move %[[Q]]#0 : {{.*}} -> !mx.tile<16x64xf8E4M3FN, mat>
// CHECK-NEXT: %[[L:.*]] = mx.tile_move %[[QM]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, left>
// CHECK-NEXT: %[[QSM:.*]] = mx.tile_move %[[Q]]#1 : {{.*}} -> !mx.tile<16x2xf8E8M0FNU, mat>
// CHECK-NEXT: %[[LS:.*]] = mx.tile_move %[[QSM]] : {{.*}} -> !mx.tile<16x2xf8E8M0FNU, left_scale>
// CHECK-NEXT: %[[BIAS:.*]] = mx.tile_move %[[Z]] : {{.*}} -> !mx.tile<1x32xf32, bias>
// CHECK-NEXT: mx.matmul_mx_bias %[[L]], %[[LS]], %{{.*}}, %{{.*}}, %[[BIAS]] :
func.func @quantized(%x: tensor<16x64xbf16>, %b: !b, %bs: !bs, %z: tensor<1x32xf32>, %out: tensor<16x32xf32>) -> tensor<16x32xf32> attributes {mx.kernel = "incore"} {
  %0 = mx.tile_load %x[0, 0] [16, 64] : tensor<16x64xbf16> -> !mx.tile<16x64xbf16>
  %a, %as = mx.quant_mx %0 {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16> -> (!a, !as)
  %bias = mx.tile_load %z[0, 0] [1, 32] : tensor<1x32xf32> -> !mx.tile<1x32xf32>
  %1 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !a, !as, !b, !bs, !mx.tile<1x32xf32> -> !c
  %2 = mx.tile_store %1, %out[0, 0] : !c, tensor<16x32xf32> -> tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}

// A load serves the vector unit alone from vec, and both it and a matmul from mat; acc is read out to either.

// CHECK-LABEL: func.func @shared(
// CHECK: %[[W:.*]] = mx.tile_load {{.*}} {target = "vec"}
// CHECK-NEXT: mx.tile_cast %[[W]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, vec>
// CHECK-NEXT: %[[C:.*]] = mx.matmul_mx
// CHECK-NEXT: %[[V:.*]] = mx.tile_move %[[C]] : !mx.tile<16x64xf32, acc> -> !mx.tile<16x64xf32, vec>
// CHECK-NEXT: mx.quant_mx %[[V]]
// CHECK-NEXT: mx.tile_store %[[C]]
func.func @shared(%w: tensor<16x64xf4E2M1FN>, %a: !a, %as: !as, %b: !mx.tile<64x64xf8E4M3FN>, %bs: !mx.tile<2x64xf8E8M0FNU>, %out: tensor<16x64xf32>) -> tensor<16x64xf32> attributes {mx.kernel = "incore"} {
  %0 = mx.tile_load %w[0, 0] [16, 64] : tensor<16x64xf4E2M1FN> -> !mx.tile<16x64xf4E2M1FN>
  %1 = mx.tile_cast %0 : !mx.tile<16x64xf4E2M1FN> -> !a
  %2 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !mx.tile<64x64xf8E4M3FN>, !mx.tile<2x64xf8E8M0FNU> -> !mx.tile<16x64xf32>
  %3, %4 = mx.quant_mx %2 {layout = "MX_A_ZZ"} : !mx.tile<16x64xf32> -> (!a, !as)
  %5 = mx.tile_store %2, %out[0, 0] : !mx.tile<16x64xf32>, tensor<16x64xf32> -> tensor<16x64xf32>
  return %5 : tensor<16x64xf32>
}

// Both operands of a matmul from one tile; a created one where it is needed, scales and what several need in mat.

// CHECK-LABEL: func.func @creates(
// CHECK-NEXT: mx.tile_create {{.*}}!mx.tile<32x32xf32, acc>
// CHECK-NEXT: %[[X:.*]] = mx.tile_create {{.*}}!mx.tile<64x64xf8E4M3FN, mat>
// CHECK-NEXT: %[[S:.*]] = mx.tile_create {{.*}}!mx.tile<64x2xf8E8M0FNU, mat>
// CHECK-NEXT: mx.tile_create {{.*}}!mx.tile<2x64xf8E8M0FNU, mat>
// CHECK-NEXT: mx.tile_create {{.*}}!mx.tile<1x64xf32, bias>
// CHECK-NEXT: mx.tile_create {{.*}}!mx.tile<64x64xf32, vec>
// CHECK-NEXT: mx.tile_create {{.*}}!mx.tile<16x64xf32, vec>
// CHECK-NEXT: mx.tile_move %[[X]] : {{.*}}, left>
// CHECK-NEXT: mx.tile_move %[[S]] : {{.*}}, left_scale>
// CHECK-NEXT: mx.tile_move %[[X]] : {{.*}}, right>
func.func @creates(%out: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {mx.kernel = "incore"} {
  %0 = mx.tile_create : () -> !mx.tile<32x32xf32, acc>
  %x = mx.tile_create : () -> !mx.tile<64x64xf8E4M3FN>
  %s = mx.tile_create : () -> !mx.tile<64x2xf8E8M0FNU>
  %t = mx.tile_create : () -> !mx.tile<2x64xf8E8M0FNU>
  %bias = mx.tile_create : () -> !mx.tile<1x64xf32>
  %q = mx.tile_create : () -> !mx.tile<64x64xf32>
  %unused = mx.tile_create : () -> !mx.tile<16x64xf32>
  %1 = mx.matmul_mx_bias %x, %s, %x, %t, %bias : !mx.tile<64x64xf8E4M3FN>, !mx.tile<64x2xf8E8M0FNU>, !mx.tile<64x64xf8E4M3FN>, !mx.tile<2x64xf8E8M0FNU>, !mx.tile<1x64xf32> -> !mx.tile<64x64xf32>
  %2, %3 = mx.quant_mx %q {layout = "MX_A_ZZ"} : !mx.tile<64x64xf32> -> (!mx.tile<64x64xf8E4M3FN>, !mx.tile<64x2xf8E8M0FNU>)
  %4 = mx.tile_store %1, %out[0, 0] : !mx.tile<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}

// What a matmul accumulates into is in acc from the start: no way leads there. Others are moved from there.

// CHECK-LABEL: func.func @accumulators(
// CHECK-SAME: %[[D:[^:]*]]: !mx.tile<16x32xf32, acc>,
// CHECK: %[[C:.*]] = mx.tile_create {{.*}}!mx.tile<16x32xf32, acc>
// CHECK-NEXT: %[[CV:.*]] = mx.tile_move %[[C]] : !mx.tile<16x32xf32, acc> -> !mx.tile<16x32xf32, vec>
// CHECK-NEXT: mx.quant_mx %[[CV]]
// CHECK: mx.matmul_mx_acc %[[C]],
// CHECK-NEXT: %[[DV:.*]] = mx.tile_move %[[D]] : !mx.tile<16x32xf32, acc> -> !mx.tile<16x32xf32, vec>
// CHECK-NEXT: mx.quant_mx %[[DV]]
// CHECK-NEXT: mx.matmul_mx_acc %[[D]],
func.func @accumulators(%d: !c, %a: !a, %as: !as, %b: !b, %bs: !bs) attributes {mx.kernel = "incore"} {
  %c = mx.tile_create : () -> !c
  %0, %1 = mx.quant_mx %c {layout = "MX_A_ZZ"} : !c -> (!mx.tile<16x32xf8E4M3FN>, !mx.tile<16x1xf8E8M0FNU>)
  %2 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %3, %4 = mx.quant_mx %d {layout = "MX_A_ZZ"} : !c -> (!mx.tile<16x32xf8E4M3FN>, !mx.tile<16x1xf8E8M0FNU>)
  %5 = mx.matmul_mx_acc %d, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return
}

// -----

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
!c = !mx.tile<16x32xf32>

// A branch has its own moves; neither the other branch nor what follows uses them.

// CHECK-LABEL: func.func @branches(
// CHECK-SAME: %[[B:.*]]: !mx.tile<64x32xf8E4M3FN, right>
// CHECK: %[[A:.*]] = mx.tile_load
// CHECK: scf.if
// CHECK-NEXT: %[[L:.*]] = mx.tile_move %[[A]]
// CHECK-NEXT: mx.matmul_mx %[[L]],
// CHECK: } else {
// CHECK-NEXT: %[[L2:.*]] = mx.tile_move %[[A]]
// CHECK-NEXT: mx.matmul_mx %[[L2]],
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[L2]],
// CHECK: }
// CHECK-NEXT: %[[L3:.*]] = mx.tile_move %[[A]]
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[L3]],
// CHECK-NEXT: return
func.func @branches(%p: i1, %x: tensor<16x64xf8E4M3FN>, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %a = mx.tile_load %x[0, 0] [16, 64] : tensor<16x64xf8E4M3FN> -> !a
  %0 = scf.if %p -> !c {
    %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
    scf.yield %1 : !c
  } else {
    %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
    %2 = mx.matmul_mx_acc %1, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
    scf.yield %2 : !c
  }
  %3 = mx.matmul_mx_acc %0, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %3 : !c
}

// I9: what a loop carries lies where its body needs it, and is moved there before the loop and at its end.

// CHECK-LABEL: func.func @i9_loop_carried(
// CHECK: %[[A:.*]] = mx.tile_load
// CHECK: %[[C:.*]] = mx.tile_create {{.*}}!mx.tile<16x32xf32, acc>
// CHECK: %[[L:.*]] = mx.tile_move %[[A]]
// CHECK-NEXT: %[[LS:.*]] = mx.tile_move
// CHECK-NEXT: scf.for {{.*}} iter_args(%[[X:.*]] = %[[L]], %[[XS:.*]] = %[[LS]], %[[Y:.*]] = %[[C]]) -> (!mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x32xf32, acc>) {
// CHECK-NEXT: %[[D:.*]] = mx.matmul_mx_acc %[[Y]], %[[X]], %[[XS]],
// CHECK-NEXT: %[[N:.*]] = mx.tile_load
// CHECK-NEXT: %[[NL:.*]] = mx.tile_move %[[N]]
// CHECK-NEXT: scf.yield %[[NL]], %[[XS]], %[[D]] :
func.func @i9_loop_carried(%n: index, %x: tensor<64x64xf8E4M3FN>, %xs: tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = mx.tile_load %x[0, 0] [16, 64] : tensor<64x64xf8E4M3FN> -> !a
  %as = mx.tile_load %xs[0, 0] [16, 2] : tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !as
  %c = mx.tile_create : () -> !c
  %0:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %ps = %as, %q = %c) -> (!a, !as, !c) {
    %1 = mx.matmul_mx_acc %q, %p, %ps, %b, %bs : !c, !a, !as, !b, !bs -> !c
    %2 = mx.tile_load %x[16, 0] [16, 64] : tensor<64x64xf8E4M3FN> -> !a
    scf.yield %2, %ps, %1 : !a, !as, !c
  }
  return %0#2 : !c
}

// One tile for both sides is carried in mat.

// CHECK-LABEL: func.func @both_sides(
// CHECK: scf.while (%[[X:.*]] = %{{.*}}) : (!mx.tile<64x64xf8E4M3FN, mat>) -> !mx.tile<64x64xf8E4M3FN, mat>
// CHECK: scf.condition(%{{.*}}) %[[X]] :
// CHECK: ^bb0(%[[Y:.*]]: !mx.tile<64x64xf8E4M3FN, mat>):
// CHECK-NEXT: %[[L:.*]] = mx.tile_move %[[Y]] : {{.*}}, left>
// CHECK-NEXT: %[[R:.*]] = mx.tile_move %[[Y]] : {{.*}}, right>
// CHECK-NEXT: mx.matmul_mx %[[L]], %{{.*}}, %[[R]], %{{.*}} :
// CHECK-NEXT: scf.yield %[[Y]] :
func.func @both_sides(%p: i1, %x: tensor<64x64xf8E4M3FN>, %s: !mx.tile<64x2xf8E8M0FNU>, %t: !mx.tile<2x64xf8E8M0FNU>) attributes {mx.kernel = "aic"} {
  %a = mx.tile_load %x[0, 0] [64, 64] : tensor<64x64xf8E4M3FN> -> !mx.tile<64x64xf8E4M3FN>
  %0 = scf.while (%y = %a) : (!mx.tile<64x64xf8E4M3FN>) -> !mx.tile<64x64xf8E4M3FN> {
    scf.condition(%p) %y : !mx.tile<64x64xf8E4M3FN>
  } do {
  ^bb0(%y: !mx.tile<64x64xf8E4M3FN>):
    %1 = mx.matmul_mx %y, %s, %y, %t : !mx.tile<64x64xf8E4M3FN>, !mx.tile<64x2xf8E8M0FNU>, !mx.tile<64x64xf8E4M3FN>, !mx.tile<2x64xf8E8M0FNU> -> !mx.tile<64x64xf32>
    scf.yield %y : !mx.tile<64x64xf8E4M3FN>
  }
  return
}

// Nobody asks where a carried tile lies: where it is made, acc; in mat when that differs; in vec when nobody makes one.

// CHECK-LABEL: func.func @unasked(
// CHECK-SAME: %{{.*}}: !mx.tile<8x8xf32, vec>)
// CHECK: %[[C:.*]] = mx.matmul_mx
// CHECK: scf.index_switch {{.*}} -> !mx.tile<16x32xf32, acc>
// CHECK: case 3
// CHECK: default
// CHECK: %[[S:.*]] = arith.select {{.*}} !mx.tile<16x32xf32, acc>
// CHECK: mx.tile_store %[[S]]
// CHECK: %[[X:.*]] = mx.tile_load {{.*}}, mat>
// CHECK: %[[M:.*]] = scf.if {{.*}} -> (!mx.tile<16x32xf32, mat>) {
// CHECK-NEXT: %[[CM:.*]] = mx.tile_move %[[C]]
// CHECK-NEXT: scf.yield %[[CM]]
// CHECK: scf.yield %[[X]]
// CHECK: mx.tile_store %[[M]]
func.func @unasked(%i: index, %p: i1, %a: !a, %as: !as, %b: !b, %bs: !bs, %x: tensor<16x32xf32>, %unused: !mx.tile<8x8xf32>) -> tensor<16x32xf32> attributes {mx.kernel = "aic"} {
  %c = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %0 = scf.index_switch %i -> !c
  case 3 {
    %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
    scf.yield %1 : !c
  }
  default {
    scf.yield %c : !c
  }
  %2 = arith.select %p, %0, %c : !c
  %3 = mx.tile_store %2, %x[0, 0] : !c, tensor<16x32xf32> -> tensor<16x32xf32>
  %y = mx.tile_load %3[0, 0] [16, 32] : tensor<16x32xf32> -> !c
  %4 = scf.if %p -> !c {
    scf.yield %c : !c
  } else {
    scf.yield %y : !c
  }
  %5 = mx.tile_store %4, %3[0, 0] : !c, tensor<16x32xf32> -> tensor<16x32xf32>
  return %5 : tensor<16x32xf32>
}

// What is stored cannot lie in left.

// CHECK-LABEL: func.func @carried_and_stored(
// CHECK-SAME: %[[A:[^:]*]]: !mx.tile<16x64xf8E4M3FN, mat>
// CHECK-DAG: %[[L:.*]] = mx.tile_move %[[A]] : {{.*}}, left>
// CHECK-DAG: mx.tile_store %[[A]],
// CHECK: mx.matmul_mx %[[L]],
func.func @carried_and_stored(%a: !a, %as: !as, %b: !b, %bs: !bs, %out: tensor<16x64xf8E4M3FN>) -> tensor<16x64xf8E4M3FN> attributes {mx.kernel = "aic"} {
  %0 = mx.tile_store %a, %out[0, 0] : !a, tensor<16x64xf8E4M3FN> -> tensor<16x64xf8E4M3FN>
  %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  return %0 : tensor<16x64xf8E4M3FN>
}

// Blocks that branch to each other, and a switch between them.

// CHECK-LABEL: func.func @blocks(
// CHECK: %[[A:.*]] = mx.tile_load
// CHECK: %[[L:.*]] = mx.tile_move %[[A]]
// CHECK-NEXT: cf.cond_br %{{.*}}, ^[[B1:.*]](%[[L]] : !mx.tile<16x64xf8E4M3FN, left>), ^[[B2:.*]](%{{.*}}, %[[L]] :
// CHECK: ^[[B1]](%[[X:.*]]: !mx.tile<16x64xf8E4M3FN, left>):
// CHECK-NEXT: %[[L2:.*]] = mx.tile_move %[[A]]
// CHECK-NEXT: cf.switch
// CHECK-NEXT: default: ^[[B2]](%{{.*}}, %[[X]] :
// CHECK-NEXT: 7: ^[[B2]](%{{.*}}, %[[L2]] :
// CHECK: ^[[B2]](%{{.*}}: i32, %[[Y:.*]]: !mx.tile<16x64xf8E4M3FN, left>):
// CHECK-NEXT: %[[D:.*]] = mx.matmul_mx %[[Y]],
// CHECK-NEXT: cf.br ^[[B3:.*]](%[[D]] : !mx.tile<16x32xf32, acc>)
func.func @blocks(%p: i1, %i: i32, %x: tensor<16x64xf8E4M3FN>, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %a = mx.tile_load %x[0, 0] [16, 64] : tensor<16x64xf8E4M3FN> -> !a
  cf.cond_br %p, ^bb1(%a : !a), ^bb2(%i, %a : i32, !a)
^bb1(%y: !a):
  cf.switch %i : i32, [default: ^bb2(%i, %y : i32, !a), 7: ^bb2(%i, %a : i32, !a)]
^bb2(%j: i32, %z: !a):
  %0 = mx.matmul_mx %z, %as, %b, %bs : !a, !as, !b, !bs -> !c
  cf.br ^bb3(%0 : !c)
^bb3(%c: !c):
  return %c : !c
}

// scf.execute_region hands on what its blocks yield.

// CHECK-LABEL: func.func @region(
// CHECK: scf.execute_region -> !mx.tile<16x64xf8E4M3FN, left>
// CHECK: %[[A:.*]] = mx.tile_load
// CHECK-NEXT: %[[L:.*]] = mx.tile_move %[[A]]
// CHECK-NEXT: scf.yield %[[L]]
func.func @region(%x: tensor<16x64xf8E4M3FN>, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %a = scf.execute_region -> !a {
    %0 = mx.tile_load %x[0, 0] [16, 64] : tensor<16x64xf8E4M3FN> -> !a
    scf.yield %0 : !a
  }
  %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  return %1 : !c
}

// -----

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
!c = !mx.tile<16x32xf32>

// Tiles pass calls in the memories that the callee needs; what callers, callees and declarations exchange agrees. A
// submit may differ from its callee in what is not decided.

// CHECK-LABEL: func.func @caller(
// CHECK: %[[A:.*]] = mx.tile_load
// CHECK: %[[L:.*]] = mx.tile_move %[[A]]
// CHECK: %[[C:.*]] = call @callee(%[[L]], %{{.*}}, %{{.*}}, %{{.*}}) : (!mx.tile<16x64xf8E4M3FN, left>, {{.*}}) -> !mx.tile<16x32xf32, vec>
// CHECK-NEXT: %[[T:.*]] = mx.submit @declared(%[[C]]) : !mx.tile<16x32xf32, vec> -> !mx.tile<16x32xf32, mat>
// CHECK-NEXT: mx.tile_store %[[T]],
func.func @caller(%x: tensor<16x64xf8E4M3FN>, %as: !as, %b: !b, %bs: !bs, %out: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %a = mx.tile_load %x[0, 0] [16, 64] : tensor<16x64xf8E4M3FN> -> !a
  %0 = func.call @callee(%a, %as, %b, %bs) : (!a, !as, !b, !bs) -> !c
  %1 = mx.submit @declared(%0) : !c -> !c
  %2 = mx.tile_store %1, %out[0, 0] : !c, tensor<16x32xf32> -> tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}
// CHECK: func.func private @declared(!mx.tile<16x32xf32, vec>) -> !mx.tile<16x32xf32, mat>
func.func private @declared(!mx.tile<16x32xf32, vec>) -> !mx.tile<16x32xf32, mat> attributes {mx.kernel = "aiv"}
// CHECK-LABEL: func.func @callee(
// CHECK-SAME: !mx.tile<16x64xf8E4M3FN, left>, {{.*}}: !mx.tile<16x2xf8E8M0FNU, left_scale>, {{.*}}: !mx.tile<64x32xf8E4M3FN, right>, {{.*}}: !mx.tile<2x32xf8E8M0FNU, right_scale>) -> !mx.tile<16x32xf32, vec>
// CHECK: %[[D:.*]] = mx.matmul_mx
// CHECK-NEXT: %[[V:.*]] = mx.tile_move %[[D]] : {{.*}}, vec>
// CHECK-NEXT: return %[[V]]
func.func @callee(%a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  return %0 : !c
}

// A recursive kernel agrees with itself.

// CHECK-LABEL: func.func @recursive(
// CHECK-SAME: %[[C:[^:]*]]: !mx.tile<16x32xf32, acc>,
// CHECK: call @recursive({{.*}}) : (!mx.tile<16x32xf32, acc>, !mx.tile<16x64xf8E4M3FN, left>,
func.func @recursive(%c: !c, %a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %1 = func.call @recursive(%0, %a, %as, %b, %bs) : (!c, !a, !as, !b, !bs) -> !c
  return %1 : !c
}

// -----

// Moves in the input: one to where its tile is made anyway goes, one that starts too far away is brought nearer, and one
// that stays serves what follows it. Bytes become scales by a move only.

// CHECK-LABEL: func.func @given_moves(
// CHECK: %[[A:.*]] = mx.tile_load {{.*}}, mat>
// CHECK-NEXT: %[[AS:.*]] = mx.tile_load {{.*}}, mat>
// CHECK-NEXT: %[[L:.*]] = mx.tile_move %[[A]]
// CHECK-NEXT: %[[LS:.*]] = mx.tile_move %[[AS]] : !mx.tile<16x2xui8, mat> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
// CHECK-NEXT: mx.matmul_mx %[[L]], %[[LS]],
// CHECK-NEXT: %[[Q:.*]]:2 = mx.quant_mx
// CHECK-NEXT: %[[M:.*]] = mx.tile_move %[[Q]]#0 : {{.*}}, mat>
// CHECK-NEXT: %[[L2:.*]] = mx.tile_move %[[M]] : {{.*}}, left>
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[L2]], %[[LS]],
// CHECK-NEXT: return
func.func @given_moves(%x: tensor<16x64xf8E4M3FN>, %xs: tensor<16x2xui8, #mx.layout<"MX_A_ZZ">>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>, %f: !mx.tile<16x64xf32>) -> !mx.tile<16x32xf32> attributes {mx.kernel = "incore"} {
  %a = mx.tile_load %x[0, 0] [16, 64] : tensor<16x64xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN>
  %as = mx.tile_load %xs[0, 0] [16, 2] : tensor<16x2xui8, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xui8>
  %m = mx.tile_move %a : !mx.tile<16x64xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN, mat>
  %l = mx.tile_move %m : !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x64xf8E4M3FN, left>
  %ls = mx.tile_move %as : !mx.tile<16x2xui8> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  %0 = mx.matmul_mx %m, %ls, %b, %bs : !mx.tile<16x64xf8E4M3FN, mat>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  %q, %qs = mx.quant_mx %f {layout = "MX_A_ZZ"} : !mx.tile<16x64xf32> -> (!mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>)
  %ql = mx.tile_move %q : !mx.tile<16x64xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN, left>
  %1 = mx.matmul_mx_acc %0, %ql, %ls, %b, %bs : !mx.tile<16x32xf32>, !mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return %1 : !mx.tile<16x32xf32>
}

// Scales are loaded to mat whatever follows. A move that also changes the type starts from where the engine moves from.

// CHECK-LABEL: func.func @moves_that_stay(
// CHECK-SAME: %[[S:[^:]*]]: !mx.tile<16x2xui8, mat>, %{{.*}}: tensor<{{[^%]*}}>, %[[V:[^:]*]]: !mx.tile<16x64xf32, vec, valid = ?x64>)
// CHECK-NEXT: mx.tile_move %[[S]] : !mx.tile<16x2xui8, mat> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
// CHECK-NEXT: %[[X:.*]] = mx.tile_load {{.*}} -> !mx.tile<16x2xf8E8M0FNU, mat>
// CHECK-NEXT: mx.tile_move %[[X]] : {{.*}} -> !mx.tile<16x2xf8E8M0FNU, vec>
// CHECK-NEXT: mx.tile_move %[[V]] : {{.*}} -> !mx.tile<16x64xf32, mat, valid = 8x64>
func.func @moves_that_stay(%s: !mx.tile<16x2xui8>, %xs: tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %v: !mx.tile<16x64xf32, valid = ?x64>) attributes {mx.kernel = "incore"} {
  %0 = mx.tile_move %s : !mx.tile<16x2xui8> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  %x = mx.tile_load %xs[0, 0] [16, 2] : tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU>
  %1 = mx.tile_move %x : !mx.tile<16x2xf8E8M0FNU> -> !mx.tile<16x2xf8E8M0FNU, vec>
  %2 = mx.tile_move %v : !mx.tile<16x64xf32, valid = ?x64> -> !mx.tile<16x64xf32, mat, valid = 8x64>
  return
}

// -----

// A function within another is one of its own.

// CHECK-LABEL: func.func @around(
// CHECK: func.func @within(%{{.*}}: !mx.tile<16x32xf32, vec>) -> !mx.tile<16x32xf32, vec>
func.func @around() attributes {mx.kernel = "aic"} {
  builtin.module {
    func.func @within(%x: !mx.tile<16x32xf32>) -> !mx.tile<16x32xf32> attributes {mx.kernel = "aiv"} {
      return %x : !mx.tile<16x32xf32>
    }
  }
  return
}
