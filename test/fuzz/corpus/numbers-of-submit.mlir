"mx.submit"(%n, %n) {callee = @kernel, operandSegmentSizes = array<i32: 1, 0  0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0>} : (index, index) -> ()
