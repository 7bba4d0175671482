// RUN: mx-opt %s --mx-neuron-to-linalg --split-input-file --verify-diagnostics

func.func @not_expanded(%w: tensor<256x96xbf16>) -> tensor<128x2x96xbf16> {
  // expected-error @below {{'mx.load_qkv_dense' op is a load path; run --mx-neuron-expand-load first}}
  %0 = mx.load_qkv_dense %w {layout = "CONTIGUOUS"} : tensor<256x96xbf16> -> tensor<128x2x96xbf16>
  return %0 : tensor<128x2x96xbf16>
}

// -----

// expected-error @below {{'func.func' op holds x4 containers inside 'tensor<*x!mx.x4<f4E2M1FN>>'; --mx-neuron-to-linalg knows them in tensors}}
func.func @unranked(%x: tensor<*x!mx.x4<f4E2M1FN>>) {
  return
}
