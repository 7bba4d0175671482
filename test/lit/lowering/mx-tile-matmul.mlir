// RUN: mx-opt %s --mx-tile-matmul="m=32 n=64 k=128" --split-input-file | filecheck %s

// Scales of both sides are brought into the order of boxes; the kernel walks over tiles.
// CHECK-LABEL: func.func @matmul(
// CHECK-SAME: %[[A:.*]]: !mx.tensor<64x576x{{.*}}, %[[B:.*]]: !mx.tensor<576x128x
// CHECK: %[[AD:.*]]:2 = mx.decompose %[[A]]
// CHECK-NOT: tensor.pad
// CHECK: %[[AX:.*]] = tensor.expand_shape %[[AD]]#1 {{\[\[}}0, 1, 2], [3, 4]] {{.*}} into tensor<1x4x16x9x2xf8E8M0FNU>
// CHECK: %[[AT:.*]] = linalg.transpose ins(%[[AX]] : {{.*}} permutation = [0, 1, 3, 2, 4]
// CHECK: %[[AC:.*]] = tensor.collapse_shape %[[AT]] {{.*}} into tensor<1x1152xf8E8M0FNU>
// CHECK: %[[BD:.*]]:2 = mx.decompose %[[B]]
// CHECK: %[[BX:.*]] = tensor.expand_shape %[[BD]]#1 {{.*}} into tensor<1x9x2x8x16xf8E8M0FNU>
// CHECK: %[[BT:.*]] = linalg.transpose ins(%[[BX]] : {{.*}} permutation = [0, 3, 1, 4, 2]
// CHECK: %[[BC:.*]] = tensor.collapse_shape %[[BT]] {{.*}} into tensor<1x2304xf8E8M0FNU>
// An accumulator of zeros is not needed.
// CHECK-NOT: linalg.fill
// CHECK: %[[OUT:.*]] = tensor.empty() : tensor<64x128xf32>
// CHECK: %[[AV:.*]] = mx.tensor_view %[[AC]][64, 18] : {{.*}} -> tensor<64x18xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
// CHECK: %[[BV:.*]] = mx.tensor_view %[[BC]][18, 128] : {{.*}} -> tensor<18x128xf8E8M0FNU, #mx.layout<"MX_B_NN">>
// CHECK: %[[R:.*]] = call @matmul_64x128x576_f8E4M3FN_f8E4M3FN(%[[AD]]#0, %[[AV]], %[[BD]]#0, %[[BV]], %[[OUT]])
// CHECK: return %[[R]]
// CHECK-LABEL: func.func private @matmul_64x128x576_f8E4M3FN_f8E4M3FN(
// CHECK-SAME: %[[A:[^:]*]]: tensor<64x576xf8E4M3FN>, %[[AS:[^:]*]]: tensor<64x18x{{.*}}"MX_A_ZZ">>, %[[B:[^:]*]]: tensor<576x128xf8E4M3FN>, %[[BS:[^:]*]]: tensor<18x128x{{.*}}"MX_B_NN">>, %[[C:[^:]*]]: tensor<64x128xf32>)
// CHECK-SAME: attributes {mx.kernel = "aic"}
// CHECK: scf.for %[[M:.*]] = %c0 to %c64 step %c32 iter_args(%[[C1:.*]] = %[[C]])
// CHECK: scf.for %[[N:.*]] = %c0 to %c128 step %c64 iter_args(%[[C2:.*]] = %[[C1]])
// The first tile of K starts the accumulator.
// CHECK: %[[T0:.*]] = mx.tile_load %[[A]][%[[M]], 0] [32, 128] : tensor<64x576xf8E4M3FN> -> !mx.tile<32x128xf8E4M3FN>
// CHECK: %[[T1:.*]] = mx.tile_load %[[AS]][%[[M]], 0] [32, 4] {target = "mat"} : {{.*}} -> !mx.tile<32x4xf8E8M0FNU, mat>
// CHECK: %[[T2:.*]] = mx.tile_load %[[B]][0, %[[N]]] [128, 64] : {{.*}} -> !mx.tile<128x64xf8E4M3FN>
// CHECK: %[[T3:.*]] = mx.tile_load %[[BS]][0, %[[N]]] [4, 64] {target = "mat"} : {{.*}} -> !mx.tile<4x64xf8E8M0FNU, mat>
// CHECK: %[[ACC:.*]] = mx.matmul_mx %[[T0]], %[[T1]], %[[T2]], %[[T3]] :
// CHECK: %[[SUM:.*]] = scf.for %[[K:.*]] = %c128 to %c512 step %c128 iter_args(%[[CARRIED:.*]] = %[[ACC]]) -> (!mx.tile<32x64xf32>)
// CHECK: %[[G:.*]] = arith.floordivsi %[[K]], %c32
// CHECK: mx.tile_load %[[A]][%[[M]], %[[K]]] [32, 128]
// CHECK: mx.tile_load %[[AS]][%[[M]], %[[G]]] [32, 4]
// CHECK: mx.tile_load %[[B]][%[[K]], %[[N]]] [128, 64]
// CHECK: mx.tile_load %[[BS]][%[[G]], %[[N]]] [4, 64]
// CHECK: mx.matmul_mx_acc %[[CARRIED]],
// What remains of K is a smaller tile.
// CHECK: mx.tile_load %[[A]][%[[M]], 512] [32, 64]
// CHECK: mx.tile_load %[[AS]][%[[M]], 16] [32, 2]
// CHECK: %[[LAST:.*]] = mx.matmul_mx_acc %[[SUM]],
// CHECK: mx.tile_store %[[LAST]], %[[C2]][%[[M]], %[[N]]]
!a = !mx.tensor<64x576xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<576x128xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @matmul(%a: !a, %b: !b) -> tensor<64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x128xf32>
  %acc = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x128xf32>) -> tensor<64x128xf32>
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<64x128xf32> -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}

// -----

// The last tile of M and of N is valid in part. Scales are padded to whole tiles.
// CHECK-LABEL: func.func @ragged(
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f8E8M0FNU
// CHECK: tensor.pad %{{.*}} low[0, 0] high[24, 0]
// CHECK: tensor.yield %[[ONE]]
// CHECK: : tensor<40x4xf8E8M0FNU> to tensor<64x4xf8E8M0FNU>
// CHECK: tensor.pad {{.*}} high[0, 58]
// CHECK: : tensor<4x70xf8E8M0FNU> to tensor<4x128xf8E8M0FNU>
// An accumulator that may hold anything is added.
// CHECK: %[[R:.*]] = call @matmul_40x70x128_f8E4M3FN_f8E4M3FN(
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[R]] : tensor<40x70xf32>) outs(%{{.*}} : tensor<40x70xf32>)
// CHECK: arith.addf
// CHECK: return %[[SUM]]
// CHECK-LABEL: func.func private @matmul_40x70x128
// CHECK: scf.for %[[M:.*]] = %c0 to %c40 step %c32
// CHECK: %[[LEFT:.*]] = arith.subi %c40, %[[M]]
// CHECK: %[[VM:.*]] = arith.minsi %c32, %[[LEFT]]
// CHECK: scf.for %[[N:.*]] = %c0 to %c70 step %c64
// CHECK: %[[LEFT:.*]] = arith.subi %c70, %[[N]]
// CHECK: %[[VN:.*]] = arith.minsi %c64, %[[LEFT]]
// CHECK: mx.tile_load %{{.*}}[%[[M]], 0] [32, 128] [%[[VM]], 128] : {{.*}} -> !mx.tile<32x128xf8E4M3FN, valid = ?x128>
// CHECK: mx.tile_load %{{.*}}[%[[M]], 0] [32, 4] [%[[VM]], 4] {target = "mat"} : {{.*}} -> !mx.tile<32x4xf8E8M0FNU, mat, valid = ?x4>
// CHECK: mx.tile_load %{{.*}}[0, %[[N]]] [128, 64] [128, %[[VN]]] : {{.*}} -> !mx.tile<128x64xf8E4M3FN, valid = 128x?>
// CHECK: mx.tile_load %{{.*}}[0, %[[N]]] [4, 64] [4, %[[VN]]] {target = "mat"} : {{.*}} -> !mx.tile<4x64xf8E8M0FNU, mat, valid = 4x?>
// CHECK: mx.matmul_mx {{.*}} -> !mx.tile<32x64xf32, valid = ?x?>
// CHECK-NOT: mx.matmul_mx_acc
// CHECK: mx.tile_store
!a = !mx.tensor<40x128xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<128x70xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @ragged(%a: !a, %b: !b, %acc: tensor<40x70xf32>) -> tensor<40x70xf32> {
  %0 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<40x70xf32> -> tensor<40x70xf32>
  return %0 : tensor<40x70xf32>
}

// -----

// One tile of M and N is no loop, and its valid shape is static. An odd number of blocks of K is padded, data with 0
// and scales with 1. Weights given as [N, K] are transposed; their scales are in the order of boxes as they are. FP4
// is cast, which takes a core with a vector unit.
// CHECK-LABEL: func.func @transposed(
// CHECK: %[[Z:.*]] = arith.constant 0.000000e+00 : f8E4M3FN
// CHECK: tensor.pad {{.*}} low[0, 0] high[0, 32]
// CHECK: tensor.yield %[[Z]]
// CHECK: : tensor<8x96xf8E4M3FN> to tensor<8x128xf8E4M3FN>
// CHECK: tensor.pad {{.*}} high[8, 1]
// CHECK: tensor.pad {{.*}} high[0, 32]
// CHECK: : tensor<24x96xf4E2M1FN> to tensor<24x128xf4E2M1FN>
// CHECK: tensor.pad {{.*}} high[8, 1]
// CHECK: %[[BT:.*]] = linalg.transpose {{.*}} outs({{.*}} tensor<128x24xf4E2M1FN>) permutation = [1, 0]
// CHECK: linalg.transpose {{.*}} outs({{.*}} tensor<1x2x2x16x2xf8E8M0FNU>) permutation = [0, 1, 3, 2, 4]
// CHECK: call @matmul_8x24x128_f8E4M3FN_f4E2M1FN(%{{.*}}, %{{.*}}, %[[BT]], %{{.*}}, %{{.*}})
// CHECK-LABEL: func.func private @matmul_8x24x128_f8E4M3FN_f4E2M1FN(
// CHECK-SAME: attributes {mx.kernel = "incore"}
// CHECK-NOT: scf.for
// CHECK: mx.tile_load %{{.*}}[0, 0] [16, 128] [8, 128] : {{.*}} -> !mx.tile<16x128xf8E4M3FN, valid = 8x128>
// CHECK: %[[L:.*]] = mx.tile_load %{{.*}}[0, 0] [128, 32] [128, 24] : {{.*}} -> !mx.tile<128x32xf4E2M1FN, valid = 128x24>
// CHECK: %[[F:.*]] = mx.tile_cast %[[L]] : {{.*}} -> !mx.tile<128x32xf8E4M3FN, valid = 128x24>
// CHECK: mx.matmul_mx %{{.*}}, %{{.*}}, %[[F]], %{{.*}} :
!a = !mx.tensor<8x96xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!w = !mx.tensor<24x96xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @transposed(%a: !a, %w: !w) -> tensor<8x24xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x24xf32>
  %0 = mx.block_matmul %a, %w, %acc {transpose_rhs} : !a, !w, tensor<8x24xf32> -> tensor<8x24xf32>
  return %0 : tensor<8x24xf32>
}

// -----

// A loop for each batch axis, and one kernel for all. A side that lacks the axis, or has it once, is the same for all.
// CHECK-LABEL: func.func @batch(
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x3x16x32xf32>
// CHECK: scf.for %[[I:.*]] = %c0 to %c2 step %c1 iter_args(%[[O1:.*]] = %[[E]])
// CHECK: scf.for %[[J:.*]] = %c0 to %c3 step %c1 iter_args(%[[O2:.*]] = %[[O1]])
// CHECK: %[[C:.*]] = tensor.extract_slice %[[O2]][%[[I]], %[[J]], 0, 0] [1, 1, 16, 32]
// CHECK: %[[A:.*]] = tensor.extract_slice %{{.*}}[%[[I]], 0, 0, 0] [1, 1, 16, 64] [1, 1, 1, 1] : {{.*}} to tensor<16x64xf8E4M3FN>
// CHECK: tensor.extract_slice %{{.*}}[%[[I]], 0, 0] [1, 1, 32] [1, 1, 1] : {{.*}} to tensor<1x32xf8E8M0FNU>
// CHECK: %[[B:.*]] = tensor.extract_slice %{{.*}}[%[[J]], 0, 0] [1, 64, 32] [1, 1, 1] : {{.*}} to tensor<64x32xf8E4M3FN>
// CHECK: %[[R:.*]] = func.call @[[KERNEL:.*]](%[[A]], %{{.*}}, %[[B]], %{{.*}}, %[[C]])
// CHECK: tensor.insert_slice %[[R]] into %[[O2]][%[[I]], %[[J]], 0, 0]
// A side with no batch axis at all.
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c3
// CHECK: func.call @[[KERNEL]](%{{.*}}, %{{.*}}, %{{.*}}#0, %{{.*}}, %{{.*}})
// CHECK: func.func private @[[KERNEL]](
// CHECK-NOT: func.func
!a = !mx.tensor<2x1x16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<3x64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 1>
!c = !mx.tensor<3x16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!d = !mx.tensor<64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @batch(%a: !a, %b: !b, %c: !c, %d: !d) -> (tensor<2x3x16x32xf32>, tensor<3x16x32xf32>) {
  %acc0 = arith.constant dense<0.0> : tensor<2x3x16x32xf32>
  %acc1 = arith.constant dense<0.0> : tensor<3x16x32xf32>
  %0 = mx.block_matmul %a, %b, %acc0 : !a, !b, tensor<2x3x16x32xf32> -> tensor<2x3x16x32xf32>
  %1 = mx.block_matmul %c, %d, %acc1 : !c, !d, tensor<3x16x32xf32> -> tensor<3x16x32xf32>
  return %0, %1 : tensor<2x3x16x32xf32>, tensor<3x16x32xf32>
}

// -----

// Factors folded into the sides multiply the product. -0.0 is not the zero that sums start from.
// CHECK-LABEL: func.func @folded(
// CHECK-SAME: %[[A:[a-z0-9]+]]: {{[^%]*}}, %[[B:[a-z0-9]+]]: {{[^%]*}}, %[[F:[a-z0-9]+]]: f32, %[[G:[a-z0-9]+]]: f32)
// CHECK: mx.decompose %[[A]]
// CHECK: mx.decompose %[[B]]
// CHECK: %[[R:.*]] = call @[[KERNEL:[^(]*]](
// CHECK: linalg.generic {{.*}} ins(%[[R]], %[[F]], %[[G]] : tensor<16x32xf32>, f32, f32)
// CHECK: ^bb0(%[[P:.*]]: f32, %[[F1:.*]]: f32, %[[G1:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK: %[[PF:.*]] = arith.mulf %[[P]], %[[F1]]
// CHECK: %[[PFG:.*]] = arith.mulf %[[PF]], %[[G1]]
// CHECK: arith.addf %[[ACC]], %[[PFG]]
// CHECK: %[[R2:.*]] = call @[[KERNEL]](
// CHECK: linalg.generic {{.*}} ins(%[[R2]] : tensor<16x32xf32>)
// CHECK: arith.addf
!a = !mx.tensor<16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func @folded(%a: !a, %b: !b, %f: f32, %g: f32) -> (tensor<16x32xf32>, tensor<16x32xf32>) {
  %positive = arith.constant dense<0.0> : tensor<16x32xf32>
  %negative = arith.constant dense<-0.0> : tensor<16x32xf32>
  %fa = mx.fold_scale %a, %f : !a, f32 -> !a
  %gb = mx.fold_scale %b, %g : !b, f32 -> !b
  %0 = mx.block_matmul %fa, %gb, %positive : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  %1 = mx.block_matmul %a, %b, %negative : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0, %1 : tensor<16x32xf32>, tensor<16x32xf32>
}

// -----

// A matmul with a dense side stays; one with nothing to add is its accumulator. A name that is taken is avoided.
// CHECK-LABEL: func.func @others(
// CHECK-SAME: %[[ACC:[a-z0-9]+]]: tensor<16x32xf32>)
// CHECK: %[[DENSE:.*]] = mx.block_matmul
// CHECK: %[[R:.*]] = call @matmul_16x32x64_f8E4M3FN_f8E4M3FN_0(
// CHECK: return %[[DENSE]], %[[ACC]],
// CHECK: func.func private @matmul_16x32x64_f8E4M3FN_f8E4M3FN_0(
!a = !mx.tensor<16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!b = !mx.tensor<64x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
!c = !mx.tensor<16x0xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
!d = !mx.tensor<0x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>
func.func private @matmul_16x32x64_f8E4M3FN_f8E4M3FN()
func.func @others(%a: !a, %b: !b, %c: !c, %d: !d, %x: tensor<64x32xf32>, %acc: tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
  %0 = mx.block_matmul %a, %x, %acc : !a, tensor<64x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
  %1 = mx.block_matmul %c, %d, %acc : !c, !d, tensor<16x32xf32> -> tensor<16x32xf32>
  %2 = mx.block_matmul %a, %b, %acc : !a, !b, tensor<16x32xf32> -> tensor<16x32xf32>
  return %0, %1, %2 : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
}
