// RUN: mx-opt %s --mx-parallel-calls --split-input-file --verify-diagnostics | filecheck %s

// The runtime is declared once, also where it is declared already.

// CHECK-COUNT-1: llvm.func @_mlir_ciface_mx_parallel_for(
// CHECK-LABEL: llvm.func @f
// CHECK: %[[ENTRY:.*]] = llvm.mlir.addressof @part.entry
// CHECK: llvm.call @_mlir_ciface_mx_parallel_for(%[[ENTRY]], %{{.*}}, %arg0, %arg1, %{{.*}})
// CHECK-NOT: mx.parallel =
llvm.func @_mlir_ciface_mx_parallel_for(!llvm.ptr, !llvm.ptr, i64, i64, i64) attributes {sym_visibility = "private"}
llvm.func @part(%lo: i64, %hi: i64, %a: f32) { llvm.return }
llvm.func @f(%lo: i64, %hi: i64, %a: f32) {
  llvm.call @part(%lo, %hi, %a) {mx.parallel = 8 : i64} : (i64, i64, f32) -> ()
  llvm.return
}

// -----

llvm.func @indirect(%f: !llvm.ptr, %lo: i64, %hi: i64) {
  // expected-error @below {{calls a function by name, with the two i64 of a range first}}
  llvm.call %f(%lo, %hi) {mx.parallel = 8 : i64} : !llvm.ptr, (i64, i64) -> ()
  llvm.return
}

// -----

llvm.func @part(%a: f32) { llvm.return }
llvm.func @no_range(%a: f32) {
  // expected-error @below {{calls a function by name, with the two i64 of a range first}}
  llvm.call @part(%a) {mx.parallel = 8 : i64} : (f32) -> ()
  llvm.return
}

// -----

llvm.func @part(%lo: i64, %hi: i64) { llvm.return }
llvm.func @no_granule(%lo: i64, %hi: i64) {
  // expected-error @below {{mx.parallel must be a positive i64, but is 0 : i64}}
  llvm.call @part(%lo, %hi) {mx.parallel = 0 : i64} : (i64, i64) -> ()
  llvm.return
}
