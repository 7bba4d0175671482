// RUN: mx-opt %s --mx-quantize-linear --split-input-file --verify-diagnostics

// Values that are no numbers make their block NaN; sizes and ratio are those of the others.
func.func @row(%x: tensor<4x64xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<1.0> : tensor<64x2xf32> loc("layer.weight")
  // expected-remark @below {{quantized weight layer.weight: 64x2 to f8E4M3FN, SQNR inf dB, 512 to 132 bytes}}
  %y = linalg.matmul ins(%x, %w : tensor<4x64xf32>, tensor<64x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @non_finite(%x: tensor<4x32xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<0x7FC00000> : tensor<32x2xf32>
  // expected-remark @below {{quantized weight constant: 32x2 to f8E4M3FN, SQNR nan dB, 256 to 66 bytes, 64 NaN or Inf, whose blocks are NaN}}
  %y = linalg.matmul ins(%x, %w : tensor<4x32xf32>, tensor<32x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @not_whole(%x: tensor<4x33xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<1.0> : tensor<33x2xf32>
  // expected-remark @below {{quantized weight constant: 33x2 to f8E4M3FN, SQNR inf dB, 264 to 132 bytes, K padded by 31}}
  %y = linalg.matmul ins(%x, %w : tensor<4x33xf32>, tensor<33x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @double(%x: tensor<4x32xf64>, %acc: tensor<4x2xf64>) -> tensor<4x2xf64> {
  %w = arith.constant dense<1.0> : tensor<32x2xf64>
  // expected-remark @below {{'linalg.matmul' op keeps its weight in f64: weights must be f32, f16 or bf16}}
  %y = linalg.matmul ins(%x, %w : tensor<4x32xf64>, tensor<32x2xf64>) outs(%acc : tensor<4x2xf64>) -> tensor<4x2xf64>
  return %y : tensor<4x2xf64>
}

// -----

func.func @activations(%x: tensor<4x32xf64>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<1.0> : tensor<32x2xf16>
  // expected-remark @below {{keeps its weight in f16: activations must be a tensor of f32, f16 or bf16, but the type is 'tensor<4x32xf64>'; convert to f32}}
  %y = linalg.matmul ins(%x, %w : tensor<4x32xf64>, tensor<32x2xf16>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @accumulator(%x: tensor<4x32xf32>, %acc: tensor<4x2xf64>) -> tensor<4x2xf64> {
  %w = arith.constant dense<1.0> : tensor<32x2xf32>
  // expected-remark @below {{keeps its weight in f32: accumulator must be a tensor of f32, f16 or bf16, but the type is 'tensor<4x2xf64>'; convert to f32}}
  %y = linalg.matmul ins(%x, %w : tensor<4x32xf32>, tensor<32x2xf32>) outs(%acc : tensor<4x2xf64>) -> tensor<4x2xf64>
  return %y : tensor<4x2xf64>
}

// -----

func.func @broadcast_along_k(%x: tensor<4x32xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<1.0> : tensor<2xf32>
  %e = tensor.empty() : tensor<32x2xf32>
  %b = linalg.broadcast ins(%w : tensor<2xf32>) outs(%e : tensor<32x2xf32>) dimensions = [0]
  // expected-remark @below {{keeps its weight in f32: it is broadcast along K or along its rows}}
  %y = linalg.matmul ins(%x, %b : tensor<4x32xf32>, tensor<32x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @columns_first(%x: tensor<32x4xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<1.0> : tensor<32x2xf32>
  // expected-remark @below {{the axes of the activations are not [batch..., M, K]; transpose them first}}
  %y = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%x, %w : tensor<32x4xf32>, tensor<32x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @without_data(%x: tensor<4x32xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense_resource<gone> : tensor<32x2xf32>
  // expected-error @below {{'linalg.matmul' op weight gone cannot be read: its resource has no data; give the module its data}}
  %y = linalg.matmul ins(%x, %w : tensor<4x32xf32>, tensor<32x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @too_little_data(%x: tensor<4x32xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense_resource<short> : tensor<32x2xf32>
  // expected-error @below {{'linalg.matmul' op weight short cannot be read: its resource has 4 bytes, not 256; give the module its data}}
  %y = linalg.matmul ins(%x, %w : tensor<4x32xf32>, tensor<32x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      short: "0x040000000000803F"
    }
  }
#-}
