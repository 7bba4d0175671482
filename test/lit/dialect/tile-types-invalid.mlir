// RUN: mx-opt %s --split-input-file --verify-diagnostics

// Every rule of tile types and of layouts; test_asm_errors.py has where the carets are.

// expected-error @below {{invalid type '!mx.tile<16xf8E4M3FN>': a tile must have rank 2, but has 1}}
func.func private @rank(!mx.tile<16xf8E4M3FN>)

// -----

// expected-error @below {{'f64' is not an element type of tiles; expected one of f8E4M3FN, f8E5M2, f4E2M1FN, f8E8M0FNU, i8, ui8, i32, f16, bf16, f32}}
func.func private @element(!mx.tile<16x2xf64>)

// -----

// expected-error @below {{'left_scales' is not a memory space; did you mean 'left_scale'?}}
func.func private @space(!mx.tile<16x2xf8E4M3FN, left_scales>)

// -----

// expected-error @below {{'l0a' is not a memory space; expected one of vec, mat, left, right, acc, bias, left_scale, right_scale}}
func.func private @other_space(!mx.tile<16x2xf8E4M3FN, l0a>)

// -----

// expected-error @below {{'l0a' is not a memory space; expected one of vec, mat, left, right, acc, bias, left_scale, right_scale}}
func.func private @storage_space(!mx.tile<tensor<16x2xf8E4M3FN>, "l0a", [16, 2]>)

// -----

// expected-error @below {{the memory space is given twice}}
func.func private @two_spaces(!mx.tile<16x2xf8E4M3FN, mat, vec>)

// -----

// expected-error @below {{expected a memory space or 'valid = 8x64' after ','}}
func.func private @comma(!mx.tile<16x2xf8E4M3FN,>)

// -----

// expected-error @below {{unknown parameter 'vald'; did you mean 'valid'?}}
func.func private @parameter(!mx.tile<16x2xf8E4M3FN, vald = 8x2>)

// -----

// expected-error @below {{unknown parameter 'space'; a tile has 'valid = 8x64'}}
func.func private @other_parameter(!mx.tile<16x2xf8E4M3FN, space = mat>)

// -----

// expected-error @below {{parameter 'valid' is given twice}}
func.func private @two_valid_shapes(!mx.tile<16x2xf8E4M3FN, valid = 8x2, valid = 8x2>)

// -----

// expected-error @below {{valid must be extents such as 8x64, but is '8;2'}}
func.func private @no_extents(!mx.tile<16x2xf8E4M3FN, valid = 8;2>)

// -----

// expected-error @below {{a valid shape has the rank of its tile, 2, but has 1}}
func.func private @valid_rank(!mx.tile<16x2xf8E4M3FN, valid = 8>)

// -----

// expected-error @below {{valid extent 17 of axis 0 must be at most the extent 16}}
func.func private @valid_extent(!mx.tile<16x2xf8E4M3FN, valid = 17x2>)

// -----

// What is beyond a dynamic extent is not known.
func.func private @dynamic_extent(!mx.tile<?x2xf8E4M3FN, valid = 17x2>)
// expected-error @below {{valid extent -1 of axis 0 must be 0 or more}}
func.func private @negative(!mx.tile<tensor<?x2xf8E4M3FN>, "mat", [-1, 2]>)

// -----

// expected-error @below {{expected shape and element type such as 32x64xf8E4M3FN, but found '16x2'}}
func.func private @no_element(!mx.tile<16x2>)

// -----

// expected-error @below {{expected '<' after '!mx.tile'}}
func.func private @no_parameters(!mx.tile)

// -----

!m = tensor<16x2xf8E4M3FN>
// expected-error @below {{malformed parameters; write it as !mx.tile<ROWSxCOLUMNSxELEMENT, SPACE, valid = ROWSxCOLUMNS>}}
func.func private @malformed(!mx.tile<!m, "mat", 16>)

// -----

// A type that was not read in custom spelling is caught by the operation's own check.
!m = tensor<16x2xf8E4M3FN>
func.func @operand(%x: !mx.tile<!m, "mat", [0x11, 2]>) {
  // expected-error @below {{'mx.tile_move' op input has invalid type '!mx.tile<16x2xf8E4M3FN, mat, valid = 17x2>': valid extent 17 of axis 0 must be at most the extent 16}}
  %0 = mx.tile_move %x : !mx.tile<!m, "mat", [0x11, 2]> -> !mx.tile<16x2xf8E4M3FN, left>
  return
}

// -----

// expected-error @below {{a layout names MX_A_ZZ or MX_B_NN, but has "ZZ"}}
func.func private @layout(tensor<64x4xf8E8M0FNU, #mx.layout<"ZZ">>)

// -----

// expected-error @below {{unknown attribute; the mx attributes are #mx.layout}}
func.func private @misspelt(tensor<64x4xf8E8M0FNU, #mx.layot<"MX_A_ZZ">>)

// -----

// expected-error @below {{expected 1 type arguments, but had 0}}
func.func private @no_value(tensor<64x4xf8E8M0FNU, #mx.layout>)

// -----

// expected-error @below {{a layout names MX_A_ZZ or MX_B_NN, but has nothing}}
func.func private @no_layout(tensor<64x4xf8E8M0FNU, #mx.layout<{strides = [4, 1]}>>)

// -----

// expected-error @below {{a layout names MX_A_ZZ or MX_B_NN, but has nothing}}
func.func private @number(tensor<64x4xf8E8M0FNU, #mx.layout<32 : i64>>)

// -----

// expected-error @below {{a layout has no entry 'stride'; it has layout, strides, valid_shape and distributed}}
func.func private @entry(tensor<64x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", stride = [4, 1]}>>)

// -----

// expected-error @below {{a tensor in layout MX_A_ZZ holds f8E8M0FNU or i8 or ui8, not f32}}
func.func private @layout_element(tensor<64x4xf32, #mx.layout<"MX_A_ZZ">>)

// -----

// expected-error @below {{strides of a layout must be a list of 2 integers >= 0, but is [4]}}
func.func private @strides(tensor<64x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [4]}>>)

// -----

// expected-error @below {{strides of a layout must be a list of 2 integers >= 0, but is [4, -1]}}
func.func private @negative_strides(tensor<64x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [4, -1]}>>)

// -----

// expected-error @below {{valid_shape of a layout must be a list of 2 integers >= 0, but is "all"}}
func.func private @valid_shape(tensor<64x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", valid_shape = "all"}>>)

// -----

// expected-error @below {{'distributed' of a layout has no value, but is true}}
func.func private @distributed(tensor<64x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", distributed = true}>>)

// -----

// Wherever a type can stand.
// expected-error @below {{a layout names MX_A_ZZ or MX_B_NN, but has "ZZ"}}
func.func private @nested() attributes {a = [(tuple<tensor<64x4xf8E8M0FNU, #mx.layout<"ZZ">>>) -> i32]}

// -----

func.func @values(%c: i1) {
  // expected-error @below {{a layout names MX_A_ZZ or MX_B_NN, but has "ZZ"}}
  %0 = tensor.empty() : tensor<64x4xf8E8M0FNU, #mx.layout<"ZZ">>
  return
}

// -----

// expected-error @below {{expected 0 type arguments, but had 1}}
func.func private @task(!mx.task<i32>)
