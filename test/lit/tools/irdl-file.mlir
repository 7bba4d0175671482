// Dialects defined in IRDL stand beside mx operations, in each piece of a file; their constraints are checked.
// RUN: mx-opt %s --irdl-file=%S/Inputs/cmath.irdl --split-input-file --verify-diagnostics --verify-roundtrip | filecheck %s
// RUN: not mx-opt %s --irdl-file=%S/Inputs/none.irdl 2>&1 | filecheck %s --check-prefix=NONE
// RUN: mx-opt --emit-irdl | filecheck %s --check-prefix=IRDL

// NONE: error: cannot open input file '{{.*}}none.irdl'
// IRDL: irdl.dialect @mx {
// IRDL-DAG: irdl.type @tensor {
// IRDL-DAG: irdl.operation @block_matmul {
// CHECK: "cmath.norm"(%{{.*}}) : (!cmath.complex<f32>) -> f32
// CHECK: mx.fold_scale
func.func @both(%x: !mx.tensor<4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>, %c: !cmath.complex<f32>) -> !mx.tensor<4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU> {
  %n = "cmath.norm"(%c) : (!cmath.complex<f32>) -> f32
  %0 = mx.fold_scale %x, %n : <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>, f32 -> <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>
  return %0 : !mx.tensor<4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>
}

// -----

func.func @constraint(%c: !cmath.complex<f32>) -> f64 {
  // expected-error @below {{expected 'f32' but got 'f64'}}
  %n = "cmath.norm"(%c) : (!cmath.complex<f32>) -> f64
  return %n : f64
}
