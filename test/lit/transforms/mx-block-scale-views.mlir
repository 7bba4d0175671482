// RUN: mx-opt %s --mx-block-scale-views --split-input-file --allow-unregistered-dialect | filecheck %s

// B1: both layouts at constant offsets.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!b = tensor<4x64xf8E8M0FNU, #mx.layout<"MX_B_NN">>

// CHECK-LABEL: func.func @b1(
// CHECK-SAME: %[[A:.*]]: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %[[B:.*]]: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_B_NN">>)
// CHECK-SAME: mx.kernel = "aic", mx_tensor_views_blocked
// CHECK: mx.tile_load %[[A]][0, 1, 1, 0, 0] [1, 1, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU, mat>
// CHECK: mx.tile_load %[[B]][0, 1, 1, 0, 0] [1, 1, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_B_NN">> -> !mx.tile<2x16xf8E8M0FNU, mat>
func.func @b1(%a: !a, %b: !b) attributes {mx.kernel = "aic"} {
  %0 = mx.tile_load %a[16, 2] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  %1 = mx.tile_load %b[2, 16] [2, 16] {target = "mat"} : !b -> !mx.tile<2x16xf8E8M0FNU, mat>
  return
}

// -----

// B1, more: bytes as scales, offsets that are constants in SSA form, attributes that stay.

!a = tensor<64x4xui8, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @b1_bytes(
// CHECK-NOT: floordivsi
// CHECK: mx.tile_load %{{.*}}[0, 2, 1, 0, 0] [1, 1, 1, 16, 2] {target = "mat", test.tag = "kept"} : tensor<1x4x2x16x2xui8, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xui8, mat>
func.func @b1_bytes(%a: !a) {
  %m = arith.constant 32 : index
  %g = index.constant 2
  %0 = mx.tile_load %a[%m, %g] [16, 2] {target = "mat", test.tag = "kept"} : !a -> !mx.tile<16x2xui8, mat>
  return
}

// -----

// B4: the attribute that tags a value for a dump follows its type, and so do a parameter and a call's argument.

!s = tensor<32x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func private @kernel(
// CHECK-SAME: tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> {test.dump = tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>}) -> (tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> {test.dump = tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>})
// CHECK-SAME: attributes {mx_tensor_views_blocked}
func.func private @kernel(!s {test.dump = !s}) -> (!s {test.dump = !s})

// CHECK-LABEL: func.func @b4(
// CHECK-SAME: %[[S:.*]]: tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %{{.*}}: tuple<tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, tuple<i32, tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>>>) -> tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
// CHECK: "test.dump"() {layout = #mx.layout<"MX_A_ZZ">, text = "#mx.layout<", values = [{name = "s", type = tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>}, (tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) -> i32]}
// CHECK: %[[R:.*]] = call @kernel(%[[S]]) {dump = tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>} : (tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) -> tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
// CHECK: return %[[R]] : tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
func.func @b4(%s: !s, %t: tuple<!s, tuple<i32, !s>>) -> !s {
  "test.dump"() {values = [{name = "s", type = !s}, (!s) -> i32], layout = #mx.layout<"MX_A_ZZ">, text = "#mx.layout<"} : () -> ()
  %0 = call @kernel(%s) {dump = !s} : (!s) -> !s
  return %0 : !s
}

// -----

// B5: a valid part becomes whole boxes in the load and stays in the tile's type, also where it is dynamic.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @b5(
// CHECK: mx.tile_load %{{.*}}[0, 0, 0, 0, 0] [1, 2, 1, 16, 2] [1, 2, 1, 16, 2] {target = "mat"} : {{.*}} -> !mx.tile<32x2xf8E8M0FNU, mat, valid = 16x2>
// CHECK: mx.tile_load %{{.*}}[0, 0, 0, 0, 0] [1, 2, 1, 16, 2] [1, 2, 1, 16, 2] {target = "mat"} : {{.*}} -> !mx.tile<32x2xf8E8M0FNU, mat, valid = ?x2>
func.func @b5(%a: !a, %rows: index) {
  %0 = mx.tile_load %a[0, 0] [32, 2] [16, 2] {target = "mat"} : !a -> !mx.tile<32x2xf8E8M0FNU, mat, valid = 16x2>
  %1 = mx.tile_load %a[0, 0] [32, 2] [%rows, 2] {target = "mat"} : !a -> !mx.tile<32x2xf8E8M0FNU, mat, valid = ?x2>
  return
}

// -----

// B7: a loop over K in elements; 32 of them share a scale.

!a = tensor<16x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @b7(
// CHECK: scf.for %[[K:.*]] = %{{.*}}
// CHECK: %[[G:.*]] = arith.floordivsi %[[K]], %{{.*}} : index
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: %[[BOX:.*]] = arith.floordivsi %[[G]], %[[TWO]] : index
// CHECK: mx.tile_load %{{.*}}[0, 0, %[[BOX]], 0, 0] [1, 1, 4, 16, 2]
func.func @b7(%a: !a) {
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %c2048 = arith.constant 2048 : index
  scf.for %k = %c256 to %c2048 step %c256 {
    %g = arith.floordivsi %k, %c32 : index
    %0 = mx.tile_load %a[0, %g] [16, 8] {target = "mat"} : !a -> !mx.tile<16x8xf8E8M0FNU, mat>
  }
  return
}

// -----

// B8: a row that travels through parameters of calls and submits, with block numbers added on the way.

!a = tensor<512x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @b8_kernel(
// CHECK-SAME: %[[A:.*]]: tensor<1x32x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %[[ROW:.*]]: index)
// CHECK: %[[SIXTEEN:.*]] = arith.constant 16 : index
// CHECK: %[[BOX:.*]] = arith.floordivsi %[[ROW]], %[[SIXTEEN]] : index
// CHECK: mx.tile_load %[[A]][0, %[[BOX]], 0, 0, 0] [1, 1, 1, 16, 2]
func.func @b8_kernel(%a: !a, %row: index) {
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}

func.func @b8_block(%row: index, %a: !a) {
  %c16 = arith.constant 16 : index
  %block = mx.block_idx : -> index
  %first = arith.muli %block, %c16 : index
  %sum = arith.addi %row, %first : index
  call @b8_kernel(%a, %sum) : (!a, index) -> ()
  return
}

func.func @b8(%a: !a) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %mt = %c0 to %c8 step %c2 {
    %row = arith.muli %mt, %c16 : index
    mx.submit @b8_block(%row, %a) : index, !a
  }
  return
}

// -----

// B10: a function that is blocked already is left untouched, whatever it holds, and others are blocked beside it.

// CHECK-LABEL: func.func @b10(
// CHECK-SAME: %{{.*}}: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %{{.*}}: index)
// CHECK-NOT: arith
// CHECK: mx.tile_load %{{.*}}[0, %{{.*}}, 1, 0, 0]
func.func @b10(%a: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %m: index) attributes {mx_tensor_views_blocked} {
  %0 = mx.tile_load %a[0, %m, 1, 0, 0] [1, 1, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}

// CHECK-LABEL: func.func private @b10_plain(tensor<64x4xf8E8M0FNU>, index) attributes {mx_tensor_views_blocked}
func.func private @b10_plain(tensor<64x4xf8E8M0FNU>, index)

// CHECK-LABEL: func.func @b10_calls(
// CHECK-SAME: attributes {mx_tensor_views_blocked}
func.func @b10_calls(%x: tensor<64x4xf8E8M0FNU>, %m: index) {
  call @b10_plain(%x, %m) : (tensor<64x4xf8E8M0FNU>, index) -> ()
  return
}

// -----

// B11: shaped aliases in both directions.

!nd = tensor<1x128xf8E8M0FNU>

// CHECK-LABEL: func.func @b11(
// CHECK-SAME: %[[A:.*]]: tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
// CHECK: %[[ND:.*]] = mx.tensor_view %[[A]][1, 128] : tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> tensor<1x128xf8E8M0FNU>
// CHECK: mx.tensor_view %[[ND]][1, 2, 2, 16, 2] {test.tag} : tensor<1x128xf8E8M0FNU> -> tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_B_NN">>
// CHECK: mx.tensor_view %{{.*}}[1, 2, 2, 16, 2] : tensor<?xf8E8M0FNU> -> tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_B_NN">>
func.func @b11(%a: tensor<32x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %x: tensor<?xf8E8M0FNU>, %n: index) {
  %0 = mx.tensor_view %a [1, 128] : tensor<32x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !nd
  %1 = mx.tensor_view %0 [4, 32] {test.tag} : !nd -> tensor<4x32xf8E8M0FNU, #mx.layout<"MX_B_NN">>
  %2 = mx.tensor_view %x [4, %n] : tensor<?xf8E8M0FNU> -> tensor<4x32xf8E8M0FNU, #mx.layout<"MX_B_NN">>
  return
}

// -----

// B12: a submit with every launch field; the types of views change and nothing else.

!s = tensor<32x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

func.func private @kernel(!s, index) -> !s

// CHECK-LABEL: func.func @b12(
// CHECK-SAME: %[[S:.*]]: tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %[[N:.*]]: index, %[[P:.*]]: i1, %[[T:.*]]: !mx.task)
// CHECK-SAME: -> (tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, !mx.task)
// CHECK: %{{.*}} = mx.submit @kernel(%[[S]], %[[N]]) after(%[[T]], %[[T]]) cores(%[[N]]) if(%[[P]])
// CHECK-SAME: {name = "launch", sync_end, sync_start}
// CHECK-SAME: : tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, index, !mx.task, !mx.task, index, i1 -> (tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, !mx.task)
func.func @b12(%s: !s, %n: index, %p: i1, %t: !mx.task) -> (!s, !mx.task) {
  %0, %1 = mx.submit @kernel(%s, %n) after(%t, %t) cores(%n) if(%p) {name = "launch", sync_start, sync_end} : !s, index, !mx.task, !mx.task, index, i1 -> (!s, !mx.task)
  return %0, %1 : !s, !mx.task
}

// -----

// Explicit strides of a logical view are dropped.

// CHECK-LABEL: func.func @strides(
// CHECK-SAME: %{{.*}}: tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
func.func @strides(%a: tensor<32x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [4, 1]}>>) {
  return
}

// -----

// Whatever passes views on has their new type: loops, branches, selects.

!a = tensor<32x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @control_flow(
// CHECK-NOT: tensor<32x4
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// CHECK: scf.if {{.*}} -> (tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// CHECK: scf.while {{.*}} : (tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) -> tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
// CHECK: arith.select {{.*}} : tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
// CHECK: cf.cond_br {{.*}}, ^[[B:.*]]({{.*}} : tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>), ^[[B]](
// CHECK: ^[[B]](%{{.*}}: tensor<1x2x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>):
// CHECK: return
func.func @control_flow(%x: !a, %y: !a, %n: index, %p: i1) -> !a {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> !a {
    %4 = scf.if %p -> !a {
      scf.yield %v : !a
    } else {
      scf.yield %y : !a
    }
    scf.yield %4 : !a
  }
  %1 = scf.while (%v = %0) : (!a) -> !a {
    scf.condition(%p) %v : !a
  } do {
  ^bb0(%v: !a):
    scf.yield %v : !a
  }
  %2 = arith.select %p, %0, %1 : !a
  cf.cond_br %p, ^bb1(%2 : !a), ^bb1(%y : !a)
^bb1(%3: !a):
  return %3 : !a
}
