// RUN: mx-opt %s --split-input-file --mx-externalize-constants=min-bytes=32 | filecheck %s
// RUN: mx-opt %s --split-input-file --mx-externalize-constants | filecheck %s --check-prefix=DEFAULT

// The data go to the module; what is small stays. Names are new ones, and symbols are seen by the linker.

// CHECK:      module attributes {mx.constants = {mx_constant_1 = dense<1.000000e+00> : tensor<4x8xf8E4M3FN>, mx_constant_2 = dense<7> : tensor<8xi32>}}
// CHECK-NEXT: memref.global constant @mx_constant_1 : memref<4x8xf8E4M3FN> {alignment = 64 : i64}
// CHECK-NEXT: memref.global "private" constant @small : memref<31xi8> = dense<1>
// CHECK-NEXT: memref.global constant @mx_constant_2 : memref<8xi32> {alignment = 64 : i64}
// CHECK-NEXT: memref.global "private" @mx_constant_0 : memref<i8>
// CHECK-LABEL: @f
// CHECK:      memref.get_global @mx_constant_1
// CHECK-NEXT: memref.get_global @small
// CHECK-LABEL: @g
// CHECK:      scf.if
// CHECK:      memref.get_global @mx_constant_2
// CHECK:      memref.get_global @mx_constant_1
// DEFAULT:    @a : memref<4x8xf8E4M3FN> = dense
memref.global "private" constant @a : memref<4x8xf8E4M3FN> = dense<1.0> {alignment = 64 : i64}
memref.global "private" constant @small : memref<31xi8> = dense<1>
memref.global constant @b : memref<8xi32> = dense<7> {alignment = 16 : i64}
memref.global "private" @mx_constant_0 : memref<i8>
func.func @f() -> (memref<4x8xf8E4M3FN>, memref<31xi8>) {
  %0 = memref.get_global @a : memref<4x8xf8E4M3FN>
  %1 = memref.get_global @small : memref<31xi8>
  return %0, %1 : memref<4x8xf8E4M3FN>, memref<31xi8>
}
func.func private @use(i32)
func.func private @g(%p: i1) -> memref<4x8xf8E4M3FN> {
  scf.if %p {
    %0 = memref.get_global @b : memref<8xi32>
    %c = arith.constant 0 : index
    %1 = memref.load %0[%c] : memref<8xi32>
    func.call @use(%1) : (i32) -> ()
  }
  %2 = memref.get_global @a : memref<4x8xf8E4M3FN>
  return %2 : memref<4x8xf8E4M3FN>
}

// -----

// What may change, has no data or another place in memory stays, and so does what numpy has no type for: complex
// numbers, integers of four bits. So do bits that a resource may pack.

// CHECK:      module @stays {
// CHECK-NOT:  mx_constant
// CHECK:      @bits : memref<64xi1> = dense_resource
module @stays {
  memref.global "private" @changes : memref<64xi8> = dense<1>
  memref.global "private" constant @elsewhere : memref<64xi8>
  memref.global "private" constant @unknown : memref<64xi8> = uninitialized
  memref.global "private" constant @apart : memref<64xi8> = dense<1> {alignment = 128 : i64}
  memref.global "private" constant @near : memref<64xi8, 1> = dense<1>
  memref.global "private" constant @complex : memref<8xcomplex<f32>> = dense<(1.0, 2.0)>
  memref.global "private" constant @nibbles : memref<64xi4> = dense<1>
  memref.global "private" constant @bits : memref<64xi1> = dense_resource<bits>
}
{-#
  dialect_resources: {
    builtin: {
      bits: "0x01000000FFFFFFFFFFFFFFFF"
    }
  }
#-}

// -----

// A module inside has symbols of its own. Constants taken out before stay in the list.

// CHECK:       module attributes {mx.constants = {mx_constant_0 = dense<2> : tensor<32xi8>, mx_constant_1 = dense_resource<weight> : tensor<8xf32>}}
// CHECK:       memref.global constant @mx_constant_1
// CHECK-LABEL: module @inner
// CHECK-NEXT:  memref.global "private" constant @a : memref<32xi8> = dense<1>
// CHECK:       memref.get_global @a : memref<32xi8>
// CHECK-LABEL: @outer
// CHECK:       memref.get_global @mx_constant_1 : memref<8xf32>
module attributes {mx.constants = {mx_constant_0 = dense<2> : tensor<32xi8>}} {
  memref.global constant @mx_constant_0 : memref<32xi8> {alignment = 64 : i64}
  memref.global "private" constant @a : memref<8xf32> = dense_resource<weight>
  module @inner {
    memref.global "private" constant @a : memref<32xi8> = dense<1>
    func.func @f() -> memref<32xi8> {
      %0 = memref.get_global @a : memref<32xi8>
      return %0 : memref<32xi8>
    }
  }
  func.func @outer() -> memref<8xf32> {
    %0 = memref.get_global @a : memref<8xf32>
    return %0 : memref<8xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      weight: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F"
    }
  }
#-}

// -----

// Without an option, 64 KiB are enough.

// DEFAULT:      module attributes {mx.constants = {mx_constant_0 = dense<3> : tensor<65536xi8>}} {
// DEFAULT-NEXT: memref.global constant @mx_constant_0
// DEFAULT-NEXT: @less : memref<65535xi8> = dense<3>
memref.global "private" constant @enough : memref<65536xi8> = dense<3>
memref.global "private" constant @less : memref<65535xi8> = dense<3>
