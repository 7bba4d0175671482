// RUN: mx-opt %s --mx-neuron-matmul --verify-diagnostics --split-input-file
// RUN: not mx-opt %s --mx-neuron-matmul="m=3" --split-input-file 2>&1 | filecheck %s --check-prefix=M
// RUN: not mx-opt %s --mx-neuron-matmul="n=513" --split-input-file 2>&1 | filecheck %s --check-prefix=N
// RUN: not mx-opt %s --mx-neuron-matmul="k=0" --split-input-file 2>&1 | filecheck %s --check-prefix=K
// RUN: not mx-opt %s --pass-pipeline="builtin.module(func.func(mx-neuron-matmul))" --split-input-file 2>&1 | filecheck %s --check-prefix=NESTED

// M: error: option 'm' of pass 'mx-neuron-matmul' must be a positive multiple of 2 up to 128, but is 3
// N: error: option 'n' of pass 'mx-neuron-matmul' must be a positive multiple of 1 up to 512, but is 513
// K: error: option 'k' of pass 'mx-neuron-matmul' must be a positive multiple of 32 up to 512, but is 0
// NESTED: error: --mx-neuron-matmul adds functions to a module; run it on builtin.module, not 'func.func'

!a = !mx.tensor<16x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x32xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @activations(%a: !a, %b: !b, %acc: tensor<16x32xf32>) -> tensor<16x32xf32> {
  // expected-error @+1 {{'mx.block_matmul' op multiplies f4E2M1FN by f4E2M1FN, but activations are FP8 always, only weights may be FP4; quantize one side to FP8, or lower it with --mx-to-linalg}}
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// -----

!a = !mx.tensor<16x64xi8, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @element(%a: !a, %b: !b, %acc: tensor<16x32xf32>) -> tensor<16x32xf32> {
  // expected-error @+1 {{'mx.block_matmul' op lhs '!mx.tensor<16x64xi8, block_size = 32, scale_type = f8E8M0FNU>' holds i8, but the matrix unit multiplies f4E2M1FN, f8E4M3FN and f8E5M2; quantize to one of them, or lower it with --mx-to-linalg}}
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// -----

!a = !mx.tensor<16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x32xf8E4M3FN, block_size = 64, scale_type = f8E8M0FNU, axis = 0>
func.func @block_size(%a: !a, %b: !b, %acc: tensor<16x32xf32>) -> tensor<16x32xf32> {
  // expected-error @+1 {{'mx.block_matmul' op rhs '!mx.tensor<64x32xf8E4M3FN, block_size = 64, scale_type = f8E8M0FNU, axis = 0>' has blocks of 64, but the matrix unit applies a scale to 32 elements; quantize in blocks of 32, or lower it with --mx-to-linalg}}
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// -----

!a = !mx.tensor<16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x32xf4E2M1FN, block_size = 32, scale_type = f8E4M3FN, axis = 0>
func.func @scale_type(%a: !a, %b: !b, %acc: tensor<16x32xf32>) -> tensor<16x32xf32> {
  // expected-error @+1 {{'mx.block_matmul' op rhs '!mx.tensor<64x32xf4E2M1FN, block_size = 32, scale_type = f8E4M3FN, axis = 0>' has f8E4M3FN scales, but those of the matrix unit are f8E8M0FNU; quantize with them, or lower it with --mx-to-linalg}}
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// -----

// All are reported.
!a = !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @dynamic(%a: !a, %b: !b, %acc: tensor<?x32xf32>, %static: tensor<16x32xf32>) -> (tensor<?x32xf32>, tensor<16x32xf32>) {
  // expected-error @+1 {{'mx.block_matmul' op has dynamic extents, but tiles are laid out for static ones; claim them with mx.cast, or lower it with --mx-to-linalg}}
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<?x32xf32> -> tensor<?x32xf32>
  // expected-error @+1 {{'mx.block_matmul' op has dynamic extents}}
  %1 = mx.block_matmul %a, %b, %static : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0, %1 : tensor<?x32xf32>, tensor<16x32xf32>
}

// -----

!a = !mx.tensor<1000000000000x1024xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<1024x1000000000000xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @huge(%a: !a, %b: !b, %acc: tensor<1000000000000x1000000000000xf32>) -> tensor<1000000000000x1000000000000xf32> {
  // expected-error @+1 {{'mx.block_matmul' op has operands too large to address; slice them, or lower it with --mx-to-linalg}}
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<1000000000000x1000000000000xf32> -> tensor<1000000000000x1000000000000xf32>
  return %0 : tensor<1000000000000x1000000000000xf32>
}
