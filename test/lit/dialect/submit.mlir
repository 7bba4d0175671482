// RUN: mx-opt %s | filecheck %s
// RUN: mx-opt %s | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | mx-opt | filecheck %s
// RUN: mx-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func private @kernel(
// CHECK-SAME: attributes {mx.kernel = "aic"}
func.func private @kernel(tensor<16x32xf32>, index) -> tensor<16x32xf32> attributes {mx.kernel = "aic"}

// CHECK-LABEL: func.func @submits(
// CHECK-SAME: %[[X:.*]]: tensor<16x32xf32>, %[[N:.*]]: index, %[[P:.*]]: i1)
func.func @submits(%x: tensor<16x32xf32>, %n: index, %p: i1) {
  // CHECK: %[[R:.*]]:2 = mx.submit @kernel(%[[X]], %[[N]]) : tensor<16x32xf32>, index -> (tensor<16x32xf32>, !mx.task)
  // GENERIC: %[[R:.*]]:2 = "mx.submit"(%{{.*}}, %{{.*}}) {callee = @kernel, operandSegmentSizes = array<i32: 1, 1, 0, {{.*}}, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, {{.*}}>} : (tensor<16x32xf32>, index) -> (tensor<16x32xf32>, !mx.task)
  %0, %task = mx.submit @kernel(%x, %n) : tensor<16x32xf32>, index -> (tensor<16x32xf32>, !mx.task)
  // CHECK: %[[T:.*]] = mx.submit @other(%[[R]]#0) after(%[[R]]#1, %[[R]]#1) cores(%[[N]]) if(%[[P]]) {note = "kept", sync_end, sync_start} : tensor<16x32xf32>, !mx.task, !mx.task, index, i1 -> !mx.task
  // GENERIC: "mx.submit"(%[[R]]#0, %[[R]]#1, %[[R]]#1, %{{.*}}, %{{.*}}) {callee = @other, note = "kept", operandSegmentSizes = array<i32: 1, 0, {{.*}}, 2, 1, 1>, resultSegmentSizes = {{.*}}, sync_end, sync_start}
  %1 = mx.submit @other(%0)
    after(%task, %task) // Twice does not matter.
    cores(%n)
    if(%p)
    {sync_start, sync_end, note = "kept"} : tensor<16x32xf32>, !mx.task, !mx.task, index, i1 -> !mx.task
  // CHECK: mx.submit @nothing() : ()
  mx.submit @nothing() : ()
  // CHECK: mx.submit @"a (b)"() after(%[[T]]) : !mx.task
  mx.submit @"a (b)"() after(%1) cores() : !mx.task
  // CHECK: mx.submit @kernel(%[[X]], %[[N]]) if(%[[P]]) : tensor<16x32xf32>, index, i1 -> tensor<16x32xf32>
  %2 = mx.submit @kernel(%x, %n) if(%p) : tensor<16x32xf32>, index, i1 -> tensor<16x32xf32>
  // The generic form.
  // CHECK: mx.submit @kernel(%[[N]]) cores(%[[N]]) : index, index
  "mx.submit"(%n, %n) {callee = @kernel, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (index, index) -> ()
  return
}
