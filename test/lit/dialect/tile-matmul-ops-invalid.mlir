// RUN: mx-opt %s --split-input-file --verify-diagnostics

// Every rule of every verifier, one rule broken at a time.

// 16 x 64 x 32 is the smallest product.
func.func @accepted(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @lhs_tensor(%a: tensor<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs must be a tile, but is 'tensor<16x64xf8E4M3FN>'}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : tensor<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @rhs_tensor(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: tensor<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op rhs must be a tile, but is 'tensor<64x32xf8E4M3FN>'}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, tensor<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @lhs_fp4(%a: !mx.tile<16x64xf4E2M1FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs must not be FP4; cast it to f8E4M3FN with mx.tile_cast}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf4E2M1FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @rhs_fp4(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf4E2M1FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op rhs must not be FP4; cast it to f8E4M3FN with mx.tile_cast}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf4E2M1FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @lhs_e5m2(%a: !mx.tile<16x64xf8E5M2>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs must be a tile of f8E4M3FN, but is one of f8E5M2}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E5M2>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @rhs_e5m2(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E5M2>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op rhs must be a tile of f8E4M3FN, but is one of f8E5M2}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E5M2>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @m_8(%a: !mx.tile<8x64xf8E4M3FN>, %as: !mx.tile<8x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op M must be a positive multiple of 16, but is 8}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<8x64xf8E4M3FN>, !mx.tile<8x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<8x32xf32>
  return
}

// -----

func.func @m_0(%a: !mx.tile<0x64xf8E4M3FN>, %as: !mx.tile<0x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op M must be a positive multiple of 16, but is 0}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<0x64xf8E4M3FN>, !mx.tile<0x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<0x32xf32>
  return
}

// -----

func.func @k_96(%a: !mx.tile<16x96xf8E4M3FN>, %as: !mx.tile<16x3xf8E8M0FNU>, %b: !mx.tile<96x32xf8E4M3FN>, %bs: !mx.tile<3x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op K must be a positive multiple of 64, but is 96}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x96xf8E4M3FN>, !mx.tile<16x3xf8E8M0FNU>, !mx.tile<96x32xf8E4M3FN>, !mx.tile<3x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @k_0(%a: !mx.tile<16x0xf8E4M3FN>, %as: !mx.tile<16x0xf8E8M0FNU>, %b: !mx.tile<0x32xf8E4M3FN>, %bs: !mx.tile<0x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op K must be a positive multiple of 64, but is 0}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x0xf8E4M3FN>, !mx.tile<16x0xf8E8M0FNU>, !mx.tile<0x32xf8E4M3FN>, !mx.tile<0x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @n_16(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x16xf8E4M3FN>, %bs: !mx.tile<2x16xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op N must be a positive multiple of 32, but is 16}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x16xf8E4M3FN>, !mx.tile<2x16xf8E8M0FNU> -> !mx.tile<16x16xf32>
  return
}

// -----

func.func @n_0(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x0xf8E4M3FN>, %bs: !mx.tile<2x0xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op N must be a positive multiple of 32, but is 0}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x0xf8E4M3FN>, !mx.tile<2x0xf8E8M0FNU> -> !mx.tile<16x0xf32>
  return
}

// -----

// One side's extent is enough.
func.func @dynamic_k_96(%a: !mx.tile<16x?xf8E4M3FN>, %as: !mx.tile<16x?xf8E8M0FNU>, %b: !mx.tile<96x32xf8E4M3FN>, %bs: !mx.tile<3x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op K must be a positive multiple of 64, but is 96}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x?xf8E4M3FN>, !mx.tile<16x?xf8E8M0FNU>, !mx.tile<96x32xf8E4M3FN>, !mx.tile<3x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @dynamic_k_0(%a: !mx.tile<16x?xf8E4M3FN>, %as: !mx.tile<16x?xf8E8M0FNU>, %b: !mx.tile<0x32xf8E4M3FN>, %bs: !mx.tile<0x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op K must be a positive multiple of 64, but is 0}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x?xf8E4M3FN>, !mx.tile<16x?xf8E8M0FNU>, !mx.tile<0x32xf8E4M3FN>, !mx.tile<0x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @depths(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<128x32xf8E4M3FN>, %bs: !mx.tile<4x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs and rhs must have one K, but have 64 and 128}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<128x32xf8E4M3FN>, !mx.tile<4x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @valid_depths(%a: !mx.tile<16x64xf8E4M3FN, valid = 16x48>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN, valid = 40x32>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs and rhs must have one valid K, but have 48 and 40}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, valid = 16x48>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN, valid = 40x32>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @valid_depth_0(%a: !mx.tile<16x64xf8E4M3FN, valid = 16x0>, %as: !mx.tile<16x2xf8E8M0FNU, valid = 16x0>, %b: !mx.tile<64x32xf8E4M3FN, valid = 0x32>, %bs: !mx.tile<2x32xf8E8M0FNU, valid = 0x32>) {
  // expected-error @below {{'mx.matmul_mx' op valid K must be more than 0}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, valid = 16x0>, !mx.tile<16x2xf8E8M0FNU, valid = 16x0>, !mx.tile<64x32xf8E4M3FN, valid = 0x32>, !mx.tile<2x32xf8E8M0FNU, valid = 0x32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @valid_depth_31(%a: !mx.tile<16x64xf8E4M3FN, valid = 16x31>, %as: !mx.tile<16x2xf8E8M0FNU, valid = 16x1>, %b: !mx.tile<64x32xf8E4M3FN, valid = 31x32>, %bs: !mx.tile<2x32xf8E8M0FNU, valid = 1x32>) {
  // expected-error @below {{'mx.matmul_mx' op valid K must end in the last of the 2 groups of 32 along K 64, but is 31}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, valid = 16x31>, !mx.tile<16x2xf8E8M0FNU, valid = 16x1>, !mx.tile<64x32xf8E4M3FN, valid = 31x32>, !mx.tile<2x32xf8E8M0FNU, valid = 1x32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @dynamic_valid_depth(%a: !mx.tile<16x64xf8E4M3FN, valid = 16x?>, %as: !mx.tile<16x2xf8E8M0FNU, valid = 16x?>, %b: !mx.tile<64x32xf8E4M3FN, valid = 0x32>, %bs: !mx.tile<2x32xf8E8M0FNU, valid = 0x32>) {
  // expected-error @below {{'mx.matmul_mx' op valid K must be more than 0}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, valid = 16x?>, !mx.tile<16x2xf8E8M0FNU, valid = 16x?>, !mx.tile<64x32xf8E4M3FN, valid = 0x32>, !mx.tile<2x32xf8E8M0FNU, valid = 0x32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @lhs_scale_tensor(%a: !mx.tile<16x64xf8E4M3FN>, %as: tensor<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs_scale must be a tile, but is 'tensor<16x2xf8E8M0FNU>'}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, tensor<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @lhs_scale_bytes(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xui8>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs_scale must be a tile of f8E8M0FNU, but is one of ui8}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xui8>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @rhs_scale_bytes(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xi8>) {
  // expected-error @below {{'mx.matmul_mx' op rhs_scale must be a tile of f8E8M0FNU, but is one of i8}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xi8> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @lhs_scale_shape(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x1xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs_scale must have shape 16x2, but has 16x1}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x1xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @rhs_scale_shape(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<32x2xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op rhs_scale must have shape 2x32, but has 32x2}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<32x2xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @lhs_scale_valid(%a: !mx.tile<16x64xf8E4M3FN, valid = 8x64>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op lhs_scale must have valid shape 8x2, but has 16x2}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, valid = 8x64>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32, valid = 8x32>
  return
}

// -----

func.func @rhs_scale_valid(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN, valid = 64x16>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op rhs_scale must have valid shape 2x16, but has 2x32}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN, valid = 64x16>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32, valid = 16x16>
  return
}

// -----

func.func @result_tensor(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op result must be a tile, but is 'tensor<16x32xf32>'}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> tensor<16x32xf32>
  return
}

// -----

func.func @result_element(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op result must be a tile of f32, but is one of bf16}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xbf16>
  return
}

// -----

func.func @result_shape(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op result must have shape 16x32, but has 32x16}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<32x16xf32>
  return
}

// -----

func.func @result_valid(%a: !mx.tile<16x64xf8E4M3FN, valid = 8x64>, %as: !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op result must have valid shape 8x32, but has 16x32}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, valid = 8x64>, !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @attribute(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx' op has unknown attribute 'transposed'; it takes none (dotted names are free)}}
  %0 = mx.matmul_mx %a, %as, %b, %bs {transposed} : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @acc_product(%acc: !mx.tile<16x32xf32>, %a: !mx.tile<8x64xf8E4M3FN>, %as: !mx.tile<8x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx_acc' op M must be a positive multiple of 16, but is 8}}
  %0 = mx.matmul_mx_acc %acc, %a, %as, %b, %bs : !mx.tile<16x32xf32>, !mx.tile<8x64xf8E4M3FN>, !mx.tile<8x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @acc_tensor(%acc: tensor<16x32xf32>, %a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx_acc' op acc must be a tile, but is 'tensor<16x32xf32>'}}
  %0 = mx.matmul_mx_acc %acc, %a, %as, %b, %bs : tensor<16x32xf32>, !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @acc_element(%acc: !mx.tile<16x32xbf16>, %a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx_acc' op acc must be a tile of f32, but is one of bf16}}
  %0 = mx.matmul_mx_acc %acc, %a, %as, %b, %bs : !mx.tile<16x32xbf16>, !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @acc_shape(%acc: !mx.tile<16x64xf32>, %a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx_acc' op acc must have shape 16x32, but has 16x64}}
  %0 = mx.matmul_mx_acc %acc, %a, %as, %b, %bs : !mx.tile<16x64xf32>, !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @acc_valid(%acc: !mx.tile<16x32xf32>, %a: !mx.tile<16x64xf8E4M3FN, valid = 8x64>, %as: !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, %b: !mx.tile<64x32xf8E4M3FN, valid = 64x16>, %bs: !mx.tile<2x32xf8E8M0FNU, valid = 2x16>) {
  // expected-error @below {{'mx.matmul_mx_acc' op acc must have valid shape 8x16, but has 16x32}}
  %0 = mx.matmul_mx_acc %acc, %a, %as, %b, %bs : !mx.tile<16x32xf32>, !mx.tile<16x64xf8E4M3FN, valid = 8x64>, !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, !mx.tile<64x32xf8E4M3FN, valid = 64x16>, !mx.tile<2x32xf8E8M0FNU, valid = 2x16> -> !mx.tile<16x32xf32, valid = 8x16>
  return
}

// -----

func.func @acc_attribute(%acc: !mx.tile<16x32xf32>, %a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // expected-error @below {{'mx.matmul_mx_acc' op has unknown attribute 'transposed'; it takes none (dotted names are free)}}
  %0 = mx.matmul_mx_acc %acc, %a, %as, %b, %bs {transposed} : !mx.tile<16x32xf32>, !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @bias_product(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x16xf8E4M3FN>, %bs: !mx.tile<2x16xf8E8M0FNU>, %bias: !mx.tile<1x16xf32>) {
  // expected-error @below {{'mx.matmul_mx_bias' op N must be a positive multiple of 32, but is 16}}
  %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x16xf8E4M3FN>, !mx.tile<2x16xf8E8M0FNU>, !mx.tile<1x16xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @bias_tensor(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>, %bias: tensor<1x32xf32>) {
  // expected-error @below {{'mx.matmul_mx_bias' op bias must be a tile, but is 'tensor<1x32xf32>'}}
  %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU>, tensor<1x32xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @bias_element(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>, %bias: !mx.tile<1x32xbf16>) {
  // expected-error @below {{'mx.matmul_mx_bias' op bias must be a tile of f32, but is one of bf16}}
  %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU>, !mx.tile<1x32xbf16> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @bias_shape(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>, %bias: !mx.tile<16x32xf32>) {
  // expected-error @below {{'mx.matmul_mx_bias' op bias must have shape 1x32, but has 16x32}}
  %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU>, !mx.tile<16x32xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @bias_valid(%a: !mx.tile<16x64xf8E4M3FN, valid = 8x64>, %as: !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, %b: !mx.tile<64x32xf8E4M3FN, valid = 64x16>, %bs: !mx.tile<2x32xf8E8M0FNU, valid = 2x16>, %bias: !mx.tile<1x32xf32>) {
  // expected-error @below {{'mx.matmul_mx_bias' op bias must have valid shape 1x16, but has 1x32}}
  %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !mx.tile<16x64xf8E4M3FN, valid = 8x64>, !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, !mx.tile<64x32xf8E4M3FN, valid = 64x16>, !mx.tile<2x32xf8E8M0FNU, valid = 2x16>, !mx.tile<1x32xf32> -> !mx.tile<16x32xf32, valid = 8x16>
  return
}

// -----

func.func @bias_attribute(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>, %bias: !mx.tile<1x32xf32>) {
  // expected-error @below {{'mx.matmul_mx_bias' op has unknown attribute 'transposed'; it takes none (dotted names are free)}}
  %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias {transposed} : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU>, !mx.tile<1x32xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @bind_scale_tensor(%s: tensor<16x2xf8E8M0FNU>, %x: !mx.tile<16x64xf8E4M3FN, left>) {
  // expected-error @below {{'mx.tget_scale_addr' op scale must be a tile, but is 'tensor<16x2xf8E8M0FNU>'}}
  %0 = mx.tget_scale_addr %s, %x : tensor<16x2xf8E8M0FNU>, !mx.tile<16x64xf8E4M3FN, left> -> tensor<16x2xf8E8M0FNU>
  return
}

// -----

func.func @bind_data_tensor(%s: !mx.tile<16x2xf8E8M0FNU, left_scale>, %x: tensor<16x64xf8E4M3FN>) {
  // expected-error @below {{'mx.tget_scale_addr' op data must be a tile, but is 'tensor<16x64xf8E4M3FN>'}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xf8E8M0FNU, left_scale>, tensor<16x64xf8E4M3FN> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @bind_sides(%s: !mx.tile<2x32xf8E8M0FNU, right_scale>, %x: !mx.tile<16x64xf8E4M3FN, left>) {
  // expected-error @below {{'mx.tget_scale_addr' op binds a scale in left_scale to data in left, or right_scale to right, but has '!mx.tile<2x32xf8E8M0FNU, right_scale>' and '!mx.tile<16x64xf8E4M3FN, left>'}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<2x32xf8E8M0FNU, right_scale>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<2x32xf8E8M0FNU, right_scale>
  return
}

// -----

func.func @bind_mat_scale(%s: !mx.tile<16x2xf8E8M0FNU, mat>, %x: !mx.tile<16x64xf8E4M3FN, left>) {
  // expected-error @below {{'mx.tget_scale_addr' op binds a scale in left_scale to data in left, or right_scale to right, but has '!mx.tile<16x2xf8E8M0FNU, mat>' and '!mx.tile<16x64xf8E4M3FN, left>'}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xf8E8M0FNU, mat>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}

// -----

func.func @bind_mat_data(%s: !mx.tile<16x2xf8E8M0FNU, left_scale>, %x: !mx.tile<16x64xf8E4M3FN, mat>) {
  // expected-error @below {{'mx.tget_scale_addr' op binds a scale in left_scale to data in left, or right_scale to right, but has '!mx.tile<16x2xf8E8M0FNU, left_scale>' and '!mx.tile<16x64xf8E4M3FN, mat>'}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @bind_undecided(%s: !mx.tile<16x2xf8E8M0FNU>, %x: !mx.tile<16x64xf8E4M3FN>) {
  // expected-error @below {{'mx.tget_scale_addr' op binds a scale in left_scale to data in left, or right_scale to right, but has '!mx.tile<16x2xf8E8M0FNU>' and '!mx.tile<16x64xf8E4M3FN>'}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xf8E8M0FNU>, !mx.tile<16x64xf8E4M3FN> -> !mx.tile<16x2xf8E8M0FNU>
  return
}

// -----

func.func @bind_data_element(%s: !mx.tile<16x2xf8E8M0FNU, left_scale>, %x: !mx.tile<16x64xf8E5M2, left>) {
  // expected-error @below {{'mx.tget_scale_addr' op data must be a tile of f8E4M3FN, but is one of f8E5M2}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E5M2, left> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @bind_scale_element(%s: !mx.tile<16x2xui8, left_scale>, %x: !mx.tile<16x64xf8E4M3FN, left>) {
  // expected-error @below {{'mx.tget_scale_addr' op scale must be a tile of f8E8M0FNU, but is one of ui8}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xui8, left_scale>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x2xui8, left_scale>
  return
}

// -----

func.func @bind_shape(%s: !mx.tile<16x1xf8E8M0FNU, left_scale>, %x: !mx.tile<16x64xf8E4M3FN, left>) {
  // expected-error @below {{'mx.tget_scale_addr' op scale must have shape 16x2, but has 16x1}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x1xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x1xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @bind_right_shape(%s: !mx.tile<32x2xf8E8M0FNU, right_scale>, %x: !mx.tile<64x32xf8E4M3FN, right>) {
  // expected-error @below {{'mx.tget_scale_addr' op scale must have shape 2x32, but has 32x2}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<32x2xf8E8M0FNU, right_scale>, !mx.tile<64x32xf8E4M3FN, right> -> !mx.tile<32x2xf8E8M0FNU, right_scale>
  return
}

// -----

func.func @bind_valid(%s: !mx.tile<16x2xf8E8M0FNU, left_scale>, %x: !mx.tile<16x64xf8E4M3FN, left, valid = 8x64>) {
  // expected-error @below {{'mx.tget_scale_addr' op scale must have valid shape 8x2, but has 16x2}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, left, valid = 8x64> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @bind_result(%s: !mx.tile<16x2xf8E8M0FNU, left_scale>, %x: !mx.tile<16x64xf8E4M3FN, left>) {
  // expected-error @below {{'mx.tget_scale_addr' op result must have the type of scale, '!mx.tile<16x2xf8E8M0FNU, left_scale>', but is '!mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x2>'}}
  %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x2>
  return
}

// -----

func.func @bind_attribute(%s: !mx.tile<16x2xf8E8M0FNU, left_scale>, %x: !mx.tile<16x64xf8E4M3FN, left>) {
  // expected-error @below {{'mx.tget_scale_addr' op has unknown attribute 'shift'; it takes none (dotted names are free)}}
  %0 = mx.tget_scale_addr %s, %x {shift = 4} : !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @quant_layout(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op layout must be "MX_A_ZZ" or "MX_B_NN", but is "ND"}}
  %0:2 = mx.quant_mx %x {layout = "ND"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_layout_type(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op layout must be "MX_A_ZZ" or "MX_B_NN", but is 1 : i64}}
  %0:2 = mx.quant_mx %x {layout = 1} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_no_layout(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op attribute "layout" is expected but not provided}}
  %0:2 = mx.quant_mx %x  : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_rounding(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op rounding must be "floor" or "ceil" or "even" or "rceil", but is "up"}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ", rounding = "up"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_rounding_type(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op rounding must be "floor" or "ceil" or "even" or "rceil", but is 1 : i64}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ", rounding = 1} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_input(%x: tensor<16x64xbf16>) {
  // expected-error @below {{'mx.quant_mx' op input must be a tile, but is 'tensor<16x64xbf16>'}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : tensor<16x64xbf16> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_data(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op data must be a tile, but is 'tensor<16x64xf8E4M3FN>'}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec> -> (tensor<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_scale(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op scale must be a tile, but is 'tensor<16x2xf8E8M0FNU>'}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, tensor<16x2xf8E8M0FNU>)
  return
}

// -----

func.func @quant_input_element(%x: !mx.tile<16x64xf8E4M3FN, vec>) {
  // expected-error @below {{'mx.quant_mx' op input must be a tile of f32 or f16 or bf16, but is one of f8E4M3FN}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xf8E4M3FN, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_data_element(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op data must be a tile of f8E4M3FN or f8E5M2, but is one of f4E2M1FN}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf4E2M1FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_scale_element(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op scale must be a tile of f8E8M0FNU, but is one of ui8}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xui8, vec>)
  return
}

// -----

func.func @quant_input_space(%x: !mx.tile<16x64xbf16, mat>) {
  // expected-error @below {{'mx.quant_mx' op input must lie in vec, but is '!mx.tile<16x64xbf16, mat>'}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, mat> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_data_space(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op data must lie in vec, but is '!mx.tile<16x64xf8E4M3FN, left>'}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_scale_space(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op scale must lie in vec, but is '!mx.tile<16x2xf8E8M0FNU, left_scale>'}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, left_scale>)
  return
}

// -----

func.func @quant_shape(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op data must have shape 16x64, but has 64x16}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<64x16xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_valid(%x: !mx.tile<16x64xbf16, vec, valid = 8x64>) {
  // expected-error @below {{'mx.quant_mx' op data must have valid shape 8x64, but has 16x64}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec, valid = 8x64> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_depth(%x: !mx.tile<16x48xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op K must be a multiple of 32, but is 48}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x48xbf16, vec> -> (!mx.tile<16x48xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

// Of the right operand, K is the rows.
func.func @quant_scale_shape(%x: !mx.tile<64x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op scale must have shape 2x64, but has 16x2}}
  %0:2 = mx.quant_mx %x {layout = "MX_B_NN"} : !mx.tile<64x64xbf16, vec> -> (!mx.tile<64x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_right_depth(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op K must be a multiple of 32, but is 16}}
  %0:2 = mx.quant_mx %x {layout = "MX_B_NN"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_scale_valid(%x: !mx.tile<16x64xbf16, vec, valid = 16x32>) {
  // expected-error @below {{'mx.quant_mx' op scale must have valid shape 16x1, but has 16x2}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec, valid = 16x32> -> (!mx.tile<16x64xf8E4M3FN, vec, valid = 16x32>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}

// -----

func.func @quant_attribute(%x: !mx.tile<16x64xbf16, vec>) {
  // expected-error @below {{'mx.quant_mx' op has unknown attribute 'axis'; it takes layout, rounding (dotted names are free)}}
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ", axis = 0} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
  return
}
