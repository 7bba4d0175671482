// RUN: mx-opt %s --mx-tile-to-linalg | filecheck %s

// Functions that ask for their block are told it, through calls; one that nobody calls is block 0 of 1.
// CHECK-LABEL: func.func private @asks(
// CHECK-SAME: %[[X:.*]]: tensor<4xindex>, %[[I:.*]]: index, %[[N:.*]]: index)
// CHECK: tensor.from_elements %[[I]], %[[N]]
func.func private @asks(%x: tensor<4xindex>) -> (tensor<4xindex>, tensor<2xindex>) {
  %0 = mx.block_idx : () -> index
  %1 = mx.block_num : () -> index
  %2 = tensor.from_elements %0, %1 : tensor<2xindex>
  return %x, %2 : tensor<4xindex>, tensor<2xindex>
}
// CHECK-LABEL: func.func private @calls(
// CHECK-SAME: %[[X:.*]]: tensor<4xindex> {test.x}, %[[I:.*]]: index, %[[N:.*]]: index)
// CHECK: call @asks(%[[X]], %[[I]], %[[N]])
func.func private @calls(%x: tensor<4xindex> {test.x}) -> tensor<4xindex> {
  %0:2 = func.call @asks(%x) : (tensor<4xindex>) -> (tensor<4xindex>, tensor<2xindex>)
  return %0#0 : tensor<4xindex>
}
// CHECK-LABEL: func.func @root(
// CHECK-SAME: tensor<4xindex>, %[[C:.*]]: index, %[[P:.*]]: i1)
// CHECK: call @calls(%{{.*}}, %c0{{.*}}, %c1{{.*}})
// One block.
// CHECK: %[[ONCE:.*]]:2 = call @asks(%{{.*}}, %c0{{.*}}, %c1{{.*}})
// CHECK: %[[BLOCKS:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %[[C]] step %c1{{.*}} iter_args(%[[X:.*]] = %[[ONCE]]#0) -> (tensor<4xindex>)
// CHECK: %[[R:.*]] = func.call @calls(%[[X]], %[[I]], %[[C]])
// CHECK: scf.yield %[[R]]
// CHECK: %[[END:.*]] = arith.select %[[P]], %[[C]], %c0
// CHECK: scf.for %{{.*}} to %[[END]] step {{.*}} iter_args(%{{.*}} = %[[BLOCKS]])
// CHECK: %[[END:.*]] = arith.select %[[P]], %c1{{.*}}, %c0
// CHECK: scf.for %{{.*}} to %[[END]]
func.func @root(%x: tensor<4xindex>, %c: index, %p: i1) -> tensor<4xindex> {
  %0 = func.call @calls(%x) : (tensor<4xindex>) -> tensor<4xindex>
  %1, %2, %t = mx.submit @asks(%0) {test.kept} : tensor<4xindex> -> (tensor<4xindex>, tensor<2xindex>, !mx.task)
  %3, %u = mx.submit @calls(%1) after(%t) cores(%c) : tensor<4xindex>, !mx.task, index -> (tensor<4xindex>, !mx.task)
  %4 = mx.submit @calls(%3) after(%t, %u) cores(%c) if(%p) : tensor<4xindex>, !mx.task, !mx.task, index, i1 -> tensor<4xindex>
  %5 = mx.submit @calls(%4) if(%p) : tensor<4xindex>, i1 -> tensor<4xindex>
  return %5 : tensor<4xindex>
}

// A function that does not ask is not told.
// CHECK-LABEL: func.func private @silent(
// CHECK-SAME: %{{.*}}: index)
func.func private @silent(%x: index) {
  return
}
// CHECK-LABEL: func.func @silence(
// CHECK: scf.for
// CHECK-NEXT: func.call @silent(%{{.*}}) : (index) -> ()
func.func @silence(%n: index) {
  mx.submit @silent(%n) cores(%n) : index, index -> ()
  return
}
