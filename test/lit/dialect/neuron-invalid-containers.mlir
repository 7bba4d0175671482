// RUN: mx-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{invalid type '!mx.x4<f6E3M2FN>': x4 containers hold f4E2M1FN, f8E4M3FN, f8E5M2, not f6E3M2FN}}
func.func private @element(tensor<4x!mx.x4<f6E3M2FN>>)

// -----

// expected-error @below {{expected base attribute 'builtin.type' but got 'builtin.integer'}}
func.func private @parameter() -> tensor<4x!mx.x4<4>>

// -----

func.func @float(%x: tensor<4xf16>) {
  // expected-error @below {{'mx.view_cast' op input must hold x4 containers or ui16, i16, ui32, i32, but is 'tensor<4xf16>'}}
  %0 = mx.view_cast %x : tensor<4xf16> -> tensor<4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @signed(%x: tensor<4x!mx.x4<f4E2M1FN>>) {
  // expected-error @below {{'mx.view_cast' op result must hold x4 containers or ui16, i16, ui32, i32, but is 'tensor<4xsi16>'}}
  %0 = mx.view_cast %x : tensor<4x!mx.x4<f4E2M1FN>> -> tensor<4xsi16>
  return
}

// -----

func.func @width(%x: tensor<4xui16>) {
  // expected-error @below {{'mx.view_cast' op a view keeps the width of entries, but those of 'tensor<4xui16>' have 16 bits and those of 'tensor<4x!mx.x4<f8E4M3FN>>' 32; 16-bit integers carry FP4, 32-bit integers FP8}}
  %0 = mx.view_cast %x : tensor<4xui16> -> tensor<4x!mx.x4<f8E4M3FN>>
  return
}

// -----

func.func @integers(%x: tensor<4xui16>) {
  // expected-error @below {{'mx.view_cast' op views integers as x4 containers or the other way around, but 'tensor<4xui16>' and 'tensor<4xi16>' are of one kind}}
  %0 = mx.view_cast %x : tensor<4xui16> -> tensor<4xi16>
  return
}

// -----

func.func @containers(%x: tensor<4x!mx.x4<f8E5M2>>) {
  // expected-error @below {{are of one kind}}
  %0 = mx.view_cast %x : tensor<4x!mx.x4<f8E5M2>> -> tensor<4x!mx.x4<f8E4M3FN>>
  return
}

// -----

func.func @shape(%x: tensor<4xui16>) {
  // expected-error @below {{'mx.view_cast' op 'tensor<4xui16>' and 'tensor<2x2x!mx.x4<f4E2M1FN>>' must have one shape}}
  %0 = mx.view_cast %x : tensor<4xui16> -> tensor<2x2x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @no_tensor(%x: i16) {
  // expected-error @below {{'mx.view_cast' op input must be a ranked tensor without encoding, but is 'i16'}}
  %0 = mx.view_cast %x : i16 -> tensor<4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @invalid_result(%x: tensor<4xi16>) {
  // expected-error @below {{'mx.view_cast' op result has invalid type 'tensor<4x!mx.x4<f32>>': x4 containers hold}}
  %0 = mx.view_cast %x : tensor<4xi16> -> tensor<4x!mx.x4<f32>>
  return
}

// -----

func.func @view_attribute(%x: tensor<4xi16>) {
  // expected-error @below {{'mx.view_cast' op has unknown attribute 'target'}}
  %0 = mx.view_cast %x {target = f32} : tensor<4xi16> -> tensor<4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @layout(%w: tensor<8x4xi8>) {
  // expected-error @below {{'mx.pack_weights' op layout must be one of MX_CONTIGUOUS, MX_INTERLEAVED, but is "CONTIGUOUS"}}
  %0 = mx.pack_weights %w {layout = "CONTIGUOUS"} : tensor<8x4xi8> -> tensor<2x4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @layout_kind(%w: tensor<8x4xi8>) {
  // expected-error @below {{'mx.pack_weights' op layout must be one of MX_CONTIGUOUS, MX_INTERLEAVED, but is 1 : i64}}
  %0 = mx.pack_weights %w {layout = 1} : tensor<8x4xi8> -> tensor<2x4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @pack_elements(%w: tensor<8x4xf8E5M2>) {
  // expected-error @below {{'mx.pack_weights' op input must hold f8E4M3FN or i8 for containers of f8E4M3FN, but is 'tensor<8x4xf8E5M2>'}}
  %0 = mx.pack_weights %w {layout = "MX_CONTIGUOUS"} : tensor<8x4xf8E5M2> -> tensor<2x4x!mx.x4<f8E4M3FN>>
  return
}

// -----

func.func @pack_fp4(%w: tensor<8x4xf4E2M1FN>) {
  // expected-error @below {{'mx.pack_weights' op input must hold i8 for containers of f4E2M1FN, but is 'tensor<8x4xf4E2M1FN>'}}
  %0 = mx.pack_weights %w {layout = "MX_CONTIGUOUS"} : tensor<8x4xf4E2M1FN> -> tensor<2x4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @pack_rows(%w: tensor<6x4xi8>) {
  // expected-error @below {{'mx.pack_weights' op the rows of input, 6, must be a positive multiple of 4, a container's lanes}}
  %0 = mx.pack_weights %w {layout = "MX_CONTIGUOUS"} : tensor<6x4xi8> -> tensor<2x4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @pack_shape(%w: tensor<8x4xi8>) {
  // expected-error @below {{'mx.pack_weights' op result 'tensor<4x4x!mx.x4<f4E2M1FN>>' must have shape [2, 4], a container for 4 rows}}
  %0 = mx.pack_weights %w {layout = "MX_CONTIGUOUS"} : tensor<8x4xi8> -> tensor<4x4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @pack_dynamic(%w: tensor<8x?xi8>) {
  // expected-error @below {{'mx.pack_weights' op input must have static extents, but is 'tensor<8x?xi8>'}}
  %0 = mx.pack_weights %w {layout = "MX_CONTIGUOUS"} : tensor<8x?xi8> -> tensor<2x?x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @pack_rank(%w: tensor<2x8x4xi8>) {
  // expected-error @below {{'mx.pack_weights' op input must have rank 2, but is 'tensor<2x8x4xi8>'}}
  %0 = mx.pack_weights %w {layout = "MX_CONTIGUOUS"} : tensor<2x8x4xi8> -> tensor<2x2x4x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @pack_result(%w: tensor<8x4xi8>) {
  // expected-error @below {{'mx.pack_weights' op result must hold x4 containers, but is 'tensor<2x4xi16>'}}
  %0 = mx.pack_weights %w {layout = "MX_CONTIGUOUS"} : tensor<8x4xi8> -> tensor<2x4xi16>
  return
}

// -----

func.func @transpose_elements(%x: tensor<2x8xi8>) {
  // expected-error @below {{'mx.dma_transpose' op input must hold f8E4M3FN, f8E5M2, f32, f16, bf16, but is 'tensor<2x8xi8>'}}
  %0 = mx.dma_transpose %x : tensor<2x8xi8> -> tensor<2x2x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @transpose_features(%x: tensor<2x6xf32>) {
  // expected-error @below {{'mx.dma_transpose' op the features of input, 6, must be a positive multiple of 4, a container's lanes}}
  %0 = mx.dma_transpose %x : tensor<2x6xf32> -> tensor<1x8xf32>
  return
}

// -----

func.func @transpose_target(%x: tensor<2x8xf8E4M3FN>) {
  // expected-error @below {{'mx.dma_transpose' op result must hold x4 containers of f8E4M3FN, but is 'tensor<2x2x!mx.x4<f4E2M1FN>>'}}
  %0 = mx.dma_transpose %x : tensor<2x8xf8E4M3FN> -> tensor<2x2x!mx.x4<f4E2M1FN>>
  return
}

// -----

func.func @transpose_float(%x: tensor<2x8xbf16>) {
  // expected-error @below {{'mx.dma_transpose' op result must hold bf16, but is 'tensor<2x8xf32>'}}
  %0 = mx.dma_transpose %x : tensor<2x8xbf16> -> tensor<2x8xf32>
  return
}

// -----

func.func @transpose_shape(%x: tensor<3x8xbf16>) {
  // expected-error @below {{'mx.dma_transpose' op result 'tensor<8x3xbf16>' must have shape [2, 12]}}
  %0 = mx.dma_transpose %x : tensor<3x8xbf16> -> tensor<8x3xbf16>
  return
}

// -----

func.func @partitions(%x: tensor<64x8xi8>) {
  // expected-error @below {{'mx.partition_rows' op the rows of input, 64, must fill 128 partitions a whole number of times}}
  %0 = mx.partition_rows %x : tensor<64x8xi8> -> tensor<64x1x8xi8>
  return
}

// -----

func.func @partition_shape(%x: tensor<256x8xi8>) {
  // expected-error @below {{'mx.partition_rows' op result must be 'tensor<128x2x8xi8>', but is 'tensor<2x128x8xi8>'}}
  %0 = mx.partition_rows %x : tensor<256x8xi8> -> tensor<2x128x8xi8>
  return
}

// -----

func.func @partition_mode(%x: tensor<256x8xi8>) {
  // expected-error @below {{'mx.partition_rows' op dge_mode must be one of hwdge, swdge, but is "dma"}}
  %0 = mx.partition_rows %x {dge_mode = "dma"} : tensor<256x8xi8> -> tensor<128x2x8xi8>
  return
}

// -----

func.func @partition_scalar(%x: tensor<i8>) {
  // expected-error @below {{'mx.partition_rows' op input must have rank 1 or more, but is 'tensor<i8>'}}
  %0 = mx.partition_rows %x : tensor<i8> -> tensor<128x1xi8>
  return
}
