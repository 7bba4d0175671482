// What looks like a marker and is none gets a warning, and the pieces run together as the file says.
// RUN: mx-opt %s --split-input-file 2>%t.err | filecheck %s
// RUN: filecheck %s --check-prefix=ERR < %t.err
// RUN: mx-opt %s --split-input-file --verify-diagnostics -o /dev/null
// RUN: mx-opt %s --split-input-file='// =====' --output-split-marker='// <cut>' | filecheck %s --check-prefix=OTHER

// CHECK: func.func private @a()
// CHECK-NOT: module
// CHECK: func.func private @b()
func.func private @a()
// ----
// ERR: near-miss.mlir:11:7: warning: near miss with file split marker
func.func private @b()

  // -----

// CHECK: // -----
// CHECK-NEXT: module
// CHECK: func.func private @c()
func.func private @c()

// =====

// OTHER: func.func private @c()
// OTHER: // <cut>
// OTHER-NEXT: module
// OTHER: func.func private @d()
func.func private @d()
