// RUN: mx-opt %s --mx-tile-to-linalg --split-input-file | filecheck %s

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!b = tensor<4x64xui8, #mx.layout<"MX_B_NN">>

// A tile is a tensor of its valid shape, codes of less than a byte and unsigned bytes are i8; a view is its boxes,
// logical or blocked, with or without strides; a task is an index. What marks the level goes.
// CHECK-LABEL: func.func private @types(
// CHECK-SAME: tensor<8x?xf8E4M3FN>, tensor<16x64xi8>, tensor<16x2xi8>, tensor<1x4x2x16x2xf8E8M0FNU>, tensor<1x4x2x16x2xui8>, tensor<1x4x2x16x2xf8E8M0FNU>, tensor<1x?x?x16x2xi8>, index, tensor<64x64xf4E2M1FN>)
// CHECK-SAME: -> tensor<1x4x2x16x2xui8>{{$}}
func.func private @types(!mx.tile<16x64xf8E4M3FN, left, valid = 8x?>, !mx.tile<16x64xf4E2M1FN, vec>, !mx.tile<16x2xui8>, !a, !b, tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [256, 64, 32, 2, 1]}>>, tensor<?x?xi8, #mx.layout<"MX_A_ZZ">>, !mx.task, tensor<64x64xf4E2M1FN>) -> !b attributes {mx.kernel = "aic", mx_tensor_views_blocked}

// Types in attributes follow.
// CHECK-LABEL: func.func private @attributes(
// CHECK-SAME: tensor<1x4x2x16x2xf8E8M0FNU> {test.dump = tensor<1x4x2x16x2xf8E8M0FNU>}) attributes {test.tiles = [tensor<16x32xf32>, {x = (index) -> ()}]}
func.func private @attributes(!a {test.dump = !a}) attributes {test.tiles = [!mx.tile<16x32xf32>, {x = (!mx.task) -> ()}]}

// Everything that carries a tile or a view is retyped in place.
// CHECK-LABEL: func.func @carriers(
// CHECK: arith.select %{{.*}} : tensor<1x4x2x16x2xf8E8M0FNU>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<16x32xf32>)
// CHECK: scf.if %{{.*}} -> (tensor<16x32xf32>)
// CHECK: func.call @carriers{{.*}} -> tensor<16x32xf32>
// CHECK: cf.br ^bb1(%{{.*}} : tensor<16x32xf32>)
// CHECK: ^bb1(%{{.*}}: tensor<16x32xf32>)
// CHECK: return %{{.*}} : tensor<16x32xf32>
func.func @carriers(%x: !a, %y: !a, %t: !mx.tile<16x32xf32>, %c: i1, %n: index) -> !mx.tile<16x32xf32> {
  %v = arith.select %c, %x, %y : !a
  %0 = scf.for %i = %n to %n step %n iter_args(%u = %t) -> (!mx.tile<16x32xf32>) {
    %1 = scf.if %c -> (!mx.tile<16x32xf32>) {
      %2 = func.call @carriers(%v, %y, %u, %c, %i) : (!a, !a, !mx.tile<16x32xf32>, i1, index) -> !mx.tile<16x32xf32>
      scf.yield %2 : !mx.tile<16x32xf32>
    } else {
      scf.yield %u : !mx.tile<16x32xf32>
    }
    scf.yield %1 : !mx.tile<16x32xf32>
  }
  cf.br ^end(%0 : !mx.tile<16x32xf32>)
^end(%r: !mx.tile<16x32xf32>):
  return %r : !mx.tile<16x32xf32>
}

// -----

// Nothing is asserted of what is seen to be inside.
// CHECK-LABEL: func.func @load_static(
// CHECK-SAME: %[[X:.*]]: tensor<64x64xf8E4M3FN>
// CHECK-NEXT: %[[T:.*]] = tensor.extract_slice %[[X]][16, 8] [10, 32] [1, 1] : tensor<64x64xf8E4M3FN> to tensor<10x32xf8E4M3FN>
// CHECK-NEXT: return %[[T]]
func.func @load_static(%x: tensor<64x64xf8E4M3FN>) -> !mx.tile<16x32xf8E4M3FN, mat, valid = 10x32> {
  %0 = mx.tile_load %x[16, 8] [16, 32] [10, 32] {target = "mat"} : tensor<64x64xf8E4M3FN> -> !mx.tile<16x32xf8E4M3FN, mat, valid = 10x32>
  return %0 : !mx.tile<16x32xf8E4M3FN, mat, valid = 10x32>
}

// CHECK-LABEL: func.func @load_dynamic(
// CHECK-SAME: %[[X:.*]]: tensor<64x64xf32>, %[[M:.*]]: index, %[[N:.*]]: index)
// CHECK: cf.assert %{{.*}}, "mx.tile_load: the valid extent of axis 0 is more than that of the window"
// CHECK: cf.assert %{{.*}}, "mx.tile_load: the valid extent of axis 1 is not 32"
// CHECK: cf.assert %{{.*}}, "mx.tile_load: the load leaves the tensor along axis 0"
// CHECK-NOT: cf.assert
// CHECK: tensor.extract_slice %[[X]][%[[M]], 0] [%[[N]], 32] [1, 1] : tensor<64x64xf32> to tensor<?x32xf32>
func.func @load_dynamic(%x: tensor<64x64xf32>, %m: index, %n: index) -> !mx.tile<16x32xf32, valid = ?x32> {
  %0 = mx.tile_load %x[%m, 0] [16, 32] [%n, %n] : tensor<64x64xf32> -> !mx.tile<16x32xf32, valid = ?x32>
  return %0 : !mx.tile<16x32xf32, valid = ?x32>
}

// Elements of global memory become codes.
// CHECK-LABEL: func.func @load_codes(
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}} to tensor<16x32xf4E2M1FN>
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<16x32xf4E2M1FN>) outs(%{{.*}} : tensor<16x32xi8>)
// CHECK: arith.bitcast %{{.*}} : f4E2M1FN to i4
// CHECK: arith.extui %{{.*}} : i4 to i8
// CHECK: tensor.extract_slice %{{.*}} to tensor<16x2xui8>
// CHECK: builtin.unrealized_conversion_cast %{{.*}} : ui8 to i8
func.func @load_codes(%x: tensor<64x64xf4E2M1FN>, %y: tensor<64x2xui8>) -> (!mx.tile<16x32xf4E2M1FN>, !mx.tile<16x2xui8>) {
  %0 = mx.tile_load %x[0, 0] [16, 32] : tensor<64x64xf4E2M1FN> -> !mx.tile<16x32xf4E2M1FN>
  %1 = mx.tile_load %y[0, 0] [16, 2] : tensor<64x2xui8> -> !mx.tile<16x2xui8>
  return %0, %1 : !mx.tile<16x32xf4E2M1FN>, !mx.tile<16x2xui8>
}

// -----

// The entry of a row and a group is found by the formula of the layout; M is cut in boxes of 16, G in boxes of 2.
// CHECK-LABEL: func.func @load_a(
// CHECK-SAME: %[[X:.*]]: tensor<1x4x2x16x2xf8E8M0FNU>, %[[M:.*]]: index)
// CHECK: cf.assert %{{.*}}, "mx.tile_load: the load leaves the tensor along axis 0"
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<10x2xf8E8M0FNU>)
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: %[[ROW:.*]] = arith.addi %[[I]], %[[M]]
// CHECK: %[[GROUP:.*]] = arith.addi %[[J]]
// CHECK: %[[C:.*]] = arith.divui %[[ROW]], %c16
// CHECK: %[[D:.*]] = arith.divui %[[GROUP]], %c2
// CHECK: %[[E:.*]] = arith.remui %[[ROW]], %c16
// CHECK: %[[F:.*]] = arith.remui %[[GROUP]], %c2
// CHECK: tensor.extract %[[X]][%c0{{.*}}, %[[C]], %[[D]], %[[E]], %[[F]]]
func.func @load_a(%x: tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %m: index) -> !mx.tile<16x2xf8E8M0FNU, mat, valid = 10x2> {
  %0 = mx.tile_load %x[%m, 1] [16, 2] [10, 2] {target = "mat"} : tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU, mat, valid = 10x2>
  return %0 : !mx.tile<16x2xf8E8M0FNU, mat, valid = 10x2>
}

// CHECK-LABEL: func.func @load_b(
// CHECK-SAME: %[[X:.*]]: tensor<1x4x2x16x2xi8>
// CHECK-NOT: cf.assert
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x16xi8>)
// CHECK: %[[GROUP:.*]] = linalg.index 0
// CHECK: %[[COLUMN:.*]] = linalg.index 1
// CHECK: %[[C:.*]] = arith.divui %[[COLUMN]], %c16
// CHECK: %[[D:.*]] = arith.divui %[[GROUP]], %c2
// CHECK: tensor.extract %[[X]][%c0{{.*}}, %[[C]], %[[D]],
func.func @load_b(%x: tensor<4x64xi8, #mx.layout<"MX_B_NN">>) -> !mx.tile<2x16xi8, mat> {
  %0 = mx.tile_load %x[0, 0] [2, 16] {target = "mat"} : tensor<4x64xi8, #mx.layout<"MX_B_NN">> -> !mx.tile<2x16xi8, mat>
  return %0 : !mx.tile<2x16xi8, mat>
}

// A load of whole boxes reads the valid part of them. The window may be ragged: here boxes 3 and 4 of 4.
// CHECK-LABEL: func.func @load_boxes(
// CHECK-SAME: %[[X:.*]]: tensor<1x4x2x16x2xf8E8M0FNU>, %[[B:.*]]: index)
// CHECK-NOT: cf.assert
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<10x2xf8E8M0FNU>)
// CHECK: arith.addi %{{.*}}, %c48
// CHECK: tensor.extract %[[X]]
// CHECK: cf.assert %{{.*}}, "mx.tile_load: the load leaves the tensor along axis 1"
// CHECK: %[[START:.*]] = arith.muli %[[B]], %c16
// CHECK: %[[REST:.*]] = arith.subi %{{.*}}, %[[START]]
// CHECK: %[[ROWS:.*]] = arith.minui %{{.*}}, %[[REST]]
// CHECK: tensor.empty(%[[ROWS]]) : tensor<?x2xf8E8M0FNU>
func.func @load_boxes(%x: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %b: index) -> (!mx.tile<32x2xf8E8M0FNU, mat, valid = 10x2>, !mx.tile<32x2xf8E8M0FNU, mat, valid = ?x2>) {
  %0 = mx.tile_load %x[0, 3, 1, 0, 0] [1, 2, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<32x2xf8E8M0FNU, mat, valid = 10x2>
  %1 = mx.tile_load %x[0, %b, 1, 0, 0] [1, 2, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<32x2xf8E8M0FNU, mat, valid = ?x2>
  return %0, %1 : !mx.tile<32x2xf8E8M0FNU, mat, valid = 10x2>, !mx.tile<32x2xf8E8M0FNU, mat, valid = ?x2>
}

// -----

// CHECK-LABEL: func.func @store(
// CHECK-SAME: %[[T:.*]]: tensor<8x32xf32>, %[[X:.*]]: tensor<64x64xf32>, %[[M:.*]]: index)
// CHECK: cf.assert %{{.*}}, "mx.tile_store: the store leaves the tensor along axis 0"
// CHECK: tensor.insert_slice %[[T]] into %[[X]][%[[M]], 32] [8, 32] [1, 1]
func.func @store(%t: !mx.tile<16x32xf32, acc, valid = 8x32>, %x: tensor<64x64xf32>, %m: index) -> tensor<64x64xf32> {
  %0 = mx.tile_store %t, %x[%m, 32] : !mx.tile<16x32xf32, acc, valid = 8x32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @store_codes(
// CHECK: arith.trunci %{{.*}} : i8 to i4
// CHECK: arith.bitcast %{{.*}} : i4 to f4E2M1FN
// CHECK: tensor.insert_slice %{{.*}} : tensor<16x32xf4E2M1FN> into tensor<64x64xf4E2M1FN>
func.func @store_codes(%t: !mx.tile<16x32xf4E2M1FN, vec>, %x: tensor<64x64xf4E2M1FN>) -> tensor<64x64xf4E2M1FN> {
  %0 = mx.tile_store %t, %x[0, 0] : !mx.tile<16x32xf4E2M1FN, vec>, tensor<64x64xf4E2M1FN> -> tensor<64x64xf4E2M1FN>
  return %0 : tensor<64x64xf4E2M1FN>
}

// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[X:.*]]: tensor<1x128xf8E8M0FNU>
// CHECK-NOT: cf.assert
// CHECK: %[[F:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1]] : tensor<1x128xf8E8M0FNU> into tensor<128xf8E8M0FNU>
// CHECK: %[[V:.*]] = tensor.expand_shape %[[F]] {{.*}} into tensor<1x2x2x16x2xf8E8M0FNU>
// CHECK: %[[G:.*]] = tensor.collapse_shape %[[V]] {{.*}} into tensor<128xf8E8M0FNU>
// CHECK: tensor.expand_shape %[[G]] {{.*}} into tensor<2x64xf8E8M0FNU>
func.func @views(%x: tensor<1x128xf8E8M0FNU>) -> tensor<2x64xf8E8M0FNU> {
  %0 = mx.tensor_view %x [4, 32] : tensor<1x128xf8E8M0FNU> -> tensor<4x32xf8E8M0FNU, #mx.layout<"MX_B_NN">>
  %1 = mx.tensor_view %0 [2, 64] : tensor<4x32xf8E8M0FNU, #mx.layout<"MX_B_NN">> -> tensor<2x64xf8E8M0FNU>
  return %1 : tensor<2x64xf8E8M0FNU>
}

// CHECK-LABEL: func.func @view_dynamic(
// CHECK: cf.assert %{{.*}}, "mx.tensor_view: a size of MX_A_ZZ is not a multiple of 16"
// CHECK: cf.assert %{{.*}}, "mx.tensor_view: the number of bytes is not that of the result"
func.func @view_dynamic(%x: tensor<?xf8E8M0FNU>, %m: index) -> tensor<?x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> {
  %0 = mx.tensor_view %x [%m, 4] : tensor<?xf8E8M0FNU> -> tensor<?x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  return %0 : tensor<?x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
}
