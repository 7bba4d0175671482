// RUN: mx-opt %s --split-input-file --verify-diagnostics --mx-assert-to-status | filecheck %s

// Asserts are numbered in the order of the module; each has a message and the position of the assert.

// CHECK: module attributes {mx.asserts = [
// CHECK-SAME: line = 22 : i64, message = "first"}
// CHECK-SAME: message = "second"}
// CHECK-LABEL: func.func @two(
// CHECK-SAME: %[[P:.*]]: i1, %[[X:.*]]: f32 {mx.kept}, %[[STATUS:.*]]: memref<1xi64> {mx.status}) -> f32
// CHECK: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK: cf.cond_br %[[P]], ^[[REST:.*]], ^[[FAIL:.*]](%[[ONE]] : i64)
// CHECK: ^[[REST]]:
// CHECK: %[[TWO:.*]] = arith.constant 2 : i64
// CHECK: cf.cond_br %[[P]], ^[[LAST:.*]], ^[[FAIL]](%[[TWO]] : i64)
// CHECK: ^[[LAST]]:
// CHECK: return %[[X]] : f32
// CHECK: ^[[FAIL]](%[[CODE:.*]]: i64):
// CHECK: memref.store %[[CODE]], %[[STATUS]]
// CHECK: %[[NONE:.*]] = ub.poison : f32
// CHECK: return %[[NONE]] : f32
func.func @two(%p: i1, %x: f32 {mx.kept}) -> f32 {
  cf.assert %p, "first"
  cf.assert %p, "second"
  return %x : f32
}

// -----

// A caller passes its own status on, and returns when it is set.

func.func private @callee(%p: i1) -> i32 {
  cf.assert %p, "no"
  %0 = arith.constant 3 : i32
  return %0 : i32
}

// CHECK-LABEL: func.func @caller(
// CHECK-SAME: %[[P:.*]]: i1, %[[STATUS:.*]]: memref<1xi64> {mx.status}) -> i32
// CHECK: %[[R:.*]] = call @callee(%[[P]], %[[STATUS]]) : (i1, memref<1xi64>) -> i32
// CHECK: %[[CODE:.*]] = memref.load %[[STATUS]]
// CHECK: %[[FAILED:.*]] = arith.cmpi ne, %[[CODE]], %{{.*}} : i64
// CHECK: cf.cond_br %[[FAILED]], ^[[FAIL:.*]](%[[CODE]] : i64), ^[[REST:.*]]
// CHECK: ^[[REST]]:
// CHECK: return %[[R]] : i32
// CHECK: ^[[FAIL]](%{{.*}}: i64):
// CHECK: ub.poison : i32
func.func @caller(%p: i1) -> i32 {
  %0 = call @callee(%p) : (i1) -> i32
  return %0 : i32
}

// CHECK-LABEL: func.func @uninvolved(%{{.*}}: i1) -> i1 {
// CHECK-NEXT: return
func.func @uninvolved(%p: i1) -> i1 {
  return %p : i1
}

// -----

// Functions that call each other, and loops made of blocks.

// CHECK-LABEL: func.func private @even(
// CHECK-SAME: {mx.status})
// CHECK: call @odd(%{{.*}}, %{{.*}}) : (i32, memref<1xi64>) -> ()
func.func private @even(%n: i32) {
  call @odd(%n) : (i32) -> ()
  return
}

// CHECK-LABEL: func.func private @odd(
// CHECK-SAME: {mx.status})
// CHECK: call @even(%{{.*}}, %{{.*}}) : (i32, memref<1xi64>) -> ()
func.func private @odd(%n: i32) {
  %zero = arith.constant 0 : i32
  cf.br ^head(%n : i32)
^head(%i: i32):
  %more = arith.cmpi sgt, %i, %zero : i32
  cf.cond_br %more, ^body, ^done
^body:
  %ok = arith.cmpi ne, %i, %n : i32
  cf.assert %ok, "reached"
  cf.br ^head(%zero : i32)
^done:
  call @even(%zero) : (i32) -> ()
  return
}

// -----

// Buffers that are surely held are freed on the way out; not those of which a branch may have freed one, nor a buffer
// that a callee or a caller owns.

// CHECK-LABEL: func.func @held(
// CHECK: %[[A:.*]] = memref.alloc() : memref<1xf32>
// CHECK: %[[B:.*]] = memref.alloc() : memref<2xf32>
// CHECK: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK: cf.cond_br %{{.*}}, ^[[GO_ON:.*]], ^[[FREE:.*]]
// CHECK: ^[[FREE]]:
// CHECK-NEXT: memref.dealloc %[[A]]
// CHECK-NEXT: memref.dealloc %[[B]]
// CHECK-NEXT: cf.br ^[[FAIL:.*]](%[[ONE]] : i64)
// CHECK: ^[[GO_ON]]:
// CHECK: memref.dealloc %[[A]]
// CHECK: ^[[HEAD:.*]](%{{.*}}: i1):
// CHECK: %[[C:.*]] = memref.alloc() : memref<3xf32>
// CHECK: cf.cond_br %{{.*}}, ^[[AGAIN:.*]], ^[[FREE_IN_LOOP:.*]]
// CHECK: ^[[FREE_IN_LOOP]]:
// CHECK-NEXT: memref.dealloc %[[B]]
// CHECK-NEXT: memref.dealloc %[[C]]
// CHECK-NEXT: cf.br ^[[FAIL]](
// CHECK: ^[[AGAIN]]:
// CHECK: memref.dealloc %[[C]]
// CHECK: %[[LAST:.*]] = arith.constant 3 : i64
// CHECK: cf.cond_br %{{.*}}, ^{{.*}}, ^[[FAIL]](%[[LAST]] : i64)
func.func @held(%p: i1, %given: memref<4xf32>) {
  %a = memref.alloc() : memref<1xf32>
  %b = memref.alloc() : memref<2xf32>
  cf.assert %p, "both"
  memref.dealloc %a : memref<1xf32>
  cf.br ^head(%p : i1)
^head(%q: i1):
  %c = memref.alloc() : memref<3xf32>
  cf.assert %q, "in a loop"
  memref.dealloc %c : memref<3xf32>
  cf.cond_br %q, ^head(%p : i1), ^end
^end:
  cf.cond_br %q, ^free, ^done
^free:
  memref.dealloc %b : memref<2xf32>
  cf.br ^done
^done:
  cf.assert %p, "none surely"
  return
}

// -----

// Without asserts nothing changes: no attribute, no argument.

// CHECK: module {
// CHECK-NEXT: func.func @plain(%{{.*}}: i1) -> i1 {
func.func @plain(%p: i1) -> i1 {
  return %p : i1
}

// -----

func.func @structured(%p: i1) {
  scf.if %p {
    // expected-error @below {{'cf.assert' inside 'scf.if' cannot return a status when an assert fails; lower structured control flow first (convert-scf-to-cf)}}
    cf.assert %p, "no"
  }
  return
}

// -----

func.func private @fails(%p: i1) {
  cf.assert %p, "no"
  return
}

func.func @indirect() -> ((i1) -> ()) {
  // expected-error @below {{'func.constant' refers to @fails, which can fail an assert; only func.call can pass on its status: call it directly}}
  %0 = constant @fails : (i1) -> ()
  return %0 : (i1) -> ()
}

// -----

module {
  module @inner {
    func.func @nested(%p: i1) {
      // expected-error @below {{'cf.assert' inside 'func.func' cannot return a status when an assert fails; move the function out of the nested module}}
      cf.assert %p, "no"
      return
    }
  }
}
