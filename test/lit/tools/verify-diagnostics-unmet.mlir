// What is not produced and what is not expected are both errors.
// RUN: not mx-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s
// RUN: not mx-opt %s --split-input-file --verify-diagnostics=only-expected 2>&1 | filecheck %s --check-prefix=ONLY

// CHECK: :6:4: error: expected error "nothing wrong here" was not produced
// expected-error @below {{nothing wrong here}}
func.func private @fine()

// -----

// CHECK: error: unexpected error: {{.*}}block size must be a power of two
// ONLY: was not produced
// ONLY-NOT: unexpected error
func.func private @unexpected(!mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>)

// -----

// CHECK: error: 'error' diagnostic emitted when expecting a 'warning': {{.*}}power of two
// CHECK: error: expected warning "power of two" was not produced
// expected-warning @below {{power of two}}
func.func private @severity(!mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>)

// -----

// CHECK: error: malformed expected-* comment
// ONLY: error: malformed expected-* comment
// expected-error @next {{no such designator}}
func.func private @malformed()
