// RUN: mx-opt %s --split-input-file --verify-diagnostics

// mx.tensor_view

func.func @view_input(%x: tensor<16x4xf32>) {
  // expected-error @below {{'mx.tensor_view' op input must be a ranked tensor of f8E8M0FNU or i8 or ui8, but is 'tensor<16x4xf32>'}}
  %0 = mx.tensor_view %x[16, 4] : tensor<16x4xf32> -> tensor<16x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @view_result(%x: tensor<1x64xi8>) {
  // expected-error @below {{'mx.tensor_view' op result must be a ranked tensor of f8E8M0FNU or i8 or ui8, but is 'tensor<*xi8>'}}
  %0 = mx.tensor_view %x[1, 64] : tensor<1x64xi8> -> tensor<*xi8>
  return
}

// -----

func.func @view_encoding(%x: tensor<1x64xi8, "rows">) {
  // expected-error @below {{'mx.tensor_view' op input must have no encoding but #mx.layout, but is 'tensor<1x64xi8, "rows">'}}
  %0 = mx.tensor_view %x[16, 4] : tensor<1x64xi8, "rows"> -> tensor<16x4xi8, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @view_layout(%x: tensor<1x64xi8>) {
  // expected-error @below {{'mx.tensor_view' op result has invalid type 'tensor<16x4xi8, #mx.layout<"ZZ">>': a layout names MX_A_ZZ or MX_B_NN, but has "ZZ"}}
  %0 = mx.tensor_view %x[16, 4] : tensor<1x64xi8> -> tensor<16x4xi8, #mx.layout<"ZZ">>
  return
}

// -----

func.func @view_plain(%x: tensor<1x64xi8>) {
  // expected-error @below {{'mx.tensor_view' op must view a tensor with a layout, or as one; both 'tensor<1x64xi8>' and 'tensor<16x4xi8>' are plain}}
  %0 = mx.tensor_view %x[16, 4] : tensor<1x64xi8> -> tensor<16x4xi8>
  return
}

// -----

func.func @view_layouts(%x: tensor<16x4xi8, #mx.layout<"MX_A_ZZ">>) {
  // expected-error @below {{'mx.tensor_view' op must not view one layout as another; view it as a plain tensor first}}
  %0 = mx.tensor_view %x[4, 16] : tensor<16x4xi8, #mx.layout<"MX_A_ZZ">> -> tensor<4x16xi8, #mx.layout<"MX_B_NN">>
  return
}

// -----

func.func @view_element(%x: tensor<1x64xi8>) {
  // expected-error @below {{'mx.tensor_view' op 'tensor<1x64xi8>' and 'tensor<16x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>' must have one element type}}
  %0 = mx.tensor_view %x[16, 4] : tensor<1x64xi8> -> tensor<16x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @view_sizes(%x: tensor<1x64xi8>, %n: index) {
  // expected-error @below {{'mx.tensor_view' op sizes must be the shape of the result, 16x4, but are ?x8}}
  %0 = mx.tensor_view %x[%n, 8] : tensor<1x64xi8> -> tensor<16x4xi8, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @view_rank(%x: tensor<1x64xi8>) {
  // expected-error @below {{'mx.tensor_view' op sizes must have 2 entries, but the list has 1}}
  %0 = mx.tensor_view %x[64] : tensor<1x64xi8> -> tensor<16x4xi8, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @view_bytes(%x: tensor<1x128xi8>) {
  // expected-error @below {{'mx.tensor_view' op must not change the number of bytes, but 'tensor<1x128xi8>' has 128 and 'tensor<16x4xi8, #mx.layout<"MX_A_ZZ">>' has 64}}
  %0 = mx.tensor_view %x[16, 4] : tensor<1x128xi8> -> tensor<16x4xi8, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @view_attribute(%x: tensor<1x64xi8>) {
  // expected-error @below {{'mx.tensor_view' op has unknown attribute 'layout'; it takes static_sizes (dotted names are free)}}
  %0 = mx.tensor_view %x[16, 4] {layout = "MX_A_ZZ"} : tensor<1x64xi8> -> tensor<16x4xi8, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

// mx.tile_load

func.func @load_result(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op result must be a tile, but is 'tensor<16x32xf32>'}}
  %0 = mx.tile_load %x[0, 0] [16, 32] : tensor<64x64xf32> -> tensor<16x32xf32>
  return
}

// -----

func.func @load_source(%x: memref<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op source must be a ranked tensor, but is 'memref<64x64xf32>'}}
  %0 = mx.tile_load %x[0, 0] [16, 32] : memref<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_rank(%x: tensor<2x64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op source must have rank 2, but is 'tensor<2x64x64xf32>'}}
  %0 = mx.tile_load %x[0, 0, 0] [1, 16, 32] : tensor<2x64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_blocked_rank(%x: tensor<2x64x4xi8, #mx.layout<"MX_A_ZZ">>) {
  // expected-error @below {{'mx.tile_load' op source must have rank 2 or 5, but is 'tensor<2x64x4xi8, #mx.layout<"MX_A_ZZ">>'}}
  %0 = mx.tile_load %x[0, 0, 0] [1, 16, 2] : tensor<2x64x4xi8, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xi8, mat>
  return
}

// -----

func.func @load_encoding(%x: tensor<64x4xi8, "rows">) {
  // expected-error @below {{'mx.tile_load' op source must have no encoding but #mx.layout, but is 'tensor<64x4xi8, "rows">'}}
  %0 = mx.tile_load %x[0, 0] [16, 2] : tensor<64x4xi8, "rows"> -> !mx.tile<16x2xi8, mat>
  return
}

// -----

func.func @load_layout(%x: tensor<1x4x2x16x2xi8, #mx.layout<"ZZ">>) {
  // expected-error @below {{'mx.tile_load' op source has invalid type 'tensor<1x4x2x16x2xi8, #mx.layout<"ZZ">>': a layout names MX_A_ZZ or MX_B_NN, but has "ZZ"}}
  %0 = mx.tile_load %x[0, 0, 0, 0, 0] [1, 1, 1, 16, 2] : tensor<1x4x2x16x2xi8, #mx.layout<"ZZ">> -> !mx.tile<16x2xi8, mat>
  return
}

// -----

func.func @load_element(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op result must be a tile of f32, but is one of bf16}}
  %0 = mx.tile_load %x[0, 0] [16, 32] : tensor<64x64xf32> -> !mx.tile<16x32xbf16>
  return
}

// -----

func.func @load_target(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op target must be "mat" or "vec", but is "l1"}}
  %0 = mx.tile_load %x[0, 0] [16, 32] {target = "l1"} : tensor<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_target_type(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op target must be "mat" or "vec", but is 1 : i64}}
  %0 = mx.tile_load %x[0, 0] [16, 32] {target = 1} : tensor<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_target_left(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op target must be "mat" or "vec", but is "left"}}
  %0 = mx.tile_load %x[0, 0] [16, 32] {target = "left"} : tensor<64x64xf32> -> !mx.tile<16x32xf32, left>
  return
}

// -----

// Without a target the tile's memory is where it is loaded to.
func.func @load_no_target(%x: tensor<64x64xf32>) {
  %0 = mx.tile_load %x[0, 0] [16, 32] : tensor<64x64xf32> -> !mx.tile<16x32xf32, vec>
  // expected-error @below {{'mx.tile_load' op result must lie in mat or vec, but is '!mx.tile<16x32xf32, left>'}}
  %1 = mx.tile_load %x[0, 0] [16, 32] : tensor<64x64xf32> -> !mx.tile<16x32xf32, left>
  return
}

// -----

// Into which memory scales are loaded is for the pass that blocks their views to judge.
func.func @load_scales_to_vec(%x: tensor<64x4xi8, #mx.layout<"MX_A_ZZ">>) {
  %0 = mx.tile_load %x[0, 0] [16, 2] {target = "left_scale"} : tensor<64x4xi8, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xi8, left_scale>
  // expected-error @below {{'mx.tile_load' op target must be "vec" or "mat" or "left" or "right" or "acc" or "bias" or "left_scale" or "right_scale", but is "l1"}}
  %1 = mx.tile_load %x[0, 0] [16, 2] {target = "l1"} : tensor<64x4xi8, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xi8>
  return
}

// -----

func.func @load_space(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op result must lie in mat, but is '!mx.tile<16x32xf32, vec>'}}
  %0 = mx.tile_load %x[0, 0] [16, 32] {target = "mat"} : tensor<64x64xf32> -> !mx.tile<16x32xf32, vec>
  return
}

// -----

func.func @load_offsets(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op offsets must have 2 entries, but the list has 1}}
  %0 = mx.tile_load %x[0] [16, 32] : tensor<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_window(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op window must have 2 entries, but the list has 0}}
  %0 = mx.tile_load %x[0, 0] [] : tensor<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_valid(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op valid must have 2 entries, but the list has 3}}
  %0 = mx.tile_load %x[0, 0] [16, 32] [8, 32, 1] : tensor<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_negative(%x: tensor<64x64xf32>, %i: index) {
  // expected-error @below {{'mx.tile_load' op offsets must be 0 or more, but there is -8}}
  %0 = mx.tile_load %x[%i, -8] [16, 32] : tensor<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_array(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op static_offsets must be an array of i64, but is [0, 0]}}
  %0 = "mx.tile_load"(%x) {operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = [0, 0], static_window = array<i64: 16, 32>, static_valid = array<i64>} : (tensor<64x64xf32>) -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_valid_array(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op static_valid must be an array of i64, but is 0 : i64}}
  %0 = "mx.tile_load"(%x) {operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0, 0>, static_window = array<i64: 16, 32>, static_valid = 0} : (tensor<64x64xf32>) -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_operands(%x: tensor<64x64xf32>, %i: index) {
  // expected-error @below {{'mx.tile_load' op has 1 operands for 2 dynamic entries of offsets}}
  %0 = "mx.tile_load"(%x, %i) {operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, -9223372036854775808>, static_window = array<i64: 16, 32>, static_valid = array<i64>} : (tensor<64x64xf32>, index) -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_index(%x: tensor<64x64xf32>, %i: i64) {
  // expected-error @below {{'mx.tile_load' op offsets must be index values, but there is 'i64'}}
  %0 = "mx.tile_load"(%x, %i) {operandSegmentSizes = array<i32: 1, 1, 0, 0>, static_offsets = array<i64: 0, -9223372036854775808>, static_window = array<i64: 16, 32>, static_valid = array<i64>} : (tensor<64x64xf32>, i64) -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_segments(%x: tensor<64x64xf32>) {
  // expected-error @below {{operandSegmentSizes}}
  %0 = "mx.tile_load"(%x) {static_offsets = array<i64: 0, 0>, static_window = array<i64: 16, 32>, static_valid = array<i64>} : (tensor<64x64xf32>) -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_list_missing(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op attribute "static_valid" is expected but not provided}}
  %0 = "mx.tile_load"(%x) {operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0, 0>, static_window = array<i64: 16, 32>} : (tensor<64x64xf32>) -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_shape(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op result must have shape 16x32, but has 16x64}}
  %0 = mx.tile_load %x[0, 0] [16, 32] : tensor<64x64xf32> -> !mx.tile<16x64xf32>
  return
}

// -----

func.func @load_valid_shape(%x: tensor<64x64xf32>, %n: index) {
  // expected-error @below {{'mx.tile_load' op result must have valid shape ?x16, but has 8x32}}
  %0 = mx.tile_load %x[0, 0] [16, 32] [%n, 16] : tensor<64x64xf32> -> !mx.tile<16x32xf32, valid = 8x32>
  return
}

// -----

// Without a list the whole window is valid.
func.func @load_whole(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op result must have valid shape 16x32, but has 8x32}}
  %0 = mx.tile_load %x[0, 0] [16, 32] : tensor<64x64xf32> -> !mx.tile<16x32xf32, valid = 8x32>
  return
}

// -----

func.func @load_leaves(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op load leaves the tensor along axis 1: it reaches 96 of 64x64}}
  %0 = mx.tile_load %x[0, 64] [16, 32] : tensor<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

func.func @load_too_long(%x: tensor<?x64xf32>, %i: index) {
  // expected-error @below {{'mx.tile_load' op load leaves the tensor along axis 1: it reaches 65 of ?x64}}
  %0 = mx.tile_load %x[%i, %i] [16, 65] : tensor<?x64xf32> -> !mx.tile<16x65xf32>
  return
}

// -----

func.func @load_attribute(%x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_load' op has unknown attribute 'space'; it takes static_offsets, static_window, static_valid, target (dotted names are free)}}
  %0 = mx.tile_load %x[0, 0] [16, 32] {space = "mat"} : tensor<64x64xf32> -> !mx.tile<16x32xf32>
  return
}

// -----

!blocked = tensor<1x4x2x16x2xi8, #mx.layout<"MX_A_ZZ">>
func.func @load_dynamic_tile(%x: !blocked, %n: index) {
  // expected-error @below {{'mx.tile_load' op result must be static, to be loaded from a blocked shape, but is '!mx.tile<?x2xi8, mat>'}}
  %0 = mx.tile_load %x[0, 0, 0, 0, 0] [1, %n, 1, 16, 2] : !blocked -> !mx.tile<?x2xi8, mat>
  return
}

// -----

!blocked = tensor<1x4x2x16x2xi8, #mx.layout<"MX_A_ZZ">>
func.func @load_part_of_a_box(%x: !blocked) {
  // expected-error @below {{'mx.tile_load' op result must be made of whole boxes of 16x2, but is '!mx.tile<24x2xi8, mat>'}}
  %0 = mx.tile_load %x[0, 0, 0, 0, 0] [1, 1, 1, 16, 2] : !blocked -> !mx.tile<24x2xi8, mat>
  return
}

// -----

!blocked = tensor<1x4x2x16x2xi8, #mx.layout<"MX_A_ZZ">>
func.func @load_boxes(%x: !blocked) {
  // expected-error @below {{'mx.tile_load' op window must be 1x2x1x16x2, the boxes of the result, but is 1x1x1x16x2}}
  %0 = mx.tile_load %x[0, 0, 0, 0, 0] [1, 1, 1, 16, 2] : !blocked -> !mx.tile<32x2xi8, mat>
  return
}

// -----

// The right operand's scales have their boxes along the second axis.
!blocked = tensor<1x4x2x16x2xi8, #mx.layout<"MX_B_NN">>
func.func @load_right(%x: !blocked) {
  %0 = mx.tile_load %x[0, 0, 0, 0, 0] [1, 2, 1, 16, 2] : !blocked -> !mx.tile<2x32xi8, mat>
  // expected-error @below {{'mx.tile_load' op result must be made of whole boxes of 2x16, but is '!mx.tile<32x2xi8, mat>'}}
  %1 = mx.tile_load %x[0, 0, 0, 0, 0] [1, 2, 1, 16, 2] : !blocked -> !mx.tile<32x2xi8, mat>
  return
}

// -----

!blocked = tensor<1x4x2x16x2xi8, #mx.layout<"MX_A_ZZ">>
func.func @load_valid_boxes(%x: !blocked) {
  // expected-error @below {{'mx.tile_load' op valid must be 1x2x1x16x2, the boxes of the result, but is 1x1x1x16x2}}
  %0 = mx.tile_load %x[0, 0, 0, 0, 0] [1, 2, 1, 16, 2] [1, 1, 1, 16, 2] : !blocked -> !mx.tile<32x2xi8, mat, valid = 16x2>
  return
}

// -----

// mx.tile_store

func.func @store_tile(%t: tensor<16x32xf32>, %x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_store' op tile must be a tile, but is 'tensor<16x32xf32>'}}
  %0 = mx.tile_store %t, %x[0, 0] : tensor<16x32xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @store_space(%t: !mx.tile<16x32xf32, left>, %x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_store' op tile must lie in vec or mat or acc, but is '!mx.tile<16x32xf32, left>'}}
  %0 = mx.tile_store %t, %x[0, 0] : !mx.tile<16x32xf32, left>, tensor<64x64xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @store_dest(%t: !mx.tile<16x32xf32>, %x: tensor<*xf32>) {
  // expected-error @below {{'mx.tile_store' op dest must be a ranked tensor, but is 'tensor<*xf32>'}}
  %0 = mx.tile_store %t, %x[0, 0] : !mx.tile<16x32xf32>, tensor<*xf32> -> tensor<*xf32>
  return
}

// -----

func.func @store_blocked(%t: !mx.tile<16x2xi8>, %x: tensor<1x4x2x16x2xi8, #mx.layout<"MX_A_ZZ">>) {
  // expected-error @below {{'mx.tile_store' op dest must have rank 2, but is 'tensor<1x4x2x16x2xi8, #mx.layout<"MX_A_ZZ">>'}}
  %0 = mx.tile_store %t, %x[0, 0] : !mx.tile<16x2xi8>, tensor<1x4x2x16x2xi8, #mx.layout<"MX_A_ZZ">> -> tensor<1x4x2x16x2xi8, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @store_element(%t: !mx.tile<16x32xf32>, %x: tensor<64x64xbf16>) {
  // expected-error @below {{'mx.tile_store' op tile must be a tile of bf16, but is one of f32}}
  %0 = mx.tile_store %t, %x[0, 0] : !mx.tile<16x32xf32>, tensor<64x64xbf16> -> tensor<64x64xbf16>
  return
}

// -----

func.func @store_result(%t: !mx.tile<16x32xf32>, %x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_store' op result must have the type of dest, 'tensor<64x64xf32>', but is 'tensor<?x64xf32>'}}
  %0 = mx.tile_store %t, %x[0, 0] : !mx.tile<16x32xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return
}

// -----

func.func @store_leaves(%t: !mx.tile<16x32xf32, valid = 9x32>, %x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_store' op store leaves the tensor along axis 0: it reaches 65 of 64x64}}
  %0 = mx.tile_store %t, %x[56, 0] : !mx.tile<16x32xf32, valid = 9x32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @store_offsets(%t: !mx.tile<16x32xf32>, %x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_store' op offsets must have 2 entries, but the list has 3}}
  %0 = mx.tile_store %t, %x[0, 0, 0] : !mx.tile<16x32xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return
}

// -----

func.func @store_attribute(%t: !mx.tile<16x32xf32>, %x: tensor<64x64xf32>) {
  // expected-error @below {{'mx.tile_store' op has unknown attribute 'target'; it takes static_offsets (dotted names are free)}}
  %0 = mx.tile_store %t, %x[0, 0] {target = "mat"} : !mx.tile<16x32xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return
}
