// RUN: mx-opt %s --mx-neuron-matmul --split-input-file | filecheck %s
// RUN: mx-opt %s --mx-neuron-matmul="m=2 n=16 k=64" --split-input-file | filecheck %s --check-prefix=SMALL
// RUN: mx-opt %s --mx-neuron-matmul --mx-neuron-to-linalg --mx-to-linalg --split-input-file | filecheck %s --check-prefix=LINALG

// LINALG-NOT: mx.

// K comes first, elements become containers and scales their codes; the kernel walks over tiles.
// CHECK-LABEL: func.func @matmul(
// CHECK-SAME: %[[A:.*]]: !mx.tensor<256x1600x{{.*}}, %[[B:.*]]: !mx.tensor<1600x1024x
// CHECK: %[[AD:.*]]:2 = mx.decompose %[[A]] : {{.*}} -> (tensor<256x1600xf8E4M3FN>, tensor<256x50xf8E8M0FNU>)
// CHECK: %[[AC:.*]] = linalg.generic {{.*}} ins(%[[AD]]#1 : tensor<256x50xf8E8M0FNU>)
// CHECK: arith.bitcast %{{.*}} : f8E8M0FNU to i8
// CHECK: %[[AK:.*]] = linalg.transpose ins(%[[AD]]#0 : {{.*}} permutation = [1, 0]
// CHECK: %[[AS:.*]] = linalg.transpose ins(%[[AC]] : {{.*}} permutation = [1, 0]
// CHECK-NOT: tensor.pad
// CHECK: %[[AX:.*]] = mx.pack_weights %[[AK]] {layout = "MX_CONTIGUOUS"} : tensor<1600x256xf8E4M3FN> -> tensor<400x256x!mx.x4<f8E4M3FN>>
// FP4 is packed from codes. An operand with K in front is not transposed.
// CHECK: %[[BD:.*]]:2 = mx.decompose %[[B]] : {{.*}} -> (tensor<1600x1024xi8>, tensor<50x1024xf8E8M0FNU>)
// CHECK: %[[BS:.*]] = linalg.generic {{.*}} ins(%[[BD]]#1 :
// CHECK-NOT: linalg.transpose
// CHECK: %[[BX:.*]] = mx.pack_weights %[[BD]]#0 {layout = "MX_CONTIGUOUS"} : tensor<1600x1024xi8> -> tensor<400x1024x!mx.x4<f4E2M1FN>>
// An accumulator of zeros is not needed.
// CHECK-NOT: linalg.fill
// CHECK: %[[OUT:.*]] = tensor.empty() : tensor<256x1024xf32>
// CHECK: %[[R:.*]] = call @nc_matmul_256x1024x1600_f8E4M3FN_f4E2M1FN(%[[AX]], %[[AS]], %[[BX]], %[[BS]], %[[OUT]])
// CHECK: return %[[R]]
// CHECK-LABEL: func.func private @nc_matmul_256x1024x1600_f8E4M3FN_f4E2M1FN(
// CHECK-SAME: %[[A:[^:]*]]: tensor<400x256x!mx.x4<f8E4M3FN>>, %[[AS:[^:]*]]: tensor<50x256xi8>, %[[B:[^:]*]]: tensor<400x1024x!mx.x4<f4E2M1FN>>, %[[BS:[^:]*]]: tensor<50x1024xi8>, %[[C:[^:]*]]: tensor<256x1024xf32>)
// CHECK: scf.for %[[M:.*]] = %c0 to %c256 step %c128 iter_args(%[[C1:.*]] = %[[C]])
// CHECK: scf.for %[[N:.*]] = %c0 to %c1024 step %c512 iter_args(%[[C2:.*]] = %[[C1]])
// The first tile of K begins the sum. Its scales go to the four quadrants.
// CHECK: %[[E:.*]] = tensor.empty() : tensor<128x512xf32>
// CHECK: %[[T0:.*]] = tensor.extract_slice %[[A]][0, %[[M]]] [128, 128]
// CHECK: %[[T1:.*]] = tensor.extract_slice %[[B]][0, %[[N]]] [128, 512]
// CHECK: %[[T2:.*]] = tensor.extract_slice %[[AS]][0, %[[M]]] [16, 128]
// CHECK: %[[Q2:.*]] = mx.scale_load_static %[[T2]] : tensor<16x128xi8> -> tensor<128x128xi8>
// CHECK: %[[T3:.*]] = tensor.extract_slice %[[BS]][0, %[[N]]] [16, 512]
// CHECK: %[[Q3:.*]] = mx.scale_load_static %[[T3]] : tensor<16x512xi8> -> tensor<128x512xi8>
// CHECK: %[[FIRST:.*]] = mx.nc_matmul_mx %[[E]], %[[T0]], %[[T1]], %[[Q2]], %[[Q3]] {weights = "moving"}
// CHECK: %[[SUM:.*]] = scf.for %[[P:.*]] = %c128 to %c384 step %c128 iter_args(%[[CARRIED:.*]] = %[[FIRST]])
// CHECK: %[[ROW:.*]] = arith.floordivsi %[[P]], %c8
// CHECK: tensor.extract_slice %[[A]][%[[P]], %[[M]]] [128, 128]
// CHECK: tensor.extract_slice %[[B]][%[[P]], %[[N]]] [128, 512]
// CHECK: tensor.extract_slice %[[AS]][%[[ROW]], %[[M]]] [16, 128]
// CHECK: tensor.extract_slice %[[BS]][%[[ROW]], %[[N]]] [16, 512]
// CHECK: mx.nc_matmul_mx %[[CARRIED]], {{.*}} {accumulate, weights = "moving"}
// What remains of K are 16 partitions, with two rows of scales.
// CHECK: tensor.extract_slice %[[A]][384, %[[M]]] [16, 128]
// CHECK: tensor.extract_slice %[[AS]][48, %[[M]]] [2, 128]
// CHECK: %[[LAST:.*]] = mx.nc_matmul_mx %[[SUM]], {{.*}} {accumulate, weights = "moving"} : tensor<128x512xf32>, tensor<16x128x!mx.x4<f8E4M3FN>>
// CHECK: tensor.insert_slice %[[LAST]] into %[[C2]][%[[M]], %[[N]]] [128, 512]
// SMALL: scf.for %{{.*}} = %c0 to %c256 step %c2
// SMALL: scf.for %{{.*}} = %c0 to %c1024 step %c16
// SMALL: scf.for %{{.*}} = %c16 to %c400 step %c16
!a = !mx.tensor<256x1600xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<1600x1024xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @matmul(%a: !a, %b: !b) -> tensor<256x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x1024xf32>
  %acc = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<256x1024xf32> -> tensor<256x1024xf32>
  return %0 : tensor<256x1024xf32>
}

// -----

// FP4 on the left: there the weights are stationary. An odd number of rows is made even, with zeros and scales of 1; sums
// start from an accumulator that may not be zero. Tiles of one size have no loop, smaller ones follow.
// CHECK-LABEL: func.func @ragged(
// CHECK-SAME: %[[ACC:[a-z0-9]+]]: tensor<131x520xf32>)
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i8
// CHECK: tensor.pad %{{.*}} low[0, 0] high[0, 1]
// CHECK: tensor.yield %[[ZERO]]
// CHECK: %[[ONE:.*]] = arith.constant 127 : i8
// CHECK: tensor.pad %{{.*}} low[0, 0] high[0, 1]
// CHECK: tensor.yield %[[ONE]]
// A right side given as [N, K].
// CHECK: linalg.transpose ins(%{{.*}} : tensor<520x96xf8E5M2>) {{.*}} permutation = [1, 0]
// CHECK: call @[[KERNEL:[^(]*]](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ACC]])
// CHECK: func.func private @[[KERNEL]](
// CHECK-SAME: tensor<24x132x!mx.x4<f4E2M1FN>>, %{{[^:]*}}: tensor<3x132xi8>, {{.*}}, %[[C:[^:]*]]: tensor<131x520xf32>)
// CHECK-NOT: scf.for
// CHECK: %[[D0:.*]] = tensor.extract_slice %[[C]][0, 0] [128, 512]
// CHECK: mx.nc_matmul_mx %[[D0]], {{.*}} {accumulate, weights = "stationary"} : tensor<128x512xf32>, tensor<24x128x!mx.x4<f4E2M1FN>>, tensor<24x512x!mx.x4<f8E5M2>>
// CHECK: tensor.extract_slice %{{.*}}[0, 512] [128, 8]
// CHECK: tensor.extract_slice %{{.*}}[128, 0] [3, 512]
// CHECK: %[[D3:.*]] = tensor.extract_slice %[[BEFORE:.*]][128, 512] [3, 8]
// CHECK: %[[P3:.*]] = tensor.pad %[[D3]] low[0, 0] high[1, 0]
// CHECK: %[[R3:.*]] = mx.nc_matmul_mx %[[P3]], {{.*}} : tensor<4x8xf32>, tensor<24x4x!mx.x4<f4E2M1FN>>, tensor<24x8x!mx.x4<f8E5M2>>
// CHECK: %[[VALID:.*]] = tensor.extract_slice %[[R3]][0, 0] [3, 8]
// CHECK: tensor.insert_slice %[[VALID]] into %[[BEFORE]][128, 512] [3, 8]
!w = !mx.tensor<131x96xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>
!x = !mx.tensor<520x96xf8E5M2, block_size = 32, scale_type = f8E8M0FNU>
func.func @ragged(%w: !w, %x: !x, %acc: tensor<131x520xf32>) -> tensor<131x520xf32> {
  %0 = mx.block_matmul %w, %x, %acc {transpose_rhs} : !w, !x, tensor<131x520xf32> -> tensor<131x520xf32>
  return %0 : tensor<131x520xf32>
}

// -----

// A loop for each batch axis, and one kernel for all. Elements are packed once, whatever the axes.
// CHECK-LABEL: func.func @batch(
// CHECK: linalg.transpose ins(%{{.*}} : tensor<2x1x16x64xf8E4M3FN>) {{.*}} permutation = [3, 0, 1, 2]
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2, 3]] : tensor<64x2x1x16xf8E4M3FN> into tensor<64x32xf8E4M3FN>
// CHECK: mx.pack_weights {{.*}} -> tensor<16x32x!mx.x4<f8E4M3FN>>
// CHECK: %[[A:.*]] = tensor.expand_shape {{.*}} into tensor<16x2x1x16x!mx.x4<f8E4M3FN>>
// CHECK: scf.for %[[I:.*]] = %c0 to %c2 step %c1
// CHECK: scf.for %[[J:.*]] = %c0 to %c3 step %c1
// CHECK: tensor.extract_slice %[[A]][0, %[[I]], 0, 0] [16, 1, 1, 16] [1, 1, 1, 1] : {{.*}} to tensor<16x16x!mx.x4<f8E4M3FN>>
// CHECK: tensor.extract_slice %{{.*}}[0, %[[J]], 0] [16, 1, 32] [1, 1, 1] : {{.*}} to tensor<16x32x!mx.x4<f8E4M3FN>>
// CHECK: func.call @[[KERNEL:[^(]*]](
// CHECK: func.func private @[[KERNEL]](
// CHECK-NOT: func.func
!a = !mx.tensor<2x1x16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<3x64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 1>
func.func @batch(%a: !a, %b: !b) -> tensor<2x3x16x32xf32> {
  %acc = arith.constant dense<0.0> : tensor<2x3x16x32xf32>
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<2x3x16x32xf32> -> tensor<2x3x16x32xf32>
  return %0 : tensor<2x3x16x32xf32>
}

// -----

// With factors the product starts from zero and is added at the end. One kernel serves this and a zero accumulator,
// another one is for sums that start from -0.0.
// CHECK-LABEL: func.func @folded(
// CHECK: %[[R:.*]] = call @[[KERNEL:[^(]*]](
// CHECK: linalg.generic {{.*}} ins(%[[R]], %{{.*}} : tensor<16x32xf32>, f32)
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: call @[[KERNEL]](
// CHECK-NOT: linalg.generic {{.*}}xf32>
// CHECK: call @[[KERNEL]]_accumulate(
!a = !mx.tensor<16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @folded(%a: !a, %b: !b, %f: f32, %acc: tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
  %positive = arith.constant dense<0.0> : tensor<16x32xf32>
  %negative = arith.constant dense<-0.0> : tensor<16x32xf32>
  %fa = mx.fold_scale %a, %f : !a, f32 -> !a
  %0 = mx.block_matmul %fa, %b, %acc : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  %1 = mx.block_matmul %a, %b, %positive : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  %2 = mx.block_matmul %a, %b, %negative : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0, %1, %2 : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
}

// -----

// A matmul with a dense side stays; one with nothing to add is its accumulator.
// CHECK-LABEL: func.func @others(
// CHECK-SAME: %[[ACC:[a-z0-9]+]]: tensor<16x32xf32>)
// CHECK: %[[DENSE:.*]] = mx.block_matmul
// CHECK: return %[[DENSE]], %[[ACC]]
!a = !mx.tensor<16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!c = !mx.tensor<16x0xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>
!d = !mx.tensor<0x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @others(%a: !a, %c: !c, %d: !d, %x: tensor<64x32xf32>, %acc: tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>) {
  %0 = mx.block_matmul %a, %x, %acc : !a, tensor<64x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
  %1 = mx.block_matmul %c, %d, %acc : !c, !d, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0, %1 : tensor<16x32xf32>, tensor<16x32xf32>
}
