// RUN: mx-opt %s --split-input-file --verify-diagnostics

func.func @select_rank(%w: tensor<8xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op input must have rank 2 or more, but is 'tensor<8xi8>'}}
  %0 = mx.select_expert %w, %e[] : tensor<8xi8>, index -> tensor<i8>
  return
}

// -----

func.func @select_index(%w: tensor<8x4xi8>, %e: i32) {
  // expected-error @below {{'mx.select_expert' op expert must be an index, but is 'i32'}}
  %0 = mx.select_expert %w, %e[0] : tensor<8x4xi8>, i32 -> tensor<4xi8>
  return
}

// -----

func.func @select_dynamic(%w: tensor<8x?xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op input must have static extents but for axis 0, but is 'tensor<8x?xi8>'}}
  %0 = mx.select_expert %w, %e[0] : tensor<8x?xi8>, index -> tensor<4xi8>
  return
}

// -----

func.func @select_list(%w: tensor<8x4x4xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op offsets must have 2 entries}}
  %0 = mx.select_expert %w, %e[0] : tensor<8x4x4xi8>, index -> tensor<4x4xi8>
  return
}

// -----

func.func @select_negative(%w: tensor<8x4xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op offsets must}}
  %0 = mx.select_expert %w, %e[-1] : tensor<8x4xi8>, index -> tensor<2xi8>
  return
}

// -----

func.func @select_outside(%w: tensor<8x4x4xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op the range leaves the input 'tensor<8x4x4xi8>' along axis 2}}
  %0 = mx.select_expert %w, %e[0, 3] : tensor<8x4x4xi8>, index -> tensor<4x2xi8>
  return
}

// -----

// Whatever the offset is, it must leave room.
func.func @select_too_much(%w: tensor<8x4xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op the range leaves the input 'tensor<8x4xi8>' along axis 1}}
  %0 = mx.select_expert %w, %e[%e] : tensor<8x4xi8>, index -> tensor<5xi8>
  return
}

// -----

func.func @select_result(%w: tensor<8x4xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op result must be 'tensor<8x4xi8>' without its first axis but for extents, but is 'tensor<4xi16>'}}
  %0 = mx.select_expert %w, %e[0] : tensor<8x4xi8>, index -> tensor<4xi16>
  return
}

// -----

func.func @select_mode(%w: tensor<8x4xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op oob_mode must be one of error, skip, but is "ignore"}}
  %0 = mx.select_expert %w, %e[0] {oob_mode = "ignore"} : tensor<8x4xi8>, index -> tensor<4xi8>
  return
}

// -----

func.func @select_attribute(%w: tensor<8x4xi8>, %e: index) {
  // expected-error @below {{'mx.select_expert' op has unknown attribute 'dge'}}
  %0 = mx.select_expert %w, %e[0] {dge = "hwdge"} : tensor<8x4xi8>, index -> tensor<4xi8>
  return
}

// -----

func.func @index_rows(%e: index) {
  // expected-error @below {{'mx.expert_index' op 16 scale rows are wanted of an expert that has 6}}
  %0 = mx.expert_index %e {scale_rows = 6, full_quadrants = 4, remaining_rows = 0} : index -> tensor<128xi32>
  return
}

// -----

func.func @index_quadrants(%e: index) {
  // expected-error @below {{'mx.expert_index' op 4 quadrants and 1 remaining rows need more than 4 quadrants}}
  %0 = mx.expert_index %e {scale_rows = 20, full_quadrants = 4, remaining_rows = 1} : index -> tensor<128xi32>
  return
}

// -----

func.func @index_remaining(%e: index) {
  // expected-error @below {{'mx.expert_index' op remaining_rows must be from 0 to 3, but is 4 : i64}}
  %0 = mx.expert_index %e {scale_rows = 16, full_quadrants = 1, remaining_rows = 4} : index -> tensor<128xi32>
  return
}

// -----

func.func @index_number(%e: index) {
  // expected-error @below {{'mx.expert_index' op scale_rows must be from 1 to 2147483647, but is 0 : i64}}
  %0 = mx.expert_index %e {scale_rows = 0, full_quadrants = 0, remaining_rows = 0} : index -> tensor<128xi32>
  return
}

// -----

func.func @index_kind(%e: index) {
  // expected-error @below {{'mx.expert_index' op full_quadrants must be from 0 to 4, but is 1 : i8}}
  %0 = mx.expert_index %e {scale_rows = 16, full_quadrants = 1 : i8, remaining_rows = 0} : index -> tensor<128xi32>
  return
}

// -----

func.func @index_offset(%e: index) {
  // expected-error @below {{'mx.expert_index' op offset must be one of 0, 4, 8, 12, but is 16 : i64}}
  %0 = mx.expert_index %e {scale_rows = 16, full_quadrants = 4, remaining_rows = 0, offset = 16} : index -> tensor<128xi32>
  return
}

// -----

func.func @index_expert(%e: i32) {
  // expected-error @below {{'mx.expert_index' op expert must be an index, but is 'i32'}}
  %0 = mx.expert_index %e {scale_rows = 16, full_quadrants = 4, remaining_rows = 0} : i32 -> tensor<128xi32>
  return
}

// -----

func.func @index_result(%e: index) {
  // expected-error @below {{'mx.expert_index' op result must be 'tensor<128xi32>', but is 'tensor<64xi32>'}}
  %0 = mx.expert_index %e {scale_rows = 16, full_quadrants = 4, remaining_rows = 0} : index -> tensor<64xi32>
  return
}

// -----

func.func @gather_scales(%s: tensor<8x16x4xi16>, %i: tensor<128xi32>) {
  // expected-error @below {{'mx.scale_gather' op scales must be scale codes, a tensor of ui8 or i8, but is 'tensor<8x16x4xi16>'}}
  %0 = mx.scale_gather %s, %i : tensor<8x16x4xi16>, tensor<128xi32> -> tensor<128x4xi16>
  return
}

// -----

func.func @gather_rank(%s: tensor<16xi8>, %i: tensor<128xi32>) {
  // expected-error @below {{'mx.scale_gather' op scales must have rank 2 or more, but are 'tensor<16xi8>'}}
  %0 = mx.scale_gather %s, %i : tensor<16xi8>, tensor<128xi32> -> tensor<128xi8>
  return
}

// -----

func.func @gather_rows(%s: tensor<8x0x4xi8>, %i: tensor<128xi32>) {
  // expected-error @below {{'mx.scale_gather' op scales must have rows, but are 'tensor<8x0x4xi8>'}}
  %0 = mx.scale_gather %s, %i : tensor<8x0x4xi8>, tensor<128xi32> -> tensor<128x4xi8>
  return
}

// -----

func.func @gather_indices(%s: tensor<8x16x4xi8>, %i: tensor<16xi32>) {
  // expected-error @below {{'mx.scale_gather' op indices must be 'tensor<128xi32>', but is 'tensor<16xi32>'}}
  %0 = mx.scale_gather %s, %i : tensor<8x16x4xi8>, tensor<16xi32> -> tensor<128x4xi8>
  return
}

// -----

func.func @gather_result(%s: tensor<8x16x4xui8>, %i: tensor<128xi32>) {
  // expected-error @below {{'mx.scale_gather' op result must be 'tensor<128x4xui8>', but is 'tensor<128x4xi8>'}}
  %0 = mx.scale_gather %s, %i : tensor<8x16x4xui8>, tensor<128xi32> -> tensor<128x4xi8>
  return
}

// -----

func.func @static_rows(%s: tensor<17x4xui8>) {
  // expected-error @below {{'mx.scale_load_static' op scales must have from 1 to 16 rows, but are 'tensor<17x4xui8>'}}
  %0 = mx.scale_load_static %s : tensor<17x4xui8> -> tensor<128x4xui8>
  return
}

// -----

func.func @static_tiles(%s: tensor<24x4xui8>) {
  // expected-error @below {{'mx.scale_load_static' op scales of tiles must have a multiple of 16 rows, but are 'tensor<24x4xui8>'}}
  %0 = mx.scale_load_static %s : tensor<24x4xui8> -> tensor<128x1x4xui8>
  return
}

// -----

func.func @static_result(%s: tensor<32x4xui8>) {
  // expected-error @below {{'mx.scale_load_static' op result must be 'tensor<128x2x4xui8>', but is 'tensor<2x128x4xui8>'}}
  %0 = mx.scale_load_static %s : tensor<32x4xui8> -> tensor<2x128x4xui8>
  return
}

// -----

func.func @static_scalar(%s: tensor<ui8>) {
  // expected-error @below {{'mx.scale_load_static' op scales must have rank 1 or more, but are 'tensor<ui8>'}}
  %0 = mx.scale_load_static %s : tensor<ui8> -> tensor<128xui8>
  return
}
