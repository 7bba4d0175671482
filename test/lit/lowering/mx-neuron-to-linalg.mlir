// RUN: mx-opt %s --mx-neuron-to-linalg | filecheck %s
// RUN: mx-opt %s --mx-neuron-to-linalg --mx-bufferize | filecheck %s --check-prefix=BUFFERS

!fp4 = !mx.x4<f4E2M1FN>
!fp8 = !mx.x4<f8E4M3FN>

// The formulas of the layouts as maps: rows of a weight, partitions of scales.
// CHECK-DAG: #[[ROW0:.*]] = affine_map<(d0, d1) -> (d0 * 4, d1)>
// CHECK-DAG: #[[ROW3:.*]] = affine_map<(d0, d1) -> (d0 * 4 + 3, d1)>
// CHECK-DAG: #[[LANE0:.*]] = affine_map<(d0, d1) -> (d0 * 2, d1)>
// CHECK-DAG: #[[LANE3:.*]] = affine_map<(d0, d1) -> (d0 * 2 + 257, d1)>
// CHECK-DAG: #[[TOKEN3:.*]] = affine_map<(d0, d1) -> (d1, d0 * 2 + 257)>
// CHECK-DAG: #[[QUADRANT:.*]] = affine_map<(d0, d1) -> ((d0 floordiv 4) * 32 + d0 mod 4 + 4, d1)>
// CHECK-DAG: #[[DATA:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d0)>
// CHECK-DAG: #[[SCALE:.*]] = affine_map<(d0, d1, d2, d3) -> (d2 floordiv 8, d0)>
// CHECK-DAG: #[[LANE:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>

// A view is nothing: the function gives back the buffer that it was given.
// CHECK-LABEL: func.func @view(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xi16>) -> tensor<4x8xi16>
// CHECK-NEXT: return %[[X]] : tensor<4x8xi16>
// BUFFERS-LABEL: func.func @view(
// BUFFERS-SAME: %[[X:.*]]: memref<4x8xi16>)
// BUFFERS-NEXT: return %[[X]]
func.func @view(%x: tensor<4x8xui16>) -> tensor<4x8x!fp4> {
  %0 = mx.view_cast %x : tensor<4x8xui16> -> tensor<4x8x!fp4>
  return %0 : tensor<4x8x!fp4>
}

// Containers and unsigned integers are retyped wherever values go.
// CHECK-LABEL: func.func private @declared(tuple<tensor<4xi32>>, i8) -> tensor<?xi16> attributes {my.types = [tensor<i16>]}
func.func private @declared(tuple<tensor<4x!mx.x4<f8E5M2>>>, ui8) -> tensor<?x!fp4> attributes {my.types = [tensor<!fp4>]}
// CHECK-LABEL: func.func @control_flow(
// CHECK-SAME: %[[C:.*]]: i1, %[[X:.*]]: tensor<4xi16>, %[[Y:.*]]: tensor<4xi16>, %[[N:.*]]: index) -> tensor<4xi16>
// CHECK: %[[S:.*]] = scf.if %[[C]] -> (tensor<4xi16>) {
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[S]]) -> (tensor<4xi16>) {
// CHECK: func.call @control_flow({{.*}}) : (i1, tensor<4xi16>, tensor<4xi16>, index) -> tensor<4xi16>
// CHECK: cf.cond_br %[[C]], ^bb1(%{{.*}} : tensor<4xi16>)
// CHECK: ^bb1(%{{.*}}: tensor<4xi16>):
func.func @control_flow(%c: i1, %x: tensor<4x!fp4>, %y: tensor<4xui16>, %n: index) -> tensor<4xi16> {
  %v = mx.view_cast %y : tensor<4xui16> -> tensor<4x!fp4>
  %0 = scf.if %c -> tensor<4x!fp4> {
    scf.yield %x : tensor<4x!fp4>
  } else {
    scf.yield %v : tensor<4x!fp4>
  }
  %1 = scf.for %i = %n to %n step %n iter_args(%a = %0) -> tensor<4x!fp4> {
    %2 = func.call @control_flow(%c, %a, %y, %n) : (i1, tensor<4x!fp4>, tensor<4xui16>, index) -> tensor<4xi16>
    %3 = mx.view_cast %2 : tensor<4xi16> -> tensor<4x!fp4>
    scf.yield %3 : tensor<4x!fp4>
  }
  cf.cond_br %c, ^next(%1 : tensor<4x!fp4>), ^next(%x : tensor<4x!fp4>)
^next(%z: tensor<4x!fp4>):
  %4 = mx.view_cast %z : tensor<4x!fp4> -> tensor<4xi16>
  return %4 : tensor<4xi16>
}

// CHECK-LABEL: func.func @pack_contiguous(
// CHECK: linalg.generic {indexing_maps = [#[[ROW0]], #{{.*}}, #{{.*}}, #[[ROW3]], #{{.*}}], iterator_types = ["parallel", "parallel"]}
// CHECK: arith.andi %{{.*}}, %{{.*}} : i8
// CHECK: arith.extui %{{.*}} : i8 to i16
// CHECK: arith.shli
// CHECK: arith.ori
func.func @pack_contiguous(%w: tensor<512x8xi8>) -> tensor<128x8x!fp4> {
  %0 = mx.pack_weights %w {layout = "MX_CONTIGUOUS"} : tensor<512x8xi8> -> tensor<128x8x!fp4>
  return %0 : tensor<128x8x!fp4>
}

// CHECK-LABEL: func.func @pack_interleaved(
// CHECK: linalg.generic {indexing_maps = [#[[LANE0]], #{{.*}}, #{{.*}}, #[[LANE3]], #{{.*}}]
// CHECK: arith.bitcast %{{.*}} : f8E4M3FN to i8
func.func @pack_interleaved(%w: tensor<512x8xf8E4M3FN>) -> tensor<128x8x!fp8> {
  %0 = mx.pack_weights %w {layout = "MX_INTERLEAVED"} : tensor<512x8xf8E4M3FN> -> tensor<128x8x!fp8>
  return %0 : tensor<128x8x!fp8>
}

// The same lanes from the other axis.
// CHECK-LABEL: func.func @transpose(
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}, #[[TOKEN3]], #{{.*}}]
func.func @transpose(%x: tensor<6x512xf8E4M3FN>) -> tensor<128x6x!fp8> {
  %0 = mx.dma_transpose %x : tensor<6x512xf8E4M3FN> -> tensor<128x6x!fp8>
  return %0 : tensor<128x6x!fp8>
}

// CHECK-LABEL: func.func @transpose_float(
// CHECK: linalg.generic
// CHECK: tensor.collapse_shape %{{.*}} : tensor<128x6x4xbf16> into tensor<128x24xbf16>
func.func @transpose_float(%x: tensor<6x512xbf16>) -> tensor<128x24xbf16> {
  %0 = mx.dma_transpose %x : tensor<6x512xbf16> -> tensor<128x24xbf16>
  return %0 : tensor<128x24xbf16>
}

// CHECK-LABEL: func.func @partitions(
// CHECK: tensor.expand_shape {{.*}} : tensor<256x8xi32> into tensor<2x128x8xi32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<128x2x8xi32>)
func.func @partitions(%x: tensor<256x8x!fp8>) -> tensor<128x2x8x!fp8> {
  %0 = mx.partition_rows %x : tensor<256x8x!fp8> -> tensor<128x2x8x!fp8>
  return %0 : tensor<128x2x8x!fp8>
}

// The choice of an expert is a strided slice, and what reads it reads the experts' buffer.
// CHECK-LABEL: func.func @select(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x128x4x64xi16>, %[[E:[a-z0-9]+]]: index, %[[O:[a-z0-9]+]]: index
// CHECK: %[[COUNT:.*]] = arith.constant 8 : index
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[E]], %[[COUNT]] : index
// CHECK: cf.assert %[[INSIDE]], "mx.select_expert: the expert index is out of range"
// CHECK-NOT: along axis 2
// CHECK: %[[END:.*]] = arith.constant 64 : index
// CHECK: arith.cmpi ule, %[[O]], %[[END]] : index
// CHECK: cf.assert %{{.*}}, "mx.select_expert: the range leaves the tensor along axis 3"
// CHECK: tensor.extract_slice %[[W]][%[[E]], 0, 1, %[[O]]] [1, 128, 1, 32] [1, 1, 1, 1] : tensor<8x128x4x64xi16> to tensor<128x1x32xi16>
// BUFFERS-LABEL: func.func @select(
// BUFFERS-SAME: %[[W:[a-z0-9]+]]: memref<8x128x4x64xi16>
// BUFFERS-NOT: memref.copy
// BUFFERS: %[[P:.*]] = memref.subview %[[W]]
// BUFFERS-NOT: memref.copy
// BUFFERS: memref.load
func.func @select(%w: tensor<8x128x4x64xui16>, %e: index, %o: index, %i: index) -> i16 {
  %0 = mx.select_expert %w, %e[0, 1, %o] : tensor<8x128x4x64xui16>, index -> tensor<128x1x32xui16>
  %1 = mx.view_cast %0 : tensor<128x1x32xui16> -> tensor<128x1x32x!fp4>
  %2 = mx.view_cast %1 : tensor<128x1x32x!fp4> -> tensor<128x1x32xi16>
  %3 = tensor.extract %2[%i, %i, %i] : tensor<128x1x32xi16>
  return %3 : i16
}

// CHECK-LABEL: func.func @select_of_any_number(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<?x4xi8>, %[[E:[a-z0-9]+]]: index)
// CHECK: %[[COUNT:.*]] = tensor.dim %[[W]]
// CHECK: arith.cmpi ult, %[[E]], %[[COUNT]] : index
func.func @select_of_any_number(%w: tensor<?x4xi8>, %e: index) -> tensor<4xi8> {
  %0 = mx.select_expert %w, %e[0] : tensor<?x4xi8>, index -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// CHECK-LABEL: func.func @index(
// CHECK-SAME: %[[E:.*]]: index)
// CHECK: cf.assert %{{.*}}, "mx.expert_index: the expert index is out of range"
// CHECK: %[[R:.*]] = arith.constant 6 : i32
// CHECK: %[[I:.*]] = arith.index_cast %[[E]] : index to i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[I]], %[[R]] : i32
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[FIRST]] : tensor<128xi32>, i32)
func.func @index(%e: index) -> tensor<128xi32> {
  %0 = mx.expert_index %e {scale_rows = 6, full_quadrants = 1, remaining_rows = 2} : index -> tensor<128xi32>
  return %0 : tensor<128xi32>
}

// Every index is checked, then rows are copied into zeros, those of the experts' buffer into the tile's.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<8x6x4xi8>, %[[I:[a-z0-9]+]]: tensor<128xi32>)
// CHECK: arith.constant 48 : index
// CHECK: cf.assert %{{.*}}, "mx.scale_gather: an index is out of range"
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<128x4xi8>
// CHECK: scf.for %[[P:.*]] = {{.*}} iter_args(%[[T:.*]] = %[[Z]])
// CHECK: scf.if
// CHECK: %[[ROW:.*]] = tensor.extract_slice %[[S]][%{{.*}}, %{{.*}}, 0] [1, 1, 4] [1, 1, 1]
// CHECK: tensor.insert_slice %[[ROW]] into %[[T]][%[[P]], 0] [1, 4] [1, 1]
// BUFFERS-LABEL: func.func @gather(
// BUFFERS: %[[T:.*]] = memref.alloc() {{.*}} : memref<128x4xi8>
// BUFFERS: scf.for
// BUFFERS: scf.if
// BUFFERS: memref.copy %{{.*}}, %{{.*}} : memref<1x4xi8, {{.*}}> to memref<1x4xi8
// BUFFERS: return %[[T]]
func.func @gather(%s: tensor<8x6x4xui8>, %i: tensor<128xi32>) -> tensor<128x4xui8> {
  %0 = mx.scale_gather %s, %i : tensor<8x6x4xui8>, tensor<128xi32> -> tensor<128x4xui8>
  return %0 : tensor<128x4xui8>
}

// Six rows: four in the first quadrant, two in the second.
// CHECK-LABEL: func.func @static(
// CHECK: %[[A:.*]] = tensor.extract_slice %{{.*}}[0, 0] [4, 8]
// CHECK: %[[T:.*]] = tensor.insert_slice %[[A]] into %{{.*}}[8, 0] [4, 8]
// CHECK: %[[B:.*]] = tensor.extract_slice %{{.*}}[4, 0] [2, 8]
// CHECK: tensor.insert_slice %[[B]] into %[[T]][40, 0] [2, 8]
// CHECK-NOT: insert_slice
// CHECK: return
func.func @static(%s: tensor<6x8xui8>) -> tensor<128x8xui8> {
  %0 = mx.scale_load_static %s {offset = 8} : tensor<6x8xui8> -> tensor<128x8xui8>
  return %0 : tensor<128x8xui8>
}

// Scales are taken out of their quadrants by the map, whatever lies in the holes; dense ones are as they are.
// CHECK-LABEL: func.func @matmul(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<64x32xi16>, %[[X:[a-z0-9]+]]: tensor<64x16xi32>, %[[WS:[a-z0-9]+]]: tensor<128x32xi8>, %{{.*}}: tensor<64x16xi8>, %[[ACC:[a-z0-9]+]]: tensor<32x16xf32>)
// CHECK: %[[DENSE:.*]] = linalg.generic {indexing_maps = [#[[QUADRANT]], #{{.*}}], {{.*}}} ins(%[[WS]] : tensor<128x32xi8>) outs(%{{.*}} : tensor<8x32xi8>)
// CHECK: %[[SHIFTS:.*]] = arith.constant dense<[0, 4, 8, 12]> : tensor<4xi16>
// CHECK: arith.constant dense<[0, 8, 16, 24]> : tensor<4xi32>
// CHECK: linalg.generic {indexing_maps = [#[[DATA]], #[[SCALE]], #[[LANE]], {{.*}}], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
// CHECK-SAME: ins(%[[W]], %[[DENSE]], %[[SHIFTS]], %[[X]]
// CHECK-SAME: outs(%[[ACC]] : tensor<32x16xf32>)
// CHECK: arith.shrui %{{.*}}, %{{.*}} : i16
// CHECK: arith.trunci %{{.*}} : i16 to i4
// CHECK: arith.bitcast %{{.*}} : i4 to f4E2M1FN
// CHECK: arith.trunci %{{.*}} : i32 to i8
func.func @matmul(%w: tensor<64x32x!fp4>, %x: tensor<64x16x!fp8>, %ws: tensor<128x32xui8>, %xs: tensor<64x16xui8>, %acc: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = mx.nc_matmul_mx %acc, %w, %x, %ws, %xs {accumulate, weights = "stationary", stationary_scale_offset = 4} : tensor<32x16xf32>, tensor<64x32x!fp4>, tensor<64x16x!fp8>, tensor<128x32xui8>, tensor<64x16xui8> -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// CHECK-LABEL: func.func @replace(
// CHECK-SAME: %{{.*}}: tensor<32x16xi32>, %[[X:[a-z0-9]+]]: tensor<32x8xi32>, %[[WS:[a-z0-9]+]]: tensor<4x16xi8>, {{.*}}, %[[DST:[a-z0-9]+]]: tensor<16x8xf32>)
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<16x8xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[WS]], {{.*}} outs(%[[Z]] :
func.func @replace(%w: tensor<32x16x!fp8>, %x: tensor<32x8x!fp8>, %ws: tensor<4x16xui8>, %xs: tensor<4x8xui8>, %dst: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %0 = mx.nc_matmul_mx %dst, %w, %x, %ws, %xs {weights = "moving"} : tensor<16x8xf32>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @quantize(
// CHECK: tensor.expand_shape {{.*}} into tensor<4x8x8x4xbf16>
// CHECK: arith.maxui
// CHECK: arith.constant 14 : i32
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x8x8xi32>)
// CHECK: %[[D:.*]] = tensor.collapse_shape {{.*}} : tensor<4x8x8xi32> into tensor<32x8xi32>
// CHECK: return %[[D]], %{{.*}} : tensor<32x8xi32>, tensor<4x8xi8>
func.func @quantize(%x: tensor<32x32xbf16>) -> (tensor<32x8x!mx.x4<f8E5M2>>, tensor<4x8xui8>) {
  %0:2 = mx.quantize_mx %x {headroom = 1} : tensor<32x32xbf16> -> (tensor<32x8x!mx.x4<f8E5M2>>, tensor<4x8xui8>)
  return %0#0, %0#1 : tensor<32x8x!mx.x4<f8E5M2>>, tensor<4x8xui8>
}
