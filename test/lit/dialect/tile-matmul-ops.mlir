// RUN: mx-opt %s | filecheck %s
// RUN: mx-opt %s | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @products(
// CHECK-SAME: %[[A:.*]]: !mx.tile<16x64xf8E4M3FN, left>, %[[AS:.*]]: !mx.tile<16x2xf8E8M0FNU, left_scale>,
// CHECK-SAME: %[[B:.*]]: !mx.tile<64x32xf8E4M3FN, right>, %[[BS:.*]]: !mx.tile<2x32xf8E8M0FNU, right_scale>, %[[C:.*]]: !mx.tile<1x32xf32, bias>)
func.func @products(
    %a: !mx.tile<16x64xf8E4M3FN, left>, %as: !mx.tile<16x2xf8E8M0FNU, left_scale>,
    %b: !mx.tile<64x32xf8E4M3FN, right>, %bs: !mx.tile<2x32xf8E8M0FNU, right_scale>, %c: !mx.tile<1x32xf32, bias>) {
  // CHECK: %[[LS:.*]] = mx.tget_scale_addr %[[AS]], %[[A]] : !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  // GENERIC: "mx.tget_scale_addr"(%{{.*}}, %{{.*}}) :
  %ls = mx.tget_scale_addr %as, %a : !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  // CHECK: %[[RS:.*]] = mx.tget_scale_addr %[[BS]], %[[B]] : !mx.tile<2x32xf8E8M0FNU, right_scale>, !mx.tile<64x32xf8E4M3FN, right> -> !mx.tile<2x32xf8E8M0FNU, right_scale>
  %rs = mx.tget_scale_addr %bs, %b : !mx.tile<2x32xf8E8M0FNU, right_scale>, !mx.tile<64x32xf8E4M3FN, right> -> !mx.tile<2x32xf8E8M0FNU, right_scale>
  // CHECK: %[[X:.*]] = mx.matmul_mx %[[A]], %[[LS]], %[[B]], %[[RS]] : !mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<64x32xf8E4M3FN, right>, !mx.tile<2x32xf8E8M0FNU, right_scale> -> !mx.tile<16x32xf32, acc>
  // GENERIC: "mx.matmul_mx"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) :
  %x = mx.matmul_mx %a, %ls, %b, %rs : !mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<64x32xf8E4M3FN, right>, !mx.tile<2x32xf8E8M0FNU, right_scale> -> !mx.tile<16x32xf32, acc>
  // CHECK: mx.matmul_mx_acc %[[X]], %[[A]], %[[LS]], %[[B]], %[[RS]] : !mx.tile<16x32xf32, acc>, {{.*}} -> !mx.tile<16x32xf32, acc>
  // GENERIC: "mx.matmul_mx_acc"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) :
  %y = mx.matmul_mx_acc %x, %a, %ls, %b, %rs : !mx.tile<16x32xf32, acc>, !mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<64x32xf8E4M3FN, right>, !mx.tile<2x32xf8E8M0FNU, right_scale> -> !mx.tile<16x32xf32, acc>
  // CHECK: mx.matmul_mx_bias %[[A]], %[[LS]], %[[B]], %[[RS]], %[[C]] : {{.*}}, !mx.tile<1x32xf32, bias> -> !mx.tile<16x32xf32, acc>
  // GENERIC: "mx.matmul_mx_bias"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) :
  %z = mx.matmul_mx_bias %a, %ls, %b, %rs, %c : !mx.tile<16x64xf8E4M3FN, left>, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<64x32xf8E4M3FN, right>, !mx.tile<2x32xf8E8M0FNU, right_scale>, !mx.tile<1x32xf32, bias> -> !mx.tile<16x32xf32, acc>
  return
}

// Scales cover the valid part of K: 48 elements need 2.
// CHECK-LABEL: func.func @valid_depth(
func.func @valid_depth(%a: !mx.tile<16x64xf8E4M3FN, valid = 16x48>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN, valid = 48x32>, %bs: !mx.tile<2x32xf8E8M0FNU>) {
  // CHECK: mx.matmul_mx {{.*}} -> !mx.tile<16x32xf32>
  %x = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, valid = 16x48>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN, valid = 48x32>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// The result's valid rows are those of lhs, its valid columns those of rhs.
// CHECK-LABEL: func.func @valid_result(
func.func @valid_result(%a: !mx.tile<16x64xf8E4M3FN, valid = 8x64>, %as: !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, %b: !mx.tile<64x32xf8E4M3FN, valid = 64x16>, %bs: !mx.tile<2x32xf8E8M0FNU, valid = 2x16>, %acc: !mx.tile<16x32xf32, valid = 8x16>, %bias: !mx.tile<1x32xf32, valid = 1x16>) {
  // CHECK: mx.matmul_mx {{.*}} -> !mx.tile<16x32xf32, valid = 8x16>
  %x = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN, valid = 8x64>, !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, !mx.tile<64x32xf8E4M3FN, valid = 64x16>, !mx.tile<2x32xf8E8M0FNU, valid = 2x16> -> !mx.tile<16x32xf32, valid = 8x16>
  // CHECK: mx.matmul_mx_acc {{.*}} -> !mx.tile<16x32xf32, valid = 8x16>
  %y = mx.matmul_mx_acc %acc, %a, %as, %b, %bs : !mx.tile<16x32xf32, valid = 8x16>, !mx.tile<16x64xf8E4M3FN, valid = 8x64>, !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, !mx.tile<64x32xf8E4M3FN, valid = 64x16>, !mx.tile<2x32xf8E8M0FNU, valid = 2x16> -> !mx.tile<16x32xf32, valid = 8x16>
  // CHECK: mx.matmul_mx_bias {{.*}} -> !mx.tile<16x32xf32, valid = 8x16>
  %z = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !mx.tile<16x64xf8E4M3FN, valid = 8x64>, !mx.tile<16x2xf8E8M0FNU, valid = 8x2>, !mx.tile<64x32xf8E4M3FN, valid = 64x16>, !mx.tile<2x32xf8E8M0FNU, valid = 2x16>, !mx.tile<1x32xf32, valid = 1x16> -> !mx.tile<16x32xf32, valid = 8x16>
  return
}

// What is dynamic is not checked.
// CHECK-LABEL: func.func @dynamic(
func.func @dynamic(%a: !mx.tile<?x?xf8E4M3FN>, %as: !mx.tile<?x?xf8E8M0FNU>, %b: !mx.tile<64x?xf8E4M3FN, valid = 40x?>, %bs: !mx.tile<2x?xf8E8M0FNU>) {
  // CHECK: mx.matmul_mx {{.*}} -> !mx.tile<16x32xf32>
  %x = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<?x?xf8E4M3FN>, !mx.tile<?x?xf8E8M0FNU>, !mx.tile<64x?xf8E4M3FN, valid = 40x?>, !mx.tile<2x?xf8E8M0FNU> -> !mx.tile<16x32xf32>
  return
}

// CHECK-LABEL: func.func @quantizations(
// CHECK-SAME: %[[X:.*]]: !mx.tile<16x64xbf16, vec, valid = 8x48>, %[[Y:.*]]: !mx.tile<64x32xf32>)
func.func @quantizations(%x: !mx.tile<16x64xbf16, vec, valid = 8x48>, %y: !mx.tile<64x32xf32>) {
  // CHECK: mx.quant_mx %[[X]] {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec, valid = 8x48> -> (!mx.tile<16x64xf8E4M3FN, vec, valid = 8x48>, !mx.tile<16x2xf8E8M0FNU, vec, valid = 8x2>)
  // GENERIC: "mx.quant_mx"(%{{.*}}) {layout = "MX_A_ZZ"} :
  %0:2 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec, valid = 8x48> -> (!mx.tile<16x64xf8E4M3FN, vec, valid = 8x48>, !mx.tile<16x2xf8E8M0FNU, vec, valid = 8x2>)
  // CHECK: mx.quant_mx %[[Y]] {layout = "MX_B_NN", rounding = "even"} : !mx.tile<64x32xf32> -> (!mx.tile<64x32xf8E5M2>, !mx.tile<2x32xf8E8M0FNU>)
  %1:2 = mx.quant_mx %y {layout = "MX_B_NN", rounding = "even"} : !mx.tile<64x32xf32> -> (!mx.tile<64x32xf8E5M2>, !mx.tile<2x32xf8E8M0FNU>)
  return
}
