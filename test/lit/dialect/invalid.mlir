// RUN: mx-opt %s --split-input-file --verify-diagnostics

// Every rule of every verifier.

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @attribute(%x: !t) {
  // expected-error @below {{'mx.dequantize_block' op has unknown attribute 'rounding'; it takes none (dotted names are free)}}
  %0 = mx.dequantize_block %x {rounding = "floor"} : !t -> tensor<32x64xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @misspelt(%x: tensor<32x64xf32>) {
  // expected-error @below {{'mx.quantize_block' op has unknown attribute 'roundng'; it takes rounding}}
  %0 = mx.quantize_block %x {roundng = "floor"} : tensor<32x64xf32> -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @rounding(%x: tensor<32x64xf32>) {
  // expected-error @below {{'mx.quantize_block' op rounding must be one of "floor", "ceil", "even", "rceil", but is "up"}}
  %0 = mx.quantize_block %x {rounding = "up"} : tensor<32x64xf32> -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @rounding_type(%x: tensor<32x64xf32>) {
  // expected-error @below {{rounding must be one of "floor", "ceil", "even", "rceil", but is 1 : i64}}
  %0 = mx.quantize_block %x {rounding = 1} : tensor<32x64xf32> -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @quantize_shape(%x: tensor<32x32xf32>) {
  // expected-error @below {{'mx.quantize_block' op input 'tensor<32x32xf32>' and result '!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>' must have the same shape}}
  %0 = mx.quantize_block %x : tensor<32x32xf32> -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @quantize_dynamic_into_static(%x: tensor<?x64xf32>) {
  // expected-error @below {{must have the same shape}}
  %0 = mx.quantize_block %x : tensor<?x64xf32> -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @quantize_f64(%x: tensor<32x64xf64>) {
  // expected-error @below {{'mx.quantize_block' op input must be a ranked tensor of f32 or f16 or bf16, but is 'tensor<32x64xf64>'}}
  %0 = mx.quantize_block %x : tensor<32x64xf64> -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @quantize_unranked(%x: tensor<*xf32>) {
  // expected-error @below {{input must be a ranked tensor}}
  %0 = mx.quantize_block %x : tensor<*xf32> -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @quantize_encoding(%x: tensor<32x64xf32, "somehow">) {
  // expected-error @below {{input must not have an encoding}}
  %0 = mx.quantize_block %x : tensor<32x64xf32, "somehow"> -> !t
  return
}

// -----

func.func @quantize_to_float(%x: tensor<32x64xf32>) {
  // expected-error @below {{'mx.quantize_block' op result must be an mx tensor, but is 'tensor<32x64xf8E4M3FN>'}}
  %0 = mx.quantize_block %x : tensor<32x64xf32> -> tensor<32x64xf8E4M3FN>
  return
}

// -----

func.func @dequantize_float(%x: tensor<32x64xf32>) {
  // expected-error @below {{'mx.dequantize_block' op input must be an mx tensor, but is 'tensor<32x64xf32>'}}
  %0 = mx.dequantize_block %x : tensor<32x64xf32> -> tensor<32x64xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @dequantize_shape(%x: !t) {
  // expected-error @below {{'mx.dequantize_block' op input '!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>' and result 'tensor<64x32xf32>' must have the same shape}}
  %0 = mx.dequantize_block %x : !t -> tensor<64x32xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @dequantize_i32(%x: !t) {
  // expected-error @below {{'mx.dequantize_block' op result must be a ranked tensor of f32 or f16 or bf16}}
  %0 = mx.dequantize_block %x : !t -> tensor<32x64xi32>
  return
}

// -----

func.func @two_floats(%a: tensor<32x64xf32>, %b: tensor<64x8xf32>, %c: tensor<32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op needs an mx tensor as lhs or rhs; for two float tensors use linalg.matmul}}
  %0 = mx.block_matmul %a, %b, %c : tensor<32x64xf32>, tensor<64x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @rhs_i32(%a: !t, %b: tensor<64x8xi32>, %c: tensor<32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op rhs must be a ranked tensor of f32 or f16 or bf16, but is 'tensor<64x8xi32>'}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<64x8xi32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @acc_f16(%a: !t, %b: tensor<64x8xf32>, %c: tensor<32x8xf16>) {
  // expected-error @below {{'mx.block_matmul' op acc must be a ranked tensor of f32, but is 'tensor<32x8xf16>'}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<64x8xf32>, tensor<32x8xf16> -> tensor<32x8xf16>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @ranks(%a: !t, %b: tensor<4x64x8xf32>, %c: tensor<32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op lhs and rhs must have a rank between 2 and that of acc, but the ranks are 2, 3 and 2}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<4x64x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return
}

// -----

!v = !mx.tensor<64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @vectors(%a: !v, %b: tensor<64xf32>, %c: tensor<1xf32>) {
  // expected-error @below {{lhs and rhs must have a rank between 2 and that of acc, but the ranks are 1, 1 and 1}}
  %0 = mx.block_matmul %a, %b, %c : !v, tensor<64xf32>, tensor<1xf32> -> tensor<1xf32>
  return
}

// -----

!m = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @lhs_axis(%a: !m, %b: tensor<64x8xf32>, %c: tensor<32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op lhs must be blocked along K, its axis 1, but}}
  %0 = mx.block_matmul %a, %b, %c : !m, tensor<64x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return
}

// -----

!n = !mx.tensor<64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @rhs_axis(%a: tensor<8x64xf32>, %b: !n, %c: tensor<8x32xf32>) {
  // expected-error @below {{'mx.block_matmul' op rhs must be blocked along K, its axis 0, but}}
  %0 = mx.block_matmul %a, %b, %c : tensor<8x64xf32>, !n, tensor<8x32xf32> -> tensor<8x32xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @k(%a: !t, %b: tensor<32x8xf32>, %c: tensor<32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op extents of K differ: '!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>' against 'tensor<32x8xf32>'}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<32x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @m(%a: !t, %b: tensor<64x8xf32>, %c: tensor<16x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op extents of M differ: lhs}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<64x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @n(%a: !t, %b: tensor<64x8xf32>, %c: tensor<32x4xf32>) {
  // expected-error @below {{'mx.block_matmul' op extents of N differ: rhs}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<64x8xf32>, tensor<32x4xf32> -> tensor<32x4xf32>
  return
}

// -----

!t = !mx.tensor<2x32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @batch(%a: !t, %b: tensor<3x64x8xf32>, %c: tensor<2x32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op batch extents of rhs 'tensor<3x64x8xf32>' do not broadcast to those of acc 'tensor<2x32x8xf32>'}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<3x64x8xf32>, tensor<2x32x8xf32> -> tensor<2x32x8xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @result(%a: !t, %b: tensor<64x8xf32>, %c: tensor<32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op result must have the type of acc, 'tensor<32x8xf32>', but is 'tensor<32x?xf32>'}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<64x8xf32>, tensor<32x8xf32> -> tensor<32x?xf32>
  return
}

// -----

// An extent of 1 broadcasts to more, not more to an extent of 1.
!t = !mx.tensor<2x32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @batch_of_one(%a: !t, %b: tensor<64x8xf32>, %c: tensor<1x32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op batch extents of lhs}}
  %0 = mx.block_matmul %a, %b, %c : !t, tensor<64x8xf32>, tensor<1x32x8xf32> -> tensor<1x32x8xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @transpose_value(%a: !t, %b: tensor<64x8xf32>, %c: tensor<32x8xf32>) {
  // expected-error @below {{'mx.block_matmul' op transpose_rhs is a unit attribute: it is there or it is not}}
  %0 = mx.block_matmul %a, %b, %c {transpose_rhs = false} : !t, tensor<64x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return
}

// -----

!w = !mx.tensor<64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @transposed_axis(%a: tensor<8x32xf32>, %b: !w, %c: tensor<8x64xf32>) {
  // expected-error @below {{'mx.block_matmul' op rhs must be blocked along K, its axis 1, but}}
  %0 = mx.block_matmul %a, %b, %c {transpose_rhs} : tensor<8x32xf32>, !w, tensor<8x64xf32> -> tensor<8x64xf32>
  return
}

// -----

!w = !mx.tensor<16x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @transposed_extents(%a: tensor<8x32xf32>, %b: !w, %c: tensor<8x32xf32>) {
  // expected-error @below {{'mx.block_matmul' op extents of N differ}}
  %0 = mx.block_matmul %a, %b, %c {transpose_rhs} : tensor<8x32xf32>, !w, tensor<8x32xf32> -> tensor<8x32xf32>
  return
}

// -----

!n = !mx.tensor<32x64xf4E2M1FN, block_size = 16, scale_type = f8E4M3FN>
func.func @rounding_of_significands(%x: tensor<32x64xf32>) {
  // expected-error @below {{'mx.quantize_block' op rounding chooses a shared exponent; a f8E4M3FN scale is rounded to nearest}}
  %0 = mx.quantize_block %x {rounding = "ceil"} : tensor<32x64xf32> -> !n
  return
}

// -----

!n = !mx.tensor<32x64xf4E2M1FN, block_size = 16, scale_type = f8E4M3FN>
func.func @codes(%m: tensor<32x64xi4>, %s: tensor<32x4xf8E4M3FN>) {
  // expected-error @below {{must be 'tensor<32x64xf4E2M1FN>' or 'tensor<32x64xi8>', but is 'tensor<32x64xi4>'}}
  %0 = mx.compose %m, %s : tensor<32x64xi4>, tensor<32x4xf8E4M3FN> -> !n
  return
}

// -----

func.func @fold_float(%x: tensor<32x64xf32>, %f: f32) {
  // expected-error @below {{'mx.fold_scale' op input must be an mx tensor, but is 'tensor<32x64xf32>'}}
  %0 = mx.fold_scale %x, %f : tensor<32x64xf32>, f32 -> tensor<32x64xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @fold_f64(%x: !t, %f: f64) {
  // expected-error @below {{'mx.fold_scale' op factor must be f32, but is 'f64'}}
  %0 = mx.fold_scale %x, %f : !t, f64 -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!u = !mx.tensor<32x64xf8E4M3FN, block_size = 16, scale_type = f8E8M0FNU>
func.func @fold_type(%x: !t, %f: f32) {
  // expected-error @below {{'mx.fold_scale' op result must have the type of input}}
  %0 = mx.fold_scale %x, %f : !t, f32 -> !u
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @compose_mantissa(%m: tensor<32x64xf8E5M2>, %s: tensor<32x2xf8E8M0FNU>) {
  // expected-error @below {{'mx.compose' op mantissa of '!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>' must be 'tensor<32x64xf8E4M3FN>', but is 'tensor<32x64xf8E5M2>'}}
  %0 = mx.compose %m, %s : tensor<32x64xf8E5M2>, tensor<32x2xf8E8M0FNU> -> !t
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @compose_scale(%m: tensor<32x64xf8E4M3FN>, %s: tensor<32x64xf8E8M0FNU>) {
  // expected-error @below {{'mx.compose' op scale of}}
  %0 = mx.compose %m, %s : tensor<32x64xf8E4M3FN>, tensor<32x64xf8E8M0FNU> -> !t
  return
}

// -----

func.func @compose_float(%m: tensor<32x64xf8E4M3FN>, %s: tensor<32x2xf8E8M0FNU>) {
  // expected-error @below {{'mx.compose' op result must be an mx tensor}}
  %0 = mx.compose %m, %s : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU> -> tensor<32x64xf32>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @decompose_mantissa(%x: !t) {
  // expected-error @below {{'mx.decompose' op mantissa of}}
  %0:2 = mx.decompose %x : !t -> (tensor<32x64xf32>, tensor<32x2xf8E8M0FNU>)
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @decompose_scale(%x: !t) {
  // expected-error @below {{'mx.decompose' op scale of}}
  %0:2 = mx.decompose %x : !t -> (tensor<32x64xf8E4M3FN>, tensor<2x32xf8E8M0FNU>)
  return
}

// -----

func.func @decompose_float(%x: tensor<32x64xf32>) {
  // expected-error @below {{'mx.decompose' op input must be an mx tensor}}
  %0:2 = mx.decompose %x : tensor<32x64xf32> -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  return
}

// -----

// The generic form is verified alike.
func.func @generic(%x: tensor<32x64xf32>) {
  // expected-error @below {{'mx.decompose' op input must be an mx tensor}}
  %0:2 = "mx.decompose"(%x) : (tensor<32x64xf32>) -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  return
}
