// RUN: mx-opt %s --mx-neuron-expand-load | filecheck %s
// RUN: mx-opt %s --mx-neuron-expand-load=scale-path=static | filecheck %s --check-prefix=STATIC

// All features of an expert: views, slices by access pattern, a gather by an index vector.
// CHECK-LABEL: func.func @gate_up(
// CHECK-SAME: %[[W:.*]]: tensor<8x128x2x1x64xui16>, %[[S:.*]]: tensor<8x16x2x1x64xui8>, %[[B:.*]]: tensor<8x16x2x1x4xf32>, %[[E:.*]]: index)
// CHECK: %[[V:.*]] = mx.view_cast %[[W]] : tensor<8x128x2x1x64xui16> -> tensor<8x128x2x1x64x!mx.x4<f4E2M1FN>>
// CHECK: %[[WE:.*]] = mx.select_expert %[[V]], %[[E]][0, 0, 0, 0] {dge_mode = "hwdge", oob_mode = "error"}
// CHECK: %[[I:.*]] = mx.expert_index %[[E]] {full_quadrants = 4 : i64, remaining_rows = 0 : i64, scale_rows = 16 : i64}
// CHECK: %[[SE:.*]] = mx.scale_gather %[[S]], %[[I]] {oob_mode = "skip"}
// CHECK: %[[BE:.*]] = mx.select_expert %[[B]], %[[E]][0, 0, 0, 0] {dge_mode = "hwdge"} :
// CHECK: return %[[WE]], %[[SE]], %[[BE]]
// STATIC-LABEL: func.func @gate_up(
// STATIC: %[[D:.*]] = mx.select_expert %{{.*}}, %{{.*}}[0, 0, 0, 0] : tensor<8x16x2x1x64xui8>, index -> tensor<16x2x1x64xui8>
// STATIC: mx.scale_load_static %[[D]] : tensor<16x2x1x64xui8> -> tensor<128x2x1x64xui8>
func.func @gate_up(%w: tensor<8x128x2x1x64xui16>, %s: tensor<8x16x2x1x64xui8>, %b: tensor<8x16x2x1x4xf32>, %e: index) -> (tensor<128x2x1x64x!mx.x4<f4E2M1FN>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xf32>) {
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x64xui16>, tensor<8x16x2x1x64xui8>, tensor<8x16x2x1x4xf32>, index -> (tensor<128x2x1x64x!mx.x4<f4E2M1FN>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xf32>)
  return %0#0, %0#1, %0#2 : tensor<128x2x1x64x!mx.x4<f4E2M1FN>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xf32>
}

// A part: scales are gathered from a slice of all experts'. Containers need no view.
// CHECK-LABEL: func.func @part(
// CHECK-NOT: mx.view_cast
// CHECK: mx.select_expert %{{.*}}, %{{.*}}[0, 0, 0, 512] {dge_mode = "hwdge", oob_mode = "skip"} : {{.*}} -> tensor<128x2x1x512x!mx.x4<f8E5M2>>
// CHECK: %[[SS:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0, 0, 512] [8, 16, 2, 1, 512] [1, 1, 1, 1, 1]
// CHECK: mx.scale_gather %[[SS]]
// CHECK: mx.select_expert %{{.*}}, %{{.*}}[0, 0, 1, 0] {dge_mode = "hwdge"} : {{.*}} -> tensor<128x2x1x4xf32>
// STATIC-LABEL: func.func @part(
// STATIC: mx.select_expert %{{.*}}, %{{.*}}[0, 0, 0, 512] : tensor<8x16x2x1x1024xui8>, index -> tensor<16x2x1x512xui8>
func.func @part(%w: tensor<8x128x2x1x1024x!mx.x4<f8E5M2>>, %s: tensor<8x16x2x1x1024xui8>, %b: tensor<8x128x2x2x4xf32>, %e: index) -> tensor<128x2x1x4xf32> {
  %0:3 = mx.load_gate_up %w, %s, %b, %e[512] {oob_mode = "skip"} : tensor<8x128x2x1x1024x!mx.x4<f8E5M2>>, tensor<8x16x2x1x1024xui8>, tensor<8x128x2x2x4xf32>, index -> (tensor<128x2x1x512x!mx.x4<f8E5M2>>, tensor<128x2x1x512xui8>, tensor<128x2x1x4xf32>)
  return %0#2 : tensor<128x2x1x4xf32>
}

// A range that begins anywhere must begin at a tile; the number of experts may be open.
// CHECK-LABEL: func.func @open(
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<?x16x2x1x1024xui8>, {{.*}}, %[[O:[a-z0-9]+]]: index)
// CHECK: %[[TILE:.*]] = arith.constant 512 : index
// CHECK: %[[R:.*]] = arith.remui %[[O]], %[[TILE]]
// CHECK: %[[C:.*]] = arith.cmpi eq, %[[R]], %{{.*}}
// CHECK: cf.assert %[[C]], "mx.load_gate_up: a range begins at a multiple of 512"
// CHECK: %[[T:.*]] = arith.divui %[[O]], %[[TILE]]
// CHECK: mx.select_expert %{{.*}}, %{{.*}}[0, 0, 0, %[[O]]]
// CHECK: %[[N:.*]] = tensor.dim %[[S]]
// CHECK: tensor.extract_slice %[[S]][0, 0, 0, 0, %[[O]]] [%[[N]], 16, 2, 1, 512]
// CHECK: mx.select_expert %{{.*}}, %{{.*}}[0, 0, %[[T]], 0]
func.func @open(%w: tensor<?x128x2x1x1024xui16>, %s: tensor<?x16x2x1x1024xui8>, %b: tensor<?x128x2x2x4xf32>, %e: index, %o: index) -> tensor<128x2x1x4xf32> {
  %0:3 = mx.load_gate_up %w, %s, %b, %e[%o] : tensor<?x128x2x1x1024xui16>, tensor<?x16x2x1x1024xui8>, tensor<?x128x2x2x4xf32>, index -> (tensor<128x2x1x512x!mx.x4<f4E2M1FN>>, tensor<128x2x1x512xui8>, tensor<128x2x1x4xf32>)
  return %0#2 : tensor<128x2x1x4xf32>
}

// I of 192 has 48 partitions and 6 scale rows: one full quadrant and two more.
// CHECK-LABEL: func.func @down(
// CHECK: %[[V:.*]] = mx.view_cast {{.*}} -> tensor<8x48x1x512x!mx.x4<f8E5M2>>
// CHECK: mx.select_expert %[[V]], %{{.*}}[0, 0, 0] {dge_mode = "hwdge", oob_mode = "error"} : {{.*}} -> tensor<48x1x512x!mx.x4<f8E5M2>>
// CHECK: mx.expert_index %{{.*}} {full_quadrants = 1 : i64, remaining_rows = 2 : i64, scale_rows = 6 : i64}
// CHECK: mx.select_expert %{{.*}}, %{{.*}}[0] {dge_mode = "hwdge"} : tensor<8x512xbf16>, index -> tensor<512xbf16>
func.func @down(%w: tensor<8x48x1x512xui32>, %s: tensor<8x6x1x512xui8>, %b: tensor<8x512xbf16>, %e: index, %g: tensor<128x2x1x192x!mx.x4<f8E5M2>>) -> tensor<512xbf16> {
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x48x1x512xui32>, tensor<8x6x1x512xui8>, tensor<8x512xbf16>, index, tensor<128x2x1x192x!mx.x4<f8E5M2>> -> (tensor<48x1x512x!mx.x4<f8E5M2>>, tensor<128x1x512xui8>, tensor<512xbf16>)
  return %0#2 : tensor<512xbf16>
}

// A part of down is a range of tiles.
// CHECK-LABEL: func.func @down_part(
// CHECK: mx.select_expert %{{.*}}, %{{.*}}[0, 1, 0] {{.*}} -> tensor<128x2x512x!mx.x4<f4E2M1FN>>
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 1, 0] [8, 16, 2, 512] [1, 1, 1, 1]
func.func @down_part(%w: tensor<8x128x3x512xui16>, %s: tensor<8x16x3x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x1024x!mx.x4<f4E2M1FN>>) -> tensor<128x2x512xui8> {
  %0:3 = mx.load_down %w, %s, %b, %e, %g[512] : tensor<8x128x3x512xui16>, tensor<8x16x3x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x1024x!mx.x4<f4E2M1FN>> -> (tensor<128x2x512x!mx.x4<f4E2M1FN>>, tensor<128x2x512xui8>, tensor<512xf32>)
  return %0#1 : tensor<128x2x512xui8>
}

// CHECK-LABEL: func.func @qkv(
// CHECK: %[[V:.*]] = mx.view_cast
// CHECK: %[[W:.*]] = mx.partition_rows %[[V]] {dge_mode = "swdge"} : {{.*}} -> tensor<128x2x96x!mx.x4<f8E4M3FN>>
// CHECK: %[[S:.*]] = mx.scale_load_static %{{.*}} {dge_mode = "swdge"} : tensor<32x96xui8> -> tensor<128x2x96xui8>
// CHECK: return %[[W]], %[[S]]
func.func @qkv(%w: tensor<256x96xui32>, %s: tensor<32x96xui8>) -> (tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>) {
  %0:2 = mx.load_qkv %w, %s {layout = "MX_CONTIGUOUS", input = bf16} : tensor<256x96xui32>, tensor<32x96xui8> -> (tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>)
  return %0#0, %0#1 : tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>
}

// CHECK-LABEL: func.func @qkv_dense(
// CHECK: mx.partition_rows %{{.*}} {dge_mode = "swdge"} : tensor<256x96xbf16> -> tensor<128x2x96xbf16>
func.func @qkv_dense(%w: tensor<256x96xbf16>) -> tensor<128x2x96xbf16> {
  %0 = mx.load_qkv_dense %w {layout = "CONTIGUOUS"} : tensor<256x96xbf16> -> tensor<128x2x96xbf16>
  return %0 : tensor<128x2x96xbf16>
}
