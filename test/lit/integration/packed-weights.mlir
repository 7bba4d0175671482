// RUN: mx-opt %s --mx-quantize-linear=format=f4E2M1FN --mx-to-linalg --mx-conversions-to-linalg --mx-expand-narrow-floats --convert-elementwise-to-linalg --linalg-generalize-named-ops --mx-schedule-cpu=vector-bits=512 -o %t.mlir
// RUN: filecheck %s < %t.mlir
// RUN: mx-opt %t.mlir --mx-bufferize --mx-externalize-constants=min-bytes=1024 --mx-schedule-cpu="emit=true vector-bits=512" | filecheck %s --check-prefix=EMIT

// A constant weight becomes bytes of two MXFP4 codes, which stay bytes: products of few rows read them 128 codes at once,
// and no tensor of codes is made for them.

// CHECK-DAG:   #[[BYTES:.*]] = affine_map<(d0, d1, d2) -> (d1, d2 floordiv 2)>
// CHECK-LABEL: func.func @few_rows(
// CHECK-SAME:  %[[X:[^:]*]]: tensor<2x256xf32>
// CHECK:       %[[W:.*]] = arith.constant dense<102> : tensor<128x128xi8>
// CHECK:       linalg.generic {indexing_maps = [#{{.*}}, #[[BYTES]], #{{.*}}, #{{.*}}]
// CHECK-SAME:  ins(%[[X]], %[[W]],
// CHECK-SAME:  mx.schedule = {decode = "nibbles", kind = "rows"
// EMIT:        mx.constants = {mx_constant_{{[0-9]+}} = dense<102> : tensor<128x128xi8>
// EMIT-LABEL:  func.func @few_rows(
// EMIT-NOT:    memref<128x256xi8>
// EMIT:        %[[W:.*]] = memref.get_global @mx_constant_{{[0-9]+}} : memref<128x128xi8>
// EMIT-NOT:    memref<128x256xi8>
// EMIT:        vector.load %[[W]]{{.*}} : memref<128x128xi8>, vector<64xi8>
// EMIT:        llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// EMIT-NOT:    linalg.generic
// EMIT:        return
func.func @few_rows(%x: tensor<2x256xf32>, %acc: tensor<2x128xf32>) -> tensor<2x128xf32> {
  %w = arith.constant dense<1.0> : tensor<128x256xf32>
  %e = tensor.empty() : tensor<256x128xf32>
  %t = linalg.transpose ins(%w : tensor<128x256xf32>) outs(%e : tensor<256x128xf32>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %t : tensor<2x256xf32>, tensor<256x128xf32>) outs(%acc : tensor<2x128xf32>) -> tensor<2x128xf32>
  return %y : tensor<2x128xf32>
}

// So do those whose K is filled up.
// CHECK-LABEL: func.func @padded(
// CHECK:       tensor.pad
// CHECK:       mx.schedule = {decode = "nibbles", kind = "rows"
// EMIT-LABEL:  func.func @padded(
// EMIT:        llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
func.func @padded(%x: tensor<1x250xf32>, %acc: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %w = arith.constant dense<1.0> : tensor<250x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1x250xf32>, tensor<250x64xf32>) outs(%acc : tensor<1x64xf32>) -> tensor<1x64xf32>
  return %y : tensor<1x64xf32>
}
