// RUN: mx-opt %s --mx-block-scale-views --split-input-file --verify-diagnostics

// Offsets that are not whole boxes, are negative, or are not proven to be neither. Divisibility and sign have errors of
// their own; a note shows the value on which the proof fails.

// C1: constants.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!b = tensor<4x64xf8E8M0FNU, #mx.layout<"MX_B_NN">>
!ta = !mx.tile<16x2xf8E8M0FNU, mat>
!tb = !mx.tile<2x16xf8E8M0FNU, mat>

func.func @constants(%a: !a, %b: !b) {
  // expected-error @below {{'mx.tile_load' op has offset 8 along the block dimension (axis 0), but layout MX_A_ZZ needs a multiple of 16; start the window at a whole box}}
  %0 = mx.tile_load %a[8, 0] [16, 2] {target = "mat"} : !a -> !ta
  // expected-error @below {{'mx.tile_load' op has offset 1 along the group dimension (axis 0), but layout MX_B_NN needs a multiple of 2; start the window at a whole box}}
  %1 = mx.tile_load %b[1, 0] [2, 16] {target = "mat"} : !b -> !tb
  %c-16 = arith.constant -16 : index
  // expected-error @below {{'mx.tile_load' op has offset -16 along the block dimension (axis 1), but layout MX_B_NN needs 0 or more; start the window at a whole box}}
  %2 = mx.tile_load %b[0, %c-16] [2, 16] {target = "mat"} : !b -> !tb
  return
}

// -----

// B6: a parameter of a function that nobody calls.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// expected-note @below {{this value is what is not proven: @b6 has no call site}}
func.func @b6(%a: !a, %row: index) {
  // expected-error @below {{'mx.tile_load' op has an offset along the block dimension (axis 0) that is not proven to be a multiple of 16, as layout MX_A_ZZ needs: @b6 has no call site; compute it as whole boxes times the size of a box}}
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}

// -----

// B9: one caller that is not aligned.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

func.func @b9(%a: !a, %row: index) {
  // expected-error @below {{not proven to be a multiple of 16, as layout MX_A_ZZ needs: 1 is not a multiple of 16}}
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}
func.func @b9_calls(%a: !a) {
  %c0 = arith.constant 0 : index
  // expected-note @below {{this value is what is not proven}}
  %c1 = arith.constant 1 : index
  call @b9(%a, %c0) : (!a, index) -> ()
  call @b9(%a, %c1) : (!a, index) -> ()
  return
}

// -----

// A submit with a wrong count of arguments, and a function whose address is taken.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// expected-note @below {{a call gives 1 values to the 2 parameters of @count}}
func.func @count(%a: !a, %row: index) {
  // expected-error @below {{a call gives 1 values to the 2 parameters of @count}}
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}
// expected-note @below {{an indirect call can give any value to a parameter of @address}}
func.func @address(%row: index, %bytes: tensor<1x256xf8E8M0FNU>) {
  %a = mx.tensor_view %bytes[64, 4] : tensor<1x256xf8E8M0FNU> -> !a
  // expected-error @below {{an indirect call can give any value to a parameter of @address}}
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}
func.func @root(%a: !a, %bytes: tensor<1x256xf8E8M0FNU>) {
  %c0 = arith.constant 0 : index
  call @count(%a, %c0) : (!a, index) -> ()
  mx.submit @count(%a) : !a
  call @address(%c0, %bytes) : (index, tensor<1x256xf8E8M0FNU>) -> ()
  %f = constant @address : (index, tensor<1x256xf8E8M0FNU>) -> ()
  call_indirect %f(%c0, %bytes) : (index, tensor<1x256xf8E8M0FNU>) -> ()
  return
}

// -----

// C1: a recursion, and an offset whose proof takes more than 256 steps.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!t = !mx.tile<16x2xf8E8M0FNU, mat>

func.func @recursion(%a: !a, %row: index) {
  %c16 = arith.constant 16 : index
  // expected-error @below {{is not proven to be a multiple of 16, as layout MX_A_ZZ needs: the proof takes more than 256 steps; compute it in fewer operations, without recursive calls}}
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !t
  %next = arith.addi %row, %c16 : index
  call @recursion(%a, %next) : (!a, index) -> ()
  return
}

func.func @long(%a: !a) {
  %c16 = arith.constant 16 : index
  %block = mx.block_idx : -> index
  %x0 = arith.muli %c16, %block : index
  %x1 = arith.addi %x0, %x0 : index
  %x2 = arith.addi %x1, %x1 : index
  %x3 = arith.addi %x2, %x2 : index
  %x4 = arith.addi %x3, %x3 : index
  %x5 = arith.addi %x4, %x4 : index
  %x6 = arith.addi %x5, %x5 : index
  // The proof of divisibility takes 191 steps, that of the sign 255.
  %0 = mx.tile_load %a[%x6, 0] [16, 2] {target = "mat"} : !a -> !t
  %x7 = arith.addi %x6, %c16 : index
  // expected-error @below {{is not proven to be 0 or more, as layout MX_A_ZZ needs: the proof takes more than 256 steps}}
  %1 = mx.tile_load %a[%x7, 0] [16, 2] {target = "mat"} : !a -> !t
  %x8 = arith.addi %x6, %x6 : index
  // expected-error @below {{is not proven to be a multiple of 16, as layout MX_A_ZZ needs: the proof takes more than 256 steps}}
  %2 = mx.tile_load %a[%x8, 0] [16, 2] {target = "mat"} : !a -> !t
  return
}

// -----

// C1: nb*256-256, ((x-1)%2)*16, and other signs that are not known.

!a = tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!t = !mx.tile<16x2xf8E8M0FNU, mat>

// expected-note @below {{@signs has no call site}}
func.func @signs(%a: !a, %x: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c256 = arith.constant 256 : index
  // expected-note @below {{this value is what is not proven: -16 is not 0 or more}}
  %c-16 = arith.constant -16 : index
  %nb = mx.block_num : -> index
  %end = arith.muli %nb, %c256 : index
  // expected-note @below {{this value is what is not proven: a difference can be negative}}
  %last = arith.subi %end, %c256 : index
  // expected-error @below {{has an offset along the block dimension (axis 0) that is not proven to be 0 or more, as layout MX_A_ZZ needs: a difference can be negative; compute it from values that are 0 or more, without subtraction}}
  %0 = mx.tile_load %a[%last, 0] [16, 2] {target = "mat"} : !a -> !t

  // expected-note @below {{a difference can be negative}}
  %before = arith.subi %nb, %c1 : index
  %rest = arith.remsi %before, %c2 : index
  %m1 = arith.muli %rest, %c16 : index
  // expected-error @below {{0 or more, as layout MX_A_ZZ needs: a difference can be negative}}
  %1 = mx.tile_load %a[%m1, 0] [16, 2] {target = "mat"} : !a -> !t

  %m2 = arith.minsi %end, %c-16 : index
  // expected-error @below {{0 or more, as layout MX_A_ZZ needs: -16 is not 0 or more}}
  %2 = mx.tile_load %a[%m2, 0] [16, 2] {target = "mat"} : !a -> !t

  %m3 = arith.muli %x, %c16 : index
  // expected-error @below {{0 or more, as layout MX_A_ZZ needs: @signs has no call site}}
  %3 = mx.tile_load %a[%m3, 0] [16, 2] {target = "mat"} : !a -> !t

  scf.for %i = %c-16 to %c256 step %c16 {
    // expected-note @above {{a loop starts at -16 and steps by 16, and each must be 0 or more}}
    // expected-error @below {{0 or more, as layout MX_A_ZZ needs: a loop starts at -16 and steps by 16}}
    %4 = mx.tile_load %a[%i, 0] [16, 2] {target = "mat"} : !a -> !t
  }
  scf.for unsigned %i = %c0 to %x step %c16 {
    // expected-note @above {{a loop counts without sign}}
    // expected-error @below {{0 or more, as layout MX_A_ZZ needs: a loop counts without sign}}
    %5 = mx.tile_load %a[%i, 0] [16, 2] {target = "mat"} : !a -> !t
  }
  // expected-note @below {{a cast that drops bits can give a negative number}}
  %narrow = arith.index_cast %end : index to i32
  %m6 = arith.index_cast %narrow : i32 to index
  // expected-error @below {{0 or more, as layout MX_A_ZZ needs: a cast that drops bits can give a negative number}}
  %6 = mx.tile_load %a[%m6, 0] [16, 2] {target = "mat"} : !a -> !t
  return
}

// -----

// C1: loop (0, 32, step 8), and other divisibility that is not known.

!a = tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!t = !mx.tile<16x2xf8E8M0FNU, mat>

func.func @multiples(%a: !a) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c48 = arith.constant 48 : index
  scf.for %i = %c0 to %c32 step %c8 {
    // expected-note @above {{a loop starts at 0 and steps by 8, and each must be a multiple of 16}}
    // expected-error @below {{a multiple of 16, as layout MX_A_ZZ needs: a loop starts at 0 and steps by 8}}
    %0 = mx.tile_load %a[%i, 0] [16, 2] {target = "mat"} : !a -> !t
  }
  // expected-note @below {{the number of a block can be any}}
  %block = mx.block_idx : -> index
  // expected-error @below {{a multiple of 16, as layout MX_A_ZZ needs: the number of a block can be any}}
  %1 = mx.tile_load %a[%block, 0] [16, 2] {target = "mat"} : !a -> !t
  scf.for %i = %c0 to %c32 step %block {
    // expected-note @above {{a loop has a start or step that is not a constant}}
    // expected-error @below {{a loop has a start or step that is not a constant}}
    %2 = mx.tile_load %a[%i, 0] [16, 2] {target = "mat"} : !a -> !t
  }
  // expected-note @below {{'scf.for' is not followed}}
  %carried = scf.for %i = %c0 to %c32 step %c16 iter_args(%row = %c0) -> index {
    // expected-note @above {{what 'scf.for' passes to its block is not followed}}
    // expected-error @below {{a multiple of 16, as layout MX_A_ZZ needs: what 'scf.for' passes to its block is not followed}}
    %3 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !t
    scf.yield %c16 : index
  }
  %m4 = arith.muli %block, %c16 : index
  // expected-note @below {{a remainder can be any number}}
  %rest = arith.remsi %m4, %c48 : index
  // expected-error @below {{a multiple of 16, as layout MX_A_ZZ needs: a remainder can be any number}}
  %4 = mx.tile_load %a[%rest, 0] [16, 2] {target = "mat"} : !a -> !t
  // expected-note @below {{a division by 48 need not leave a multiple of 16}}
  %m5 = arith.floordivsi %m4, %c48 : index
  // expected-error @below {{a division by 48 need not leave a multiple of 16}}
  %5 = mx.tile_load %a[%m5, 0] [16, 2] {target = "mat"} : !a -> !t
  // expected-note @below {{a divisor is not a positive constant}}
  %m6 = arith.floordivsi %m4, %block : index
  // expected-error @below {{a divisor is not a positive constant}}
  %6 = mx.tile_load %a[%m6, 0] [16, 2] {target = "mat"} : !a -> !t
  // expected-note @below {{'arith.xori' is not followed}}
  %m7 = arith.xori %m4, %m4 : index
  // expected-error @below {{'arith.xori' is not followed}}
  %7 = mx.tile_load %a[%m7, 0] [16, 2] {target = "mat"} : !a -> !t
  // expected-error @below {{a multiple of 16, as layout MX_A_ZZ needs: 'scf.for' is not followed}}
  %8 = mx.tile_load %a[%carried, 0] [16, 2] {target = "mat"} : !a -> !t
  return
}

// -----

// Arithmetic on constants that overflows proves nothing.

!a = tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

func.func @overflow(%a: !a) {
  %c4 = arith.constant 4 : index
  %large = arith.constant 4611686018427387904 : index
  // expected-note @below {{18446744073709551616 overflows 64 bits}}
  %row = arith.muli %large, %c4 : index
  // expected-error @below {{is not proven to be a multiple of 16, as layout MX_A_ZZ needs: 18446744073709551616 overflows 64 bits}}
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}
