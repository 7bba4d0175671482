func.func @"\FF"(%x: !mx.tensor<4x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) {
  return
}
