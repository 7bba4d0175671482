// The second bar: the structured vectorizer refuses `d2 floordiv 32`, and takes what mx-expand-k makes of it.

// RUN: mx-opt %s --transform-interpreter --verify-diagnostics
// RUN: mx-opt %s --mx-expand-k --transform-interpreter | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#scale = affine_map<(m, n, k) -> (m, k floordiv 32)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

module attributes {transform.with_named_sequence} {
  // CHECK-LABEL: func.func @block_matmul(
  // CHECK-NOT: linalg.generic
  // CHECK: %[[A:.*]] = arith.extf %{{.*}} : vector<32x64x2x32xf8E4M3FN> to vector<32x64x2x32xf32>
  // CHECK: %[[SCALE:.*]] = arith.extf %{{.*}} : vector<32x64x2x32xf8E8M0FNU> to vector<32x64x2x32xf32>
  // CHECK: arith.mulf %[[A]], %[[SCALE]] : vector<32x64x2x32xf32>
  // CHECK: vector.multi_reduction <add>, %{{.*}}, %{{.*}} [2, 3] : vector<32x64x2x32xf32> to vector<32x64xf32>
  // CHECK: return
  func.func @block_matmul(%a: tensor<32x64xf8E4M3FN>, %scale: tensor<32x2xf8E8M0FNU>, %b: tensor<64x64xf32>, %c: tensor<32x64xf32>) -> tensor<32x64xf32> {
    // expected-error @below {{Attempted to vectorize, but failed}}
    %0 = linalg.generic {indexing_maps = [#a, #scale, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %scale, %b : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>, tensor<64x64xf32>) outs(%c : tensor<32x64xf32>) {
    ^bb0(%x: f8E4M3FN, %s: f8E8M0FNU, %y: f32, %acc: f32):
      %1 = arith.extf %x : f8E4M3FN to f32
      %2 = arith.extf %s : f8E8M0FNU to f32
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.mulf %3, %y : f32
      %5 = arith.addf %acc, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }

  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %generic = transform.structured.match ops{["linalg.generic"]} in %module : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %generic : !transform.any_op
    transform.yield
  }
}
