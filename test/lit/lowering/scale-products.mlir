// RUN: mx-opt %s --mx-to-linalg=scale-products=exponent | filecheck %s

// The elements of a block are multiplied alone; the exponents of both scales are added as integers and applied once.
// CHECK-LABEL: func.func @both(
// CHECK-SAME: %[[AM:.*]]: tensor<8x64xf8E4M3FN>, %[[AS:.*]]: tensor<8x2xf8E8M0FNU>, %[[BM:.*]]: tensor<64x4xf8E5M2>, %[[BS:.*]]: tensor<4x4xf8E8M0FNU>, %[[ACC:.*]]: tensor<8x4xf32>)
// CHECK: %[[N:.*]] = arith.constant 4 : index
// CHECK: scf.for %[[KB:.*]] = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[SUM:.*]] = %[[ACC]])
// CHECK: tensor.extract_slice %[[AM]][0, %{{.*}}] [8, 16]
// CHECK: tensor.extract_slice %[[BM]][%{{.*}}, 0] [16, 4]
// CHECK: %[[DOT:.*]] = linalg.generic
// CHECK-NOT: f8E8M0FNU
// CHECK: linalg.yield
// CHECK: %[[HALF:.*]] = arith.divui %[[KB]]
// CHECK: tensor.extract_slice %[[AS]][0, %[[HALF]]] [8, 1] [1, 1] : tensor<8x2xf8E8M0FNU> to tensor<8xf8E8M0FNU>
// CHECK: tensor.extract_slice %[[BS]][%[[KB]], 0] [1, 4] [1, 1] : tensor<4x4xf8E8M0FNU> to tensor<4xf8E8M0FNU>
// CHECK: linalg.generic {{.*}} ins(%[[DOT]], %{{.*}}, %{{.*}} : {{.*}} outs(%[[SUM]]
// CHECK: arith.addi %{{.*}} : i32
func.func @both(%a: !mx.tensor<8x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %b: !mx.tensor<64x4xf8E5M2, block_size = 16, scale_type = f8E8M0FNU, axis = 0>, %acc: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = mx.block_matmul %a, %b, %acc : <8x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, <64x4xf8E5M2, block_size = 16, scale_type = f8E8M0FNU, axis = 0>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
