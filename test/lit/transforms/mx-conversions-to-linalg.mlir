// RUN: mx-opt %s --mx-conversions-to-linalg | filecheck %s

// CHECK: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @extend(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf8E8M0FNU>)
// CHECK: %[[DIM:.*]] = tensor.dim %[[X]], %{{.*}}
// CHECK: %[[EMPTY:.*]] = tensor.empty(%[[DIM]]) : tensor<?x4xf32>
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ID]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: ins(%[[X]] : {{.*}}) outs(%[[EMPTY]] :
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f8E8M0FNU, %{{.*}}: f32):
// CHECK-NEXT: %[[V:.*]] = arith.extf %[[IN]] : f8E8M0FNU to f32
// CHECK-NEXT: linalg.yield %[[V]] : f32
// CHECK: return %[[R]]
func.func @extend(%x: tensor<?x4xf8E8M0FNU>) -> tensor<?x4xf32> {
  %0 = arith.extf %x : tensor<?x4xf8E8M0FNU> to tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// Two operands.

// CHECK-LABEL: func.func @scaled(
// CHECK: linalg.generic
// CHECK: arith.scaling_extf %{{.*}}, %{{.*}} : f4E2M1FN, f8E8M0FNU to f32
func.func @scaled(%x: tensor<8xf4E2M1FN>, %s: tensor<8xf8E8M0FNU>) -> tensor<8xf32> {
  %0 = arith.scaling_extf %x, %s : tensor<8xf4E2M1FN>, tensor<8xf8E8M0FNU> to tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A constant is not folded: code 255 is NaN.

// CHECK-LABEL: func.func @constant(
// CHECK: %[[S:.*]] = arith.constant dense<0xFF> : tensor<2xf8E8M0FNU>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[S]] :
func.func @constant() -> tensor<2xf32> {
  %s = arith.constant dense<0xFF> : tensor<2xf8E8M0FNU>
  %0 = arith.extf %s : tensor<2xf8E8M0FNU> to tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Scalars, vectors and other types are no concern of this pass.

// CHECK-LABEL: func.func @others(
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @others(%a: f8E4M3FN, %b: vector<4xf8E4M3FN>, %c: tensor<4xf16>) -> (f32, vector<4xf32>, tensor<4xf32>) {
  %0 = arith.extf %a : f8E4M3FN to f32
  %1 = arith.extf %b : vector<4xf8E4M3FN> to vector<4xf32>
  %2 = arith.extf %c : tensor<4xf16> to tensor<4xf32>
  return %0, %1, %2 : f32, vector<4xf32>, tensor<4xf32>
}
