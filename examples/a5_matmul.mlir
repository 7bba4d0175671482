// x * w^T on tiles of a matrix engine: activations in MXFP8, weights in MXFP4 as checkpoints store them, [N, K].
//
//   mx-opt a5_matmul.mlir --mx-tile-matmul="m=32 n=32 k=256" --mx-tile-pipeline
func.func @matmul(%x: !mx.tensor<64x768xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %w: !mx.tensor<32x768xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %acc = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %0 = mx.block_matmul %x, %w, %acc {transpose_rhs} : <64x768xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, <32x768xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<64x32xf32> -> tensor<64x32xf32>
  return %0 : tensor<64x32xf32>
}
