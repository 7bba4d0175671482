// RUN: mx-opt %s --split-input-file --verify-diagnostics

func.func @dependencies(%x: i32) {
  // expected-error @below {{'mx.submit' op dependencies must be tasks, but there is 'i32'}}
  mx.submit @k() after(%x) : i32
  return
}

// -----

func.func @core_count(%n: i32) {
  // expected-error @below {{'mx.submit' op core_count must be an index, but there is 'i32'}}
  mx.submit @k() cores(%n) : i32
  return
}

// -----

func.func @core_counts(%n: index) {
  // expected-error @below {{'mx.submit' op core_count must be one value or none, but there are 2}}
  mx.submit @k() cores(%n, %n) : index, index
  return
}

// -----

func.func @predicate(%p: i32) {
  // expected-error @below {{'mx.submit' op predicate must be an i1, but there is 'i32'}}
  mx.submit @k() if(%p) : i32
  return
}

// -----

func.func @predicates(%p: i1) {
  // expected-error @below {{'mx.submit' op predicate must be one value or none, but there are 3}}
  mx.submit @k() if(%p, %p, %p) : i1, i1, i1
  return
}

// -----

func.func @early_task() {
  // expected-error @below {{'mx.submit' op must have no task among its results but one, the last}}
  %0:2 = mx.submit @k() : () -> (!mx.task, i32)
  return
}

// -----

func.func @two_tasks() {
  // expected-error @below {{'mx.submit' op must have no task among its results but one, the last}}
  %0:2 = mx.submit @k() : () -> (!mx.task, !mx.task)
  return
}

// -----

func.func @flag() {
  // expected-error @below {{'mx.submit' op sync_start must have no value, but is true}}
  mx.submit @k() {sync_start = true} : ()
  return
}

// -----

func.func @other_flag() {
  // expected-error @below {{'mx.submit' op sync_end must have no value, but is 1 : i64}}
  mx.submit @k() {sync_end = 1} : ()
  return
}

// -----

#zero = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#zeros = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
func.func @callee() {
  // expected-error @below {{'mx.submit' op callee must name a function, such as @kernel, but is "k"}}
  "mx.submit"() {callee = "k", operandSegmentSizes = #zeros, resultSegmentSizes = #zero} : () -> ()
  return
}

// -----

#zero = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#zeros = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
func.func @nested_callee() {
  // expected-error @below {{'mx.submit' op callee must name a function, such as @kernel, but is @a::@b}}
  "mx.submit"() {callee = @a::@b, operandSegmentSizes = #zeros, resultSegmentSizes = #zero} : () -> ()
  return
}

// -----

#zero = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#zeros = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
func.func @no_callee() {
  // expected-error @below {{'mx.submit' op attribute "callee" is expected but not provided}}
  "mx.submit"() {operandSegmentSizes = #zeros, resultSegmentSizes = #zero} : () -> ()
  return
}

// -----

func.func @no_segments(%x: i32) {
  // expected-error @below {{operandSegmentSizes}}
  "mx.submit"(%x) {callee = @k} : (i32) -> ()
  return
}

// -----

// The form of the operands.

func.func @no_symbol(%x: i32) {
  // expected-error @below {{expected the callee of mx.submit, such as @name}}
  mx.submit %x : i32
  return
}

// -----

func.func @no_arguments() {
  // expected-error @below {{expected '(' and the arguments of mx.submit}}
  mx.submit @k : ()
  return
}

// -----

func.func @unknown_group(%t: !mx.task) {
  // expected-error @below {{mx.submit has no operands 'afer'; did you mean 'after'?}}
  mx.submit @k() afer(%t) : !mx.task
  return
}

// -----

func.func @unlike_any_group(%n: index) {
  // expected-error @below {{mx.submit has no operands 'on'; it has after, cores, if}}
  mx.submit @k() on(%n) : index
  return
}

// -----

func.func @group_twice(%t: !mx.task) {
  // expected-error @below {{'after' of mx.submit is given twice}}
  mx.submit @k() after(%t) after(%t) : !mx.task, !mx.task
  return
}

// -----

func.func @group_order(%t: !mx.task, %n: index) {
  // expected-error @below {{'after' of mx.submit must come before 'cores'}}
  mx.submit @k() cores(%n) after(%t) : index, !mx.task
  return
}

// -----

func.func @group_open(%t: !mx.task) {
  // expected-error @below {{expected ',' or ')' in the dependencies of mx.submit}}
  mx.submit @k() after(%t : !mx.task
  return
}

// -----

func.func @types(%x: i32, %t: !mx.task) {
  // expected-error @below {{mx.submit has 2 operands but 1 operand type}}
  mx.submit @k(%x) after(%t) : i32
  return
}
