// RUN: mx-opt %s --mx-vectorize --split-input-file --verify-diagnostics | filecheck %s
// RUN: mx-opt %s --mx-vectorize=vector-lanes=4 --split-input-file --verify-diagnostics | filecheck %s --check-prefix=NARROW

// A matrix product: lanes along n, eight rows of m, one load of B for all rows; k one step at a time.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @matmul(
// CHECK-SAME: %[[A:.*]]: tensor<16x8xf32>, %[[B:.*]]: tensor<8x64xf32>, %[[C:.*]]: tensor<16x64xf32>)
// CHECK: scf.for %[[M:.*]] = %c0 to %c16 step %c8
// CHECK: scf.for %[[N:.*]] = %c0 to %c64 step %c32
// CHECK: scf.for %[[K:.*]] = %c0 to %c8 step %c1 iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<8x32xf32>)
// CHECK: %[[A0:.*]] = vector.transfer_read %[[A]][%[[M]], %[[K]]]
// CHECK: %[[A0S:.*]] = vector.broadcast %[[A0]] : vector<f32> to vector<32xf32>
// CHECK: %[[ROW:.*]] = vector.transfer_read %[[B]][%[[K]], %[[N]]]
// CHECK: %[[C0:.*]] = vector.transfer_read %[[ACC]][%c0, %c0]
// CHECK: %[[P0:.*]] = arith.mulf %[[A0S]], %[[ROW]] fastmath<contract> : vector<32xf32>
// CHECK: %[[S0:.*]] = arith.addf %[[C0]], %[[P0]] fastmath<contract> : vector<32xf32>
// CHECK: vector.transfer_write %[[S0]], %[[ACC]][%c0, %c0]
// CHECK-NOT: vector.transfer_read %[[B]]
// CHECK-COUNT-7: arith.mulf %{{.*}}, %[[ROW]] fastmath<contract>
// CHECK-NOT: arith.mulf
// CHECK-NOT: linalg.generic
// CHECK-NOT: mx_vectorize
// CHECK: return

// NARROW-LABEL: func.func @matmul(
// NARROW-COUNT-8: arith.mulf %{{.*}} : vector<8xf32>
// NARROW-NOT: arith.mulf
// NARROW: return
func.func @matmul(%a: tensor<16x8xf32>, %b: tensor<8x64xf32>, %c: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<16x8xf32>, tensor<8x64xf32>) outs(%c : tensor<16x64xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %1 = arith.mulf %x, %y : f32
    %2 = arith.addf %acc, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

// A computed operand is computed once for each tile of rows, into a panel of eight rows, not once for each n.

#a = affine_map<(m, n, kb, ki) -> (m, kb, ki)>
#s = affine_map<(m, n, kb, ki) -> (m, kb)>
#b = affine_map<(m, n, kb, ki) -> (kb, ki, n)>
#c = affine_map<(m, n, kb, ki) -> (m, n)>

// CHECK-LABEL: func.func @panel(
// CHECK: scf.for %[[M:.*]] = %c0 to %c16 step %c8
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<8x2x32xf32>
// CHECK: %[[PANEL:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[EMPTY]])
// CHECK: arith.sitofp %{{.*}} : vector<32xi8> to vector<32xf32>
// CHECK: scf.for %[[N:.*]] = %c0 to %c96 step %c32
// CHECK-NOT: arith.sitofp
// CHECK: vector.transfer_read %[[PANEL]]
// CHECK: arith.mulf
// CHECK: return
func.func @panel(%a: tensor<16x2x32xi8>, %s: tensor<16x2xf32>, %b: tensor<2x32x96xf32>, %c: tensor<16x96xf32>) -> tensor<16x96xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #s, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %s, %b : tensor<16x2x32xi8>, tensor<16x2xf32>, tensor<2x32x96xf32>) outs(%c : tensor<16x96xf32>) {
  ^bb0(%code: i8, %scale: f32, %y: f32, %acc: f32):
    %1 = arith.sitofp %code : i8 to f32
    %2 = arith.mulf %1, %scale : f32
    %3 = arith.mulf %2, %y : f32
    %4 = arith.addf %acc, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<16x96xf32>
  return %0 : tensor<16x96xf32>
}

// -----

// An operand that all rows share is computed before them, and stored so that the lanes are contiguous, whatever the
// order of the loops.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @shared_panel(
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<8x64xf32>
// CHECK: %[[PANEL:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[EMPTY]])
// CHECK: arith.sitofp %{{.*}} : vector<32xi8> to vector<32xf32>
// CHECK: scf.for %[[M:.*]] = %c0 to %c16 step %c8
// CHECK: scf.for %[[N:.*]] = %c0 to %c64 step %c32
// CHECK: scf.for %[[K:.*]] = %c0 to %c8 step %c1
// CHECK-NOT: arith.sitofp
// CHECK: vector.transfer_read %[[PANEL]][%[[K]], %[[N]]], %{{.*}} {in_bounds = [true]} : tensor<8x64xf32>, vector<32xf32>
// CHECK: return
func.func @shared_panel(%a: tensor<16x8xf32>, %b: tensor<8x64xi8>, %c: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<16x8xf32>, tensor<8x64xi8>) outs(%c : tensor<16x64xf32>) {
  ^bb0(%x: f32, %code: i8, %acc: f32):
    %1 = arith.sitofp %code : i8 to f32
    %2 = arith.mulf %x, %1 : f32
    %3 = arith.addf %acc, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// -----

// 37 = 32 + 5: the remainder gets a shorter vector. Values that are not accumulated keep their exact arithmetic.

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @remainder(
// CHECK: arith.mulf %{{.*}} : vector<32xf32>
// CHECK: arith.addf %{{.*}} : vector<32xf32>
// CHECK: arith.mulf %{{.*}} : vector<5xf32>
// CHECK: arith.addf %{{.*}} : vector<5xf32>
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @remainder(%x: tensor<37xf32>, %out: tensor<37xf32>) -> tensor<37xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<37xf32>) outs(%out : tensor<37xf32>) {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %a, %a : f32
    %2 = arith.addf %1, %b : f32
    linalg.yield %2 : f32
  } -> tensor<37xf32>
  return %0 : tensor<37xf32>
}

// -----

// The maximum over contiguous elements: lanes along the reduction, combined at the end.

#in = affine_map<(g, i) -> (g, i)>
#out = affine_map<(g, i) -> (g)>

// CHECK-LABEL: func.func @block_max(
// CHECK: %[[BITS:.*]] = arith.andi %{{.*}} : vector<32xi32>
// CHECK: vector.multi_reduction <maxui>, %[[BITS]], %{{.*}} [0] : vector<32xi32> to i32
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @block_max(%x: tensor<64x32xi32>, %out: tensor<64xi32>) -> tensor<64xi32> {
  %mask = arith.constant 2147483647 : i32
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x32xi32>) outs(%out : tensor<64xi32>) {
  ^bb0(%a: i32, %max: i32):
    %1 = arith.andi %a, %mask : i32
    %2 = arith.maxui %max, %1 : i32
    linalg.yield %2 : i32
  } -> tensor<64xi32>
  return %0 : tensor<64xi32>
}

// -----

// What vectors cannot run is left to loops.

#id = affine_map<(i) -> (i)>
#block = affine_map<(i) -> (i floordiv 32)>

// CHECK-LABEL: func.func @left(
func.func @left(%dynamic: tensor<?xf32>, %buffer: memref<32xf32>, %x: tensor<64xf32>, %scale: tensor<2xf32>,
                %code: tensor<32xf4E2M1FN>, %one: tensor<1xf32>, %none: tensor<0xf32>, %index: tensor<32xindex>)
    -> (tensor<?xf32>, tensor<64xf32>, tensor<32xf4E2M1FN>, tensor<1xf32>, tensor<0xf32>, tensor<32xindex>, tensor<64xf32>) {
  // CHECK: linalg.generic
  // expected-remark @below {{mx-vectorize leaves this linalg.generic as it is: dimension 0 of operand #0 is dynamic}}
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%dynamic : tensor<?xf32>) {
  ^bb0(%a: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>

  // CHECK: linalg.generic
  // expected-remark @below {{it works on buffers; vectorize before bufferization}}
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%buffer : memref<32xf32>) {
  ^bb0(%a: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  }

  // CHECK: linalg.generic
  // expected-remark @below {{operand #0 is indexed by 'd0 floordiv 32', not by a loop; run mx-expand-k first}}
  %1 = linalg.generic {indexing_maps = [#block, #id], iterator_types = ["parallel"]}
      ins(%scale : tensor<2xf32>) outs(%x : tensor<64xf32>) {
  ^bb0(%s: f32, %a: f32):
    %r = arith.mulf %a, %s : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>

  // CHECK: linalg.generic
  // expected-remark @below {{operand #0 holds f4E2M1FN: vectors pack what takes a byte each in memory}}
  %2 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%code : tensor<32xf4E2M1FN>) {
  ^bb0(%a: f4E2M1FN):
    %bits = arith.bitcast %a : f4E2M1FN to i4
    %twice = arith.addi %bits, %bits : i4
    %r = arith.bitcast %twice : i4 to f4E2M1FN
    linalg.yield %r : f4E2M1FN
  } -> tensor<32xf4E2M1FN>

  // CHECK: linalg.generic
  // expected-remark @below {{it has no loop to run in vectors}}
  %3 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%one : tensor<1xf32>) {
  ^bb0(%a: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<1xf32>

  // CHECK: linalg.generic
  // expected-remark @below {{its loop d0 has no iterations}}
  %4 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%none : tensor<0xf32>) {
  ^bb0(%a: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<0xf32>

  // CHECK: linalg.generic
  // expected-remark @below {{its body has a 'linalg.index', which is not scalar arithmetic}}
  %5 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%index : tensor<32xindex>) {
  ^bb0(%a: index):
    %i = linalg.index 0 : index
    %r = arith.addi %a, %i : index
    linalg.yield %r : index
  } -> tensor<32xindex>

  // CHECK: linalg.exp
  // expected-remark @below {{mx-vectorize leaves this linalg.exp as it is: it is not a linalg.generic; run linalg-generalize-named-ops first}}
  %6 = linalg.exp ins(%x : tensor<64xf32>) outs(%x : tensor<64xf32>) -> tensor<64xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<?xf32>, tensor<64xf32>, tensor<32xf4E2M1FN>, tensor<1xf32>, tensor<0xf32>, tensor<32xindex>, tensor<64xf32>
}
