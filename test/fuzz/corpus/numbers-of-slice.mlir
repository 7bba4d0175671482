%0 = "mx.extract_slice"(%x, %i) {operandSegmentSizes = array<i32:  , 1, 0>, static_offsets = array<i64: 99, 0>, static_sizes = array<i64: 8, 32>} : (!t, i64) -> !u
