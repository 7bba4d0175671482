// RUN: mx-opt %s --split-input-file --verify-diagnostics --mx-insert-scale-addr

!a = !mx.tile<16x64xf8E4M3FN, left>
!as = !mx.tile<16x2xf8E8M0FNU, left_scale>
!b = !mx.tile<64x32xf8E4M3FN, right>
!bs = !mx.tile<2x32xf8E8M0FNU, right_scale>
!c = !mx.tile<16x32xf32, acc>
func.func @undecided_data(%a: !mx.tile<16x64xf8E4M3FN>, %as: !as, %b: !b, %bs: !bs) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.matmul_mx' op takes lhs in left, but its memory space is not decided yet; run --mx-infer-memory-space first}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !as, !b, !bs -> !c
  return
}

// -----

!a = !mx.tile<16x64xf8E4M3FN, left>
!as = !mx.tile<16x2xf8E8M0FNU, left_scale>
!b = !mx.tile<64x32xf8E4M3FN, right>
!bs = !mx.tile<2x32xf8E8M0FNU, mat>
!c = !mx.tile<16x32xf32, acc>
func.func @scale_in_mat(%a: !a, %as: !as, %b: !b, %bs: !bs, %c: !c) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.matmul_mx_acc' op takes rhs_scale in right_scale, but it lies in mat; run --mx-infer-memory-space first}}
  %0 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return
}

// -----

!a = !mx.tile<16x64xf8E4M3FN, left>
!as = !mx.tile<16x2xf8E8M0FNU, left_scale>
!b = !mx.tile<64x32xf8E4M3FN, right>
!bs = !mx.tile<2x32xf8E8M0FNU, right_scale>
!c = !mx.tile<16x32xf32, acc>
func.func @acc_in_vec(%a: !a, %as: !as, %b: !b, %bs: !bs, %c: !mx.tile<16x32xf32, vec>) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.matmul_mx_acc' op takes acc in acc, but it lies in vec}}
  %0 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !mx.tile<16x32xf32, vec>, !a, !as, !b, !bs -> !c
  return
}

// -----

!a = !mx.tile<16x64xf8E4M3FN, left>
!as = !mx.tile<16x2xf8E8M0FNU, left_scale>
!b = !mx.tile<64x32xf8E4M3FN, right>
!bs = !mx.tile<2x32xf8E8M0FNU, right_scale>
!c = !mx.tile<16x32xf32, acc>
!bias = !mx.tile<1x32xf32>
func.func @undecided_bias(%a: !a, %as: !as, %b: !b, %bs: !bs, %bias: !bias) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.matmul_mx_bias' op takes bias in bias, but its memory space is not decided yet}}
  %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %bias : !a, !as, !b, !bs, !bias -> !c
  return
}

// -----

// expected-error @below {{'func.func' op has mx.kernel = "aci", which is no kind of kernel; expected "incore" or "aic" or "aiv"}}
func.func @misspelt() attributes {mx.kernel = "aci"} {
  return
}

// -----

// expected-error @below {{'func.func' op has mx.kernel = unit, which is no kind of kernel}}
func.func @no_kind() attributes {mx.kernel} {
  return
}
