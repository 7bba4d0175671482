// A bad chunk does not stop the others; its line is the file's; the markers stay.
// RUN: not mx-opt %s --split-input-file 2>%t.err | filecheck %s
// RUN: filecheck %s --check-prefix=ERR < %t.err

// CHECK: func.func @first
func.func @first() {
  return
}

// -----

// CHECK: // -----
// CHECK-NOT: @second
// ERR: split-input-file.mlir:15:27: error: {{.*}}block size must be a power of two
func.func private @second(!mx.tensor<4x6xf8E4M3FN, block_size = 3, scale_type = f8E8M0FNU>)

// -----

// CHECK: // -----
// CHECK: func.func private @third(!mx.tensor<4x6xf8E4M3FN, block_size = 2, scale_type = f8E8M0FNU>)
func.func private @third(!mx.tensor<4x6xf8E4M3FN, block_size = 2, scale_type = f8E8M0FNU>)
