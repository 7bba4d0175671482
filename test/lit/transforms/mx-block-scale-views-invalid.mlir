// RUN: mx-opt %s --mx-block-scale-views --split-input-file --verify-diagnostics --allow-unregistered-dialect

// C1: views that have no blocked shape.

// expected-error @below {{'func.func' op has a view 'tensor<64x4x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>' that cannot be blocked: layout MX_A_ZZ needs rank 2, not 3; give it a block dimension (axis 0) and group dimension (axis 1)}}
func.func private @rank_a(tensor<64x4x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{layout MX_B_NN needs rank 2, not 1; give it a group dimension (axis 0) and block dimension (axis 1)}}
func.func private @rank_b(tensor<64xf8E8M0FNU, #mx.layout<"MX_B_NN">>)
// expected-error @below {{'func.func' op has a view 'tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>' of rank 5; only a function with mx_tensor_views_blocked has blocked views}}
func.func private @blocked(tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{layout MX_A_ZZ needs a static block dimension (axis 0); give it a number}}
func.func private @dynamic_block(tensor<?x?xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{layout MX_A_ZZ needs a static group dimension (axis 1); give it a number}}
func.func private @dynamic_group(tensor<8x?xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{layout MX_B_NN needs a static block dimension (axis 1); give it a number}}
func.func private @dynamic_block_b(tensor<3x?xf8E8M0FNU, #mx.layout<"MX_B_NN">>)
// expected-error @below {{layout MX_A_ZZ needs a block dimension (axis 0) that is a positive multiple of 16, not 8; pad it to whole boxes of 16 x 2}}
func.func private @block_8(tensor<8x3xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{layout MX_B_NN needs a block dimension (axis 1) that is a positive multiple of 16, not 24}}
func.func private @block_24(tensor<4x24xf8E8M0FNU, #mx.layout<"MX_B_NN">>)
// expected-error @below {{layout MX_A_ZZ needs a block dimension (axis 0) that is a positive multiple of 16, not 0}}
func.func private @block_0(tensor<0x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{layout MX_A_ZZ needs a group dimension (axis 1) that is a positive multiple of 2, not 3; pad it to whole boxes of 16 x 2}}
func.func private @group_3(tensor<16x3xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{layout MX_B_NN needs a group dimension (axis 0) that is a positive multiple of 2, not 0}}
func.func private @group_0(tensor<0x16xf8E8M0FNU, #mx.layout<"MX_B_NN">>)
// expected-error @below {{layout MX_A_ZZ takes no valid_shape of a whole view; give the valid shape of each window to mx.tile_load}}
func.func private @valid_shape(tensor<32x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", valid_shape = [16, 4]}>>)
// expected-error @below {{layout MX_A_ZZ takes no distributed view; view the part on each device on its own}}
func.func private @distributed(tensor<32x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", distributed}>>)

// -----

// One error for each operation, at the place where a type first stands, and none where a refused view is used.

!bad = tensor<8x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// expected-error @below {{'func.func' op has a view}}
func.func @once(%a: !bad, %n: index) -> !bad {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'scf.for' op has a view}}
  %0 = scf.for %i = %c0 to %n step %n iter_args(%v = %a) -> !bad {
    scf.yield %v : !bad
  }
  %1 = mx.tile_load %a[%n, 0] [8, 2] {target = "mat"} : !bad -> !mx.tile<8x2xf8E8M0FNU, mat>
  // expected-error @below {{'test.note' op has a view}}
  "test.note"() {type = [!bad]} : () -> ()
  return %0 : !bad
}

// -----

// C1: windows.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!b = tensor<4x64xf8E8M0FNU, #mx.layout<"MX_B_NN">>

func.func @windows(%a: !a, %b: !b, %n: index) {
  // expected-error @below {{'mx.tile_load' op has a window that cannot be blocked: layout MX_A_ZZ needs a block dimension (axis 0) that is a positive multiple of 16, not 8; pad it to whole boxes of 16 x 2}}
  %0 = mx.tile_load %a[0, 0] [8, 2] {target = "mat"} : !a -> !mx.tile<8x2xf8E8M0FNU, mat>
  // expected-error @below {{'mx.tile_load' op has a window that cannot be blocked: layout MX_B_NN needs a group dimension (axis 0) that is a positive multiple of 2, not 1}}
  %1 = mx.tile_load %b[0, 0] [1, 16] {target = "mat"} : !b -> !mx.tile<1x16xf8E8M0FNU, mat>
  // expected-error @below {{'mx.tile_load' op has a window that cannot be blocked: layout MX_B_NN needs a static block dimension (axis 1)}}
  %2 = mx.tile_load %b[0, 0] [2, %n] {target = "mat"} : !b -> !mx.tile<2x16xf8E8M0FNU, mat>
  // expected-error @below {{'mx.tile_load' op has a result that cannot be blocked: layout MX_A_ZZ needs a static group dimension (axis 1)}}
  %3 = mx.tile_load %a[0, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x?xf8E8M0FNU, mat, valid = 16x2>
  return
}

// -----

// C1: targets.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

func.func @targets(%a: !a) {
  // expected-error @below {{'mx.tile_load' op has target 'vec', but layout MX_A_ZZ is loaded to mat only; load it there and move the tile on}}
  %0 = mx.tile_load %a[0, 0] [16, 2] {target = "vec"} : !a -> !mx.tile<16x2xf8E8M0FNU, vec>
  // expected-error @below {{'mx.tile_load' op has no target, and layout MX_A_ZZ needs one; write {target = "mat"}}}
  %1 = mx.tile_load %a[0, 0] [16, 2] : !a -> !mx.tile<16x2xf8E8M0FNU>
  // expected-error @below {{'mx.tile_load' op has target 'left_scale', but layout MX_A_ZZ is loaded to mat only}}
  %2 = mx.tile_load %a[0, 0] [16, 2] {target = "left_scale"} : !a -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

// C1: operations that take no views.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

func.func @users(%a: !a, %t: !mx.tile<16x2xf8E8M0FNU, vec>) {
  // expected-error @below {{'mx.tile_store' op stores to a view of scales, which can only be loaded from; store to a plain tensor and view that}}
  %0 = mx.tile_store %t, %a[0, 0] : !mx.tile<16x2xf8E8M0FNU, vec>, !a -> !a
  // expected-error @below {{'test.use' op has a view of scales, which only loads, mx.tensor_view, calls and control flow take; view the scales as a plain tensor with mx.tensor_view first}}
  "test.use"(%a) : (!a) -> ()
  // expected-error @below {{'test.make' op has a view of scales}}
  %1 = "test.make"() : () -> !a
  // expected-error @below {{'test.block' op has a view of scales}}
  "test.block"() ({
  ^bb0(%b: !a):
    "test.end"() : () -> ()
  }) : () -> ()
  // expected-error @below {{'builtin.unrealized_conversion_cast' op has a view of scales}}
  %2 = builtin.unrealized_conversion_cast %a : !a to i32
  return
}

// -----

// Views that are hidden in what cannot be rewritten.

!a = tensor<64x4xi8, #mx.layout<"MX_A_ZZ">>

func.func @hidden() {
  // expected-error @below {{'arith.constant' op hides a view of scales in 'dense<0> : tensor<64x4xi8, #mx.layout<"MX_A_ZZ">>'; name its type itself}}
  %0 = arith.constant dense<0> : !a
  // expected-error @below {{'test.opaque' op hides a view of scales in}}
  "test.opaque"() {type = tensor<4xi8, [tensor<64x4xi8, #mx.layout<"MX_A_ZZ">>]>} : () -> ()
  return
}

// -----

// expected-error @below {{'builtin.module' op has a view of scales outside of a function; move it into one}}
module attributes {test.scales = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>} {
}

// -----

// A view does not pass between functions that are blocked and others.

func.func private @blocked(tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) attributes {mx_tensor_views_blocked}
func.func private @logical(tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)

func.func @mixed(%a: tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) {
  // expected-error @below {{'mx.submit' op passes a view of scales between a function with mx_tensor_views_blocked and one without; give it to both, with their views in blocked shape, or to neither}}
  mx.submit @blocked(%a) : tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  mx.submit @logical(%a) : tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  return
}
func.func @mixed_too(%a: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) attributes {mx_tensor_views_blocked} {
  // expected-error @below {{'mx.submit' op passes a view of scales between a function with mx_tensor_views_blocked and one without}}
  mx.submit @logical(%a) : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  return
}
