// RUN: mx-opt %s --mx-to-linalg --split-input-file --verify-diagnostics | filecheck %s

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>

// The factor becomes an operand of the consumer's payload.
// CHECK-LABEL: func.func @into_dequantize(
// CHECK-SAME: %[[F:[a-z0-9]+]]: f32)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[F]] : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>, f32)
// CHECK: ^bb0(%{{.*}}: f8E4M3FN, %{{.*}}: f8E8M0FNU, %[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[V:.*]] = arith.mulf
// CHECK: arith.mulf %[[V]], %[[IN]] : f32
func.func @into_dequantize(%x: !t, %f: f32) -> tensor<32x64xf32> {
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  %1 = mx.dequantize_block %0 : !t -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}

// Nested factors are multiplied outside the loops, innermost first.
// CHECK-LABEL: func.func @into_matmul(
// CHECK-SAME: %[[F:[a-z0-9]+]]: f32, %[[G:[a-z0-9]+]]: f32)
// CHECK: %[[FG:.*]] = arith.mulf %[[F]], %[[G]] : f32
// CHECK: linalg.generic {{.*}} ins({{.*}}, %[[FG]] :
func.func @into_matmul(%a: !t, %b: tensor<64x8xf32>, %acc: tensor<32x8xf32>, %f: f32, %g: f32) -> tensor<32x8xf32> {
  %0 = mx.fold_scale %a, %f : !t, f32 -> !t
  %1 = mx.fold_scale %0, %g : !t, f32 -> !t
  %2 = mx.block_matmul %1, %b, %acc : !t, tensor<64x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return %2 : tensor<32x8xf32>
}

// A fold nobody uses leaves nothing behind.
// CHECK-LABEL: func.func @unused(
// CHECK-NEXT: return
func.func @unused(%x: !t, %f: f32) {
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  %1 = mx.fold_scale %0, %f : !t, f32 -> !t
  return
}

// Where the tensor escapes, a constant power of two goes into the scales, NaN kept, the range asserted.
// CHECK-LABEL: func.func @escapes(
// CHECK-SAME: %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>)
// CHECK: %[[OK:.*]] = tensor.extract
// CHECK: cf.assert %[[OK]], "mx.fold_scale: a scale times 2^-3 leaves the range 2^-127..2^127 of f8E8M0FNU"
// CHECK: %[[NEW:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<32x2xf8E8M0FNU>)
// CHECK: return %[[M]], %[[NEW]]
func.func @escapes(%x: !t) -> !t {
  %f = arith.constant 0.125 : f32
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  return %0 : !t
}

// Only the product of a chain has to fit: 2^3 * 2^-3 changes nothing.
// CHECK-LABEL: func.func @cancels(
// CHECK-SAME: %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>)
// CHECK-NOT: cf.assert
// CHECK: return %[[M]], %[[S]]
func.func @cancels(%x: !t) -> !t {
  %f = arith.constant 8.0 : f32
  %g = arith.constant 0.125 : f32
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  %1 = mx.fold_scale %0, %g : !t, f32 -> !t
  return %1 : !t
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @three(%x: !t) -> !t {
  %f = arith.constant 3.0 : f32
  // expected-error @below {{'mx.fold_scale' op cannot put the factor 3 into the scales: only a constant power of two fits there}}
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  // expected-note @below {{the tensor itself is needed here, by 'func.return'}}
  return %0 : !t
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @negative(%x: !t) -> !t {
  %f = arith.constant -2.0 : f32
  // expected-error @below {{cannot put the factor -2 into the scales}}
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  // expected-note @below {{'func.return'}}
  return %0 : !t
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @dynamic(%x: !t, %f: f32) -> tensor<32x2xf8E8M0FNU> {
  // expected-error @below {{cannot put a factor that is not a constant into the scales}}
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  // expected-note @below {{by 'builtin.unrealized_conversion_cast'}}
  %1:2 = mx.decompose %0 : !t -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  return %1#1 : tensor<32x2xf8E8M0FNU>
}
