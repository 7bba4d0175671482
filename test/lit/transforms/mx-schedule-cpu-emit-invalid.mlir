// RUN: mx-opt %s --mx-schedule-cpu="emit=true vector-bits=512" --split-input-file --verify-diagnostics

#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @lacks(%x: memref<1x128xf32>, %v: memref<128x64xf32>, %c: memref<1x64xf32>) {
  // expected-error @below {{'linalg.generic' op schedule rows lacks lanes, rows, strips, decode; emit needs every size}}
  linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = {kind = "rows", long = "rhs"}}
      ins(%x, %v : memref<1x128xf32>, memref<128x64xf32>) outs(%c : memref<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @kind(%x: memref<1x128xf32>, %v: memref<128x64xf32>, %c: memref<1x64xf32>) {
  // expected-error @below {{'linalg.generic' op 'pannel' is no schedule; did you mean 'panel'?}}
  linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = "pannel"}
      ins(%x, %v : memref<1x128xf32>, memref<128x64xf32>) outs(%c : memref<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

// Weights given as [K, N]: nothing runs along k.

#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @refused(%x: memref<1x128xf32>, %v: memref<128x64xf32>, %c: memref<1x64xf32>) {
  // expected-error @below {{'linalg.generic' op schedule rows does not apply}}
  linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = {kind = "rows", lanes = 16, rows = 1, strips = 1, long = "rhs", decode = "body"}}
      ins(%x, %v : memref<1x128xf32>, memref<128x64xf32>) outs(%c : memref<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  }
  return
}
