// RUN: mx-opt %s --split-input-file --verify-diagnostics --mx-legalize-cast

// expected-error @below {{'func.func' op has an FP4 tile in left, but the matrix unit multiplies f8E4M3FN only; cast the tile to f8E4M3FN with mx.tile_cast before it is moved there}}
func.func @parameter(%x: !mx.tile<16x64xf4E2M1FN, left>) attributes {mx.kernel = "aic"} {
  return
}

// -----

func.func @moved(%x: !mx.tile<16x64xf4E2M1FN, mat>) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.tile_move' op has an FP4 tile in right}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf4E2M1FN, mat> -> !mx.tile<16x64xf4E2M1FN, right>
  return
}

// -----

// The cast does not need the moved tile, but something else holds it.

func.func @moved_and_kept(%x: !mx.tile<16x64xf4E2M1FN, mat>) -> !mx.tile<16x64xf4E2M1FN, left> attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.tile_move' op has an FP4 tile in left}}
  %0 = mx.tile_move %x : !mx.tile<16x64xf4E2M1FN, mat> -> !mx.tile<16x64xf4E2M1FN, left>
  %1 = mx.tile_cast %0 : !mx.tile<16x64xf4E2M1FN, left> -> !mx.tile<16x64xf8E4M3FN, vec>
  return %0 : !mx.tile<16x64xf4E2M1FN, left>
}

// -----

func.func @stuck(%x: !mx.tile<16x64xf4E2M1FN, left>) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.tile_cast' op takes its input in vec, but it lies in left, from which no way leads there; cast the tile before it is moved}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN, left> -> !mx.tile<16x64xf8E4M3FN, vec>
  return
}

// -----

func.func @to_acc(%x: !mx.tile<16x64xf4E2M1FN, vec>) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.tile_cast' op gives its result in vec, from which no way leads to acc}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN, vec> -> !mx.tile<16x64xf8E4M3FN, acc>
  return
}

// -----

func.func @to_scale(%x: !mx.tile<16x64xf4E2M1FN, vec>) attributes {mx.kernel = "aic"} {
  // expected-error @below {{'mx.tile_cast' op gives its result in vec, from which no way leads to left_scale}}
  %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN, vec> -> !mx.tile<16x64xf8E4M3FN, left_scale>
  return
}
