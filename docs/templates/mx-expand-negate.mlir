// RUN: mx-opt %s --mx-expand-negate | filecheck %s

// The sign bit of every code changes, and the scales stay.

// CHECK-LABEL: func.func @negate(
// CHECK-DAG: %[[SIGNS:.*]] = arith.constant dense<-128> : tensor<32x64xi8>
// CHECK-DAG: %[[PARTS:.*]]:2 = mx.decompose
// CHECK: %[[BITS:.*]] = arith.bitcast %[[PARTS]]#0 : tensor<32x64xf8E4M3FN> to tensor<32x64xi8>
// CHECK: %[[FLIPPED:.*]] = arith.xori %[[BITS]], %[[SIGNS]]
// CHECK: %[[CODES:.*]] = arith.bitcast %[[FLIPPED]] : tensor<32x64xi8> to tensor<32x64xf8E4M3FN>
// CHECK: mx.compose %[[CODES]], %[[PARTS]]#1
func.func @negate(%x: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
  %0 = mx.negate %x : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return %0 : !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
}
