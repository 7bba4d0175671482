// RUN: mx-opt %s --mx-expand-negate --verify-diagnostics

func.func @open(%x: !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
  // expected-error @+1 {{'mx.negate' op has open extents; run --mx-expand-negate where all are static}}
  %0 = mx.negate %x : <?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> <?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return %0 : !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
}
