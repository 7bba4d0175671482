// RUN: mx-opt %s --split-input-file --verify-diagnostics

// Gate and up.

func.func @width(%w: tensor<8x128x2x1x64xui16>, %s: tensor<8x16x2x1x64xui8>, %b: tensor<8x16x2x1x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op weights 'tensor<8x128x2x1x64xui16>' have entries of 16 bits, but the containers that are loaded, 'tensor<128x2x1x64x!mx.x4<f8E4M3FN>>', have 32}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x64xui16>, tensor<8x16x2x1x64xui8>, tensor<8x16x2x1x4xf32>, index -> (tensor<128x2x1x64x!mx.x4<f8E4M3FN>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xf32>)
  return
}

// -----

func.func @other_containers(%w: tensor<8x128x2x1x64x!mx.x4<f8E4M3FN>>, %s: tensor<8x16x2x1x64xui8>, %b: tensor<8x16x2x1x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op weights 'tensor<8x128x2x1x64x!mx.x4<f8E4M3FN>>' hold containers of another type than 'tensor<128x2x1x64x!mx.x4<f8E5M2>>'}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x64x!mx.x4<f8E4M3FN>>, tensor<8x16x2x1x64xui8>, tensor<8x16x2x1x4xf32>, index -> (tensor<128x2x1x64x!mx.x4<f8E5M2>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xf32>)
  return
}

// -----

func.func @float_weights(%w: tensor<8x128x2x1x64xf16>, %s: tensor<8x16x2x1x64xui8>, %b: tensor<8x16x2x1x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op weights must hold x4 containers or ui16, i16, ui32, i32, but is 'tensor<8x128x2x1x64xf16>'}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x64xf16>, tensor<8x16x2x1x64xui8>, tensor<8x16x2x1x4xf32>, index -> (tensor<128x2x1x64x!mx.x4<f4E2M1FN>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xf32>)
  return
}

// -----

func.func @features(%w: tensor<8x128x2x1x600xui16>, %s: tensor<8x16x2x1x600xui8>, %b: tensor<8x128x2x2x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op I must be a multiple of 512, or less than 512 and a multiple of 32, but is 600}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x600xui16>, tensor<8x16x2x1x600xui8>, tensor<8x128x2x2x4xf32>, index -> (tensor<128x2x1x600x!mx.x4<f4E2M1FN>>, tensor<128x2x1x600xui8>, tensor<128x2x2x4xf32>)
  return
}

// -----

func.func @partitions(%w: tensor<8x64x2x1x64xui16>, %s: tensor<8x16x2x1x64xui8>, %b: tensor<8x16x2x1x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op weights must have shape 8x128x2x1x64, but is 'tensor<8x64x2x1x64xui16>'}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x64x2x1x64xui16>, tensor<8x16x2x1x64xui8>, tensor<8x16x2x1x4xf32>, index -> (tensor<128x2x1x64x!mx.x4<f4E2M1FN>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xf32>)
  return
}

// -----

func.func @scales(%w: tensor<8x128x2x1x64xui16>, %s: tensor<4x16x2x1x64xui8>, %b: tensor<8x16x2x1x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op scales must have shape 8x16x2x1x64, but is 'tensor<4x16x2x1x64xui8>'}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x64xui16>, tensor<4x16x2x1x64xui8>, tensor<8x16x2x1x4xf32>, index -> (tensor<128x2x1x64x!mx.x4<f4E2M1FN>>, tensor<128x2x1x64xui8>, tensor<16x2x1x4xf32>)
  return
}

// -----

// I of 64 fills 16 partitions; it is not padded.
func.func @bias(%w: tensor<?x128x2x1x64xui16>, %s: tensor<?x16x2x1x64xui8>, %b: tensor<?x128x2x1x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op bias must have shape ?x16x2x1x4, but is 'tensor<?x128x2x1x4xf32>'}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<?x128x2x1x64xui16>, tensor<?x16x2x1x64xui8>, tensor<?x128x2x1x4xf32>, index -> (tensor<128x2x1x64x!mx.x4<f4E2M1FN>>, tensor<128x2x1x64xui8>, tensor<128x2x1x4xf32>)
  return
}

// -----

func.func @part(%w: tensor<8x128x2x1x1024xui16>, %s: tensor<8x16x2x1x1024xui8>, %b: tensor<8x128x2x2x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op loads 256 of 1024 features; a part must be a multiple of 512}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x1024xui16>, tensor<8x16x2x1x1024xui8>, tensor<8x128x2x2x4xf32>, index -> (tensor<128x2x1x256x!mx.x4<f4E2M1FN>>, tensor<128x2x1x256xui8>, tensor<64x2x1x4xf32>)
  return
}

// -----

func.func @begin(%w: tensor<8x128x2x1x1024xui16>, %s: tensor<8x16x2x1x1024xui8>, %b: tensor<8x128x2x2x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op a range begins at a multiple of 512, not at feature 256}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[256] : tensor<8x128x2x1x1024xui16>, tensor<8x16x2x1x1024xui8>, tensor<8x128x2x2x4xf32>, index -> (tensor<128x2x1x512x!mx.x4<f4E2M1FN>>, tensor<128x2x1x512xui8>, tensor<128x2x1x4xf32>)
  return
}

// -----

func.func @end(%w: tensor<8x128x2x1x1024xui16>, %s: tensor<8x16x2x1x1024xui8>, %b: tensor<8x128x2x2x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op 1024 features from 512 on leave the 1024 there are}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[512] : tensor<8x128x2x1x1024xui16>, tensor<8x16x2x1x1024xui8>, tensor<8x128x2x2x4xf32>, index -> (tensor<128x2x1x1024x!mx.x4<f4E2M1FN>>, tensor<128x2x1x1024xui8>, tensor<128x2x2x4xf32>)
  return
}

// -----

func.func @loaded(%w: tensor<8x128x2x1x64xui16>, %s: tensor<8x16x2x1x64xui8>, %b: tensor<8x16x2x1x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op loaded_scales must be 'tensor<128x2x1x64xui8>', but is 'tensor<16x2x1x64xui8>'}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x64xui16>, tensor<8x16x2x1x64xui8>, tensor<8x16x2x1x4xf32>, index -> (tensor<128x2x1x64x!mx.x4<f4E2M1FN>>, tensor<16x2x1x64xui8>, tensor<16x2x1x4xf32>)
  return
}

// -----

func.func @no_hidden(%w: tensor<8x128x2x0x64xui16>, %s: tensor<8x16x2x0x64xui8>, %b: tensor<8x16x2x1x4xf32>, %e: index) {
  // expected-error @below {{'mx.load_gate_up' op weights must have a tile of H or more, but are 'tensor<8x128x2x0x64xui16>'}}
  %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x0x64xui16>, tensor<8x16x2x0x64xui8>, tensor<8x16x2x1x4xf32>, index -> (tensor<128x2x0x64x!mx.x4<f4E2M1FN>>, tensor<128x2x0x64xui8>, tensor<16x2x1x4xf32>)
  return
}

// -----

// Down.

// A gate of FP4 and a down of FP8, whatever carries it, is no kernel.
func.func @mixed(%w: tensor<8x16x1x512xui32>, %s: tensor<8x2x1x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x64x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op the target type, f4E2M1FN, is inherited from gate_up, but loaded holds f8E4M3FN; one kernel cannot mix them}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x16x1x512xui32>, tensor<8x2x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x64x!mx.x4<f4E2M1FN>> -> (tensor<16x1x512x!mx.x4<f8E4M3FN>>, tensor<128x1x512xui8>, tensor<512xf32>)
  return
}

// -----

func.func @mixed_weights(%w: tensor<8x16x1x512xui32>, %s: tensor<8x2x1x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x64x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op weights 'tensor<8x16x1x512xui32>' have entries of 32 bits, but the containers that are loaded, 'tensor<16x1x512x!mx.x4<f4E2M1FN>>', have 16}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x16x1x512xui32>, tensor<8x2x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x64x!mx.x4<f4E2M1FN>> -> (tensor<16x1x512x!mx.x4<f4E2M1FN>>, tensor<128x1x512xui8>, tensor<512xf32>)
  return
}

// -----

// p_I is I / 4 up to 128: I of 512 in tiles of 64 partitions is not how it is cut.
func.func @p_i(%w: tensor<8x64x2x512xui16>, %s: tensor<8x8x2x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x512x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op weights must have p_I = 128 partitions for I = 512, but are 'tensor<8x64x2x512xui16>'}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x64x2x512xui16>, tensor<8x8x2x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x512x!mx.x4<f4E2M1FN>> -> (tensor<64x2x512x!mx.x4<f4E2M1FN>>, tensor<128x2x512xui8>, tensor<512xf32>)
  return
}

// -----

func.func @down_features(%w: tensor<8x20x1x512xui16>, %s: tensor<8x2x1x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x80x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op I must be a multiple of 512, or less than 512 and a multiple of 32, but is 80}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x20x1x512xui16>, tensor<8x2x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x80x!mx.x4<f4E2M1FN>> -> (tensor<20x1x512x!mx.x4<f4E2M1FN>>, tensor<128x1x512xui8>, tensor<512xf32>)
  return
}

// -----

func.func @hidden(%w: tensor<8x16x1x500xui16>, %s: tensor<8x2x1x500xui8>, %b: tensor<8x500xf32>, %e: index, %g: tensor<128x2x1x64x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op H must be a positive multiple of 512, but is 500}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x16x1x500xui16>, tensor<8x2x1x500xui8>, tensor<8x500xf32>, index, tensor<128x2x1x64x!mx.x4<f4E2M1FN>> -> (tensor<16x1x500x!mx.x4<f4E2M1FN>>, tensor<128x1x500xui8>, tensor<500xf32>)
  return
}

// -----

func.func @down_scales(%w: tensor<8x48x1x512xui16>, %s: tensor<8x16x1x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x192x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op scales must have shape 8x6x1x512, but is 'tensor<8x16x1x512xui8>'}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x48x1x512xui16>, tensor<8x16x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x192x!mx.x4<f4E2M1FN>> -> (tensor<48x1x512x!mx.x4<f4E2M1FN>>, tensor<128x1x512xui8>, tensor<512xf32>)
  return
}

// -----

func.func @gate_up(%w: tensor<8x16x1x512xui16>, %s: tensor<8x2x1x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x2x64x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op gate_up must be 'tensor<128x2x1x64x!mx.x4<f4E2M1FN>>', but is 'tensor<128x2x2x64x!mx.x4<f4E2M1FN>>'}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x16x1x512xui16>, tensor<8x2x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x2x64x!mx.x4<f4E2M1FN>> -> (tensor<16x1x512x!mx.x4<f4E2M1FN>>, tensor<128x1x512xui8>, tensor<512xf32>)
  return
}

// -----

// The range of gate and up.
func.func @other_range(%w: tensor<8x16x1x512xui16>, %s: tensor<8x2x1x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x32x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op loads 32 of 64 features; a part must be a multiple of 512}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x16x1x512xui16>, tensor<8x2x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x32x!mx.x4<f4E2M1FN>> -> (tensor<8x1x512x!mx.x4<f4E2M1FN>>, tensor<128x1x512xui8>, tensor<512xf32>)
  return
}

// -----

func.func @down_mode(%w: tensor<8x16x1x512xui16>, %s: tensor<8x2x1x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x64x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.load_down' op oob_mode must be one of error, skip, but is "zero"}}
  %0:3 = mx.load_down %w, %s, %b, %e, %g[0] {oob_mode = "zero"} : tensor<8x16x1x512xui16>, tensor<8x2x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x64x!mx.x4<f4E2M1FN>> -> (tensor<16x1x512x!mx.x4<f4E2M1FN>>, tensor<128x1x512xui8>, tensor<512xf32>)
  return
}

// -----

// QKV: the layout that each way demands.

func.func @dma_transposed(%w: tensor<128x8xui32>, %s: tensor<16x8xui8>) {
  // expected-error @below {{'mx.load_qkv' op weights are packed in layout MX_CONTIGUOUS, but this path demands MX_INTERLEAVED}}
  %0:2 = mx.load_qkv %w, %s {layout = "MX_CONTIGUOUS", input = f8E4M3FN, dma_transpose} : tensor<128x8xui32>, tensor<16x8xui8> -> (tensor<128x1x8x!mx.x4<f8E4M3FN>>, tensor<128x1x8xui8>)
  return
}

// -----

func.func @not_transposed(%w: tensor<128x8xui32>, %s: tensor<16x8xui8>) {
  // expected-error @below {{'mx.load_qkv' op weights are packed in layout MX_INTERLEAVED, but this path demands MX_CONTIGUOUS}}
  %0:2 = mx.load_qkv %w, %s {layout = "MX_INTERLEAVED", input = f8E4M3FN} : tensor<128x8xui32>, tensor<16x8xui8> -> (tensor<128x1x8x!mx.x4<f8E4M3FN>>, tensor<128x1x8xui8>)
  return
}

// -----

// Floats are carried by the transposing DMA only with a scale.
func.func @no_scale(%w: tensor<128x8xui32>, %s: tensor<16x8xui8>) {
  // expected-error @below {{layout MX_INTERLEAVED, but this path demands MX_CONTIGUOUS}}
  %0:2 = mx.load_qkv %w, %s {layout = "MX_INTERLEAVED", input = bf16, dma_transpose} : tensor<128x8xui32>, tensor<16x8xui8> -> (tensor<128x1x8x!mx.x4<f8E4M3FN>>, tensor<128x1x8xui8>)
  return
}

// -----

func.func @not_mx(%w: tensor<128x8xui32>, %s: tensor<16x8xui8>) {
  // expected-error @below {{layout CONTIGUOUS, but this path demands MX_CONTIGUOUS}}
  %0:2 = mx.load_qkv %w, %s {layout = "CONTIGUOUS", input = bf16} : tensor<128x8xui32>, tensor<16x8xui8> -> (tensor<128x1x8x!mx.x4<f8E4M3FN>>, tensor<128x1x8xui8>)
  return
}

// -----

func.func @dense(%w: tensor<128x8xbf16>) {
  // expected-error @below {{'mx.load_qkv_dense' op weights are packed in layout MX_CONTIGUOUS, but this path demands CONTIGUOUS}}
  %0 = mx.load_qkv_dense %w {layout = "MX_CONTIGUOUS"} : tensor<128x8xbf16> -> tensor<128x1x8xbf16>
  return
}

// -----

func.func @input(%w: tensor<128x8xui32>, %s: tensor<16x8xui8>) {
  // expected-error @below {{'mx.load_qkv' op input must be one of f8E4M3FN, f8E5M2, f32, f16, bf16, but is f4E2M1FN}}
  %0:2 = mx.load_qkv %w, %s {layout = "MX_CONTIGUOUS", input = f4E2M1FN} : tensor<128x8xui32>, tensor<16x8xui8> -> (tensor<128x1x8x!mx.x4<f8E4M3FN>>, tensor<128x1x8xui8>)
  return
}

// -----

func.func @qkv_hidden(%w: tensor<64x8xui32>, %s: tensor<8x8xui8>) {
  // expected-error @below {{'mx.load_qkv' op H must be a positive multiple of 512, but is 256}}
  %0:2 = mx.load_qkv %w, %s {layout = "MX_CONTIGUOUS", input = bf16} : tensor<64x8xui32>, tensor<8x8xui8> -> (tensor<64x1x8x!mx.x4<f8E4M3FN>>, tensor<128x1x8xui8>)
  return
}

// -----

func.func @qkv_scales(%w: tensor<128x8xui32>, %s: tensor<?x8xui8>) {
  // expected-error @below {{'mx.load_qkv' op scales must have shape 16x8, but is 'tensor<?x8xui8>'}}
  %0:2 = mx.load_qkv %w, %s {layout = "MX_CONTIGUOUS", input = bf16} : tensor<128x8xui32>, tensor<?x8xui8> -> (tensor<128x1x8x!mx.x4<f8E4M3FN>>, tensor<128x1x8xui8>)
  return
}

// -----

func.func @dense_rows(%w: tensor<96x8xbf16>) {
  // expected-error @below {{'mx.load_qkv_dense' op H must be a multiple of 128, but weights are 'tensor<96x8xbf16>'}}
  %0 = mx.load_qkv_dense %w {layout = "CONTIGUOUS"} : tensor<96x8xbf16> -> tensor<96x1x8xbf16>
  return
}

// -----

func.func @dense_rank(%w: tensor<128xbf16>) {
  // expected-error @below {{'mx.load_qkv_dense' op weights must have rank 2, but are 'tensor<128xbf16>'}}
  %0 = mx.load_qkv_dense %w {layout = "CONTIGUOUS"} : tensor<128xbf16> -> tensor<128x1xbf16>
  return
}
