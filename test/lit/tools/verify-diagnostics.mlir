// Every form of expectation, met.
// RUN: mx-opt %s --split-input-file --verify-diagnostics

func.func private @same(!mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>) // expected-error {{power of two}}

// -----

// expected-error @+1 {{power of two}}
func.func private @plus(!mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>)

// -----

func.func private @minus(!mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>)
// expected-error @-1 {{power of two}}

// -----

func.func private @above(!mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>)
// expected-error @above {{power of two}}

// -----

// expected-error-re @below {{power of {{(two|three)}} >= 1, but is {{[0-9]+}}}}
func.func private @regular(!mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>)

// -----

func.func @note(%x: tensor<4xf32>) { // expected-note {{prior use here}}
  // expected-error @below {{expects different type than prior uses}}
  %0 = arith.addf %x, %x : tensor<5xf32>
  return
}
