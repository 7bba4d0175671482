// RUN: mx-opt %s --mx-quantize-linear --split-input-file | filecheck %s
// RUN: mx-opt %s --mx-quantize-linear=format=f4E2M1FN --split-input-file | filecheck %s --check-prefix=FP4
// RUN: mx-opt %s '--mx-quantize-linear=exclude=first.*,*second min-elements=513' --split-input-file | filecheck %s --check-prefix=LEFT
// RUN: mx-opt %s --mx-quantize-linear=block-size=8 --split-input-file | filecheck %s --check-prefix=BLOCK

// The form that torch exports: weights [N, K] behind a transposition. 1.0 is 256 * 2^-8 in f8E4M3FN, whose largest
// power of two is 256; in f4E2M1FN it is 4, code 6, and two codes are the byte 0x66.
// CHECK-LABEL: @transposed(
// CHECK-SAME:  %[[X:.*]]: tensor<4x64xf32>, %[[ACC:.*]]: tensor<4x16xf32>)
// CHECK-NEXT:  %[[C:.*]] = arith.constant dense<2.560000e+02> : tensor<16x64xf8E4M3FN>
// CHECK-NEXT:  %[[S:.*]] = arith.constant dense<3.906250e-03> : tensor<16x2xf8E8M0FNU>
// CHECK-NEXT:  %[[W:.*]] = mx.compose %[[C]], %[[S]] : {{.*}} -> <16x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
// CHECK-NEXT:  %[[Y:.*]] = mx.block_matmul %[[X]], %[[W]], %[[ACC]] {transpose_rhs}
// CHECK-NEXT:  return %[[Y]]
// FP4-LABEL:   @transposed(
// FP4-NEXT:    %[[P:.*]] = arith.constant dense<102> : tensor<16x32xi8>
// FP4-NEXT:    %[[U:.*]] = mx.unpack %[[P]] {element = f4E2M1FN} : tensor<16x32xi8> -> tensor<16x64xi8>
// FP4-NEXT:    %[[S:.*]] = arith.constant dense<2.500000e-01> : tensor<16x2xf8E8M0FNU>
// FP4-NEXT:    %[[W:.*]] = mx.compose %[[U]], %[[S]]
// FP4-NEXT:    mx.block_matmul %{{.*}}, %[[W]], %{{.*}} {transpose_rhs}
func.func @transposed(%x: tensor<4x64xf32>, %acc: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %w = arith.constant dense<1.0> : tensor<16x64xf32>
  %e = tensor.empty() : tensor<64x16xf32>
  %t = linalg.transpose ins(%w : tensor<16x64xf32>) outs(%e : tensor<64x16xf32>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %t : tensor<4x64xf32>, tensor<64x16xf32>) outs(%acc : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// Weights [K, N] are stored as [N, K] all the same. Constants that have nothing to do with products stay.
// CHECK-LABEL: @plain_rhs
// CHECK:       mx.compose {{.*}} -> <16x32xf8E4M3FN,
// CHECK-NEXT:  arith.constant dense<3.000000e+00> : tensor<2xf32>
// CHECK-NEXT:  tensor.empty() : tensor<7xf32>
// CHECK-NEXT:  mx.block_matmul {{.*}} {transpose_rhs}
func.func @plain_rhs(%x: tensor<?x32xf32>, %acc: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %unused = arith.constant dense<3.0> : tensor<2xf32>
  %empty = tensor.empty() : tensor<7xf32>
  %w = arith.constant dense<1.0> : tensor<32x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x32xf32>, tensor<32x16xf32>) outs(%acc : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// CHECK-LABEL: @lhs
// CHECK-SAME:  %[[X:.*]]: tensor<32x4xf32>
// CHECK:       %[[W:.*]] = mx.compose {{.*}} -> <16x32xf8E4M3FN,
// CHECK-NEXT:  mx.block_matmul %[[W]], %[[X]], %{{[^ ]*}} : <
func.func @lhs(%x: tensor<32x4xf32>, %acc: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %w = arith.constant dense<1.0> : tensor<16x32xf32>
  %y = linalg.matmul ins(%w, %x : tensor<16x32xf32>, tensor<32x4xf32>) outs(%acc : tensor<16x4xf32>) -> tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}

// -----

// The weight is on the left, and the activations are [N, K].
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: @lhs_by_maps
// CHECK-SAME:  %[[X:.*]]: tensor<4x32xf32>
// CHECK:       %[[W:.*]] = mx.compose {{.*}} -> <16x32xf8E4M3FN,
// CHECK-NEXT:  mx.block_matmul %[[W]], %[[X]], %{{.*}} {transpose_rhs} : <
func.func @lhs_by_maps(%x: tensor<4x32xf32>, %acc: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %w = arith.constant dense<1.0> : tensor<16x32xf32>
  %y = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%w, %x : tensor<16x32xf32>, tensor<4x32xf32>) outs(%acc : tensor<16x4xf32>) -> tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}

// -----

// A weight for each batch, and one weight for all of them.
// CHECK-LABEL: @batch
// CHECK:       mx.compose {{.*}} -> <3x16x32xf8E4M3FN,
// CHECK:       mx.block_matmul {{.*}} {transpose_rhs}
func.func @batch(%x: tensor<3x4x32xf32>, %acc: tensor<3x4x16xf32>) -> tensor<3x4x16xf32> {
  %w = arith.constant dense<1.0> : tensor<3x32x16xf32>
  %y = linalg.batch_matmul ins(%x, %w : tensor<3x4x32xf32>, tensor<3x32x16xf32>) outs(%acc : tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  return %y : tensor<3x4x16xf32>
}

// CHECK-LABEL: @broadcast
// CHECK-NOT:   linalg.broadcast
// CHECK:       mx.compose {{.*}} -> <16x32xf8E4M3FN,
// CHECK-NEXT:  mx.block_matmul {{.*}} {transpose_rhs}
func.func @broadcast(%x: tensor<3x4x32xf32>, %acc: tensor<3x4x16xf32>) -> tensor<3x4x16xf32> {
  %w = arith.constant dense<1.0> : tensor<32x16xf32>
  %e = tensor.empty() : tensor<3x32x16xf32>
  %b = linalg.broadcast ins(%w : tensor<32x16xf32>) outs(%e : tensor<3x32x16xf32>) dimensions = [0]
  %y = linalg.batch_matmul ins(%x, %b : tensor<3x4x32xf32>, tensor<3x32x16xf32>) outs(%acc : tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  return %y : tensor<3x4x16xf32>
}

// -----

// A product and a transposition as generics; the weights are bf16, extended in the body.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
// CHECK-LABEL: @generic
// CHECK-NOT:   linalg.generic
// CHECK:       mx.compose {{.*}} -> <16x32xf8E4M3FN,
// CHECK-NEXT:  mx.block_matmul {{.*}} {transpose_rhs}
func.func @generic(%x: tensor<4x32xf32>, %acc: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %w = arith.constant dense<1.0> : tensor<16x32xbf16>
  %e = tensor.empty() : tensor<32x16xbf16>
  %t = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<16x32xbf16>) outs(%e : tensor<32x16xbf16>) {
  ^bb0(%p: bf16, %o: bf16):
    linalg.yield %p : bf16
  } -> tensor<32x16xbf16>
  %y = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %t : tensor<4x32xf32>, tensor<32x16xbf16>) outs(%acc : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: bf16, %o: f32):
    %0 = arith.extf %q : bf16 to f32
    %1 = arith.mulf %0, %p : f32
    %2 = arith.addf %1, %o : f32
    linalg.yield %2 : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// A maximum of products is no matrix product.
// CHECK-LABEL: @other_generic
// CHECK:       linalg.generic
// CHECK-NOT:   mx.block_matmul
// CHECK:       return
func.func @other_generic(%x: tensor<4x32xf32>, %acc: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %w = arith.constant dense<1.0> : tensor<32x16xf32>
  %y = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x32xf32>, tensor<32x16xf32>) outs(%acc : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %1 = arith.mulf %q, %p : f32
    %2 = arith.maximumf %1, %o : f32
    linalg.yield %2 : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// 0x3C00 is 1.0 in f16; a resource begins with its alignment. K is less than a block of 32, which zeros fill.
// CHECK-LABEL: @resource
// CHECK-NEXT:  arith.constant dense<{{\[\[(2.560000e\+02, ){8}(0.000000e\+00, ){23}0.000000e\+00\]\]}}> : tensor<1x32xf8E4M3FN>
// CHECK-NEXT:  arith.constant dense<3.906250e-03> : tensor<1x1xf8E8M0FNU>
// LEFT-LABEL:  @resource
// LEFT:        dense_resource<first.weight>
// LEFT-NOT:    mx.block_matmul
// LEFT:        return
// BLOCK-LABEL: @resource
// BLOCK-NEXT:  arith.constant dense<2.560000e+02> : tensor<1x8xf8E4M3FN>
// BLOCK-NEXT:  arith.constant dense<3.906250e-03> : tensor<1x1xf8E8M0FNU>
func.func @resource(%x: tensor<4x8xf32>, %acc: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %w = arith.constant dense_resource<first.weight> : tensor<8x1xf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x1xf16>) outs(%acc : tensor<4x1xf32>) -> tensor<4x1xf32>
  return %y : tensor<4x1xf32>
}
{-#
  dialect_resources: {
    builtin: {
      first.weight: "0x02000000003C003C003C003C003C003C003C003C"
    }
  }
#-}

// -----

// A private global goes with its last use, also one with an odd name; one that somebody else reads, that others may see
// or that may change stays.
// CHECK-LABEL: module
// CHECK-NOT:   ml_program.global private @first
// CHECK-NOT:   odd
// CHECK:       ml_program.global private @read
// CHECK-NEXT:  ml_program.global public @seen
// CHECK-NEXT:  ml_program.global private mutable @changes
// CHECK-LABEL: @globals
// CHECK-COUNT-4: mx.block_matmul
// CHECK:       linalg.matmul
// LEFT-LABEL:  @globals
// LEFT-COUNT-5: linalg.matmul
// LEFT:        return
ml_program.global private @first(dense<1.0> : tensor<32x16xf32>) : tensor<32x16xf32>
ml_program.global private @"odd name \22::@\FF"(dense<1.0> : tensor<32x16xf32>) : tensor<32x16xf32>
ml_program.global private @read(dense<2.0> : tensor<32x16xf32>) : tensor<32x16xf32>
ml_program.global public @seen(dense<3.0> : tensor<32x16xf32>) : tensor<32x16xf32>
ml_program.global private mutable @changes(dense<4.0> : tensor<32x16xf32>) : tensor<32x16xf32>
func.func @globals(%x: tensor<4x32xf32>, %acc: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %w0 = ml_program.global_load_const @first : tensor<32x16xf32>
  %w1 = ml_program.global_load_const @"odd name \22::@\FF" : tensor<32x16xf32>
  %w2 = ml_program.global_load_const @read : tensor<32x16xf32>
  %w3 = ml_program.global_load_const @seen : tensor<32x16xf32>
  %w4 = ml_program.global_load @changes : tensor<32x16xf32>
  %y0 = linalg.matmul ins(%x, %w0 : tensor<4x32xf32>, tensor<32x16xf32>) outs(%acc : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y1 = linalg.matmul ins(%x, %w1 : tensor<4x32xf32>, tensor<32x16xf32>) outs(%y0 : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y2 = linalg.matmul ins(%x, %w2 : tensor<4x32xf32>, tensor<32x16xf32>) outs(%y1 : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y3 = linalg.matmul ins(%x, %w3 : tensor<4x32xf32>, tensor<32x16xf32>) outs(%y2 : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y4 = linalg.matmul ins(%x, %w4 : tensor<4x32xf32>, tensor<32x16xf32>) outs(%y3 : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %y4 : tensor<4x16xf32>
}
func.func @reader() -> tensor<32x16xf32> {
  %w = ml_program.global_load_const @read : tensor<32x16xf32>
  return %w : tensor<32x16xf32>
}

// -----

// A weight that two products use is one constant; a use that is no product keeps the float constant too.
// CHECK-LABEL: @twice
// CHECK:       %[[W:.*]] = mx.compose
// CHECK-NOT:   mx.compose
// CHECK:       %[[KEPT:.*]] = arith.constant dense<1.000000e+00> : tensor<1x64x32xf32>
// CHECK-NOT:   mx.compose
// CHECK:       mx.block_matmul %{{.*}}, %[[W]],
// CHECK:       mx.block_matmul %{{.*}}, %[[W]],
// CHECK:       return %{{.*}}, %[[KEPT]]
func.func @twice(%x: tensor<1x4x64xf32>, %acc: tensor<1x4x32xf32>) -> (tensor<1x4x32xf32>, tensor<1x64x32xf32>) {
  %w = arith.constant dense<1.0> : tensor<1x64x32xf32>
  %0 = linalg.batch_matmul ins(%x, %w : tensor<1x4x64xf32>, tensor<1x64x32xf32>) outs(%acc : tensor<1x4x32xf32>) -> tensor<1x4x32xf32>
  %1 = linalg.batch_matmul ins(%x, %w : tensor<1x4x64xf32>, tensor<1x64x32xf32>) outs(%0 : tensor<1x4x32xf32>) -> tensor<1x4x32xf32>
  return %1, %w : tensor<1x4x32xf32>, tensor<1x64x32xf32>
}

// -----

// The location of a constant names it as well.
// CHECK-LABEL: @located
// CHECK-COUNT-2: mx.block_matmul
// LEFT-LABEL:  @located
// LEFT:        %[[OTHER:.*]] = mx.compose
// LEFT:        %[[SECOND:.*]] = arith.constant dense<1.000000e+00> : tensor<64x32xf32>
// LEFT:        linalg.matmul ins(%{{.*}}, %[[SECOND]] :
// LEFT-NEXT:   mx.block_matmul %{{.*}}, %[[OTHER]],
func.func @located(%x: tensor<4x64xf32>, %acc: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %w = arith.constant dense<1.0> : tensor<64x32xf32> loc("layer.second")
  %v = arith.constant dense<2.0> : tensor<64x32xf32> loc("layer.third"("model.py":1:1))
  %0 = linalg.matmul ins(%x, %w : tensor<4x64xf32>, tensor<64x32xf32>) outs(%acc : tensor<4x32xf32>) -> tensor<4x32xf32>
  %1 = linalg.matmul ins(%x, %v : tensor<4x64xf32>, tensor<64x32xf32>) outs(%0 : tensor<4x32xf32>) -> tensor<4x32xf32>
  return %1 : tensor<4x32xf32>
}

// -----

// K = 40 is not whole blocks: both sides get zeros behind it, whatever the other extents.
// CHECK-LABEL: @padded_rows
// CHECK-SAME:  %[[X:.*]]: tensor<?x40xf32>, %[[ACC:.*]]: tensor<?x2xf32>)
// CHECK:       %[[W:.*]] = mx.compose {{.*}} -> <2x64xf8E4M3FN,
// CHECK:       %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:       %[[P:.*]] = tensor.pad %[[X]] low[0, 0] high[0, 24]
// CHECK:       tensor.yield %[[ZERO]]
// CHECK:       } : tensor<?x40xf32> to tensor<?x64xf32>
// CHECK-NEXT:  mx.block_matmul %[[P]], %[[W]], %[[ACC]] {transpose_rhs}
// BLOCK-LABEL: @padded_rows
// BLOCK-NOT:   tensor.pad
// BLOCK:       return
func.func @padded_rows(%x: tensor<?x40xf32>, %acc: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = arith.constant dense<1.0> : tensor<40x2xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x40xf32>, tensor<40x2xf32>) outs(%acc : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// K is the first axis of activations on the right; an open one is what the weight has.
// CHECK-LABEL: @padded_columns
// CHECK-SAME:  %[[X:.*]]: tensor<?x4xf32>
// CHECK:       %[[C:.*]] = tensor.cast %[[X]] : tensor<?x4xf32> to tensor<40x4xf32>
// CHECK:       %[[P:.*]] = tensor.pad %[[C]] low[0, 0] high[24, 0]
// CHECK:       mx.block_matmul %{{.*}}, %[[P]], %{{[^ ]*}} : <2x64xf8E4M3FN,
func.func @padded_columns(%x: tensor<?x4xf32>, %acc: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %w = arith.constant dense<1.0> : tensor<2x40xf32>
  %y = linalg.matmul ins(%w, %x : tensor<2x40xf32>, tensor<?x4xf32>) outs(%acc : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// Activations of half precision are extended, and the sum is rounded once, if it has to be.
// CHECK-LABEL: @half
// CHECK-SAME:  %[[X:.*]]: tensor<4x32xbf16>, %[[ACC:.*]]: tensor<4x2xbf16>)
// CHECK-DAG:   %[[XF:.*]] = arith.extf %[[X]] : tensor<4x32xbf16> to tensor<4x32xf32>
// CHECK-DAG:   %[[AF:.*]] = arith.extf %[[ACC]] : tensor<4x2xbf16> to tensor<4x2xf32>
// CHECK:       %[[Y:.*]] = mx.block_matmul %[[XF]], %{{.*}}, %[[AF]] {transpose_rhs}
// CHECK-NEXT:  %[[R:.*]] = arith.truncf %[[Y]] : tensor<4x2xf32> to tensor<4x2xbf16>
// CHECK-NEXT:  return %[[R]]
func.func @half(%x: tensor<4x32xbf16>, %acc: tensor<4x2xbf16>) -> tensor<4x2xbf16> {
  %w = arith.constant dense<1.0> : tensor<32x2xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x32xbf16>, tensor<32x2xbf16>) outs(%acc : tensor<4x2xbf16>) -> tensor<4x2xbf16>
  return %y : tensor<4x2xbf16>
}

// CHECK-LABEL: @half_to_single
// CHECK-SAME:  %[[X:.*]]: tensor<4x32xf16>, %[[ACC:.*]]: tensor<4x2xf32>)
// CHECK:       %[[XF:.*]] = arith.extf %[[X]]
// CHECK-NEXT:  %[[Y:.*]] = mx.block_matmul %[[XF]], %{{.*}}, %[[ACC]] {transpose_rhs}
// CHECK-NEXT:  return %[[Y]]
func.func @half_to_single(%x: tensor<4x32xf16>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<1.0> : tensor<32x2xf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x32xf16>, tensor<32x2xf16>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

// A weight seen through an extension, of a tensor or in the body of a copy; not through another computation.
#id = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: @extended
// CHECK-NOT:   extf
// CHECK-COUNT-2: mx.block_matmul
// CHECK:       return
func.func @extended(%x: tensor<4x32xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<1.0> : tensor<32x2xf16>
  %t = arith.extf %w : tensor<32x2xf16> to tensor<32x2xf32>
  %e = tensor.empty() : tensor<32x2xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<32x2xf16>) outs(%e : tensor<32x2xf32>) {
  ^bb0(%p: f16, %o: f32):
    %0 = arith.extf %p : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x2xf32>
  %y = linalg.matmul ins(%x, %t : tensor<4x32xf32>, tensor<32x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  %z = linalg.matmul ins(%x, %g : tensor<4x32xf32>, tensor<32x2xf32>) outs(%y : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %z : tensor<4x2xf32>
}

// CHECK-LABEL: @computed
// CHECK-NOT:   mx.block_matmul
// CHECK:       return
func.func @computed(%x: tensor<4x32xf32>, %acc: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = arith.constant dense<1.0> : tensor<32x2xf16>
  %e = tensor.empty() : tensor<32x2xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<32x2xf16>) outs(%e : tensor<32x2xf32>) {
  ^bb0(%p: f16, %o: f32):
    %0 = arith.extf %p : f16 to f32
    linalg.yield %o : f32
  } -> tensor<32x2xf32>
  %y = linalg.matmul ins(%x, %g : tensor<4x32xf32>, tensor<32x2xf32>) outs(%acc : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
