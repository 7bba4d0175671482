// RUN: mx-opt %s --mx-neuron-to-linalg | filecheck %s

// Without containers nothing changes, unsigned integers included.
// CHECK-LABEL: func.func @others(
// CHECK-SAME: %[[X:.*]]: tensor<4xui8>) -> tensor<4xui8>
// CHECK-NEXT: return %[[X]] : tensor<4xui8>
func.func @others(%x: tensor<4xui8>) -> tensor<4xui8> {
  return %x : tensor<4xui8>
}
