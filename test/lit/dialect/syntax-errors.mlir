// RUN: mx-opt %s --split-input-file --verify-diagnostics
// RUN: not mx-opt %s --split-input-file 2>&1 | filecheck %s --strict-whitespace

// What cannot be read as custom assembly. The caret stands under the user's own text, behind a two-byte character too.

// CHECK: syntax-errors.mlir:[[# @LINE + 4]]:47: error: unknown operation 'mx.block_matmull'; did you mean 'mx.block_matmul'?
// CHECK-NEXT: func.func @misspelt() attributes
// CHECK-NEXT: {{^ {45}\^$}}
// expected-error @below {{unknown operation 'mx.block_matmull'; did you mean 'mx.block_matmul'?}}
func.func @misspelt() attributes {s = "é"} { mx.block_matmull %a : i32 -> i32 }

// -----

func.func @misspelt_generic() {
  // expected-error @below {{unknown operation 'mx.composee'; did you mean 'mx.compose' or 'mx.decompose'?}}
  "mx.composee"() : () -> ()
  return
}

// -----

// CHECK: syntax-errors.mlir:[[# @LINE + 4]]:34: error: unknown type '!mx.tenser'; did you mean '!mx.tensor'?
// CHECK-NEXT: func.func private @misspelt_type(
// CHECK-NEXT: {{^ {33}\^$}}
// expected-error @below {{unknown type '!mx.tenser'; did you mean '!mx.tensor'?}}
func.func private @misspelt_type(!mx.tenser<32xi8, block_size = 32, scale_type = f8E8M0FNU>)

// -----

func.func @operand_count(%a: tensor<32xi8>) {
  // expected-error @below {{mx.compose takes 2 operands, got 1}}
  %0 = mx.compose %a : tensor<32xi8> -> <32xi8, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

func.func @operand_types(%a: tensor<32xi8>, %b: tensor<1xf8E8M0FNU>) {
  // expected-error @below {{mx.compose has 2 operands but 1 operand type}}
  %0 = mx.compose %a, %b : tensor<32xi8> -> <32xi8, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

func.func @functional_type(%a: tensor<32xi8>, %b: tensor<1xf8E8M0FNU>) {
  // expected-error @below {{mx.compose has 2 operands but 1 operand type; write them without parentheses}}
  %0 = mx.compose %a, %b : (tensor<32xi8>, tensor<1xf8E8M0FNU>) -> !mx.tensor<32xi8, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

func.func @result_types(%a: !mx.tensor<32xi8, block_size = 32, scale_type = f8E8M0FNU>) {
  // expected-error @below {{mx.decompose has 2 results but 1 result type; write several as (T1, T2)}}
  %0:2 = mx.decompose %a : <32xi8, block_size = 32, scale_type = f8E8M0FNU> -> tensor<32xi8>, tensor<1xf8E8M0FNU>
  return
}

// -----

func.func @parentheses(%a: tensor<32xi8>, %b: tensor<1xf8E8M0FNU>) {
  // expected-error @below {{expected operands of mx.compose without parentheses, or its name in quotes}}
  %0 = mx.compose(%a, %b) : tensor<32xi8>, tensor<1xf8E8M0FNU> -> <32xi8, block_size = 32, scale_type = f8E8M0FNU>
  return
}

// -----

func.func @no_types(%a: tensor<32xi8>, %b: tensor<1xf8E8M0FNU>) {
  // expected-error @below {{expected ':' and the types of mx.compose}}
  %0 = mx.compose %a, %b
  return
}

// -----

func.func @no_result_type(%a: tensor<32xi8>, %b: tensor<1xf8E8M0FNU>) {
  // expected-error @below {{expected '->' and the result type of mx.compose}}
  %0 = mx.compose %a, %b : tensor<32xi8>, tensor<1xf8E8M0FNU>
  return
}

// -----

// expected-error @below {{the '<' of this type is never closed}}
func.func private @open(!mx.tensor<32xi8, block_size = 32, scale_type = f8E8M0FNU)

// -----

// expected-error @below {{missing parameter 'block_size'; write for example 'block_size = 32'}}
func.func private @no_block_size(!mx.tensor<32xi8, scale_type = f8E8M0FNU>)

// -----

// expected-error @below {{unknown parameter 'blocksize'; did you mean 'block_size'?}}
func.func private @unknown_parameter(!mx.tensor<32xi8, blocksize = 32, scale_type = f8E8M0FNU>)

// -----

// expected-error @below {{parameter 'axis' is given twice}}
func.func private @twice(!mx.tensor<32xi8, block_size = 32, scale_type = f8E8M0FNU, axis = 0, axis = 0>)

// -----

// expected-error @below {{axis must not be negative, but is -1; count from the front}}
func.func private @negative(!mx.tensor<32xi8, block_size = 32, scale_type = f8E8M0FNU, axis = -1>)

// -----

// expected-error @below {{block_size does not fit a signed 64-bit integer: 9223372036854775808}}
func.func private @huge(!mx.tensor<32xi8, block_size = 9223372036854775808, scale_type = f8E8M0FNU>)

// -----

// Each distinct invalid type is reported once, where it first occurs.
// expected-error @below {{block size must be a power of two >= 1, but is 3}}
func.func private @first(!mx.tensor<6xi8, block_size = 3, scale_type = f8E8M0FNU>)
func.func private @again(!mx.tensor<6xi8, block_size = 3, scale_type = f8E8M0FNU>)
// expected-error @below {{block size must be a power of two >= 1, but is 5}}
func.func private @second(!mx.tensor<10xi8, block_size = 5, scale_type = f8E8M0FNU>)

// -----

// MLIR's own errors, behind text that translation moved.
// CHECK: syntax-errors.mlir:[[# @LINE + 5]]:102: error: use of undeclared SSA value name
// CHECK-NEXT: return %b
// CHECK-NEXT: {{^ {101}\^$}}
func.func @undeclared(
    // expected-error @below {{use of undeclared SSA value name}}
    %a: !mx.tensor<32xi8, block_size = 32, scale_type = f8E8M0FNU>) attributes {mx.a = f32} { return %b : f32 }
