// RUN: mx-opt %s --split-input-file --verify-diagnostics

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @dim_axis(%x: !t, %i: i32) {
  // expected-error @below {{'mx.dim' op axis must be an index, but is 'i32'}}
  %0 = mx.dim %x, %i : !t, i32 -> index
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @dim_result(%x: !t, %i: index) {
  // expected-error @below {{'mx.dim' op result must be an index, but is 'i64'}}
  %0 = mx.dim %x, %i : !t, index -> i64
  return
}

// -----

func.func @dim_input(%x: tensor<4xf32>, %i: index) {
  // expected-error @below {{'mx.dim' op input must be an mx tensor}}
  %0 = mx.dim %x, %i : tensor<4xf32>, index -> index
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @cast_static(%x: !t) {
  // expected-error @below {{'mx.cast' op input '!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>' and result '!mx.tensor<16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>' must agree in their static extents}}
  %0 = mx.cast %x : !t -> <16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @cast_format(%x: !t) {
  // expected-error @below {{must be the same but for their extents}}
  %0 = mx.cast %x : !t -> <32x64xf8E5M2, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @cast_rank(%x: !t) {
  // expected-error @below {{must be the same but for their extents}}
  %0 = mx.cast %x : !t -> <64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_shape(%x: !t) {
  // expected-error @below {{'mx.extract_slice' op result '!mx.tensor<8x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>' must have the sizes as its shape}}
  %0 = mx.extract_slice %x[0, 0] [8, 32] : !t -> <8x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_leaves(%x: !t) {
  // expected-error @below {{'mx.extract_slice' op slice leaves the input}}
  %0 = mx.extract_slice %x[28, 0] [8, 32] : !t -> <8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

// A static size alone can be too much.
!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_too_long(%x: !t, %i: index) {
  // expected-error @below {{slice leaves the input}}
  %0 = mx.extract_slice %x[%i, 0] [33, 32] : !t -> <33x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_blocks(%x: !t) {
  // expected-error @below {{'mx.extract_slice' op offset 16 along blocked axis 1 is not a multiple of block size 32}}
  %0 = mx.extract_slice %x[0, 16] [8, 32] : !t -> <8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_negative(%x: !t) {
  // expected-error @below {{'mx.extract_slice' op offsets must not be negative, but are [-1, 0]}}
  %0 = mx.extract_slice %x[-1, 0] [8, 32] : !t -> <8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_rank(%x: !t) {
  // expected-error @below {{'mx.extract_slice' op static_offsets must be an array of 2 i64}}
  %0 = mx.extract_slice %x[0] [8, 32] : !t -> <8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

// The generic form keeps operands and dynamic entries apart.
!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_operands(%x: !t) {
  // expected-error @below {{'mx.extract_slice' op has 0 operands for 1 dynamic offsets}}
  %0 = "mx.extract_slice"(%x) {operandSegmentSizes = array<i32: 1, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 8, 32>} : (!t) -> !mx.tensor<8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_types(%x: !t, %i: i64) {
  // expected-error @below {{'mx.extract_slice' op offsets must be index values}}
  %0 = "mx.extract_slice"(%x, %i) {operandSegmentSizes = array<i32: 1, 1, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 8, 32>} : (!t, i64) -> !mx.tensor<8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

// Segment sizes that do not add up are no reason to crash.
!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @slice_segments(%x: !t, %i: index) {
  // expected-error @below {{operandSegmentSizes}}
  %0 = "mx.extract_slice"(%x, %i) {static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64: 8, 32>} : (!t, index) -> !mx.tensor<8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return
}
