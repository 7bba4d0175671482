// RUN: mx-opt %s --mx-schedule-cpu=vector-bits=512 --split-input-file | filecheck %s
// RUN: mx-opt %s --mx-schedule-cpu="vector-bits=512 schedule=panel" --split-input-file | filecheck %s --check-prefix=WIDE
// RUN: mx-opt %s --mx-schedule-cpu="vector-bits=256 schedule=panel" --split-input-file | filecheck %s --check-prefix=NARROW
// RUN: mx-opt %s --mx-schedule-cpu=schedule=none --split-input-file | filecheck %s --check-prefix=NONE

// NONE-LABEL: func.func @many
// NONE-NOT: mx.schedule
// NONE-LABEL: func.func @few_columns

// Many rows and columns: panels, in f32 or for a matrix unit where there is one.

// CHECK-LABEL: func.func @many
// CHECK: linalg.generic
// CHECK-SAME: mx.schedule = {{{.*}}kind = "{{panel|amx}}"
// WIDE-LABEL: func.func @many
// WIDE: mx.schedule = {{{.*}}kind = "panel", lanes = 16
// NARROW-LABEL: func.func @many
// NARROW: mx.schedule = {{{.*}}kind = "panel", lanes = 8
#a = affine_map<(m, n, k) -> (m, k)>
#s = affine_map<(m, n, k) -> (m, k floordiv 32)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @many(%a: tensor<64x128xf8E4M3FN>, %s: tensor<64x4xf8E8M0FNU>, %b: tensor<128x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #s, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %s, %b : tensor<64x128xf8E4M3FN>, tensor<64x4xf8E8M0FNU>, tensor<128x64xf32>) outs(%c : tensor<64x64xf32>) {
  ^bb0(%x: f8E4M3FN, %e: f8E8M0FNU, %y: f32, %z: f32):
    %1 = arith.extf %x : f8E4M3FN to f32
    %2 = arith.extf %e : f8E8M0FNU to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.mulf %3, %y : f32
    %5 = arith.addf %z, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// Few columns: the left side streams.

// CHECK-LABEL: func.func @few_columns
// CHECK: mx.schedule = {{{.*}}kind = "rows"{{.*}}long = "lhs"
#a = affine_map<(m, n, k) -> (m, k)>
#s = affine_map<(m, n, k) -> (m, k floordiv 32)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @few_columns(%a: tensor<64x128xf8E4M3FN>, %s: tensor<64x4xf8E8M0FNU>, %b: tensor<128x2xf32>, %c: tensor<64x2xf32>) -> tensor<64x2xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #s, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %s, %b : tensor<64x128xf8E4M3FN>, tensor<64x4xf8E8M0FNU>, tensor<128x2xf32>) outs(%c : tensor<64x2xf32>) {
  ^bb0(%x: f8E4M3FN, %e: f8E8M0FNU, %y: f32, %z: f32):
    %1 = arith.extf %x : f8E4M3FN to f32
    %2 = arith.extf %e : f8E8M0FNU to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.mulf %3, %y : f32
    %5 = arith.addf %z, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<64x2xf32>
  return %0 : tensor<64x2xf32>
}

// -----

// Few rows, weights [N, K]: the right side streams; weights [K, N]: columns.

// CHECK-LABEL: func.func @few_rows
// CHECK: mx.schedule = {{{.*}}kind = "rows"{{.*}}long = "rhs"
// CHECK: mx.schedule = {{{.*}}kind = "columns"
#x = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @few_rows(%x: tensor<1x128xf32>, %w: tensor<64x128xf32>, %v: tensor<128x64xf32>, %c: tensor<1x64xf32>) -> (tensor<1x64xf32>, tensor<1x64xf32>) {
  %0 = linalg.generic {indexing_maps = [#x, #nk, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<1x128xf32>, tensor<64x128xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  %3 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<1x128xf32>, tensor<128x64xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  return %0, %3 : tensor<1x64xf32>, tensor<1x64xf32>
}

// -----

// What the operation says wins: the kind, or sizes; none forbids a schedule.

// CHECK-LABEL: func.func @given
// CHECK: mx.schedule = {{{.*}}kind = "panel"{{.*}}rows = 4
// CHECK: mx.schedule = "none"
#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @given(%x: tensor<1x128xf32>, %v: tensor<128x64xf32>, %c: tensor<1x64xf32>) -> (tensor<1x64xf32>, tensor<1x64xf32>) {
  %0 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = {kind = "panel", rows = 4, block_m = 64}}
      ins(%x, %v : tensor<1x128xf32>, tensor<128x64xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  %3 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"], mx.schedule = "none"}
      ins(%x, %v : tensor<1x128xf32>, tensor<128x64xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.addf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  return %0, %3 : tensor<1x64xf32>, tensor<1x64xf32>
}

// -----

// Not a contraction: a maximum instead of a sum.

// CHECK-LABEL: func.func @not_a_contraction
// CHECK-NOT: mx.schedule
#x = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @not_a_contraction(%x: tensor<1x128xf32>, %v: tensor<128x64xf32>, %c: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %0 = linalg.generic {indexing_maps = [#x, #kn, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<1x128xf32>, tensor<128x64xf32>) outs(%c : tensor<1x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %1 = arith.mulf %p, %q : f32
    %2 = arith.maximumf %z, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}
