// RUN: mx-opt %s --mx-externalize-constants=min-bytes=1 --verify-diagnostics

// expected-error @+1 {{'builtin.module' op mx.constants is where data of constants go, by symbol, but is 3 : i32; drop it}}
module attributes {mx.constants = 3 : i32} {
  memref.global "private" constant @a : memref<8xf32> = dense<3.0>
}
