// acc + A * B, A in MXFP8 E4M3 with one scale for 32 elements along K.
func.func @block_matmul(%a: !mx.tensor<512x1024xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %b: tensor<1024x256xf32>, %acc: tensor<512x256xf32>) -> tensor<512x256xf32> {
  %0 = mx.block_matmul %a, %b, %acc : <512x1024xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<1024x256xf32>, tensor<512x256xf32> -> tensor<512x256xf32>
  return %0 : tensor<512x256xf32>
}
