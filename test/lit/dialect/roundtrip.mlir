// RUN: mx-opt %s | filecheck %s
// RUN: mx-opt %s | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | mx-opt | filecheck %s
// RUN: mx-opt %s --emit-bytecode | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: mx-opt %s --mlir-print-debuginfo --mlir-print-local-scope | filecheck %s --check-prefix=LOC

// Every operation in every way of writing it, and types wherever they can stand.

!scale = f8E8M0FNU
!mx = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = !scale>

// CHECK-LABEL: func.func @operations(
// CHECK-SAME: %[[X:.*]]: tensor<32x64xf32>, %[[B:.*]]: tensor<64x16xf32>, %[[ACC:.*]]: tensor<32x16xf32>, %[[F:.*]]: f32)
// GENERIC: ^bb0(%[[X:.*]]: tensor<32x64xf32>, %[[B:.*]]: tensor<64x16xf32>
func.func @operations(%x: tensor<32x64xf32>, %b: tensor<64x16xf32>, %acc: tensor<32x16xf32>, %f: f32) {
  // CHECK: %[[Q:.*]] = mx.quantize_block %[[X]] {rounding = "ceil"} : tensor<32x64xf32> -> <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  // GENERIC: %[[Q:.*]] = "mx.quantize_block"(%[[X]]) {rounding = "ceil"} : (tensor<32x64xf32>) -> !mx.tensor<tensor<32x64xf8E4M3FN>, 32 : i64, f8E8M0FNU, 1 : i64>
  %q = mx.quantize_block %x {rounding = "ceil"} : tensor<32x64xf32> -> <32x64xf8E4M3FN, block_size=32, scale_type=f8E8M0FNU>
  // CHECK: %[[Y:.*]] = mx.fold_scale %[[Q]], %[[F]] : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, f32 -> <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  %y = mx.fold_scale %q, %f : !mx, f32 -> !mx
  // CHECK: %[[P:.*]]:2 = mx.decompose %[[Y]] : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  %p:2 = mx.decompose %y // The type in storage spelling:
    : !mx.tensor<tensor<32x64xf8E4M3FN>, 32 : i64, f8E8M0FNU, 1 : i64>
    -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  // CHECK: %[[Z:.*]] = mx.compose %[[P]]#0, %[[P]]#1 : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU> -> <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  %z = "mx.compose"(%p#0, %p#1) : (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>) -> !mx
  // CHECK: mx.dequantize_block %[[Z]] : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<32x64xbf16>
  // GENERIC: "mx.dequantize_block"(%{{.*}}) : (!mx.tensor<tensor<32x64xf8E4M3FN>, 32 : i64, f8E8M0FNU, 1 : i64>) -> tensor<32x64xbf16>
  %d = mx.dequantize_block %z : !mx -> tensor<32x64xbf16>
  // CHECK: mx.block_matmul %[[Z]], %[[B]], %[[ACC]] : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<64x16xf32>, tensor<32x16xf32> -> tensor<32x16xf32>
  // LOC: mx.block_matmul {{.*}} -> tensor<32x16xf32> loc("{{.*}}roundtrip.mlir":[[# @LINE + 1]]:8)
  %m = mx.block_matmul %z, %b, %acc : !mx, tensor<64x16xf32>, tensor<32x16xf32> -> tensor<32x16xf32>
  return
}

// CHECK-LABEL: func.func private @types(
// CHECK-SAME: !mx.tensor<?x64xi8, block_size = 16, scale_type = f8E8M0FNU, axis = 0>
// CHECK-SAME: tuple<!mx.tensor<4xf4E2M1FN, block_size = 4, scale_type = f8E8M0FNU>, i32>
// CHECK-SAME: -> !mx.tensor<2x?xf6E2M3FN, block_size = 1, scale_type = f8E8M0FNU>
// CHECK-SAME: attributes {mx.type = !mx.tensor<8xf8E5M2, block_size = 2, scale_type = f8E8M0FNU>}
func.func private @types(
    !mx.tensor<?x64xi8, axis = 0, scale_type = f8E8M0FNU, block_size = 16>,
    tuple<!mx.tensor<4xf4E2M1FN, block_size = 4, scale_type = f8E8M0FNU, axis = 0>, i32>
  ) -> !mx.tensor<2 x ? x f6E2M3FN, // The last axis is the default.
                  block_size = 1, scale_type = f8E8M0FNU, axis = 1>
  attributes {mx.type = !mx.tensor<8xf8E5M2, block_size = 2, scale_type = f8E8M0FNU>}

// What only looks like mx syntax stays as it is.
// CHECK-LABEL: func.func @mx.lookalikes
// CHECK-SAME: mx.compose = "mx.compose %a : !mx.tensor<", mx.flag
func.func @mx.lookalikes() attributes {mx.compose = "mx.compose %a : !mx.tensor<", mx.flag} {
  // CHECK: return
  // LOC: return loc("mx.compose"("mx.mlir":1:2))
  return loc("mx.compose"("mx.mlir":1:2))
}
