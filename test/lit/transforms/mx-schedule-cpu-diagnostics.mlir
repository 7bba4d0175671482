// RUN: mx-opt %s --mx-schedule-cpu=vector-bits=512 --split-input-file --verify-diagnostics

#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @kind(%x: tensor<1x128xf32>, %v: tensor<128x64xf32>, %c: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{'linalg.generic' op 'pannel' is no schedule; did you mean 'panel'?; they are}}
  %0 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = "pannel"}
      ins(%x, %v : tensor<1x128xf32>, tensor<128x64xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @applies(%x: tensor<1x128xf32>, %v: tensor<128x64xf32>, %c: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{'linalg.generic' op schedule rows does not apply: the rows of the side that streams do not lie along k}}
  %0 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = {kind = "rows", long = "rhs"}}
      ins(%x, %v : tensor<1x128xf32>, tensor<128x64xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @size(%x: tensor<1x128xf32>, %v: tensor<128x64xf32>, %c: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{'linalg.generic' op schedule panel has no 'row'; did you mean 'rows'?; it has lanes, rows}}
  %0 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = {kind = "panel", row = 8}}
      ins(%x, %v : tensor<1x128xf32>, tensor<128x64xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @sum(%x: tensor<1x128xf32>, %v: tensor<128x64xf32>, %c: tensor<1x64xf32>) -> tensor<1x64xf32> {
  // expected-error @below {{'linalg.generic' op has mx.schedule but is no contraction in f32}}
  %0 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = "panel"}
      ins(%x, %v : tensor<1x128xf32>, tensor<128x64xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.maximumf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

#x = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @columns_of_the_left_side(%x: tensor<128x64xf32>, %v: tensor<128x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-remark @below {{mx-schedule-cpu leaves this linalg.generic as it is: neither side's rows lie along the loops}}
  %0 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<128x64xf32>, tensor<128x64xf32>) outs(%c : tensor<64x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
