// RUN: mx-opt %s | filecheck %s
// RUN: mx-opt %s | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | mx-opt | filecheck %s
// RUN: mx-opt %s --emit-bytecode | mx-opt | filecheck %s

// Every operation on x4 containers, with all of its attributes.

!fp4 = !mx.x4<f4E2M1FN>

// CHECK-LABEL: func.func @containers(
// CHECK-SAME: %[[W:.*]]: tensor<128x64xui16>, %[[C:.*]]: tensor<512x64xi8>, %[[X:.*]]: tensor<16x512xf8E5M2>)
func.func @containers(%w: tensor<128x64xui16>, %codes: tensor<512x64xi8>, %x: tensor<16x512xf8E5M2>) {
  // CHECK: %[[V:.*]] = mx.view_cast %[[W]] : tensor<128x64xui16> -> tensor<128x64x!mx.x4<f4E2M1FN>>
  %v = mx.view_cast %w : tensor<128x64xui16> -> tensor<128x64x!fp4>
  // CHECK: mx.view_cast %[[V]] : tensor<128x64x!mx.x4<f4E2M1FN>> -> tensor<128x64xi16>
  %i = mx.view_cast %v : tensor<128x64x!fp4> -> tensor<128x64xi16>
  // CHECK: %[[P:.*]] = mx.pack_weights %[[C]] {layout = "MX_CONTIGUOUS"} : tensor<512x64xi8> -> tensor<128x64x!mx.x4<f4E2M1FN>>
  %p = mx.pack_weights %codes {layout = "MX_CONTIGUOUS"} : tensor<512x64xi8> -> tensor<128x64x!fp4>
  // CHECK: mx.dma_transpose %[[X]] : tensor<16x512xf8E5M2> -> tensor<128x16x!mx.x4<f8E5M2>>
  %t = mx.dma_transpose %x : tensor<16x512xf8E5M2> -> tensor<128x16x!mx.x4<f8E5M2>>
  // CHECK: mx.partition_rows %[[P]] {dge_mode = "swdge"} : tensor<128x64x!mx.x4<f4E2M1FN>> -> tensor<128x1x64x!mx.x4<f4E2M1FN>>
  %r = mx.partition_rows %p {dge_mode = "swdge"} : tensor<128x64x!fp4> -> tensor<128x1x64x!fp4>
  return
}

// CHECK-LABEL: func.func @engine(
func.func @engine(%x: tensor<64x64xf16>, %w: tensor<64x32x!fp4>, %ws: tensor<128x32xui8>, %acc: tensor<32x16xf32>) {
  // CHECK: %[[Q:.*]]:2 = mx.quantize_mx %{{.*}} {headroom = 1 : i64, scale_offset = 12 : i64} : tensor<64x64xf16> -> (tensor<64x16x!mx.x4<f8E4M3FN>>, tensor<96x16xi8>)
  %q:2 = mx.quantize_mx %x {headroom = 1, scale_offset = 12} : tensor<64x64xf16> -> (tensor<64x16x!mx.x4<f8E4M3FN>>, tensor<96x16xi8>)
  // CHECK: mx.nc_matmul_mx %{{.*}}, %{{.*}}, %[[Q]]#0, %{{.*}}, %[[Q]]#1 {accumulate, moving_scale_offset = 12 : i64, stationary_scale_offset = 4 : i64, weights = "stationary"} : tensor<32x16xf32>, tensor<64x32x!mx.x4<f4E2M1FN>>, tensor<64x16x!mx.x4<f8E4M3FN>>, tensor<128x32xui8>, tensor<96x16xi8> -> tensor<32x16xf32>
  %m = mx.nc_matmul_mx %acc, %w, %q#0, %ws, %q#1 {accumulate, weights = "stationary", stationary_scale_offset = 4, moving_scale_offset = 12} : tensor<32x16xf32>, tensor<64x32x!fp4>, tensor<64x16x!mx.x4<f8E4M3FN>>, tensor<128x32xui8>, tensor<96x16xi8> -> tensor<32x16xf32>
  return
}

// CHECK-LABEL: func.func @steps(
// CHECK-SAME: %[[W:.*]]: tensor<?x128x4x{{.*}}>, %[[S:.*]]: tensor<?x16x64xui8>, %[[E:.*]]: index, %[[O:.*]]: index)
func.func @steps(%w: tensor<?x128x4x!fp4>, %s: tensor<?x16x64xui8>, %e: index, %o: index) {
  // CHECK: mx.select_expert %[[W]], %[[E]][0, %[[O]]] {dge_mode = "hwdge", oob_mode = "skip"} : tensor<?x128x4x!mx.x4<f4E2M1FN>>, index -> tensor<128x2x!mx.x4<f4E2M1FN>>
  %0 = mx.select_expert %w, %e[0, %o] {dge_mode = "hwdge", oob_mode = "skip"} : tensor<?x128x4x!fp4>, index -> tensor<128x2x!fp4>
  // CHECK: %[[I:.*]] = mx.expert_index %[[E]] {full_quadrants = 3 : i64, offset = 8 : i64, remaining_rows = 2 : i64, scale_rows = 16 : i64} : index -> tensor<128xi32>
  %i = mx.expert_index %e {scale_rows = 16, full_quadrants = 3, remaining_rows = 2, offset = 8} : index -> tensor<128xi32>
  // CHECK: mx.scale_gather %[[S]], %[[I]] {oob_mode = "skip"} : tensor<?x16x64xui8>, tensor<128xi32> -> tensor<128x64xui8>
  %1 = mx.scale_gather %s, %i {oob_mode = "skip"} : tensor<?x16x64xui8>, tensor<128xi32> -> tensor<128x64xui8>
  // CHECK: %[[D:.*]] = mx.select_expert %[[S]], %[[E]][0, 0] : tensor<?x16x64xui8>, index -> tensor<16x64xui8>
  %d = mx.select_expert %s, %e[0, 0] : tensor<?x16x64xui8>, index -> tensor<16x64xui8>
  // CHECK: mx.scale_load_static %[[D]] {dge_mode = "swdge", offset = 4 : i64} : tensor<16x64xui8> -> tensor<128x64xui8>
  %2 = mx.scale_load_static %d {dge_mode = "swdge", offset = 4} : tensor<16x64xui8> -> tensor<128x64xui8>
  // CHECK: mx.scale_load_static %[[D]] : tensor<16x64xui8> -> tensor<128x1x64xui8>
  %3 = mx.scale_load_static %d : tensor<16x64xui8> -> tensor<128x1x64xui8>
  return
}

// The target type of 32-bit integers may be either format of FP8; down inherits it.
// CHECK-LABEL: func.func @experts(
func.func @experts(%w: tensor<8x128x2x1x64xui32>, %s: tensor<8x16x2x1x64xui8>, %b: tensor<8x16x2x1x4xbf16>, %dw: tensor<8x16x1x512xi32>, %ds: tensor<8x2x1x512xui8>, %db: tensor<8x512xf32>, %e: index, %o: index) {
  // CHECK: %[[G:.*]]:3 = mx.load_gate_up %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}[0] {oob_mode = "skip"} : tensor<8x128x2x1x64xui32>, tensor<8x16x2x1x64xui8>, tensor<8x16x2x1x4xbf16>, index -> (tensor<128x2x1x64x!mx.x4<f8E5M2>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xbf16>)
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] {oob_mode = "skip"} : tensor<8x128x2x1x64xui32>, tensor<8x16x2x1x64xui8>, tensor<8x16x2x1x4xbf16>, index -> (tensor<128x2x1x64x!mx.x4<f8E5M2>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xbf16>)
  // CHECK: mx.load_down %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[G]]#0[%{{.*}}] : tensor<8x16x1x512xi32>, tensor<8x2x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x64x!mx.x4<f8E5M2>> -> (tensor<16x1x512x!mx.x4<f8E5M2>>, tensor<128x1x512xui8>, tensor<512xf32>)
  %1:3 = mx.load_down %dw, %ds, %db, %e, %0#0[%o] : tensor<8x16x1x512xi32>, tensor<8x2x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x64x!mx.x4<f8E5M2>> -> (tensor<16x1x512x!mx.x4<f8E5M2>>, tensor<128x1x512xui8>, tensor<512xf32>)
  return
}

// Each way of the activations with the layout that it demands.
// CHECK-LABEL: func.func @qkv(
func.func @qkv(%w: tensor<256x96xui32>, %s: tensor<32x96xui8>, %dense: tensor<256x96xbf16>) {
  // CHECK: mx.load_qkv %{{.*}}, %{{.*}} {dma_transpose, input = f8E4M3FN, layout = "MX_INTERLEAVED"} : tensor<256x96xui32>, tensor<32x96xui8> -> (tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>)
  %0:2 = mx.load_qkv %w, %s {layout = "MX_INTERLEAVED", input = f8E4M3FN, dma_transpose} : tensor<256x96xui32>, tensor<32x96xui8> -> (tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>)
  // CHECK: mx.load_qkv {{.*}} {dma_transpose, input = bf16, input_scale, layout = "MX_INTERLEAVED"}
  %1:2 = mx.load_qkv %w, %s {layout = "MX_INTERLEAVED", input = bf16, input_scale, dma_transpose} : tensor<256x96xui32>, tensor<32x96xui8> -> (tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>)
  // CHECK: mx.load_qkv {{.*}} {dma_transpose, input = bf16, input_scale, layout = "MX_CONTIGUOUS"}
  %2:2 = mx.load_qkv %w, %s {layout = "MX_CONTIGUOUS", input = bf16, input_scale, dma_transpose} : tensor<256x96xui32>, tensor<32x96xui8> -> (tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>)
  // CHECK: mx.load_qkv {{.*}} {input = f8E5M2, layout = "MX_CONTIGUOUS"}
  %3:2 = mx.load_qkv %w, %s {layout = "MX_CONTIGUOUS", input = f8E5M2} : tensor<256x96xui32>, tensor<32x96xui8> -> (tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>)
  // CHECK: mx.load_qkv_dense %{{.*}} {layout = "CONTIGUOUS"} : tensor<256x96xbf16> -> tensor<128x2x96xbf16>
  %4 = mx.load_qkv_dense %dense {layout = "CONTIGUOUS"} : tensor<256x96xbf16> -> tensor<128x2x96xbf16>
  return
}
