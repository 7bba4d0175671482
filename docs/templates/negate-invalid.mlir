// RUN: mx-opt %s --verify-diagnostics --split-input-file

func.func @integers(%x: !mx.tensor<32x64xi8, block_size = 32, scale_type = f8E8M0FNU>) {
  // expected-error @+1 {{input must hold floats of 8 bits}}
  %0 = mx.negate %x : <32x64xi8, block_size = 32, scale_type = f8E8M0FNU> -> <32x64xi8, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

func.func @other_result(%x: !mx.tensor<32x64xf8E5M2, block_size = 32, scale_type = f8E8M0FNU>) {
  // expected-error @+1 {{result must be '!mx.tensor<32x64xf8E5M2, block_size = 32, scale_type = f8E8M0FNU>' as input is}}
  %0 = mx.negate %x : <32x64xf8E5M2, block_size = 32, scale_type = f8E8M0FNU> -> <32x64xf8E5M2, block_size = 64, scale_type = f8E8M0FNU>
  return
}
