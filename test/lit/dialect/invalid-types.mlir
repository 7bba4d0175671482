// RUN: mx-opt %s --split-input-file --verify-diagnostics

// Every rule of the type, in either spelling and wherever a type can stand.

// expected-error @below {{block size must be a power of two >= 1, but is 48}}
func.func private @block(!mx.tensor<32x96xf8E4M3FN, block_size = 48, scale_type = f8E8M0FNU>)

// -----

// expected-error @below {{block size must be a power of two >= 1, but is 0}}
func.func private @zero(!mx.tensor<32x96xf8E4M3FN, block_size = 0, scale_type = f8E8M0FNU>)

// -----

// expected-error @below {{extent 70 of blocked axis 1 is not a multiple of block size 32}}
func.func private @divisible(!mx.tensor<4x70xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>)

// -----

// expected-error @below {{extent 4 of blocked axis 0 is not a multiple of block size 32}}
func.func private @axis_divisible(!mx.tensor<4x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>)

// -----

// expected-error @below {{axis 2 is out of range for an mx tensor of rank 2}}
func.func private @axis(!mx.tensor<4x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 2>)

// -----

// expected-error @below {{'f32' is not an MX element type; expected one of f8E5M2, f8E4M3FN, f6E3M2FN, f6E2M3FN, f4E2M1FN, i8}}
func.func private @element(!mx.tensor<4x64xf32, block_size = 32, scale_type = f8E8M0FNU>)

// -----

// expected-error @below {{'f32' is not a supported scale type; expected one of f8E8M0FNU, f8E4M3FN}}
func.func private @scale(!mx.tensor<4x64xf8E4M3FN, block_size = 32, scale_type = f32>)

// -----

// expected-error @below {{mx tensor must have rank 1 or more}}
func.func private @rank(!mx.tensor<f8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>)

// -----

// The storage spelling.
// expected-error @below {{extent 70 of blocked axis 1 is not a multiple of block size 32}}
func.func private @storage(!mx.tensor<tensor<4x70xf8E4M3FN>, 32 : i64, f8E8M0FNU, 1 : i64>)

// -----

// An alias is reported where it is written.
// expected-error @below {{block size must be a power of two >= 1, but is 3}}
!t = !mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>
func.func private @alias(!t)

// -----

// expected-error @below {{block size must be a power of two >= 1, but is 3}}
func.func private @attribute() attributes {my.type = !mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>}

// -----

// expected-error @below {{block size must be a power of two >= 1, but is 3}}
func.func private @nested(tuple<i32, !mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>>)
