%b = linalg.broadcast ins(%w : tensor<2xf32>) outs(%e : tensor<32x2xf32>) dimensions = [0[[[]
