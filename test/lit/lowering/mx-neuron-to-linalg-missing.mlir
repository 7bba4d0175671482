// RUN: mx-opt %s --mx-check-lowered --verify-diagnostics

// What reaches machine code without having been lowered is told which pass does it.
// expected-error @below {{'func.func' has type '(tensor<4x!mx.x4<f4E2M1FN>>) -> ()', which does not exist in LLVM: run --mx-neuron-to-linalg}}
func.func private @f(tensor<4x!mx.x4<f4E2M1FN>>)
