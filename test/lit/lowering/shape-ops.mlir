// RUN: mx-opt %s --mx-to-linalg | filecheck %s

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!d = !mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>

// CHECK-LABEL: func.func @dim(
// CHECK-SAME: %[[M:.*]]: tensor<?x?xf8E4M3FN>, %{{.*}}: tensor<?x?xf8E8M0FNU>, %[[I:.*]]: index)
// CHECK: cf.assert %{{.*}}, "mx.dim: the tensor has no such axis, only 2"
// CHECK: %[[D:.*]] = tensor.dim %[[M]], %[[I]]
// CHECK: return %[[D]]
func.func @dim(%x: !d, %i: index) -> index {
  %0 = mx.dim %x, %i : !d, index -> index
  return %0 : index
}

// Forgetting an extent needs no check.
// CHECK-LABEL: func.func @forget(
// CHECK-NOT: cf.assert
// CHECK: tensor.cast %{{.*}} : tensor<32x64xf8E4M3FN> to tensor<?x?xf8E4M3FN>
// CHECK: tensor.cast %{{.*}} : tensor<32x2xf8E8M0FNU> to tensor<?x?xf8E8M0FNU>
func.func @forget(%x: !t) -> !d {
  %0 = mx.cast %x : !t -> !d
  return %0 : !d
}

// Claiming one is asserted.
// CHECK-LABEL: func.func @claim(
// CHECK: cf.assert %{{.*}}, "mx.cast: the extent of axis 0 is not 32"
// CHECK: cf.assert %{{.*}}, "mx.cast: the extent of axis 1 is not 64"
// CHECK: tensor.cast %{{.*}} : tensor<?x?xf8E4M3FN> to tensor<32x64xf8E4M3FN>
// CHECK: tensor.cast %{{.*}} : tensor<?x?xf8E8M0FNU> to tensor<32x2xf8E8M0FNU>
func.func @claim(%x: !d) -> !t {
  %0 = mx.cast %x : !d -> !t
  return %0 : !t
}

// The scales are sliced by blocks.
// CHECK-LABEL: func.func @slice(
// CHECK-SAME: %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>, %[[I:.*]]: index)
// CHECK-NOT: is not a multiple
// CHECK: cf.assert %{{.*}}, "mx.extract_slice: the slice leaves the tensor along axis 0"
// CHECK: %[[SM:.*]] = tensor.extract_slice %[[M]][%[[I]], 32] [8, 32] [1, 1]
// CHECK: %[[SS:.*]] = tensor.extract_slice %[[S]][%[[I]], 1] [8, 1] [1, 1]
// CHECK: return %[[SM]], %[[SS]]
func.func @slice(%x: !t, %i: index) -> !mx.tensor<8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
  %0 = mx.extract_slice %x[%i, 32] [8, 32] : !t -> <8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return %0 : !mx.tensor<8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
}

// An offset that is seen to be of whole blocks needs no check; any other does.
// CHECK-LABEL: func.func @blocks(
// CHECK: %[[O:.*]] = arith.muli
// CHECK-NOT: is not a multiple
// CHECK: %[[B:.*]] = arith.divui %[[O]]
// CHECK: tensor.extract_slice %{{.*}}[0, %[[B]]] [32, 1] [1, 1]
// CHECK: cf.assert %{{.*}}, "mx.extract_slice: the offset along blocked axis 1 is not a multiple of block size 32"
func.func @blocks(%x: !t, %i: index) -> (!mx.tensor<32x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, !mx.tensor<32x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) {
  %c32 = arith.constant 32 : index
  %o = arith.muli %i, %c32 : index
  %0 = mx.extract_slice %x[0, %o] [32, 32] : !t -> <32x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  %1 = mx.extract_slice %x[0, %i] [32, 32] : !t -> <32x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return %0, %1 : !mx.tensor<32x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, !mx.tensor<32x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
}

// CHECK-LABEL: func.func @dynamic_size(
// CHECK: cf.assert %{{.*}}, "mx.extract_slice: the size along blocked axis 1 is not a multiple of block size 32"
func.func @dynamic_size(%x: !t, %n: index) -> !mx.tensor<32x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
  %0 = mx.extract_slice %x[0, 0] [32, %n] : !t -> <32x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return %0 : !mx.tensor<32x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
}

// A factor folded in before goes on to whoever computes with the part.
// CHECK-LABEL: func.func @folded(
// CHECK-SAME: %[[F:[a-z0-9]+]]: f32, %[[I:[a-z0-9]+]]: index)
// CHECK: tensor.dim
// CHECK: %[[SM:.*]] = tensor.extract_slice %{{.*}} to tensor<8x32xf8E4M3FN>
// CHECK: %[[SS:.*]] = tensor.extract_slice %{{.*}} to tensor<8x1xf8E8M0FNU>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[F]] :
func.func @folded(%x: !t, %f: f32, %i: index) -> (index, tensor<?x32xf32>) {
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  %1 = mx.dim %0, %i : !t, index -> index
  %2 = mx.extract_slice %0[%i, 32] [8, 32] : !t -> <8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  %3 = mx.cast %2 : <8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> <?x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  %4 = mx.dequantize_block %3 : <?x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<?x32xf32>
  return %1, %4 : index, tensor<?x32xf32>
}
