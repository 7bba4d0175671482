// RUN: mx-opt %s --split-input-file --verify-diagnostics --mx-infer-memory-space

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
!l = !mx.tile<64x64xf8E4M3FN, left>
// expected-note @below {{the tile in left comes from here}}
func.func @wrong_side(%x: !l, %s: !mx.tile<64x2xf8E8M0FNU>, %t: !mx.tile<2x64xf8E8M0FNU>) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.matmul_mx' op needs rhs in right, but it lies in left, from which no way leads there; move it from mat instead}}
  %0 = mx.matmul_mx %x, %s, %x, %t : !l, !mx.tile<64x2xf8E8M0FNU>, !l, !mx.tile<2x64xf8E8M0FNU> -> !mx.tile<64x64xf32>
  return
}

// -----

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
!c = !mx.tile<16x32xf32>
func.func @loaded_acc(%x: tensor<16x32xf32>, %a: !a, %as: !as, %b: !b, %bs: !bs) attributes {mx.kernel = "aic"} {
  // expected-note @below {{the tile in mat comes from here}}
  %c = mx.tile_load %x[0, 0] [16, 32] : tensor<16x32xf32> -> !c
  // expected-error @below {{'mx.matmul_mx_acc' op needs acc in acc, but it lies in mat, from which no way leads there; an accumulator starts as a matmul or mx.tile_create}}
  %0 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return
}

// -----

// Two that cannot both be had: a loop starts with a tile in mat and needs it in acc.

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
!c = !mx.tile<16x32xf32>
func.func @carried_acc(%n: index, %x: tensor<16x32xf32>, %a: !a, %as: !as, %b: !b, %bs: !bs) attributes {mx.kernel = "aic"} {
  %c0 = arith.constant 0 : index
  // expected-note @below {{the tile in mat comes from here}}
  %c = mx.tile_load %x[0, 0] [16, 32] : tensor<16x32xf32> -> !c
  // expected-error @below {{'scf.for' op needs operand #3 in acc, but it lies in mat, from which no way leads there}}
  %0 = scf.for %i = %c0 to %n step %n iter_args(%q = %c) -> !c {
    // expected-note @below {{'mx.matmul_mx_acc' needs it in acc}}
    %1 = mx.matmul_mx_acc %q, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
    scf.yield %1 : !c
  }
  return
}

// -----

// The same between a caller and its callee.

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
!c = !mx.tile<16x32xf32>
func.func @callee(%c: !c, %a: !a, %as: !as, %b: !b, %bs: !bs) attributes {mx.kernel = "aic"} {
  // expected-note @below {{'mx.matmul_mx_acc' needs it in acc}}
  %1 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
  return
}
func.func @caller(%x: tensor<16x32xf32>, %a: !a, %as: !as, %b: !b, %bs: !bs) {
  // expected-note @below {{the tile in mat comes from here}}
  %c = mx.tile_load %x[0, 0] [16, 32] : tensor<16x32xf32> -> !c
  // expected-error @below {{'func.call' op needs operand #0 in acc, but it lies in mat}}
  func.call @callee(%c, %a, %as, %b, %bs) : (!c, !a, !as, !b, !bs) -> ()
  return
}

// -----

func.func private @bias() -> !mx.tile<1x32xf32, bias>
func.func @move_out() attributes {mx.kernel = "aic"} {
  // expected-note @below {{the tile in bias comes from here}}
  %0 = mx.submit @bias() : -> !mx.tile<1x32xf32>
  // expected-error @below {{'mx.tile_move' op needs operand #0 in mat, but it lies in bias, from which no way leads there}}
  %1 = mx.tile_move %0 : !mx.tile<1x32xf32> -> !mx.tile<1x32xf32, mat>
  return
}

// -----

!vec = !mx.tile<16x32xf32, vec>
!mat = !mx.tile<16x32xf32, mat>
// expected-note @below {{result #0 of @kernel lies in vec}}
func.func private @kernel(!vec) -> !vec attributes {mx.kernel = "aiv"}
func.func @disagree(%x: !vec) attributes {mx.kernel = "aiv"} {
  // expected-error @below {{result #0 of 'mx.submit' lies in mat, but has to agree with result #0 of @kernel, which lies in vec; declare both in one memory}}
  %0 = mx.submit @kernel(%x) : !vec -> !mat
  return
}

// -----

!t = !mx.tile<16x32xf32>
func.func private @kernel(!t) -> !t
func.func @count(%x: !t) attributes {mx.kernel = "aiv"} {
  // expected-error @below {{'mx.submit' op passes tiles whose memory space is not decided yet, but calls no function of this module that takes and gives as many values; declare their memory spaces}}
  %0 = mx.submit @kernel(%x, %x) : !t, !t -> !t
  return
}

// -----

!t = !mx.tile<16x32xf32>
func.func @nobody(%x: !t) attributes {mx.kernel = "aiv"} {
  // expected-error @below {{'mx.submit' op passes tiles whose memory space is not decided yet, but calls no function of this module}}
  mx.submit @nowhere(%x) : !t -> ()
  return
}

// -----

func.func @unknown_use(%x: !mx.tile<16x32xf32>) attributes {mx.kernel = "aiv"} {
  // expected-error @below {{'builtin.unrealized_conversion_cast' op holds '!mx.tile<16x32xf32>', and --mx-infer-memory-space does not know which memory space it needs there; declare the memory space}}
  %0 = builtin.unrealized_conversion_cast %x : !mx.tile<16x32xf32> to index
  return
}

// -----

func.func @unknown_result(%x: index) attributes {mx.kernel = "aiv"} {
  // expected-error @below {{'builtin.unrealized_conversion_cast' op holds '!mx.tile<16x32xf32>'}}
  %0 = builtin.unrealized_conversion_cast %x : index to !mx.tile<16x32xf32>
  return
}

// -----

// expected-error @below {{'func.func' op holds 'tuple<!mx.tile<16x32xf32>>'}}
func.func @nested(%x: tuple<!mx.tile<16x32xf32>>) attributes {mx.kernel = "aiv"} {
  return
}

// -----

func.func @cast_to_mat(%x: !mx.tile<16x64xf4E2M1FN>) attributes {mx.kernel = "aiv"} {
  // expected-error @below {{'mx.tile_cast' op makes its result in vec, not in mat; run --mx-legalize-cast first}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN> -> !mx.tile<16x64xf8E4M3FN, mat>
  return
}

// -----

!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
func.func @matmul_to_vec(%a: !a, %as: !as, %b: !b, %bs: !bs) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.matmul_mx' op makes its result in acc, not in vec; move it there afterwards}}
  %0 = mx.matmul_mx %a, %as, %b, %bs : !a, !as, !b, !bs -> !mx.tile<16x32xf32, vec>
  return
}

// -----

!layout = tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
func.func @scale_to_left(%x: !layout) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.tile_load' op loads to left_scale, but scales are loaded to mat and moved from there}}
  %0 = mx.tile_load %x[0, 0] [16, 2] {target = "left_scale"} : !layout -> !mx.tile<16x2xf8E8M0FNU>
  return
}

// -----

func.func @load_to_acc(%x: tensor<16x32xf32>) attributes {mx.kernel = "aic"} {
  // The verifier refuses it.
  // expected-error @below {{'mx.tile_load' op result must lie in mat or vec, but is '!mx.tile<16x32xf32, acc>'}}
  %0 = mx.tile_load %x[0, 0] [16, 32] : tensor<16x32xf32> -> !mx.tile<16x32xf32, acc>
  return
}

// -----

!layout = tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
func.func @scale_to_vec(%x: !layout) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.tile_load' op loads to vec, but scales are loaded to mat and moved from there}}
  %0 = mx.tile_load %x[0, 0] [16, 2] : !layout -> !mx.tile<16x2xf8E8M0FNU, vec>
  return
}

// -----

// expected-error @below {{'func.func' op has mx.kernel = "aci", which is no kind of kernel; expected "incore" or "aic" or "aiv"}}
func.func @misspelt() attributes {mx.kernel = "aci"} {
  return
}
