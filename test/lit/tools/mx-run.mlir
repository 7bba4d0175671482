// RUN: mx-run %s --entry=matmul --random --check | filecheck %s --check-prefix=BOUND
// RUN: mx-run %s --entry=matmul --random --check --pass-pipeline=mx-to-linalg | filecheck %s --check-prefix=BOUND
// RUN: mx-run %s --entry=one --arg=x=41 | filecheck %s --check-prefix=ONE
// RUN: mx-run %s --entry=loop --arg=x=1 --check | filecheck %s --check-prefix=LOOP
// RUN: not mx-run %s --entry=other --arg=x=1 --check 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: not mx-run %s --entry=one 2>&1 | filecheck %s --check-prefix=MISSING

// BOUND: check against the reference of @matmul:
// BOUND-NEXT: result0: ok, max error {{.*}}, bound there {{.*}}
func.func @matmul(%a: !mx.tensor<4x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>, %b: tensor<64x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = mx.block_matmul %a, %b, %c : <4x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// ONE: result0: i32 = 42
// MISSING: mx-run: error: argument 0 (x) is not given; @one takes (x: i32); --random makes it up
func.func @one(%x: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %0 = arith.addi %x, %c1 : i32
  return %0 : i32
}

// LOOP: check against the reference of @loop:
// LOOP-NEXT: result0: ok, all 1 values equal
func.func @loop(%x: i32) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (i32) {
    %1 = arith.addi %a, %a : i32
    scf.yield %1 : i32
  }
  return %0 : i32
}

// OTHER: mx-run.mlir:38:8: error: 'tensor.from_elements' op is not evaluated by --check
func.func @other(%x: i32) -> tensor<2xi32> {
  %0 = tensor.from_elements %x, %x : tensor<2xi32>
  return %0 : tensor<2xi32>
}
