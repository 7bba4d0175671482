// RUN: mx-opt %s --mx-to-linalg --split-input-file --verify-diagnostics --allow-unregistered-dialect | filecheck %s

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>

// Declarations, and the attributes of arguments and results.
// CHECK: func.func private @declared(tensor<32x64xf8E4M3FN> {my.a}, tensor<32x2xf8E8M0FNU> {my.a}, i32 {my.b}) -> (i32, tensor<32x64xf8E4M3FN> {my.r}, tensor<32x2xf8E8M0FNU> {my.r})
func.func private @declared(!t {my.a}, i32 {my.b}) -> (i32, !t {my.r})

// CHECK-LABEL: func.func @calls(
// CHECK-SAME: %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>, %[[I:.*]]: i32)
// CHECK: %[[R:.*]]:3 = call @declared(%[[M]], %[[S]], %[[I]])
// CHECK: return %[[R]]#1, %[[R]]#2
func.func @calls(%x: !t, %i: i32) -> !t {
  %0:2 = func.call @declared(%x, %i) : (!t, i32) -> (i32, !t)
  return %0#1 : !t
}

// CHECK-LABEL: func.func @structured(
// CHECK-SAME: %[[C:.*]]: i1, %[[N:.*]]: index, %[[AM:.*]]: tensor<32x64xf8E4M3FN>, %[[AS:.*]]: tensor<32x2xf8E8M0FNU>, %[[BM:.*]]: tensor<32x64xf8E4M3FN>, %[[BS:.*]]: tensor<32x2xf8E8M0FNU>)
// CHECK: %[[IF:.*]]:2 = scf.if %[[C]] -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
// CHECK: scf.yield %[[AM]], %[[AS]]
// CHECK: scf.yield %[[BM]], %[[BS]]
// CHECK: %[[SM:.*]] = arith.select %[[C]], %[[IF]]#0, %[[AM]] : tensor<32x64xf8E4M3FN>
// CHECK: %[[SS:.*]] = arith.select %[[C]], %[[IF]]#1, %[[AS]] : tensor<32x2xf8E8M0FNU>
// CHECK: %[[FOR:.*]]:2 = scf.for {{.*}} iter_args(%[[PM:.*]] = %[[SM]], %[[PS:.*]] = %[[SS]])
// CHECK: scf.yield %[[PM]], %[[PS]]
// CHECK: %[[WHILE:.*]]:3 = scf.while (%{{.*}} = %[[FOR]]#0, %{{.*}} = %[[FOR]]#1)
// CHECK: scf.condition(%{{.*}}) %{{.*}}, %{{.*}}, %{{.*}} : i1, tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>
// CHECK: %[[SW:.*]]:2 = scf.index_switch
// CHECK: scf.execute_region -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
func.func @structured(%c: i1, %n: index, %a: !t, %b: !t) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.if %c -> !t {
    scf.yield %a : !t
  } else {
    scf.yield %b : !t
  }
  %1 = arith.select %c, %0, %a : !t
  %2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %1) -> !t {
    scf.yield %p : !t
  }
  %3:2 = scf.while (%w = %2) : (!t) -> (i1, !t) {
    scf.condition(%c) %c, %w : i1, !t
  } do {
  ^bb0(%d: i1, %v: !t):
    scf.yield %v : !t
  }
  %4 = scf.index_switch %n -> !t
  case 1 {
    scf.yield %3#1 : !t
  }
  default {
    scf.yield %2 : !t
  }
  %5 = scf.execute_region -> !t {
    scf.yield %4 : !t
  }
  return %5 : !t
}

// Segment sizes follow.
// CHECK-LABEL: func.func @branches(
// CHECK: cf.cond_br %{{.*}}, ^[[B1:.*]](%{{.*}}, %{{.*}}, %{{.*}} : i32, tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>), ^[[B2:.*]](%{{.*}}, %{{.*}} : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
// CHECK: ^[[B1]](%{{.*}}: i32, %[[M:.*]]: tensor<32x64xf8E4M3FN>, %[[S:.*]]: tensor<32x2xf8E8M0FNU>):
// CHECK: cf.switch
// CHECK: default: ^[[B2]](%[[M]], %[[S]] :
// CHECK: 7: ^[[B2]](%{{.*}}, %{{.*}} :
func.func @branches(%c: i1, %i: i32, %a: !t, %b: !t) -> !t {
  cf.cond_br %c, ^bb1(%i, %a : i32, !t), ^bb2(%b : !t)
^bb1(%j: i32, %x: !t):
  cf.switch %j : i32, [default: ^bb2(%x : !t), 7: ^bb2(%a : !t)]
^bb2(%y: !t):
  return %y : !t
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @unknown(%x: !t) {
  // expected-error @below {{'my.op' op holds an mx tensor and --mx-to-linalg does not know how to split it in two; use mx.decompose before}}
  "my.op"(%x) : (!t) -> ()
  return
}

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
// expected-error @below {{'func.func' op holds mx tensors inside 'tuple<!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>>'}}
func.func private @nested(tuple<!t>)

// -----

!t = !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @cast(%x: i32) -> !t {
  // expected-error @below {{'builtin.unrealized_conversion_cast' op holds an mx tensor}}
  %0 = builtin.unrealized_conversion_cast %x : i32 to !t
  return %0 : !t
}
