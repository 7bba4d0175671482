// RUN: mx-opt %s --split-input-file --verify-diagnostics

// mx.tile_move

func.func @move_input(%x: tensor<16x64xf32>) {
  // expected-error @below {{'mx.tile_move' op input must be a tile, but is 'tensor<16x64xf32>'}}
  %0 = mx.tile_move %x : tensor<16x64xf32> -> !mx.tile<16x64xf32, left>
  return
}

// -----

func.func @move_result(%x: !mx.tile<16x64xf32, mat>) {
  // expected-error @below {{'mx.tile_move' op result must be a tile, but is 'tensor<16x64xf32>'}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf32, mat> -> tensor<16x64xf32>
  return
}

// -----

func.func @move_nowhere(%x: !mx.tile<16x64xf32, mat>) {
  // expected-error @below {{'mx.tile_move' op cannot move a tile to '!mx.tile<16x64xf32>'; tiles move from mat to left, mat to right, mat to left_scale, mat to right_scale, mat to bias, vec to mat, acc to mat, mat to vec, acc to vec}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf32, mat> -> !mx.tile<16x64xf32>
  return
}

// -----

func.func @move_to_acc(%x: !mx.tile<16x64xf32, mat>) {
  // expected-error @below {{'mx.tile_move' op cannot move a tile to '!mx.tile<16x64xf32, acc>'; tiles move from mat to left,}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf32, mat> -> !mx.tile<16x64xf32, acc>
  return
}

// -----

func.func @move_from_vec(%x: !mx.tile<16x2xf8E8M0FNU, vec>) {
  // expected-error @below {{'mx.tile_move' op cannot move a tile from vec to left_scale; tiles move from mat to left,}}
  %0 = mx.tile_move %x : !mx.tile<16x2xf8E8M0FNU, vec> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @move_within(%x: !mx.tile<16x64xf32, mat>) {
  // expected-error @below {{'mx.tile_move' op cannot move a tile from mat to mat; tiles move from mat to left,}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf32, mat> -> !mx.tile<16x64xf32, mat>
  return
}

// -----

func.func @move_back(%x: !mx.tile<16x64xf8E4M3FN, left>) {
  // expected-error @below {{'mx.tile_move' op cannot move a tile from left to mat; tiles move from mat to left,}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x64xf8E4M3FN, mat>
  return
}

// -----

func.func @move_shape(%x: !mx.tile<16x64xf32, mat>) {
  // expected-error @below {{'mx.tile_move' op result must have shape 16x64, but has 64x16}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf32, mat> -> !mx.tile<64x16xf32, left>
  return
}

// -----

func.func @move_valid_shape(%x: !mx.tile<16x64xf32, mat, valid = 8x?>) {
  // expected-error @below {{'mx.tile_move' op result must have valid shape 8x?, but has 16x64}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf32, mat, valid = 8x?> -> !mx.tile<16x64xf32, left>
  return
}

// -----

func.func @move_data_as_scales(%x: !mx.tile<16x2xf8E4M3FN, mat>) {
  // expected-error @below {{'mx.tile_move' op a tile moved to a scale space must be a tile of f8E8M0FNU or i8 or ui8, but is one of f8E4M3FN}}
  %0 = mx.tile_move %x : !mx.tile<16x2xf8E4M3FN, mat> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @move_bytes_as_bytes(%x: !mx.tile<16x2xui8, mat>) {
  // expected-error @below {{'mx.tile_move' op a tile in a scale space must be a tile of f8E8M0FNU, but is one of ui8}}
  %0 = mx.tile_move %x : !mx.tile<16x2xui8, mat> -> !mx.tile<16x2xui8, left_scale>
  return
}

// -----

func.func @move_element(%x: !mx.tile<16x2xui8, mat>) {
  // expected-error @below {{'mx.tile_move' op result must be a tile of ui8, but is one of f8E8M0FNU}}
  %0 = mx.tile_move %x : !mx.tile<16x2xui8, mat> -> !mx.tile<16x2xf8E8M0FNU, vec>
  return
}

// -----

func.func @move_attribute(%x: !mx.tile<16x64xf32, mat>) {
  // expected-error @below {{'mx.tile_move' op has unknown attribute 'target'; it takes none (dotted names are free)}}
  %0 = mx.tile_move %x {target = "left"} : !mx.tile<16x64xf32, mat> -> !mx.tile<16x64xf32, left>
  return
}

// -----

// mx.tile_create

func.func @create_result() {
  // expected-error @below {{'mx.tile_create' op result must be a tile, but is 'tensor<16x32xf32>'}}
  %0 = mx.tile_create : () -> tensor<16x32xf32>
  return
}

// -----

func.func @create_dynamic() {
  // expected-error @below {{'mx.tile_create' op result must be static, but is '!mx.tile<?x32xf32, vec>'}}
  %0 = mx.tile_create : () -> !mx.tile<?x32xf32, vec>
  return
}

// -----

func.func @create_dynamic_valid_shape() {
  // expected-error @below {{'mx.tile_create' op result must be static, but is '!mx.tile<16x32xf32, vec, valid = 16x?>'}}
  %0 = mx.tile_create : () -> !mx.tile<16x32xf32, vec, valid = 16x?>
  return
}

// -----

func.func @create_left_scale() {
  // expected-error @below {{'mx.tile_create' op cannot create a tile in left_scale; load scales to mat and move them there}}
  %0 = mx.tile_create : () -> !mx.tile<16x2xf8E8M0FNU, left_scale>
  return
}

// -----

func.func @create_right_scale() {
  // expected-error @below {{'mx.tile_create' op cannot create a tile in right_scale; load scales to mat and move them there}}
  %0 = mx.tile_create : () -> !mx.tile<2x32xf8E8M0FNU, right_scale>
  return
}

// -----

func.func @create_attribute() {
  // expected-error @below {{'mx.tile_create' op has unknown attribute 'value'; it takes none (dotted names are free)}}
  %0 = mx.tile_create {value = 0} : () -> !mx.tile<16x32xf32, vec>
  return
}

// -----

// mx.tile_cast

func.func @cast_input(%x: tensor<16x64xf4E2M1FN>) {
  // expected-error @below {{'mx.tile_cast' op input must be a tile, but is 'tensor<16x64xf4E2M1FN>'}}
  %0 = mx.tile_cast %x : tensor<16x64xf4E2M1FN> -> !mx.tile<16x64xf8E4M3FN>
  return
}

// -----

func.func @cast_result(%x: !mx.tile<16x64xf4E2M1FN>) {
  // expected-error @below {{'mx.tile_cast' op result must be a tile, but is 'tensor<16x64xf8E4M3FN>'}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN> -> tensor<16x64xf8E4M3FN>
  return
}

// -----

func.func @cast_from_bf16(%x: !mx.tile<16x64xbf16>) {
  // expected-error @below {{'mx.tile_cast' op input must be a tile of f4E2M1FN, but is one of bf16}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xbf16> -> !mx.tile<16x64xf8E4M3FN>
  return
}

// -----

func.func @cast_to_f32(%x: !mx.tile<16x64xf4E2M1FN>) {
  // expected-error @below {{'mx.tile_cast' op result must be a tile of f8E4M3FN or f8E5M2, but is one of f32}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN> -> !mx.tile<16x64xf32>
  return
}

// -----

func.func @cast_shape(%x: !mx.tile<16x64xf4E2M1FN>) {
  // expected-error @below {{'mx.tile_cast' op result must have shape 16x64, but has 16x32}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN> -> !mx.tile<16x32xf8E4M3FN>
  return
}

// -----

func.func @cast_valid_shape(%x: !mx.tile<16x64xf4E2M1FN>) {
  // expected-error @below {{'mx.tile_cast' op result must have valid shape 16x64, but has 8x64}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN> -> !mx.tile<16x64xf8E4M3FN, valid = 8x64>
  return
}

// -----

func.func @cast_attribute(%x: !mx.tile<16x64xf4E2M1FN>) {
  // expected-error @below {{'mx.tile_cast' op has unknown attribute 'rounding'; it takes none (dotted names are free)}}
  %0 = mx.tile_cast %x {rounding = "even"} : !mx.tile<16x64xf4E2M1FN> -> !mx.tile<16x64xf8E4M3FN>
  return
}

// -----

// mx.block_idx, mx.block_num

func.func @block_idx() {
  // expected-error @below {{'mx.block_idx' op result must be an index, but is 'i32'}}
  %0 = mx.block_idx : () -> i32
  return
}

// -----

func.func @block_idx_attribute() {
  // expected-error @below {{'mx.block_idx' op has unknown attribute 'axis'; it takes none (dotted names are free)}}
  %0 = mx.block_idx {axis = 0} : () -> index
  return
}

// -----

func.func @block_num() {
  // expected-error @below {{'mx.block_num' op result must be an index, but is 'i32'}}
  %0 = mx.block_num : () -> i32
  return
}

// -----

func.func @block_num_attribute() {
  // expected-error @below {{'mx.block_num' op has unknown attribute 'axis'; it takes none (dotted names are free)}}
  %0 = mx.block_num {axis = 0} : () -> index
  return
}
