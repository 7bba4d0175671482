// RUN: mx-opt %s --mx-to-linalg | filecheck %s

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!dynamic = !mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>

// CHECK: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[SCALE:.*]] = affine_map<(d0, d1) -> (d0, d1 floordiv 32)>

// CHECK-LABEL: func.func @dequantize(
// CHECK-SAME: %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>)
// CHECK: %[[INIT:.*]] = tensor.empty() : tensor<32x64xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[SCALE]], #[[ID]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: ins(%[[M]], %[[S]] :
// CHECK-SAME: outs(%[[INIT]] :
func.func @dequantize(%x: !t) -> tensor<32x64xf32> {
  %0 = mx.dequantize_block %x : !t -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// The product is formed in f32 and rounded once.
// CHECK-LABEL: func.func @dequantize_bf16(
// CHECK: %[[P:.*]] = arith.mulf {{.*}} : f32
// CHECK: arith.truncf %[[P]] : f32 to bf16
func.func @dequantize_bf16(%x: !t) -> tensor<32x64xbf16> {
  %0 = mx.dequantize_block %x : !t -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// K is split, each block reduced to its largest magnitude as integers, the exponent taken from the bits.
// CHECK-LABEL: func.func @quantize(
// CHECK-SAME: %[[X:.*]]: tensor<32x64xf32>) -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
// CHECK: %[[E:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2]] output_shape [32, 2, 32]
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[E]]
// CHECK: arith.bitcast {{.*}} : f32 to i32
// CHECK: arith.maxui
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[MAX]]
// CHECK: arith.shrui
// CHECK-NOT: math.log
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%[[E]], %[[S]]
// CHECK-NOT: arith.divf
// CHECK: arith.truncf {{.*}} : f32 to f8E4M3FN
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[M]] {{\[\[}}0], [1, 2]]
// CHECK: return %[[C]], %[[S]]
func.func @quantize(%x: tensor<32x64xf32>) -> !t {
  %0 = mx.quantize_block %x : tensor<32x64xf32> -> !t
  return %0 : !t
}

// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf16>) -> (tensor<?x?xf8E4M3FN>, tensor<?x?xf8E8M0FNU>)
// CHECK: %[[K:.*]] = tensor.dim %[[X]]
// CHECK: %[[G:.*]] = arith.divui %[[K]]
// CHECK: tensor.expand_shape %[[X]] {{\[\[}}0, 1], [2]] output_shape [%[[G]], 32, %{{.*}}] : tensor<?x?xf16> into tensor<?x32x?xf16>
func.func @dynamic(%x: tensor<?x?xf16>) -> !dynamic {
  %0 = mx.quantize_block %x {rounding = "rceil"} : tensor<?x?xf16> -> !dynamic
  return %0 : !dynamic
}

// Taking apart and putting together is free.
// CHECK-LABEL: func.func @parts(
// CHECK-SAME: %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>)
// CHECK-NEXT: return %[[M]], %[[S]], %[[M]], %[[S]]
func.func @parts(%x: !t) -> (!t, tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>) {
  %0:2 = mx.decompose %x : !t -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  %1 = mx.compose %0#0, %0#1 : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU> -> !t
  return %1, %0#0, %0#1 : !t, tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>
}
