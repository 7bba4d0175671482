// The experts of a mixture-of-experts layer as a Neuron-style engine runs them: 16 tokens of one expert of 4, H = 1024.
// Weights are MXFP4 in x4 containers, activations MXFP8; moe_layer.py runs the same program with MXFP8 weights.
//
//   mx-opt moe_layer.mlir --mx-neuron-expand-load
//
// Besides the result y, [token, hidden], each function gives the product of its activation, in f32 and quantized, so that
// both halves can be judged by themselves.

// Hidden states lie in the order that gate and up weights want: feature 512t + 4p + q at position q * 256 + 128t + p. On
// partition p they are four lanes of a token side by side.
func.func private @quantized_hidden(%x: tensor<16x1024xf32>) -> (tensor<2x128x16x!mx.x4<f8E4M3FN>>, tensor<2x128x16xui8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %split = tensor.expand_shape %x [[0], [1, 2, 3]] output_shape [16, 4, 2, 128] : tensor<16x1024xf32> into tensor<16x4x2x128xf32>
  %no_lanes = tensor.empty() : tensor<2x128x16x4xf32>
  %lanes = linalg.transpose ins(%split : tensor<16x4x2x128xf32>) outs(%no_lanes : tensor<2x128x16x4xf32>) permutation = [2, 3, 0, 1]
  %tiles = tensor.collapse_shape %lanes [[0], [1], [2, 3]] : tensor<2x128x16x4xf32> into tensor<2x128x64xf32>
  %no_data = tensor.empty() : tensor<2x128x16x!mx.x4<f8E4M3FN>>
  %no_scales = tensor.empty() : tensor<2x128x16xui8>
  %0:2 = scf.for %t = %c0 to %c2 step %c1 iter_args(%data = %no_data, %scales = %no_scales) -> (tensor<2x128x16x!mx.x4<f8E4M3FN>>, tensor<2x128x16xui8>) {
    %tile = tensor.extract_slice %tiles[%t, 0, 0] [1, 128, 64] [1, 1, 1] : tensor<2x128x64xf32> to tensor<128x64xf32>
    %q:2 = mx.quantize_mx %tile : tensor<128x64xf32> -> (tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>)
    %data_t = tensor.insert_slice %q#0 into %data[%t, 0, 0] [1, 128, 16] [1, 1, 1] : tensor<128x16x!mx.x4<f8E4M3FN>> into tensor<2x128x16x!mx.x4<f8E4M3FN>>
    %scales_t = tensor.insert_slice %q#1 into %scales[%t, 0, 0] [1, 128, 16] [1, 1, 1] : tensor<128x16xui8> into tensor<2x128x16xui8>
    scf.yield %data_t, %scales_t : tensor<2x128x16x!mx.x4<f8E4M3FN>>, tensor<2x128x16xui8>
  }
  return %0#0, %0#1 : tensor<2x128x16x!mx.x4<f8E4M3FN>>, tensor<2x128x16xui8>
}

// I = 512 fills all 128 partitions of down.
func.func @expert_512(%x: tensor<16x1024xf32>, %gu_w: tensor<4x128x2x2x512xui16>, %gu_s: tensor<4x16x2x2x512xui8>, %gu_b: tensor<4x128x2x1x4xf32>, %d_w: tensor<4x128x1x1024xui16>, %d_s: tensor<4x16x1x1024xui8>, %d_b: tensor<4x1024xf32>, %e: index) -> (tensor<16x1024xf32>, tensor<512x16xf32>, tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %gu:3 = mx.load_gate_up %gu_w, %gu_s, %gu_b, %e[0] : tensor<4x128x2x2x512xui16>, tensor<4x16x2x2x512xui8>, tensor<4x128x2x1x4xf32>, index -> (tensor<128x2x2x512x!mx.x4<f4E2M1FN>>, tensor<128x2x2x512xui8>, tensor<128x2x1x4xf32>)
  %d:3 = mx.load_down %d_w, %d_s, %d_b, %e, %gu#0[0] : tensor<4x128x1x1024xui16>, tensor<4x16x1x1024xui8>, tensor<4x1024xf32>, index, tensor<128x2x2x512x!mx.x4<f4E2M1FN>> -> (tensor<128x1x1024x!mx.x4<f4E2M1FN>>, tensor<128x1x1024xui8>, tensor<1024xf32>)
  %hidden:2 = call @quantized_hidden(%x) : (tensor<16x1024xf32>) -> (tensor<2x128x16x!mx.x4<f8E4M3FN>>, tensor<2x128x16xui8>)

  // Sums start from the biases: that of feature 4p + q is at (p, which, 0, q).
  %no_features = tensor.empty() : tensor<2x1x128x4xf32>
  %by_feature = linalg.transpose ins(%gu#2 : tensor<128x2x1x4xf32>) outs(%no_features : tensor<2x1x128x4xf32>) permutation = [1, 2, 0, 3]
  %bias = tensor.collapse_shape %by_feature [[0], [1, 2, 3]] : tensor<2x1x128x4xf32> into tensor<2x512xf32>
  %no_biases = tensor.empty() : tensor<2x512x16xf32>
  %biases = linalg.broadcast ins(%bias : tensor<2x512xf32>) outs(%no_biases : tensor<2x512x16xf32>) dimensions = [2]

  // Gate, then up: weights are stationary, 128 features at a time, and summed over both tiles of H.
  %projected = scf.for %which = %c0 to %c2 step %c1 iter_args(%p0 = %biases) -> (tensor<2x512x16xf32>) {
    %pieces = scf.for %i = %c0 to %c512 step %c128 iter_args(%p1 = %p0) -> (tensor<2x512x16xf32>) {
      %start = tensor.extract_slice %p1[%which, %i, 0] [1, 128, 16] [1, 1, 1] : tensor<2x512x16xf32> to tensor<128x16xf32>
      %sum = scf.for %t = %c0 to %c2 step %c1 iter_args(%so_far = %start) -> (tensor<128x16xf32>) {
        %w = tensor.extract_slice %gu#0[0, %which, %t, %i] [128, 1, 1, 128] [1, 1, 1, 1] : tensor<128x2x2x512x!mx.x4<f4E2M1FN>> to tensor<128x128x!mx.x4<f4E2M1FN>>
        %ws = tensor.extract_slice %gu#1[0, %which, %t, %i] [128, 1, 1, 128] [1, 1, 1, 1] : tensor<128x2x2x512xui8> to tensor<128x128xui8>
        %a = tensor.extract_slice %hidden#0[%t, 0, 0] [1, 128, 16] [1, 1, 1] : tensor<2x128x16x!mx.x4<f8E4M3FN>> to tensor<128x16x!mx.x4<f8E4M3FN>>
        %as = tensor.extract_slice %hidden#1[%t, 0, 0] [1, 128, 16] [1, 1, 1] : tensor<2x128x16xui8> to tensor<128x16xui8>
        %next = mx.nc_matmul_mx %so_far, %w, %a, %ws, %as {accumulate, weights = "stationary"} : tensor<128x16xf32>, tensor<128x128x!mx.x4<f4E2M1FN>>, tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x128xui8>, tensor<128x16xui8> -> tensor<128x16xf32>
        scf.yield %next : tensor<128x16xf32>
      }
      %p2 = tensor.insert_slice %sum into %p1[%which, %i, 0] [1, 128, 16] [1, 1, 1] : tensor<128x16xf32> into tensor<2x512x16xf32>
      scf.yield %p2 : tensor<2x512x16xf32>
    }
    scf.yield %pieces : tensor<2x512x16xf32>
  }

  // SiLU of gate, times up: gate / (1 + exp(-gate)) * up.
  %gate = tensor.extract_slice %projected[0, 0, 0] [1, 512, 16] [1, 1, 1] : tensor<2x512x16xf32> to tensor<512x16xf32>
  %up = tensor.extract_slice %projected[1, 0, 0] [1, 512, 16] [1, 1, 1] : tensor<2x512x16xf32> to tensor<512x16xf32>
  %one = arith.constant dense<1.0> : tensor<512x16xf32>
  %minus = arith.negf %gate : tensor<512x16xf32>
  %exp = math.exp %minus : tensor<512x16xf32>
  %denominator = arith.addf %one, %exp : tensor<512x16xf32>
  %silu = arith.divf %gate, %denominator : tensor<512x16xf32>
  %product = arith.mulf %silu, %up : tensor<512x16xf32>

  // Feature 4p + q becomes lane q of container p, where down weights have it too.
  %in_lanes = tensor.expand_shape %product [[0, 1], [2]] output_shape [128, 4, 16] : tensor<512x16xf32> into tensor<128x4x16xf32>
  %no_cells = tensor.empty() : tensor<128x16x4xf32>
  %cells = linalg.transpose ins(%in_lanes : tensor<128x4x16xf32>) outs(%no_cells : tensor<128x16x4xf32>) permutation = [0, 2, 1]
  %inner = tensor.collapse_shape %cells [[0], [1, 2]] : tensor<128x16x4xf32> into tensor<128x64xf32>
  %q:2 = mx.quantize_mx %inner : tensor<128x64xf32> -> (tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>)

  // Down: activations are stationary, weights move, 512 hidden features at a time.
  %no_start = tensor.empty() : tensor<16x1024xf32>
  %d_biases = linalg.broadcast ins(%d#2 : tensor<1024xf32>) outs(%no_start : tensor<16x1024xf32>) dimensions = [0]
  %y = scf.for %n = %c0 to %c1024 step %c512 iter_args(%y0 = %d_biases) -> (tensor<16x1024xf32>) {
    %start = tensor.extract_slice %y0[0, %n] [16, 512] [1, 1] : tensor<16x1024xf32> to tensor<16x512xf32>
    %w = tensor.extract_slice %d#0[0, 0, %n] [128, 1, 512] [1, 1, 1] : tensor<128x1x1024x!mx.x4<f4E2M1FN>> to tensor<128x512x!mx.x4<f4E2M1FN>>
    %ws = tensor.extract_slice %d#1[0, 0, %n] [128, 1, 512] [1, 1, 1] : tensor<128x1x1024xui8> to tensor<128x512xui8>
    %sum = mx.nc_matmul_mx %start, %q#0, %w, %q#1, %ws {accumulate, weights = "moving"} : tensor<16x512xf32>, tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x512x!mx.x4<f4E2M1FN>>, tensor<128x16xui8>, tensor<128x512xui8> -> tensor<16x512xf32>
    %y1 = tensor.insert_slice %sum into %y0[0, %n] [16, 512] [1, 1] : tensor<16x512xf32> into tensor<16x1024xf32>
    scf.yield %y1 : tensor<16x1024xf32>
  }
  return %y, %product, %q#0, %q#1 : tensor<16x1024xf32>, tensor<512x16xf32>, tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>
}

// I = 192 fills 48 partitions of down. Its 6 rows of scales are one quadrant and half of another.
func.func @expert_192(%x: tensor<16x1024xf32>, %gu_w: tensor<4x128x2x2x192xui16>, %gu_s: tensor<4x16x2x2x192xui8>, %gu_b: tensor<4x48x2x1x4xf32>, %d_w: tensor<4x48x1x1024xui16>, %d_s: tensor<4x6x1x1024xui8>, %d_b: tensor<4x1024xf32>, %e: index) -> (tensor<16x1024xf32>, tensor<192x16xf32>, tensor<48x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c96 = arith.constant 96 : index
  %c192 = arith.constant 192 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %gu:3 = mx.load_gate_up %gu_w, %gu_s, %gu_b, %e[0] : tensor<4x128x2x2x192xui16>, tensor<4x16x2x2x192xui8>, tensor<4x48x2x1x4xf32>, index -> (tensor<128x2x2x192x!mx.x4<f4E2M1FN>>, tensor<128x2x2x192xui8>, tensor<48x2x1x4xf32>)
  %d:3 = mx.load_down %d_w, %d_s, %d_b, %e, %gu#0[0] : tensor<4x48x1x1024xui16>, tensor<4x6x1x1024xui8>, tensor<4x1024xf32>, index, tensor<128x2x2x192x!mx.x4<f4E2M1FN>> -> (tensor<48x1x1024x!mx.x4<f4E2M1FN>>, tensor<128x1x1024xui8>, tensor<1024xf32>)
  %hidden:2 = call @quantized_hidden(%x) : (tensor<16x1024xf32>) -> (tensor<2x128x16x!mx.x4<f8E4M3FN>>, tensor<2x128x16xui8>)

  // Sums start from the biases: that of feature 4p + q is at (p, which, 0, q).
  %no_features = tensor.empty() : tensor<2x1x48x4xf32>
  %by_feature = linalg.transpose ins(%gu#2 : tensor<48x2x1x4xf32>) outs(%no_features : tensor<2x1x48x4xf32>) permutation = [1, 2, 0, 3]
  %bias = tensor.collapse_shape %by_feature [[0], [1, 2, 3]] : tensor<2x1x48x4xf32> into tensor<2x192xf32>
  %no_biases = tensor.empty() : tensor<2x192x16xf32>
  %biases = linalg.broadcast ins(%bias : tensor<2x192xf32>) outs(%no_biases : tensor<2x192x16xf32>) dimensions = [2]

  // Gate, then up: weights are stationary, 96 features at a time, and summed over both tiles of H.
  %projected = scf.for %which = %c0 to %c2 step %c1 iter_args(%p0 = %biases) -> (tensor<2x192x16xf32>) {
    %pieces = scf.for %i = %c0 to %c192 step %c96 iter_args(%p1 = %p0) -> (tensor<2x192x16xf32>) {
      %start = tensor.extract_slice %p1[%which, %i, 0] [1, 96, 16] [1, 1, 1] : tensor<2x192x16xf32> to tensor<96x16xf32>
      %sum = scf.for %t = %c0 to %c2 step %c1 iter_args(%so_far = %start) -> (tensor<96x16xf32>) {
        %w = tensor.extract_slice %gu#0[0, %which, %t, %i] [128, 1, 1, 96] [1, 1, 1, 1] : tensor<128x2x2x192x!mx.x4<f4E2M1FN>> to tensor<128x96x!mx.x4<f4E2M1FN>>
        %ws = tensor.extract_slice %gu#1[0, %which, %t, %i] [128, 1, 1, 96] [1, 1, 1, 1] : tensor<128x2x2x192xui8> to tensor<128x96xui8>
        %a = tensor.extract_slice %hidden#0[%t, 0, 0] [1, 128, 16] [1, 1, 1] : tensor<2x128x16x!mx.x4<f8E4M3FN>> to tensor<128x16x!mx.x4<f8E4M3FN>>
        %as = tensor.extract_slice %hidden#1[%t, 0, 0] [1, 128, 16] [1, 1, 1] : tensor<2x128x16xui8> to tensor<128x16xui8>
        %next = mx.nc_matmul_mx %so_far, %w, %a, %ws, %as {accumulate, weights = "stationary"} : tensor<96x16xf32>, tensor<128x96x!mx.x4<f4E2M1FN>>, tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x96xui8>, tensor<128x16xui8> -> tensor<96x16xf32>
        scf.yield %next : tensor<96x16xf32>
      }
      %p2 = tensor.insert_slice %sum into %p1[%which, %i, 0] [1, 96, 16] [1, 1, 1] : tensor<96x16xf32> into tensor<2x192x16xf32>
      scf.yield %p2 : tensor<2x192x16xf32>
    }
    scf.yield %pieces : tensor<2x192x16xf32>
  }

  // SiLU of gate, times up: gate / (1 + exp(-gate)) * up.
  %gate = tensor.extract_slice %projected[0, 0, 0] [1, 192, 16] [1, 1, 1] : tensor<2x192x16xf32> to tensor<192x16xf32>
  %up = tensor.extract_slice %projected[1, 0, 0] [1, 192, 16] [1, 1, 1] : tensor<2x192x16xf32> to tensor<192x16xf32>
  %one = arith.constant dense<1.0> : tensor<192x16xf32>
  %minus = arith.negf %gate : tensor<192x16xf32>
  %exp = math.exp %minus : tensor<192x16xf32>
  %denominator = arith.addf %one, %exp : tensor<192x16xf32>
  %silu = arith.divf %gate, %denominator : tensor<192x16xf32>
  %product = arith.mulf %silu, %up : tensor<192x16xf32>

  // Feature 4p + q becomes lane q of container p, where down weights have it too.
  %in_lanes = tensor.expand_shape %product [[0, 1], [2]] output_shape [48, 4, 16] : tensor<192x16xf32> into tensor<48x4x16xf32>
  %no_cells = tensor.empty() : tensor<48x16x4xf32>
  %cells = linalg.transpose ins(%in_lanes : tensor<48x4x16xf32>) outs(%no_cells : tensor<48x16x4xf32>) permutation = [0, 2, 1]
  %inner = tensor.collapse_shape %cells [[0], [1, 2]] : tensor<48x16x4xf32> into tensor<48x64xf32>
  %q:2 = mx.quantize_mx %inner : tensor<48x64xf32> -> (tensor<48x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>)

  // Down: activations are stationary, weights move, 512 hidden features at a time.
  %no_start = tensor.empty() : tensor<16x1024xf32>
  %d_biases = linalg.broadcast ins(%d#2 : tensor<1024xf32>) outs(%no_start : tensor<16x1024xf32>) dimensions = [0]
  %y = scf.for %n = %c0 to %c1024 step %c512 iter_args(%y0 = %d_biases) -> (tensor<16x1024xf32>) {
    %start = tensor.extract_slice %y0[0, %n] [16, 512] [1, 1] : tensor<16x1024xf32> to tensor<16x512xf32>
    %w = tensor.extract_slice %d#0[0, 0, %n] [48, 1, 512] [1, 1, 1] : tensor<48x1x1024x!mx.x4<f4E2M1FN>> to tensor<48x512x!mx.x4<f4E2M1FN>>
    %ws = tensor.extract_slice %d#1[0, 0, %n] [128, 1, 512] [1, 1, 1] : tensor<128x1x1024xui8> to tensor<128x512xui8>
    %sum = mx.nc_matmul_mx %start, %q#0, %w, %q#1, %ws {accumulate, weights = "moving"} : tensor<16x512xf32>, tensor<48x16x!mx.x4<f8E4M3FN>>, tensor<48x512x!mx.x4<f4E2M1FN>>, tensor<128x16xui8>, tensor<128x512xui8> -> tensor<16x512xf32>
    %y1 = tensor.insert_slice %sum into %y0[0, %n] [16, 512] [1, 1] : tensor<16x512xf32> into tensor<16x1024xf32>
    scf.yield %y1 : tensor<16x1024xf32>
  }
  return %y, %product, %q#0, %q#1 : tensor<16x1024xf32>, tensor<192x16xf32>, tensor<48x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>
}
