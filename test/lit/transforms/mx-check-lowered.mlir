// RUN: mx-opt %s --mx-check-lowered --split-input-file --verify-diagnostics | filecheck %s

// Lowered: integers, ordinary floats, and data that keeps its MX type.

// CHECK-LABEL: llvm.func @lowered(
// CHECK: llvm.mlir.constant(1.000000e+00 : f8E4M3FN) : i8
llvm.mlir.global private constant @data(dense<1.0> : tensor<4xf8E4M3FN>) : !llvm.array<4 x i8>
llvm.func @lowered(%p: !llvm.ptr, %x: vector<4xf16>) -> i8 {
  %0 = llvm.mlir.constant(1.0 : f8E4M3FN) : i8
  %1 = llvm.fpext %x : vector<4xf16> to vector<4xf32>
  %2 = llvm.load %p : !llvm.ptr -> vector<16xi8>
  %3 = llvm.load %p : !llvm.ptr -> i6
  %4 = llvm.alloca %0 x !llvm.struct<"f8E4M3FN", (i8)> : (i8) -> !llvm.ptr
  llvm.return %0 : i8
}

// -----

// One error an operation, wherever the type is: results, operands, block arguments, attributes, element types.

// expected-error @below {{'func.func' has type 'f8E4M3FN', which does not exist in LLVM: run --convert-func-to-llvm}}
func.func @arguments(%x: f8E4M3FN, %m: memref<4xf4E2M1FN>) -> f32 {
  // expected-error @below {{'arith.extf' has type 'f8E4M3FN', which does not exist in LLVM: run --mx-expand-narrow-floats before the conversion to LLVM}}
  %0 = arith.extf %x : f8E4M3FN to f32
  %c0 = arith.constant 0 : index
  // expected-error @below {{'memref.load' has type 'f4E2M1FN', which does not exist in LLVM: run --finalize-memref-to-llvm}}
  %1 = memref.load %m[%c0] : memref<4xf4E2M1FN>
  return %0 : f32
}

// expected-error @below {{'func.func' has type '(vector<4xf6E2M3FN>) -> ()', which does not exist in LLVM: run --convert-func-to-llvm}}
func.func private @declaration(vector<4xf6E2M3FN>)

// expected-error @below {{'memref.global' has type 'memref<4xf6E3M2FN>', which does not exist in LLVM: run --finalize-memref-to-llvm}}
memref.global "private" @global : memref<4xf6E3M2FN> = dense<1.0>

// -----

llvm.func @arith(%b: i1) {
  // expected-error @below {{'arith.constant' has type 'vector<4xf8E8M0FNU>', which does not exist in LLVM: run --convert-arith-to-llvm}}
  %0 = arith.constant dense<1.0> : vector<4xf8E8M0FNU>
  // expected-error @below {{'arith.addf' has type 'vector<4xf8E8M0FNU>', which does not exist in LLVM: compute in f32, and run --mx-expand-narrow-floats}}
  %1 = arith.addf %0, %0 : vector<4xf8E8M0FNU>
  // expected-error @below {{'arith.constant' has type 'f8E4M3FNUZ', which does not exist in LLVM: f8E4M3FNUZ is not an MX format and nothing lowers it; convert it to f32 where it arises}}
  %2 = arith.constant 1.0 : f8E4M3FNUZ
  llvm.return
}

// -----

llvm.func @casts(%x: i8) -> i8 {
  // expected-error @below {{'builtin.unrealized_conversion_cast' to 'f8E4M3FN' is left: lower the operations on both sides of it, then run --reconcile-unrealized-casts}}
  %0 = builtin.unrealized_conversion_cast %x : i8 to f8E4M3FN
  // expected-error @below {{'builtin.unrealized_conversion_cast' to 'i8' is left}}
  %1 = builtin.unrealized_conversion_cast %0 : f8E4M3FN to i8
  llvm.return %1 : i8
}

// -----

// LLVM keeps the 16 elements in 12 bytes; a buffer of f6 has one a byte.

llvm.func @packed(%p: !llvm.ptr) {
  // expected-error @below {{'llvm.load' of 'vector<16xi6>' packs elements that buffers hold one a byte: access vectors of i8}}
  %0 = llvm.load %p : !llvm.ptr -> vector<16xi6>
  // expected-error @below {{'llvm.store' of 'vector<16xi6>' packs}}
  llvm.store %0, %p : vector<16xi6>, !llvm.ptr
  llvm.return
}

// -----

// expected-error @below {{'func.func' has type '!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>', which does not exist in LLVM: run --mx-to-linalg}}
func.func @mx(%a: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
  // expected-error @below {{'func.return' has type '!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>', which does not exist in LLVM: run --mx-to-linalg}}
  return %a : !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
}
