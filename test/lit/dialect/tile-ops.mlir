// RUN: mx-opt %s | filecheck %s
// RUN: mx-opt %s | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @moves(
// CHECK-SAME: %[[B:.*]]: !mx.tile<16x2xui8, mat, valid = 8x?>, %[[M:.*]]: !mx.tile<16x64xf8E4M3FN, mat>, %[[A:.*]]: !mx.tile<16x32xf32, acc>, %[[U:.*]]: !mx.tile<1x32xf32>)
func.func @moves(%b: !mx.tile<16x2xui8, mat, valid = 8x?>, %m: !mx.tile<16x64xf8E4M3FN, mat>, %a: !mx.tile<16x32xf32, acc>, %u: !mx.tile<1x32xf32>) {
  // Bytes become scales where the matrix unit reads them.
  // CHECK: mx.tile_move %[[B]] : !mx.tile<16x2xui8, mat, valid = 8x?> -> !mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x?>
  // GENERIC: "mx.tile_move"(%{{.*}}) : (!mx.tile<tensor<16x2xui8>, "mat", [8, -9223372036854775808]>) -> !mx.tile<tensor<16x2xf8E8M0FNU>, "left_scale", [8, -9223372036854775808]>
  %0 = mx.tile_move %b : !mx.tile<16x2xui8, mat, valid = 8x?> -> !mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x?>
  // CHECK: mx.tile_move %[[M]] : !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x64xf8E4M3FN, left>
  %1 = mx.tile_move %m : !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x64xf8E4M3FN, left>
  // CHECK: mx.tile_move %[[M]] : !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x64xf8E4M3FN, right>
  %2 = mx.tile_move %m : !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x64xf8E4M3FN, right>
  // CHECK: %[[V:.*]] = mx.tile_move %[[A]] : !mx.tile<16x32xf32, acc> -> !mx.tile<16x32xf32, vec>
  %3 = mx.tile_move %a : !mx.tile<16x32xf32, acc> -> !mx.tile<16x32xf32, vec>
  // CHECK: mx.tile_move %[[A]] : !mx.tile<16x32xf32, acc> -> !mx.tile<16x32xf32, mat>
  %4 = mx.tile_move %a : !mx.tile<16x32xf32, acc> -> !mx.tile<16x32xf32, mat>
  // CHECK: %[[W:.*]] = mx.tile_move %[[V]] : !mx.tile<16x32xf32, vec> -> !mx.tile<16x32xf32, mat>
  %5 = mx.tile_move %3 : !mx.tile<16x32xf32, vec> -> !mx.tile<16x32xf32, mat>
  // CHECK: mx.tile_move %[[W]] : !mx.tile<16x32xf32, mat> -> !mx.tile<16x32xf32, vec>
  %6 = mx.tile_move %5 : !mx.tile<16x32xf32, mat> -> !mx.tile<16x32xf32, vec>
  // From a memory that is not decided yet.
  // CHECK: mx.tile_move %[[U]] : !mx.tile<1x32xf32> -> !mx.tile<1x32xf32, bias>
  %7 = mx.tile_move %u : !mx.tile<1x32xf32> -> !mx.tile<1x32xf32, bias>
  // CHECK: mx.tile_move %{{.*}} : !mx.tile<2x32xi8, mat> -> !mx.tile<2x32xf8E8M0FNU, right_scale>
  %8 = mx.tile_create : () -> !mx.tile<2x32xi8, mat>
  %9 = mx.tile_move %8 : !mx.tile<2x32xi8, mat> -> !mx.tile<2x32xf8E8M0FNU, right_scale>
  return
}

// CHECK-LABEL: func.func @others(
// CHECK-SAME: %[[X:.*]]: !mx.tile<?x64xf4E2M1FN, vec, valid = 8x64>)
func.func @others(%x: !mx.tile<?x64xf4E2M1FN, vec, valid = 8x64>) -> (index, index) {
  // CHECK: mx.tile_create : () -> !mx.tile<16x32xf32, acc, valid = 8x0>
  // GENERIC: "mx.tile_create"() : () -> !mx.tile<tensor<16x32xf32>, "acc", [8, 0]>
  %0 = mx.tile_create : () -> !mx.tile<16x32xf32, acc, valid = 8x0>
  // CHECK: mx.tile_create : () -> !mx.tile<16x32xbf16>
  %1 = mx.tile_create : -> !mx.tile<16x32xbf16>
  // CHECK: mx.tile_cast %[[X]] : !mx.tile<?x64xf4E2M1FN, vec, valid = 8x64> -> !mx.tile<?x64xf8E4M3FN, vec, valid = 8x64>
  // GENERIC: "mx.tile_cast"(%{{.*}}) :
  %2 = mx.tile_cast %x : !mx.tile<?x64xf4E2M1FN, vec, valid = 8x64> -> !mx.tile<?x64xf8E4M3FN, vec, valid = 8x64>
  // CHECK: mx.tile_cast %[[X]] : !mx.tile<?x64xf4E2M1FN, vec, valid = 8x64> -> !mx.tile<?x64xf8E5M2, vec, valid = 8x64>
  %3 = mx.tile_cast %x : !mx.tile<?x64xf4E2M1FN, vec, valid = 8x64> -> !mx.tile<?x64xf8E5M2, vec, valid = 8x64>
  // CHECK: %[[I:.*]] = mx.block_idx : () -> index
  // GENERIC: "mx.block_idx"() : () -> index
  %i = mx.block_idx : () -> index
  // CHECK: %[[N:.*]] = mx.block_num : () -> index
  // GENERIC: "mx.block_num"() : () -> index
  %n = mx.block_num : () -> index
  // CHECK: return %[[I]], %[[N]]
  return %i, %n : index, index
}
