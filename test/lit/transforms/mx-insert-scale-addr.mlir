// RUN: mx-opt %s --mx-insert-scale-addr | filecheck %s
// RUN: mx-opt %s --mx-insert-scale-addr=reuse=false | filecheck %s --check-prefix=FRESH
// RUN: mx-opt %s --mx-insert-scale-addr --mx-insert-scale-addr | filecheck %s --check-prefix=TWICE
// RUN: mx-opt %s --mx-insert-scale-addr --mx-verify-scale-binding --cse --canonicalize --loop-invariant-code-motion --mx-verify-scale-binding -o /dev/null

!a = !mx.tile<16x64xf8E4M3FN, left>
!as = !mx.tile<16x2xf8E8M0FNU, left_scale>
!b = !mx.tile<64x32xf8E4M3FN, right>
!bs = !mx.tile<2x32xf8E8M0FNU, right_scale>
!c = !mx.tile<16x32xf32, acc>

// I1 and I3: left, then right, right before the matmul; a second run adds a second layer.

// CHECK-LABEL: func.func @i1_one_matmul(
// CHECK-SAME: %[[A:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>, %[[B:.*]]: !mx.tile<64x32xf8E4M3FN, right>, %[[BS:.*]]: !mx.tile<2x32xf8E8M0FNU, right_scale>)
// CHECK-NEXT: %[[L:.*]] = mx.tget_scale_addr %[[AS]], %[[A]] :
// CHECK-NEXT: %[[R:.*]] = mx.tget_scale_addr %[[BS]], %[[B]] :
// CHECK-NEXT: mx.matmul_mx %[[A]], %[[L]], %[[B]], %[[R]] :
// CHECK-NEXT: return
// TWICE-LABEL: func.func @i1_one_matmul(
// TWICE-SAME: %[[A:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>, %[[B:.*]]: !mx.tile<64x32xf8E4M3FN, right>, %[[BS:.*]]: !mx.tile<2x32xf8E8M0FNU, right_scale>)
// TWICE-NEXT: %[[L:.*]] = mx.tget_scale_addr %[[AS]], %[[A]] :
// TWICE-NEXT: %[[R:.*]] = mx.tget_scale_addr %[[BS]], %[[B]] :
// TWICE-NEXT: %[[L2:.*]] = mx.tget_scale_addr %[[L]], %[[A]] :
// TWICE-NEXT: %[[R2:.*]] = mx.tget_scale_addr %[[R]], %[[B]] :
// TWICE-NEXT: mx.matmul_mx %[[A]], %[[L2]], %[[B]], %[[R2]] :
// TWICE-NEXT: return
func.func @i1_one_matmul(%a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  return %0 : !c
}

// What is no kernel does not run on the engine.

// CHECK-LABEL: func.func @no_kernel(
// CHECK-NEXT: mx.matmul_mx
func.func @no_kernel(%a: !a, %as: !as, %b: !b, %bs: !bs) -> !c {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  return %0 : !c
}

// The bias comes last, the accumulator first.

// CHECK-LABEL: func.func @bias_and_acc(
// CHECK-SAME: %[[A:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>, %[[B:.*]]: !mx.tile<64x32xf8E4M3FN, right>, %[[BS:.*]]: !mx.tile<2x32xf8E8M0FNU, right_scale>, %[[BIAS:.*]]: !mx.tile<1x32xf32, bias>)
// CHECK: %[[L:.*]] = mx.tget_scale_addr %[[AS]], %[[A]] :
// CHECK-NEXT: %[[R:.*]] = mx.tget_scale_addr %[[BS]], %[[B]] :
// CHECK-NEXT: %[[C:.*]] = mx.matmul_mx_bias %[[A]], %[[L]], %[[B]], %[[R]], %[[BIAS]] :
// CHECK-NEXT: mx.matmul_mx_acc %[[C]], %[[A]], %[[L]], %[[B]], %[[R]] :
func.func @bias_and_acc(%a: !a, %as: !as, %b: !b, %bs: !bs, %bias: !mx.tile<1x32xf32, bias>) -> !c attributes {mx.kernel = "incore"} {
  %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !a, !as, !b, !bs, !mx.tile<1x32xf32, bias> -> !c
  %1 = mx.matmul_mx_acc %0, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %1 : !c
}

// I4: both matmuls consume the same bound scales; without reuse each has its own.

// CHECK-LABEL: func.func @i4_same_operands(
// CHECK: %[[L:.*]] = mx.tget_scale_addr
// CHECK-NEXT: %[[R:.*]] = mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx %{{.*}}, %[[L]], %{{.*}}, %[[R]] :
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %{{.*}}, %[[L]], %{{.*}}, %[[R]] :
// CHECK-NEXT: return
// FRESH-LABEL: func.func @i4_same_operands(
// FRESH-COUNT-2: mx.tget_scale_addr
// FRESH-NEXT: mx.matmul_mx
// FRESH-COUNT-2: mx.tget_scale_addr
// FRESH-NEXT: mx.matmul_mx_acc
// FRESH-NEXT: return
// TWICE-LABEL: func.func @i4_same_operands(
// TWICE-COUNT-4: mx.tget_scale_addr
// TWICE-NEXT: mx.matmul_mx
// TWICE-NEXT: mx.matmul_mx_acc
func.func @i4_same_operands(%a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = mx.matmul_mx_acc %0, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %1 : !c
}

// I5: each branch binds for itself.

// CHECK-LABEL: func.func @i5_if_else(
// CHECK: scf.if
// CHECK-NEXT: %[[L:.*]] = mx.tget_scale_addr
// CHECK-NEXT: %[[R:.*]] = mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx %{{.*}}, %[[L]], %{{.*}}, %[[R]] :
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[L2:.*]] = mx.tget_scale_addr
// CHECK-NEXT: %[[R2:.*]] = mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx %{{.*}}, %[[L2]], %{{.*}}, %[[R2]] :
// CHECK-NEXT: scf.yield
func.func @i5_if_else(%p: i1, %a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = scf.if %p -> !c {
    %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
    scf.yield %1 : !c
  } else {
    %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
    scf.yield %1 : !c
  }
  return %0 : !c
}

// I6: the left side changes its data each time, the right side keeps its binding.

// CHECK-LABEL: func.func @i6_alternating_lhs(
// CHECK-SAME: %[[A0:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[A1:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>, %[[B:.*]]: !mx.tile<64x32xf8E4M3FN, right>
// CHECK-NEXT: %[[L0:.*]] = mx.tget_scale_addr %[[AS]], %[[A0]] :
// CHECK-NEXT: %[[R:.*]] = mx.tget_scale_addr %{{.*}}, %[[B]] :
// CHECK-NEXT: mx.matmul_mx %[[A0]], %[[L0]], %[[B]], %[[R]] :
// CHECK-NEXT: %[[L1:.*]] = mx.tget_scale_addr %[[AS]], %[[A1]] :
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[A1]], %[[L1]], %[[B]], %[[R]] :
// CHECK-NEXT: %[[L2:.*]] = mx.tget_scale_addr %[[AS]], %[[A0]] :
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[A0]], %[[L2]], %[[B]], %[[R]] :
// CHECK-NEXT: return
// FRESH-LABEL: func.func @i6_alternating_lhs(
// FRESH-COUNT-2: mx.tget_scale_addr
// FRESH-NEXT: mx.matmul_mx
// FRESH-COUNT-2: mx.tget_scale_addr
// FRESH-NEXT: mx.matmul_mx_acc
// FRESH-COUNT-2: mx.tget_scale_addr
// FRESH-NEXT: mx.matmul_mx_acc
// FRESH-NEXT: return
func.func @i6_alternating_lhs(%a0: !a, %a1: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a0, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = mx.matmul_mx_acc %0, %a1, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %2 = mx.matmul_mx_acc %1, %a0, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %2 : !c
}

// I9: what a loop carries is bound in its body.

// CHECK-LABEL: func.func @i9_loop_carried(
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[AS:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}})
// CHECK-NEXT: %[[L:.*]] = mx.tget_scale_addr %[[AS]], %[[A]] :
// CHECK-NEXT: %[[R:.*]] = mx.tget_scale_addr
// CHECK-NEXT: %[[D:.*]] = mx.matmul_mx_acc %[[C]], %[[A]], %[[L]], %{{.*}}, %[[R]] :
// CHECK-NEXT: scf.yield %[[A]], %[[AS]], %[[D]] :
// CHECK-NOT: mx.tget_scale_addr
// CHECK: return
func.func @i9_loop_carried(%n: index, %a: !a, %as: !as, %b: !b, %bs: !bs, %c: !c) -> !c attributes {mx.kernel = "aic"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %xs = %as, %y = %c) -> (!a, !as, !c) {
    %1 = mx.matmul_mx_acc %y, %x, %xs, %b, %bs : !c, !a, !as, !b, !bs -> !c
    scf.yield %x, %xs, %1 : !a, !as, !c
  }
  return %0#2 : !c
}

// Loads to mat, stores from acc and arithmetic leave bindings alone.

// CHECK-LABEL: func.func @harmless_between(
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NOT: mx.tget_scale_addr
// CHECK: return
func.func @harmless_between(%a: !a, %as: !as, %b: !b, %bs: !bs, %x: tensor<16x64xf8E4M3FN>, %out: tensor<16x32xf32>) -> tensor<16x32xf32> attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = mx.tile_load %x[0, 0] [16, 64] {target = "mat"} : tensor<16x64xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN, mat>
  %2 = mx.tile_store %0, %out[0, 0] : !c, tensor<16x32xf32> -> tensor<16x32xf32>
  %i = mx.block_idx : () -> index
  %j = arith.addi %i, %i : index
  %3 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %4 = mx.tile_store %3, %2[0, 0] : !c, tensor<16x32xf32> -> tensor<16x32xf32>
  return %4 : tensor<16x32xf32>
}

// A move to left or left_scale undoes the left binding, one to right or right_scale the right one.

// CHECK-LABEL: func.func @moves_between(
// CHECK-SAME: %[[A:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>, %[[B:.*]]: !mx.tile<64x32xf8E4M3FN, right>, %[[BS:.*]]: !mx.tile<2x32xf8E8M0FNU, right_scale>
// CHECK: %[[R:.*]] = mx.tget_scale_addr %[[BS]], %[[B]] :
// CHECK-NEXT: mx.matmul_mx
// CHECK-NEXT: mx.tile_move
// CHECK-NEXT: %[[L:.*]] = mx.tget_scale_addr %[[AS]], %[[A]] :
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[A]], %[[L]], %[[B]], %[[R]] :
// CHECK-NEXT: mx.tile_move
// CHECK-NEXT: %[[L2:.*]] = mx.tget_scale_addr %[[AS]], %[[A]] :
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[A]], %[[L2]], %[[B]], %[[R]] :
// CHECK-NEXT: mx.tile_move
// CHECK-NEXT: %[[R2:.*]] = mx.tget_scale_addr %[[BS]], %[[B]] :
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[A]], %[[L2]], %[[B]], %[[R2]] :
// CHECK-NEXT: mx.tile_move
// CHECK-NEXT: %[[R3:.*]] = mx.tget_scale_addr %[[BS]], %[[B]] :
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[A]], %[[L2]], %[[B]], %[[R3]] :
// CHECK-NEXT: return
func.func @moves_between(%a: !a, %as: !as, %b: !b, %bs: !bs, %am: !mx.tile<16x64xf8E4M3FN, mat>, %asm: !mx.tile<16x2xui8, mat>, %bm: !mx.tile<64x32xf8E4M3FN, mat>, %bsm: !mx.tile<2x32xf8E8M0FNU, mat>) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = mx.tile_move %am : !mx.tile<16x64xf8E4M3FN, mat> -> !a
  %2 = mx.matmul_mx_acc %0, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %3 = mx.tile_move %asm : !mx.tile<16x2xui8, mat> -> !as
  %4 = mx.matmul_mx_acc %2, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %5 = mx.tile_move %bm : !mx.tile<64x32xf8E4M3FN, mat> -> !b
  %6 = mx.matmul_mx_acc %4, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %7 = mx.tile_move %bsm : !mx.tile<2x32xf8E8M0FNU, mat> -> !bs
  %8 = mx.matmul_mx_acc %6, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %8 : !c
}

// So do other operations that take or give such tiles, whatever they are.

// CHECK-LABEL: func.func @others_between(
// CHECK: mx.matmul_mx
// CHECK-NEXT: arith.select
// CHECK-NEXT: mx.tget_scale_addr %{{.*}} : !mx.tile<16x2xf8E8M0FNU, left_scale>
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: mx.tile_create
// CHECK-NEXT: mx.tget_scale_addr %{{.*}} : !mx.tile<2x32xf8E8M0FNU, right_scale>
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: builtin.unrealized_conversion_cast %{{.*}} : !mx.tile<16x64xf8E4M3FN, left> to index
// CHECK-NEXT: mx.tget_scale_addr %{{.*}} : !mx.tile<16x2xf8E8M0FNU, left_scale>
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: builtin.unrealized_conversion_cast %{{.*}} : tuple<
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: return
func.func @others_between(%p: i1, %a: !a, %as: !as, %b: !b, %bs: !bs, %t: tuple<!a>) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = arith.select %p, %as, %as : !as
  %2 = mx.matmul_mx_acc %0, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %3 = mx.tile_create : () -> !b
  %4 = mx.matmul_mx_acc %2, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %5 = builtin.unrealized_conversion_cast %a : !a to index
  %6 = mx.matmul_mx_acc %4, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %7 = builtin.unrealized_conversion_cast %t : tuple<!a> to index
  %8 = mx.matmul_mx_acc %6, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %8 : !c
}

// Calls of any sort undo both.

func.func private @callee(index)

// CHECK-LABEL: func.func @calls_between(
// CHECK: mx.matmul_mx
// CHECK-NEXT: call @callee
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: mx.submit
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: call_indirect
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: llvm.call
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: return
llvm.func @other()
func.func @calls_between(%i: index, %f: (index) -> (), %a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  func.call @callee(%i) : (index) -> ()
  %1 = mx.matmul_mx_acc %0, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  mx.submit @callee(%i) : index -> ()
  %2 = mx.matmul_mx_acc %1, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  func.call_indirect %f(%i) : (index) -> ()
  %3 = mx.matmul_mx_acc %2, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  llvm.call @other() : () -> ()
  %4 = mx.matmul_mx_acc %3, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %4 : !c
}

// A loop body does not reuse what was bound before the loop, nor what follows it what was bound in or before it.

// CHECK-LABEL: func.func @around_a_loop(
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx
// CHECK-NEXT: scf.for
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
func.func @around_a_loop(%n: index, %a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %0) -> !c {
    %2 = mx.matmul_mx_acc %x, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
    %3 = mx.matmul_mx_acc %2, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
    scf.yield %3 : !c
  }
  %4 = mx.matmul_mx_acc %1, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %4 : !c
}

// Control flow between two matmuls ends bindings, though it has no matmul itself.

// CHECK-LABEL: func.func @after_an_if(
// CHECK: mx.matmul_mx
// CHECK-NEXT: scf.if
// CHECK-NEXT: }
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: affine.for
// CHECK-NEXT: }
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
func.func @after_an_if(%p: i1, %a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  scf.if %p {
  }
  %1 = mx.matmul_mx_acc %0, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  affine.for %i = 0 to 4 {
  }
  %2 = mx.matmul_mx_acc %1, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %2 : !c
}

// Every region counts: both of a while loop, the cases of a switch, blocks that branch to each other.

// CHECK-LABEL: func.func @while(
// CHECK: scf.while
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: scf.condition
// CHECK: ^bb0(
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: scf.yield
func.func @while(%p: i1, %a: !a, %as: !as, %b: !b, %bs: !bs, %c: !c) -> !c attributes {mx.kernel = "aic"} {
  %0 = scf.while (%x = %c) : (!c) -> !c {
    %1 = mx.matmul_mx_acc %x, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
    scf.condition(%p) %1 : !c
  } do {
  ^bb0(%x: !c):
    %1 = mx.matmul_mx_acc %x, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
    scf.yield %1 : !c
  }
  return %0 : !c
}

// CHECK-LABEL: func.func @switch(
// CHECK: case 7
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx
// CHECK: default
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx
func.func @switch(%i: index, %a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = scf.index_switch %i -> !c
  case 7 {
    %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
    scf.yield %1 : !c
  }
  default {
    %1 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
    scf.yield %1 : !c
  }
  return %0 : !c
}

// CHECK-LABEL: func.func @branches(
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx
// CHECK-NEXT: cf.br
// CHECK-NEXT: ^bb1
// CHECK-COUNT-2: mx.tget_scale_addr
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: cf.cond_br
// CHECK-NEXT: ^bb2
// CHECK-NEXT: return
func.func @branches(%p: i1, %a: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
  cf.br ^bb1(%0 : !c)
^bb1(%x: !c):
  %1 = mx.matmul_mx_acc %x, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %2 = mx.matmul_mx_acc %1, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  cf.cond_br %p, ^bb1(%2 : !c), ^bb2(%2 : !c)
^bb2(%y: !c):
  return %y : !c
}

// The same scale with other data (I6) and another scale with the same data: rebound.

// CHECK-LABEL: func.func @other_scale(
// CHECK-SAME: %[[A:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS0:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>, %[[AS1:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>,
// CHECK: mx.matmul_mx
// CHECK-NEXT: mx.tget_scale_addr %[[AS1]], %[[A]] :
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: mx.tget_scale_addr %[[AS0]], %[[A]] :
// CHECK-NEXT: mx.matmul_mx_acc
// CHECK-NEXT: return
func.func @other_scale(%a: !a, %as0: !as, %as1: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a, %as0, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = mx.matmul_mx_acc %0, %a, %as1, %b, %bs : !c, !a, !as, !b, !bs -> !c
  %2 = mx.matmul_mx_acc %1, %a, %as0, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %2 : !c
}

// An explicit binding on a side undoes the one in force there, whatever it binds.

// CHECK-LABEL: func.func @explicit_binding(
// CHECK-SAME: %[[A0:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[A1:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>, %[[B:.*]]: !mx.tile<64x32xf8E4M3FN, right>
// CHECK: %[[R:.*]] = mx.tget_scale_addr %{{.*}}, %[[B]] :
// CHECK-NEXT: mx.matmul_mx
// CHECK-NEXT: mx.tget_scale_addr %[[AS]], %[[A1]] :
// CHECK-NEXT: %[[L:.*]] = mx.tget_scale_addr %[[AS]], %[[A0]] :
// CHECK-NEXT: mx.matmul_mx_acc %{{.*}}, %[[A0]], %[[L]], %[[B]], %[[R]] :
func.func @explicit_binding(%a0: !a, %a1: !a, %as: !as, %b: !b, %bs: !bs) -> !c attributes {mx.kernel = "aic"} {
  %0 = mx.matmul_mx %a0, %as, %b, %bs : !a, !as, !b, !bs -> !c
  %1 = mx.tget_scale_addr %as, %a1 : !as, !a -> !as
  %2 = mx.matmul_mx_acc %0, %a0, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return %2 : !c
}

// A function within another is one of its own, bound once if it is a kernel.

// CHECK-LABEL: func.func @around(
// CHECK: func.func @host_within(
// CHECK-NOT: tget_scale_addr
// CHECK: func.func @within(
// CHECK-COUNT-2: tget_scale_addr
// CHECK-NEXT: mx.matmul_mx
func.func @around() attributes {mx.kernel = "aic"} {
  builtin.module {
    func.func @host_within(%a: !a, %as: !as, %b: !b, %bs: !bs) {
      %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
      return
    }
    func.func @within(%a: !a, %as: !as, %b: !b, %bs: !bs) attributes {mx.kernel = "aic"} {
      %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !c
      return
    }
  }
  return
}
