// RUN: mx-opt %s --split-input-file --verify-diagnostics

!fp4 = !mx.x4<f4E2M1FN>
!fp8 = !mx.x4<f8E4M3FN>

func.func @quantize_fp4(%x: tensor<32x16xbf16>) {
  // expected-error @below {{'mx.quantize_mx' op activations are FP8, f8E4M3FN or f8E5M2, but data 'tensor<32x4x!mx.x4<f4E2M1FN>>' holds f4E2M1FN; only weights may be FP4}}
  %0:2 = mx.quantize_mx %x : tensor<32x16xbf16> -> (tensor<32x4x!fp4>, tensor<4x4xui8>)
  return
}

// -----

func.func @quantize_source(%x: tensor<32x16xi8>) {
  // expected-error @below {{'mx.quantize_mx' op input must be a ranked tensor of f32 or f16 or bf16, but is 'tensor<32x16xi8>'}}
  %0:2 = mx.quantize_mx %x : tensor<32x16xi8> -> (tensor<32x4x!mx.x4<f8E4M3FN>>, tensor<4x4xui8>)
  return
}

// -----

func.func @quantize_rank(%x: tensor<2x32x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op input must have rank 2, but is 'tensor<2x32x16xf32>'}}
  %0:2 = mx.quantize_mx %x : tensor<2x32x16xf32> -> (tensor<32x4x!mx.x4<f8E4M3FN>>, tensor<4x4xui8>)
  return
}

// -----

func.func @quantize_partitions(%x: tensor<136x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op the partitions of input, axis 0, must be a positive multiple of 8, at most 128, but there are 136}}
  %0:2 = mx.quantize_mx %x : tensor<136x16xf32> -> (tensor<136x4x!mx.x4<f8E4M3FN>>, tensor<128x4xui8>)
  return
}

// -----

func.func @quantize_columns(%x: tensor<32x18xf32>) {
  // expected-error @below {{'mx.quantize_mx' op the columns of input 'tensor<32x18xf32>' must be a multiple of 4}}
  %0:2 = mx.quantize_mx %x : tensor<32x18xf32> -> (tensor<32x4x!mx.x4<f8E4M3FN>>, tensor<4x4xui8>)
  return
}

// -----

func.func @quantize_shape(%x: tensor<32x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op data 'tensor<32x16x!mx.x4<f8E4M3FN>>' must have shape [32, 4]}}
  %0:2 = mx.quantize_mx %x : tensor<32x16xf32> -> (tensor<32x16x!mx.x4<f8E4M3FN>>, tensor<4x4xui8>)
  return
}

// -----

func.func @quantize_headroom(%x: tensor<32x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op headroom must be one of 0, 1, but is 2 : i64}}
  %0:2 = mx.quantize_mx %x {headroom = 2} : tensor<32x16xf32> -> (tensor<32x4x!mx.x4<f8E4M3FN>>, tensor<4x4xui8>)
  return
}

// -----

func.func @quantize_offset(%x: tensor<32x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op scale_offset must be one of 0, 4, 8, 12, but is 2 : i64}}
  %0:2 = mx.quantize_mx %x {scale_offset = 2} : tensor<32x16xf32> -> (tensor<32x4x!mx.x4<f8E4M3FN>>, tensor<32x4xui8>)
  return
}

// -----

// Dense scales have no quadrants to be moved in.
func.func @quantize_dense_offset(%x: tensor<32x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op scale 'tensor<4x4xui8>' is dense and has no place at partition offset 4}}
  %0:2 = mx.quantize_mx %x {scale_offset = 4} : tensor<32x16xf32> -> (tensor<32x4x!mx.x4<f8E4M3FN>>, tensor<4x4xui8>)
  return
}

// -----

// 64 partitions have 8 rows, of which the second four belong in the second quadrant.
func.func @quantize_dense_scales(%x: tensor<64x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op scale of 64 partitions must have from 64 to 128 partitions in quadrants, its last row at partition 35, but is 'tensor<8x4xui8>'}}
  %0:2 = mx.quantize_mx %x : tensor<64x16xf32> -> (tensor<64x4x!mx.x4<f8E4M3FN>>, tensor<8x4xui8>)
  return
}

// -----

// Row 4 of 5 would be at partition 32 + 12.
func.func @quantize_tile(%x: tensor<40x16xf32>) {
  // expected-error @below {{its last row at partition 44, but is 'tensor<44x4xui8>'}}
  %0:2 = mx.quantize_mx %x {scale_offset = 12} : tensor<40x16xf32> -> (tensor<40x4x!mx.x4<f8E4M3FN>>, tensor<44x4xui8>)
  return
}

// -----

func.func @quantize_scale_type(%x: tensor<32x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op scale must be scale codes, a tensor of ui8 or i8, but is 'tensor<4x4xf8E8M0FNU>'}}
  %0:2 = mx.quantize_mx %x : tensor<32x16xf32> -> (tensor<32x4x!mx.x4<f8E4M3FN>>, tensor<4x4xf8E8M0FNU>)
  return
}

// -----

func.func @quantize_scale_columns(%x: tensor<32x16xf32>) {
  // expected-error @below {{'mx.quantize_mx' op scale 'tensor<4x16xui8>' must have the 4 columns of its containers}}
  %0:2 = mx.quantize_mx %x : tensor<32x16xf32> -> (tensor<32x4x!mx.x4<f8E4M3FN>>, tensor<4x16xui8>)
  return
}

// -----

!fp4 = !mx.x4<f4E2M1FN>
!fp8 = !mx.x4<f8E4M3FN>

// The same containers may be weights, but not activations.
func.func @fp4_activations(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp4>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<4x8xui8>) {
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "stationary"} : tensor<16x8xf32>, tensor<32x16x!fp4>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<16x8xf32>
  // expected-error @below {{'mx.nc_matmul_mx' op stationary holds activations, which are FP8 always, but is 'tensor<32x16x!mx.x4<f4E2M1FN>>'; only the weights, moving, may be FP4}}
  %1 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<16x8xf32>, tensor<32x16x!fp4>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp4 = !mx.x4<f4E2M1FN>

func.func @fp4_both(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp4>, %b: tensor<32x8x!fp4>, %as: tensor<4x16xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op moving holds activations, which are FP8 always, but is 'tensor<32x8x!mx.x4<f4E2M1FN>>'; only the weights, stationary, may be FP4}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "stationary"} : tensor<16x8xf32>, tensor<32x16x!fp4>, tensor<32x8x!fp4>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @roles(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op weights must be one of stationary, moving, but is "lhs"}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "lhs"} : tensor<16x8xf32>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @no_role(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op attribute "weights" is expected but not provided}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs : tensor<16x8xf32>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @accumulate(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op accumulate is a unit attribute: it is there or it is not}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {accumulate = false, weights = "moving"} : tensor<16x8xf32>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @partitions(%d: tensor<16x8xf32>, %a: tensor<136x16x!fp8>, %b: tensor<136x8x!fp8>, %as: tensor<128x16xui8>, %bs: tensor<128x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op the partitions of stationary, axis 0, must be a positive multiple of 8, at most 128, but there are 136}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<16x8xf32>, tensor<136x16x!fp8>, tensor<136x8x!fp8>, tensor<128x16xui8>, tensor<128x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @whole_scales(%d: tensor<16x8xf32>, %a: tensor<12x16x!fp8>, %b: tensor<12x8x!fp8>, %as: tensor<12x16xui8>, %bs: tensor<12x8xui8>) {
  // expected-error @below {{must be a positive multiple of 8, at most 128, but there are 12}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<16x8xf32>, tensor<12x16x!fp8>, tensor<12x8x!fp8>, tensor<12x16xui8>, tensor<12x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @contraction(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp8>, %b: tensor<64x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<64x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op stationary has 32 partitions and moving 64}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<16x8xf32>, tensor<32x16x!fp8>, tensor<64x8x!fp8>, tensor<4x16xui8>, tensor<64x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @odd(%d: tensor<15x8xf32>, %a: tensor<32x15x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x15xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op stationary has 15 columns; their number must be even}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<15x8xf32>, tensor<32x15x!fp8>, tensor<32x8x!fp8>, tensor<4x15xui8>, tensor<4x8xui8> -> tensor<15x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @stationary_columns(%d: tensor<130x8xf32>, %a: tensor<32x130x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x130xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op stationary has 130 columns; there are at most 128}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<130x8xf32>, tensor<32x130x!fp8>, tensor<32x8x!fp8>, tensor<4x130xui8>, tensor<4x8xui8> -> tensor<130x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @moving_columns(%d: tensor<16x513xf32>, %a: tensor<32x16x!fp8>, %b: tensor<32x513x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<4x513xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op moving has 513 columns; there are at most 512}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<16x513xf32>, tensor<32x16x!fp8>, tensor<32x513x!fp8>, tensor<4x16xui8>, tensor<4x513xui8> -> tensor<16x513xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @dst_shape(%d: tensor<8x16xf32>, %a: tensor<32x16x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op dst 'tensor<8x16xf32>' must have shape [16, 8]}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<8x16xf32>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<8x16xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @dst_type(%d: tensor<16x8xbf16>, %a: tensor<32x16x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op dst must be a ranked tensor of f32, but is 'tensor<16x8xbf16>'}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<16x8xbf16>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<16x8xbf16>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @result(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<4x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op result must have the type of dst, 'tensor<16x8xf32>', but is 'tensor<8x16xf32>'}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<16x8xf32>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<4x8xui8> -> tensor<8x16xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @scale_rows(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<5x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op moving_scale of 32 partitions must have 4, or from 32 to 128 partitions in quadrants, its last row at partition 3, but is 'tensor<5x8xui8>'}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {weights = "moving"} : tensor<16x8xf32>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<5x8xui8> -> tensor<16x8xf32>
  return
}

// -----

!fp8 = !mx.x4<f8E4M3FN>

func.func @scale_offset(%d: tensor<16x8xf32>, %a: tensor<32x16x!fp8>, %b: tensor<32x8x!fp8>, %as: tensor<4x16xui8>, %bs: tensor<32x8xui8>) {
  // expected-error @below {{'mx.nc_matmul_mx' op moving_scale_offset must be one of 0, 4, 8, 12, but is "4"}}
  %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {moving_scale_offset = "4", weights = "moving"} : tensor<16x8xf32>, tensor<32x16x!fp8>, tensor<32x8x!fp8>, tensor<4x16xui8>, tensor<32x8xui8> -> tensor<16x8xf32>
  return
}
