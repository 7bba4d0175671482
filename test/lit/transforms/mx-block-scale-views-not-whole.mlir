// RUN: not mx-opt %s --pass-pipeline='builtin.module(func.func(mx-block-scale-views))' 2>&1 | filecheck %s

// Proofs need the calls of the whole program.

// CHECK: error: 'func.func' op is not a whole program; run mx-block-scale-views on the builtin.module
func.func @f() {
  return
}
