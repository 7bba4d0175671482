// RUN: mx-opt %s --mx-to-linalg | filecheck %s

// CHECK: #[[GROUP:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #[[PLACE:.*]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK: #[[BYTE:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>

// Two nibbles are gathered in each byte, with shifts of i8; the amounts are constants, which vectorize.
// CHECK-LABEL: func.func @pack_fp4(
// CHECK-DAG: %[[SHIFTS:.*]] = arith.constant dense<[0, 4]> : tensor<2xi8>
// CHECK-DAG: %[[E:.*]] = tensor.expand_shape {{.*}} : tensor<4x8xi8> into tensor<4x4x2xi8>
// CHECK: linalg.generic {indexing_maps = [#[[GROUP]], #[[PLACE]], #[[BYTE]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[E]], %[[SHIFTS]]
// CHECK: arith.shli %{{.*}} : i8
// CHECK: arith.ori %{{.*}} : i8
func.func @pack_fp4(%x: tensor<4x8xi8>) -> tensor<4x4xi8> {
  %0 = mx.pack %x {element = f4E2M1FN} : tensor<4x8xi8> -> tensor<4x4xi8>
  return %0 : tensor<4x4xi8>
}

// CHECK-LABEL: func.func @unpack_fp4(
// CHECK: linalg.generic {indexing_maps = [#[[BYTE]], #[[PLACE]], #[[GROUP]]], iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK: arith.shrui %{{.*}} : i8
// CHECK: tensor.collapse_shape {{.*}} : tensor<4x4x2xi8> into tensor<4x8xi8>
func.func @unpack_fp4(%x: tensor<4x4xi8>) -> tensor<4x8xi8> {
  %0 = mx.unpack %x {element = f4E2M1FN} : tensor<4x4xi8> -> tensor<4x8xi8>
  return %0 : tensor<4x8xi8>
}

// Four codes in three bytes.
// CHECK-LABEL: func.func @pack_fp6(
// CHECK: tensor.expand_shape {{.*}} : tensor<4x8xi8> into tensor<4x2x4xi8>
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK: tensor.collapse_shape {{.*}} : tensor<4x2x3xi8> into tensor<4x6xi8>
func.func @pack_fp6(%x: tensor<4x8xi8>) -> tensor<4x6xi8> {
  %0 = mx.pack %x {element = f6E2M3FN} : tensor<4x8xi8> -> tensor<4x6xi8>
  return %0 : tensor<4x6xi8>
}

// A dynamic extent is asserted to be of whole groups.
// CHECK-LABEL: func.func @unpack_dynamic(
// CHECK: cf.assert %{{.*}}, "mx.pack, mx.unpack: the last extent is not a multiple of 3"
func.func @unpack_dynamic(%x: tensor<?xi8>) -> tensor<?xi8> {
  %0 = mx.unpack %x {element = f6E3M2FN} : tensor<?xi8> -> tensor<?xi8>
  return %0 : tensor<?xi8>
}
