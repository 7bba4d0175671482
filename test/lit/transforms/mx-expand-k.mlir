// RUN: mx-opt %s --mx-expand-k --split-input-file --verify-diagnostics | filecheck %s

// A block-scaled matmul: k becomes (kb, ki) in place, the scale is read at kb.

#a = affine_map<(m, n, k) -> (m, k)>
#scale = affine_map<(m, n, k) -> (m, k floordiv 32)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[SCALE:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK-LABEL: func.func @block_matmul(
// CHECK-SAME: %[[ARG0:.*]]: tensor<32x64xf8E4M3FN>, %[[ARG1:.*]]: tensor<32x2xf8E8M0FNU>, %[[ARG2:.*]]: tensor<64x64xf32>, %[[ARG3:.*]]: tensor<32x64xf32>)
// CHECK: %[[EA:.*]] = tensor.expand_shape %[[ARG0]] {{\[\[}}0], [1, 2]] output_shape [32, 2, 32]
// CHECK: %[[EB:.*]] = tensor.expand_shape %[[ARG2]] {{\[\[}}0, 1], [2]] output_shape [2, 32, 64]
// CHECK: %[[R:.*]] = linalg.generic
// CHECK-SAME: indexing_maps = [#[[A]], #[[SCALE]], #[[B]], #[[C]]]
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME: ins(%[[EA]], %[[ARG1]], %[[EB]] :
// CHECK-SAME: outs(%[[ARG3]] :
// CHECK: return %[[R]]
func.func @block_matmul(%a: tensor<32x64xf8E4M3FN>, %scale: tensor<32x2xf8E8M0FNU>, %b: tensor<64x64xf32>, %c: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #scale, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %scale, %b : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>, tensor<64x64xf32>) outs(%c : tensor<32x64xf32>) {
  ^bb0(%x: f8E4M3FN, %s: f8E8M0FNU, %y: f32, %acc: f32):
    %1 = arith.extf %x : f8E4M3FN to f32
    %2 = arith.extf %s : f8E8M0FNU to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.mulf %3, %y : f32
    %5 = arith.addf %acc, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// -----

// The outs operand holds the split loop: it is expanded and the result collapsed. Other dimensions may be dynamic,
// linalg.index keeps its meaning, attributes stay.

#id = affine_map<(d0, d1) -> (d0, d1)>
#scale = affine_map<(d0, d1) -> (d0 floordiv 16, d1)>

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[SCALE:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[WHOLE:.*]] = affine_map<(d0, d1) -> (d0 * 16 + d1)>
// CHECK-LABEL: func.func @dequantize(
// CHECK-SAME: %[[X:.*]]: tensor<64x?xf32>, %[[S:.*]]: tensor<4x?xf32>, %[[OUT:.*]]: tensor<64x?xf32>)
// CHECK: %[[X_DIM:.*]] = tensor.dim %[[X]]
// CHECK: %[[EX:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0, 1], [2]] output_shape [4, 16, %[[X_DIM]]]
// CHECK: %[[OUT_DIM:.*]] = tensor.dim %[[OUT]]
// CHECK: %[[EOUT:.*]] = tensor.expand_shape %[[OUT]] {{\[\[}}0, 1], [2]] output_shape [4, 16, %[[OUT_DIM]]]
// CHECK: %[[R:.*]] = linalg.generic {doc = "kept", indexing_maps = [#[[ID]], #[[SCALE]], #[[ID]]]
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel"]
// CHECK-SAME: ins(%[[EX]], %[[S]] :
// CHECK-SAME: outs(%[[EOUT]] :
// CHECK-SAME: mx.note = "kept too"
// CHECK: %[[KB:.*]] = linalg.index 0
// CHECK: %[[KI:.*]] = linalg.index 1
// CHECK: %[[K:.*]] = affine.apply #[[WHOLE]](%[[KB]], %[[KI]])
// CHECK: %[[N:.*]] = linalg.index 2
// CHECK: arith.addi %[[K]], %[[N]]
// CHECK: %[[COLLAPSED:.*]] = tensor.collapse_shape %[[R]] {{\[\[}}0, 1], [2]] : tensor<4x16x?xf32> into tensor<64x?xf32>
// CHECK: return %[[COLLAPSED]]
func.func @dequantize(%x: tensor<64x?xf32>, %s: tensor<4x?xf32>, %out: tensor<64x?xf32>) -> tensor<64x?xf32> {
  %0 = linalg.generic {doc = "kept", indexing_maps = [#id, #scale, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<64x?xf32>, tensor<4x?xf32>) outs(%out : tensor<64x?xf32>) attrs = {mx.note = "kept too"} {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %k = linalg.index 0 : index
    %n = linalg.index 1 : index
    %sum = arith.addi %k, %n : index
    %int = arith.index_cast %sum : index to i32
    %float = arith.sitofp %int : i32 to f32
    %product = arith.mulf %element, %scale : f32
    %result = arith.mulf %product, %float : f32
    linalg.yield %result : f32
  } -> tensor<64x?xf32>
  return %0 : tensor<64x?xf32>
}

// -----

// Two divided loops, each in its place; `mod` reads a table that repeats in each block.

#id = affine_map<(d0, d1) -> (d0, d1)>
#scale = affine_map<(d0, d1) -> (d1 floordiv 8, d0 floordiv 4)>
#table = affine_map<(d0, d1) -> (d1 mod 8)>

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[SCALE:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d0)>
// CHECK-DAG: #[[TABLE:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-LABEL: func.func @two_loops(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2, 3]] output_shape [3, 4, 2, 8]
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[SCALE]], #[[TABLE]], #[[ID]]]
func.func @two_loops(%x: tensor<12x16xf32>, %s: tensor<2x3xf32>, %t: tensor<8xf32>, %out: tensor<12x16xf32>) -> tensor<12x16xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #scale, #table, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %t : tensor<12x16xf32>, tensor<2x3xf32>, tensor<8xf32>) outs(%out : tensor<12x16xf32>) {
  ^bb0(%element: f32, %scale: f32, %entry: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    %2 = arith.addf %1, %entry : f32
    linalg.yield %2 : f32
  } -> tensor<12x16xf32>
  return %0 : tensor<12x16xf32>
}

// -----

// Two block sizes along one loop, as when A is blocked by 32 and B by 16: what 16 divides is itself two loops long.

#id = affine_map<(k) -> (k)>

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[BY32:.*]] = affine_map<(d0, d1, d2) -> (d0)>
// CHECK-DAG: #[[BY16:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2) -> ()>
// CHECK-LABEL: func.func @two_block_sizes(
// CHECK-SAME: %[[A:.*]]: tensor<64xf32>, %[[AS:.*]]: tensor<2xf32>, %[[B:.*]]: tensor<64xf32>, %[[BS:.*]]: tensor<4xf32>,
// CHECK: %[[EA:.*]] = tensor.expand_shape %[[A]] {{\[\[}}0, 1, 2]] output_shape [2, 2, 16]
// CHECK: %[[EB:.*]] = tensor.expand_shape %[[B]] {{\[\[}}0, 1, 2]] output_shape [2, 2, 16]
// CHECK: %[[EBS:.*]] = tensor.expand_shape %[[BS]] {{\[\[}}0, 1]] output_shape [2, 2]
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[BY32]], #[[ID]], #[[BY16]], #[[OUT]]]
// CHECK-SAME: ins(%[[EA]], %[[AS]], %[[EB]], %[[EBS]] :
func.func @two_block_sizes(%a: tensor<64xf32>, %as: tensor<2xf32>, %b: tensor<64xf32>, %bs: tensor<4xf32>, %c: tensor<f32>) -> tensor<f32> {
  %0 = linalg.generic {indexing_maps = [#id, affine_map<(k) -> (k floordiv 32)>, #id, affine_map<(k) -> (k floordiv 16)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]}
      ins(%a, %as, %b, %bs : tensor<64xf32>, tensor<2xf32>, tensor<64xf32>, tensor<4xf32>) outs(%c : tensor<f32>) {
  ^bb0(%x: f32, %xs: f32, %y: f32, %ys: f32, %acc: f32):
    %1 = arith.mulf %x, %xs : f32
    %2 = arith.mulf %y, %ys : f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %acc, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A maximum per block reduces inside each block only: kb is parallel.

// CHECK-LABEL: func.func @block_maximum(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME: outs(%{{.*}} : tensor<4x2xf32>)
func.func @block_maximum(%x: tensor<4x64xf32>, %out: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k floordiv 32)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x64xf32>) outs(%out : tensor<4x2xf32>) {
  ^bb0(%element: f32, %maximum: f32):
    %1 = arith.maximumf %element, %maximum : f32
    linalg.yield %1 : f32
  } -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// Buffers: a view in, nothing to collapse. Only what is reshaped must be contiguous.

// CHECK-LABEL: func.func @buffers(
// CHECK-SAME: %[[X:.*]]: memref<4x64xf32, 1>,
// CHECK: memref.expand_shape %[[X]] {{\[\[}}0], [1, 2]] output_shape [4, 2, 32] : memref<4x64xf32, 1> into memref<4x2x32xf32, 1>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : memref<4x2x32xf32, 1>, memref<4x2xf32, strided<[8, 1]>>)
// CHECK-NOT: collapse_shape
// CHECK: return
func.func @buffers(%x: memref<4x64xf32, 1>, %s: memref<4x2xf32, strided<[8, 1]>>) {
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k floordiv 32)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<4x64xf32, 1>, memref<4x2xf32, strided<[8, 1]>>) outs(%x : memref<4x64xf32, 1>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// No blocks at all.

// CHECK-LABEL: func.func @empty(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [0, 32] : tensor<0xf32> into tensor<0x32xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]
func.func @empty(%x: tensor<0xf32>, %s: tensor<0xf32>, %c: tensor<f32>) -> tensor<f32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k floordiv 32)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]}
      ins(%x, %s : tensor<0xf32>, tensor<0xf32>) outs(%c : tensor<f32>) {
  ^bb0(%element: f32, %scale: f32, %acc: f32):
    %1 = arith.mulf %element, %scale : f32
    %2 = arith.addf %acc, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Nothing divides here, so nothing is said.

// CHECK-LABEL: func.func @undivided(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @undivided(%x: tensor<66xf32>, %w: tensor<3xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0 + d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<66xf32>, tensor<3xf32>) outs(%out : tensor<64xf32>) {
  ^bb0(%element: f32, %weight: f32, %acc: f32):
    %1 = arith.mulf %element, %weight : f32
    %2 = arith.addf %acc, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// A dynamic extent: the number of blocks is not known.

// CHECK-LABEL: func.func @dynamic(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @dynamic(%x: tensor<?xf32>, %s: tensor<?xf32>, %out: tensor<?xf32>) -> tensor<?xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: dimension 0 of operand #0 is dynamic, and d0 is split only if static}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<?xf32>, tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A dynamic scale may be longer than K / 32, which `floordiv` allows and a loop does not.

// CHECK-LABEL: func.func @dynamic_scale(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @dynamic_scale(%x: tensor<64xf32>, %s: tensor<?xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: dimension 0 of operand #1 is dynamic, and d0 is split only if static}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<64xf32>, tensor<?xf32>) outs(%out : tensor<64xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// So may a static one.

// CHECK-LABEL: func.func @longer_scale(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @longer_scale(%x: tensor<64xf32>, %s: tensor<3xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: dimension 0 of operand #1 is 3 long, and only 2 of it are used; take a slice first}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<64xf32>, tensor<3xf32>) outs(%out : tensor<64xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// An incomplete last block.

// CHECK-LABEL: func.func @partial_block(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @partial_block(%x: tensor<48xf32>, %s: tensor<2xf32>, %out: tensor<48xf32>) -> tensor<48xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: the extent 48 of d0 is not a multiple of 32; pad it to whole blocks first}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<48xf32>, tensor<2xf32>) outs(%out : tensor<48xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<48xf32>
  return %0 : tensor<48xf32>
}

// -----

// A division inside another expression.

// CHECK-LABEL: func.func @compound(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @compound(%x: tensor<64xf32>, %s: tensor<3xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: operand #1 is indexed by '(d0 floordiv 32) * 2', not by d, d floordiv c, d mod c or 0}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ((d0 floordiv 32) * 2)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<64xf32>, tensor<3xf32>) outs(%out : tensor<64xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// A constant other than 0 is no projected permutation either.

// CHECK-LABEL: func.func @constant(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @constant(%x: tensor<64xf32>, %s: tensor<2x2xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: operand #1 is indexed by '1', not by d, d floordiv c, d mod c or 0}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32, 1)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<64xf32>, tensor<2x2xf32>) outs(%out : tensor<64xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// Both the block and the element: kb would index two dimensions.

// CHECK-LABEL: func.func @loop_twice(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @loop_twice(%x: tensor<64xf32>, %s: tensor<2x64xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: the map of operand #1 uses a loop twice}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32, d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<64xf32>, tensor<2x64xf32>) outs(%out : tensor<64xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// Blocks of 32 and of 48 share no boundaries.

// CHECK-LABEL: func.func @unrelated_divisors(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @unrelated_divisors(%x: tensor<96xf32>, %s: tensor<3x2xf32>, %out: tensor<96xf32>) -> tensor<96xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: d0 is divided by 48 and by 32, and neither divides the other}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32, d0 floordiv 48)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<96xf32>, tensor<3x2xf32>) outs(%out : tensor<96xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<96xf32>
  return %0 : tensor<96xf32>
}

// -----

// An encoding describes the shape it is on.

// CHECK-LABEL: func.func @encoding(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @encoding(%x: tensor<64xf32, "layout">, %s: tensor<2xf32>, %out: tensor<64xf32>) -> tensor<64xf32> {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: operand #0 has the encoding "layout", which a reshape would not keep true}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<64xf32, "layout">, tensor<2xf32>) outs(%out : tensor<64xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// A buffer with gaps.

// CHECK-LABEL: func.func @strided(
// CHECK-NOT: expand_shape
// CHECK: return
func.func @strided(%x: memref<64xf32, strided<[2]>>, %s: memref<2xf32>, %out: memref<64xf32>) {
  // expected-remark @below {{mx-expand-k leaves this linalg.generic as it is: operand #0 has the layout strided<[2]>, and only a contiguous one is reshaped}}
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 floordiv 32)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x, %s : memref<64xf32, strided<[2]>>, memref<2xf32>) outs(%out : memref<64xf32>) {
  ^bb0(%element: f32, %scale: f32, %old: f32):
    %1 = arith.mulf %element, %scale : f32
    linalg.yield %1 : f32
  }
  return
}
