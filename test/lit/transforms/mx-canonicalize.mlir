// RUN: mx-opt %s --mx-canonicalize | filecheck %s
// RUN: mx-opt %s --canonicalize | filecheck %s
// RUN: mx-opt %s --pass-pipeline='builtin.module(func.func(canonicalize))' | filecheck %s

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>

// CHECK-LABEL: func.func @merge(
// CHECK: %[[F:.*]] = arith.constant 3.200000e+01 : f32
// CHECK: %[[R:.*]] = mx.fold_scale %{{.*}}, %[[F]]
// CHECK-NEXT: return %[[R]]
func.func @merge(%x: !t) -> !t {
  %a = arith.constant 4.0 : f32
  %b = arith.constant 8.0 : f32
  %0 = mx.fold_scale %x, %a : !t, f32 -> !t
  %1 = mx.fold_scale %0, %b : !t, f32 -> !t
  return %1 : !t
}

// Factors known only at run time are multiplied there, innermost first.
// CHECK-LABEL: func.func @merge_dynamic(
// CHECK-SAME: %[[A:[a-z0-9]+]]: f32, %[[B:[a-z0-9]+]]: f32)
// CHECK: %[[F:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[R:.*]] = mx.fold_scale %{{.*}}, %[[F]]
// CHECK-NEXT: return %[[R]]
func.func @merge_dynamic(%x: !t, %a: f32, %b: f32) -> !t {
  %0 = mx.fold_scale %x, %a : !t, f32 -> !t
  %1 = mx.fold_scale %0, %b : !t, f32 -> !t
  return %1 : !t
}

// CHECK-LABEL: func.func @identity(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !mx.tensor
// CHECK-NOT: mx.fold_scale
// CHECK: return %[[X]]
func.func @identity(%x: !t) -> !t {
  %a = arith.constant 1.0 : f32
  %0 = mx.fold_scale %x, %a : !t, f32 -> !t
  return %0 : !t
}

// CHECK-LABEL: func.func @negative_one_is_not_the_identity(
// CHECK: mx.fold_scale
func.func @negative_one_is_not_the_identity(%x: !t) -> !t {
  %a = arith.constant -1.0 : f32
  %0 = mx.fold_scale %x, %a : !t, f32 -> !t
  return %0 : !t
}

// CHECK-LABEL: func.func @dequantize(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !mx.tensor<{{.*}}>, %[[F:[a-z0-9]+]]: f32)
// CHECK-DAG: %[[D:.*]] = mx.dequantize_block %[[X]]
// CHECK-DAG: %[[S:.*]] = tensor.splat %[[F]] : tensor<32x64xf32>
// CHECK: %[[R:.*]] = arith.mulf %[[D]], %[[S]] : tensor<32x64xf32>
// CHECK: return %[[R]]
func.func @dequantize(%x: !t, %f: f32) -> tensor<32x64xf32> {
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  %1 = mx.dequantize_block %0 : !t -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}

// A 16-bit result is rounded once, after the factor.
// CHECK-LABEL: func.func @dequantize_f16(
// CHECK: %[[D:.*]] = mx.dequantize_block %{{.*}} -> tensor<32x64xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[D]], %{{.*}} : tensor<32x64xf32>
// CHECK: arith.truncf %[[P]] : tensor<32x64xf32> to tensor<32x64xf16>
func.func @dequantize_f16(%x: !t, %f: f32) -> tensor<32x64xf16> {
  %0 = mx.fold_scale %x, %f : !t, f32 -> !t
  %1 = mx.dequantize_block %0 : !t -> tensor<32x64xf16>
  return %1 : tensor<32x64xf16>
}

// CHECK-LABEL: func.func @dynamic_extents(
// CHECK: tensor.splat %{{.*}}[%{{.*}}, %{{.*}}] : tensor<?x?xf32>
func.func @dynamic_extents(%x: !mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %f: f32) -> tensor<?x?xf32> {
  %0 = mx.fold_scale %x, %f : <?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, f32 -> <?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  %1 = mx.dequantize_block %0 : <?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @recompose(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !mx.tensor
// CHECK-NEXT: return %[[X]]
func.func @recompose(%x: !t) -> !t {
  %0:2 = mx.decompose %x : !t -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  %1 = mx.compose %0#0, %0#1 : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU> -> !t
  return %1 : !t
}

// The parts of two different tensors do not make one of them.
// CHECK-LABEL: func.func @mixed_parts(
// CHECK: %[[R:.*]] = mx.compose
// CHECK: return %[[R]]
func.func @mixed_parts(%x: !t, %y: !t) -> !t {
  %0:2 = mx.decompose %x : !t -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  %1:2 = mx.decompose %y : !t -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  %2 = mx.compose %0#0, %1#1 : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU> -> !t
  return %2 : !t
}

// CHECK-LABEL: func.func @take_apart(
// CHECK-SAME: %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>)
// CHECK-NEXT: return %[[M]], %[[S]]
func.func @take_apart(%m: tensor<32x64xf8E4M3FN>, %s: tensor<32x2xf8E8M0FNU>) -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>) {
  %0 = mx.compose %m, %s : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU> -> !t
  %1:2 = mx.decompose %0 : !t -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
  return %1#0, %1#1 : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>
}

// Quantizing loses bits: this is not %x.
// CHECK-LABEL: func.func @lossy(
// CHECK: %[[Q:.*]] = mx.quantize_block
// CHECK: %[[D:.*]] = mx.dequantize_block %[[Q]]
// CHECK: return %[[D]]
func.func @lossy(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = mx.quantize_block %x : tensor<32x64xf32> -> !t
  %1 = mx.dequantize_block %0 : !t -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}

// CHECK-LABEL: func.func @dims(
// CHECK-DAG: %[[C:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[D:.*]] = mx.dim
// CHECK: return %[[C]], %[[D]]
func.func @dims(%x: !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = mx.dim %x, %c1 : <?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, index -> index
  %1 = mx.dim %x, %c0 : <?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, index -> index
  return %0, %1 : index, index
}

// An axis out of range has no extent to put in its place.
// CHECK-LABEL: func.func @dim_out_of_range(
// CHECK: mx.dim
func.func @dim_out_of_range(%x: !t) -> index {
  %c7 = arith.constant 7 : index
  %0 = mx.dim %x, %c7 : !t, index -> index
  return %0 : index
}

// CHECK-LABEL: func.func @casts(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !mx.tensor
// CHECK: %[[Y:.*]] = mx.cast %[[X]]
// CHECK: return %[[X]], %[[Y]]
func.func @casts(%x: !t) -> (!t, !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) {
  %0 = mx.cast %x : !t -> !t
  %1 = mx.cast %0 : !t -> <?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  return %0, %1 : !t, !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
}

// Three factors: still innermost first, (a * b) * c.
// CHECK-LABEL: func.func @merge_three(
// CHECK-SAME: %[[A:[a-z0-9]+]]: f32, %[[B:[a-z0-9]+]]: f32, %[[C:[a-z0-9]+]]: f32)
// CHECK: %[[AB:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK: %[[ABC:.*]] = arith.mulf %[[AB]], %[[C]] : f32
// CHECK: mx.fold_scale %{{.*}}, %[[ABC]]
func.func @merge_three(%x: !t, %a: f32, %b: f32, %c: f32) -> !t {
  %0 = mx.fold_scale %x, %a : !t, f32 -> !t
  %1 = mx.fold_scale %0, %b : !t, f32 -> !t
  %2 = mx.fold_scale %1, %c : !t, f32 -> !t
  return %2 : !t
}
