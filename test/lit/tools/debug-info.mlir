// What is printed with locations is read again, and names the places of the first file.
// RUN: mx-opt %s --mlir-print-debuginfo | filecheck %s
// RUN: mx-opt %s --mlir-print-debuginfo | mx-opt --mlir-print-debuginfo | filecheck %s
// RUN: mx-opt %s --mlir-print-debuginfo --mlir-print-local-scope | filecheck %s --check-prefix=LOCAL
// RUN: mx-opt %s --mlir-print-debuginfo | not mx-opt --one-shot-bufferize=bufferize-function-boundaries=1 2>&1 | filecheck %s --check-prefix=ERR

// CHECK: func.func @f(%arg0: tensor<4x32xf32> loc("{{.*}}debug-info.mlir":14:14))
// CHECK: mx.quantize_block %arg0 : tensor<4x32xf32> -> <4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> loc([[PLACE:#loc[0-9]+]])
// CHECK: [[PLACE]] = loc("{{.*}}debug-info.mlir":15:8)
// LOCAL: mx.quantize_block %arg0 : {{.*}} loc("{{.*}}debug-info.mlir":15:8)
// ERR: debug-info.mlir:15:8: error: op was not bufferized
// ERR-NEXT: {{^}}  %0 = mx.quantize_block %x : tensor<4x32xf32>
// ERR-NEXT: {{^       \^$}}
func.func @f(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %0 = mx.quantize_block %x : tensor<4x32xf32> -> <4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
  %1 = mx.dequantize_block %0 : <4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<4x32xf32> loc("other.mlir":3:4)
  return %1 : tensor<4x32xf32>
}
