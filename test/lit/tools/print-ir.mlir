// Dumps between passes use the custom spelling.
// RUN: mx-opt %s --mx-canonicalize --mx-to-linalg --mlir-print-ir-before=mx-to-linalg -o /dev/null 2>&1 | filecheck %s
// RUN: mx-opt %s --cse --mx-to-linalg --mlir-print-ir-after-all -o /dev/null 2>&1 | filecheck %s --check-prefix=ALL
// RUN: mx-opt %s --cse --mx-to-linalg --mlir-print-ir-after-change -o /dev/null 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: mx-opt %s --pass-pipeline='builtin.module(func.func(cse,canonicalize),mx-to-linalg)' --mlir-print-ir-before-all -o /dev/null 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: mx-opt %s --pass-pipeline='builtin.module(func.func(cse),mx-to-linalg)' --mlir-print-ir-before=cse --mlir-print-ir-module-scope -o /dev/null 2>&1 | filecheck %s --check-prefix=SCOPE
// RUN: not mx-opt %s --one-shot-bufferize=bufferize-function-boundaries=1 --mlir-print-ir-after-failure --mlir-timing -o /dev/null 2>&1 | filecheck %s --check-prefix=FAILED
// RUN: mx-opt %s --cse --mlir-timing -o /dev/null 2>&1 | filecheck %s --check-prefix=TIMING

// CHECK-NOT: IR Dump Before mx-canonicalize
// CHECK: // -----// IR Dump Before mx-to-linalg //----- //
// CHECK: mx.dequantize_block %arg0 : <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU> -> tensor<4x8xf32>

// ALL: // -----// IR Dump After cse //----- //
// ALL: mx.dequantize_block %arg0 : <4x8xf8E4M3FN
// ALL: // -----// IR Dump After mx-to-linalg //----- //
// ALL: linalg.generic

// CHANGE-NOT: IR Dump After cse
// CHANGE: IR Dump After mx-to-linalg

// NESTED: IR Dump Before cse
// NESTED-NEXT: {{^}}func.func @f(%arg0: !mx.tensor<4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>)
// NESTED: IR Dump Before canonicalize
// NESTED-NEXT: {{^}}func.func @f(
// NESTED: IR Dump Before mx-to-linalg
// NESTED-NEXT: {{^}}module

// SCOPE: IR Dump Before cse
// SCOPE-NEXT: {{^}}module
// SCOPE-NOT: IR Dump

// FAILED: // -----// IR Dump After one-shot-bufferize{bufferize-function-boundaries=1} Failed //----- //
// FAILED: mx.dequantize_block %arg0 : <4x8xf8E4M3FN
// FAILED: Execution time report
// FAILED: one-shot-bufferize
// FAILED: error: op was not bufferized

// TIMING: Execution time report
// TIMING: Parser
// TIMING: cse
// TIMING: Output
// TIMING: Total
func.func @f(%x: !mx.tensor<4x8xf8E4M3FN, block_size=4, scale_type=f8E8M0FNU>) -> tensor<4x8xf32> {
  %0 = mx.dequantize_block %x : <4x8xf8E4M3FN, block_size=4, scale_type=f8E8M0FNU> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
