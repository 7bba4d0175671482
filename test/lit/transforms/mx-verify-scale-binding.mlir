// RUN: mx-opt %s --mx-verify-scale-binding --allow-unregistered-dialect --verify-diagnostics

!l = !mx.tile<16x64xf8E4M3FN, left>
!ls = !mx.tile<16x2xf8E8M0FNU, left_scale>
!r = !mx.tile<64x32xf8E4M3FN, right>
!rs = !mx.tile<2x32xf8E8M0FNU, right_scale>
!lm = !mx.tile<16x64xf8E4M3FN, mat>
!acc = !mx.tile<16x32xf32, acc>
!bias = !mx.tile<1x32xf32, bias>

// Bound right before, used twice; loads, stores and arithmetic between do not matter.

func.func @bound(%l: !l, %ls: !ls, %r: !r, %rs: !rs, %bias: !bias, %x: tensor<16x64xf8E4M3FN>, %out: tensor<16x32xf32>) attributes {mx.kernel = "aic"} {
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  %1 = mx.tile_load %x[0, 0] [16, 64] [] {target = "mat"} : tensor<16x64xf8E4M3FN> -> !lm
  %2 = mx.tile_store %0, %out[0, 0] : !acc, tensor<16x32xf32> -> tensor<16x32xf32>
  %c1 = arith.constant 1 : index
  %3 = mx.matmul_mx_bias %l, %ls0, %r, %rs0, %bias : !l, !ls, !r, !rs, !bias -> !acc
  %4 = mx.matmul_mx_acc %3, %l, %ls0, %r, %rs0 : !acc, !l, !ls, !r, !rs -> !acc
  return
}

// Not a kernel: nobody binds its scales.

func.func @host(%l: !l, %ls: !ls, %r: !r, %rs: !rs) {
  %0 = mx.matmul_mx %l, %ls, %r, %rs : !l, !ls, !r, !rs -> !acc
  return
}

func.func @not_bound(%l: !l, %ls: !ls, %r: !r, %rs: !rs) attributes {mx.kernel = "incore"} {
  // expected-error @below {{'mx.matmul_mx' op lhs_scale is not bound to lhs; bind it right before the matmul, as --mx-insert-scale-addr does}}
  // expected-error @below {{'mx.matmul_mx' op rhs_scale is not bound to rhs; bind it right before the matmul, as --mx-insert-scale-addr does}}
  %0 = mx.matmul_mx %l, %ls, %r, %rs : !l, !ls, !r, !rs -> !acc
  // A binding that the matmul does not use is none.
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-error @below {{'mx.matmul_mx_acc' op lhs_scale is not bound to lhs}}
  %1 = mx.matmul_mx_acc %0, %l, %ls, %r, %rs0 : !acc, !l, !ls, !r, !rs -> !acc
  return
}

// The spaces of a matmul's operands are decided, and each side's are its own.

func.func @spaces(%x: !mx.tile<64x64xf8E4M3FN>, %l: !mx.tile<64x64xf8E4M3FN, left>, %s: !mx.tile<64x2xf8E8M0FNU, left_scale>, %r: !mx.tile<64x64xf8E4M3FN, right>, %rs: !mx.tile<2x64xf8E8M0FNU, right_scale>) attributes {mx.kernel = "aic"} {
  %s0 = mx.tget_scale_addr %s, %l : !mx.tile<64x2xf8E8M0FNU, left_scale>, !mx.tile<64x64xf8E4M3FN, left> -> !mx.tile<64x2xf8E8M0FNU, left_scale>
  %rs0 = mx.tget_scale_addr %rs, %r : !mx.tile<2x64xf8E8M0FNU, right_scale>, !mx.tile<64x64xf8E4M3FN, right> -> !mx.tile<2x64xf8E8M0FNU, right_scale>
  %0 = mx.matmul_mx %l, %s0, %r, %rs0 : !mx.tile<64x64xf8E4M3FN, left>, !mx.tile<64x2xf8E8M0FNU, left_scale>, !mx.tile<64x64xf8E4M3FN, right>, !mx.tile<2x64xf8E8M0FNU, right_scale> -> !mx.tile<64x64xf32, acc>
  // expected-error @below {{'mx.matmul_mx' op rhs must lie in right, but is '!mx.tile<64x64xf8E4M3FN, left>'; run --mx-infer-memory-space before the scales are bound}}
  %1 = mx.matmul_mx %l, %s0, %l, %rs0 : !mx.tile<64x64xf8E4M3FN, left>, !mx.tile<64x2xf8E8M0FNU, left_scale>, !mx.tile<64x64xf8E4M3FN, left>, !mx.tile<2x64xf8E8M0FNU, right_scale> -> !mx.tile<64x64xf32, acc>
  // expected-error @below {{'mx.matmul_mx' op lhs must lie in left, but is '!mx.tile<64x64xf8E4M3FN>'; run --mx-infer-memory-space before the scales are bound}}
  %2 = mx.matmul_mx %x, %s0, %r, %rs0 : !mx.tile<64x64xf8E4M3FN>, !mx.tile<64x2xf8E8M0FNU, left_scale>, !mx.tile<64x64xf8E4M3FN, right>, !mx.tile<2x64xf8E8M0FNU, right_scale> -> !mx.tile<64x64xf32, acc>
  return
}

func.func @scale_space(%l: !l, %ls: !mx.tile<16x2xf8E8M0FNU>, %r: !r, %rs: !rs) attributes {mx.kernel = "aic"} {
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-error @below {{'mx.matmul_mx' op lhs_scale must lie in left_scale, but is '!mx.tile<16x2xf8E8M0FNU>'}}
  %0 = mx.matmul_mx %l, %ls, %r, %rs0 : !l, !mx.tile<16x2xf8E8M0FNU>, !r, !rs -> !acc
  return
}

// A scale rebound to each data is; one used with the data that it was bound to before is not, nor is the earlier name.

func.func @other_data(%l: !l, %l1: !l, %ls: !ls, %r: !r, %rs: !rs) attributes {mx.kernel = "aic"} {
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  // expected-note @below {{bound here}}
  %ls1 = mx.tget_scale_addr %ls0, %l1 : !ls, !l -> !ls
  %1 = mx.matmul_mx %l1, %ls1, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  // expected-error @below {{'mx.matmul_mx' op lhs_scale is bound to other data than lhs; bind it right before the matmul, as --mx-insert-scale-addr does}}
  %2 = mx.matmul_mx %l, %ls1, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  return
}

func.func @rebound(%l: !l, %ls: !ls, %r: !r, %r1: !r, %rs: !rs, %rs1: !rs) attributes {mx.kernel = "aic"} {
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  // Another scale tile, for all that two names of tiles say.
  // expected-note @below {{a later binding takes its place}}
  %rs2 = mx.tget_scale_addr %rs1, %r1 : !rs, !r -> !rs
  %1 = mx.matmul_mx %l, %ls0, %r1, %rs2 : !l, !ls, !r, !rs -> !acc
  // expected-error @below {{'mx.matmul_mx' op rhs_scale is not what the right side is bound to any more; bind it right before the matmul}}
  %2 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  %rs3 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  %3 = mx.matmul_mx %l, %ls0, %r, %rs3 : !l, !ls, !r, !rs -> !acc
  return
}

func.func @two_scales(%l: !l, %ls: !ls, %ls1: !ls, %r: !r, %rs: !rs) attributes {mx.kernel = "aic"} {
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  // expected-note @below {{a later binding takes its place}}
  %ls2 = mx.tget_scale_addr %ls1, %l : !ls, !l -> !ls
  // expected-error @below {{'mx.matmul_mx' op lhs_scale is not what the left side is bound to any more}}
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  %1 = mx.matmul_mx %l, %ls2, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  return
}

// A move into a memory of a side, of data or of scales, ends the binding of this side alone.

func.func @moved_scale(%l: !l, %ls: !ls, %r: !r, %rs: !rs, %x: !mx.tile<2x32xui8, mat>) attributes {mx.kernel = "aic"} {
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-note @below {{'mx.tile_move' takes or gives a tile that may lie in right or right_scale}}
  %rs1 = mx.tile_move %x : !mx.tile<2x32xui8, mat> -> !rs
  // expected-error @below {{'mx.matmul_mx' op the binding of rhs_scale has ended; bind it right before the matmul}}
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  return
}

func.func @moved(%l: !l, %ls: !ls, %r: !r, %rs: !rs, %lm: !lm) attributes {mx.kernel = "aic"} {
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  // expected-note @below {{'mx.tile_move' takes or gives a tile that may lie in left or left_scale}}
  %l1 = mx.tile_move %lm : !lm -> !l
  // expected-error @below {{'mx.matmul_mx_acc' op the binding of lhs_scale has ended; bind it right before the matmul}}
  %1 = mx.matmul_mx_acc %0, %l, %ls0, %r, %rs0 : !acc, !l, !ls, !r, !rs -> !acc
  return
}

// What may lie in any memory, or hold any tile, ends both.

func.func @undecided(%l: !l, %ls: !ls, %r: !r, %rs: !rs, %bias: !bias, %pair: tuple<index, !lm>) attributes {mx.kernel = "aic"} {
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-note @below {{'mx.tile_create' takes or gives a tile that may lie in left or left_scale}}
  // expected-note @below {{'mx.tile_create' takes or gives a tile that may lie in right or right_scale}}
  %0 = mx.tile_create : () -> !mx.tile<16x64xf8E4M3FN>
  // expected-error @below {{'mx.matmul_mx_bias' op the binding of lhs_scale has ended}}
  // expected-error @below {{'mx.matmul_mx_bias' op the binding of rhs_scale has ended}}
  %1 = mx.matmul_mx_bias %l, %ls0, %r, %rs0, %bias : !l, !ls, !r, !rs, !bias -> !acc
  %ls1 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs1 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-note @below {{'builtin.unrealized_conversion_cast' takes or gives a tile that may lie in left or left_scale}}
  // expected-note @below {{'builtin.unrealized_conversion_cast' takes or gives a tile that may lie in right or right_scale}}
  %2 = builtin.unrealized_conversion_cast %pair : tuple<index, !lm> to index
  // expected-error @below {{'mx.matmul_mx' op the binding of lhs_scale has ended}}
  // expected-error @below {{'mx.matmul_mx' op the binding of rhs_scale has ended}}
  %3 = mx.matmul_mx %l, %ls1, %r, %rs1 : !l, !ls, !r, !rs -> !acc
  return
}

// A matmul that writes into a side's memory ends its binding, though matmuls do not in general.

func.func @matmul_into_left(%l: !l, %ls: !ls, %r: !r, %rs: !rs) attributes {mx.kernel = "aic"} {
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-note @below {{'mx.matmul_mx' takes or gives a tile that may lie in left or left_scale}}
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !mx.tile<16x32xf32, left>
  // expected-error @below {{'mx.matmul_mx' op the binding of lhs_scale has ended}}
  %1 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  return
}

func.func private @callee()

func.func @calls(%l: !l, %ls: !ls, %r: !r, %rs: !rs) attributes {mx.kernel = "aiv"} {
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-note @below {{'func.call' may run code that binds other scales}}
  // expected-note @below {{'func.call' may run code that binds other scales}}
  func.call @callee() : () -> ()
  // expected-error @below {{'mx.matmul_mx' op the binding of lhs_scale has ended}}
  // expected-error @below {{'mx.matmul_mx' op the binding of rhs_scale has ended}}
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  return
}

func.func @submits(%l: !l, %ls: !ls, %r: !r, %rs: !rs) attributes {mx.kernel = "aiv"} {
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-note @below {{'mx.submit' may run code that binds other scales}}
  %t = mx.submit @callee() : () -> !mx.task
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  // expected-error @below {{'mx.matmul_mx' op the binding of rhs_scale has ended}}
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  return
}

func.func @unknown(%l: !l, %ls: !ls, %r: !r, %rs: !rs) attributes {mx.kernel = "aiv"} {
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-note @below {{'test.anything' may run code that binds other scales}}
  "test.anything"() : () -> ()
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  // expected-error @below {{'mx.matmul_mx' op the binding of rhs_scale has ended}}
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  return
}

// Bindings pass neither into control flow, nor from an iteration to the next, nor out of it.

func.func @loops(%l: !l, %ls: !ls, %r: !r, %rs: !rs, %n: index) attributes {mx.kernel = "aic"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{bound here}}
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-note @below {{no binding outlasts the control flow of 'scf.for'}}
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%s = %ls0) -> !ls {
    %rs1 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
    // expected-error @below {{'mx.matmul_mx' op lhs_scale is bound in another block, and bindings do not pass through control flow; bind it right before the matmul}}
    %0 = mx.matmul_mx %l, %ls0, %r, %rs1 : !l, !ls, !r, !rs -> !acc
    // expected-error @below {{'mx.matmul_mx' op lhs_scale is not bound to lhs}}
    %1 = mx.matmul_mx %l, %s, %r, %rs1 : !l, !ls, !r, !rs -> !acc
    // A carried scale can be bound as any other.
    %s0 = mx.tget_scale_addr %s, %l : !ls, !l -> !ls
    %2 = mx.matmul_mx %l, %s0, %r, %rs1 : !l, !ls, !r, !rs -> !acc
    scf.yield %s0 : !ls
  }
  // expected-error @below {{'mx.matmul_mx' op lhs_scale is not bound to lhs}}
  // expected-error @below {{'mx.matmul_mx' op the binding of rhs_scale has ended}}
  %3 = mx.matmul_mx %l, %last, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  return
}

func.func @branches(%l: !l, %ls: !ls, %r: !r, %rs: !rs, %p: i1) attributes {mx.kernel = "aic"} {
  scf.if %p {
    %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
    %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
    // Control flow within control flow.
    // expected-note @below {{no binding outlasts the control flow of 'scf.execute_region'}}
    // expected-note @below {{no binding outlasts the control flow of 'scf.execute_region'}}
    scf.execute_region {
      scf.yield
    }
    // expected-error @below {{'mx.matmul_mx' op the binding of lhs_scale has ended}}
    // expected-error @below {{'mx.matmul_mx' op the binding of rhs_scale has ended}}
    %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  } else {
    // The then branch binds nothing here.
    // expected-error @below {{'mx.matmul_mx' op lhs_scale is not bound to lhs}}
    // expected-error @below {{'mx.matmul_mx' op rhs_scale is not bound to rhs}}
    %0 = mx.matmul_mx %l, %ls, %r, %rs : !l, !ls, !r, !rs -> !acc
  }
  %ls1 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs1 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  %1 = mx.matmul_mx %l, %ls1, %r, %rs1 : !l, !ls, !r, !rs -> !acc
  return
}

func.func @blocks(%l: !l, %ls: !ls, %r: !r, %rs: !rs, %p: i1) attributes {mx.kernel = "aic"} {
  // expected-note @below {{bound here}}
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  // expected-note @below {{bound here}}
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  cf.cond_br %p, ^next(%ls0 : !ls), ^last
^next(%s: !ls):
  // expected-error @below {{'mx.matmul_mx' op lhs_scale is not bound to lhs}}
  // expected-error @below {{'mx.matmul_mx' op rhs_scale is bound in another block, and bindings do not pass through control flow}}
  %1 = mx.matmul_mx %l, %s, %r, %rs0 : !l, !ls, !r, !rs -> !acc
  cf.br ^last
^last:
  %rs1 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
  // expected-error @below {{'mx.matmul_mx' op lhs_scale is bound in another block, and bindings do not pass through control flow}}
  %2 = mx.matmul_mx %l, %ls0, %r, %rs1 : !l, !ls, !r, !rs -> !acc
  return
}

// A function within another is one of its own: the host's is nobody's to bind, the kernel's is found once.

func.func @around() attributes {mx.kernel = "aic"} {
  builtin.module {
    func.func @host_within(%l: !l, %ls: !ls, %r: !r, %rs: !rs) {
      %0 = mx.matmul_mx %l, %ls, %r, %rs : !l, !ls, !r, !rs -> !acc
      return
    }
    func.func @within(%l: !l, %ls: !ls, %r: !r, %rs: !rs) attributes {mx.kernel = "aic"} {
      %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs
      // expected-error @below {{'mx.matmul_mx' op lhs_scale is not bound to lhs}}
      %0 = mx.matmul_mx %l, %ls, %r, %rs0 : !l, !ls, !r, !rs -> !acc
      return
    }
  }
  return
}
