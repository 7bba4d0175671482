// The first bar: where linalg itself refuses to divide a loop by the block size. linalg.generic is what remains.

// RUN: mx-opt %s --split-input-file --verify-diagnostics

func.func @contract(%scale: tensor<32x2xf32>, %b: tensor<64x64xf32>, %c: tensor<32x64xf32>) -> tensor<32x64xf32> {
  // expected-error @below {{provided affine_map is not a projected permutation}}
  %0 = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k floordiv 32)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%scale, %b : tensor<32x2xf32>, tensor<64x64xf32>) outs(%c : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// -----

// Loops over the block b and the element j, on a K that is one dimension: no operand is indexed by b or j alone, so
// that their extents cannot be inferred.

func.func @block_and_element(%a: tensor<64xf32>, %c: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{invalid indexing maps are non-invertible: ((d0, d1) -> (d0 * 32 + d1, d0 * 32 + d1))}}
  %0 = linalg.generic {indexing_maps = [affine_map<(b, j) -> (b * 32 + j)>, affine_map<(b, j) -> (b * 32 + j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<64xf32>) outs(%c : tensor<64xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// A loop over the whole of K, with the block a quotient of it, does invert.

func.func @floordiv(%a: tensor<64xf32>, %scale: tensor<2xf32>, %c: tensor<64xf32>) -> tensor<64xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k floordiv 32)>, affine_map<(k) -> (k)>], iterator_types = ["parallel"]}
      ins(%a, %scale : tensor<64xf32>, tensor<2xf32>) outs(%c : tensor<64xf32>) {
  ^bb0(%x: f32, %s: f32, %old: f32):
    %1 = arith.mulf %x, %s : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
