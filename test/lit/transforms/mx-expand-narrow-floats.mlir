// RUN: mx-opt %s --mx-expand-narrow-floats --split-input-file --verify-diagnostics | filecheck %s

// Sign and magnitude go where f16 has them, then to f32 and by 2^(15 - 7); NaN, 0x7F, becomes the f16 NaN.

// CHECK-LABEL: func.func @extend(
// CHECK-SAME: %[[X:.*]]: f8E4M3FN) -> f32
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : f8E4M3FN to i8
// CHECK: %[[CODE:.*]] = arith.extsi %[[BITS]] : i8 to i16
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[CODE]], %{{.*}} : i16
// CHECK: %[[MASK:.*]] = arith.constant -16512 : i16
// CHECK: %[[HALF:.*]] = arith.andi %[[SHIFTED]], %[[MASK]] : i16
// CHECK: %[[IS_NAN:.*]] = arith.cmpi eq
// CHECK: %[[NAN:.*]] = arith.constant 32256 : i16
// CHECK: %[[SELECTED:.*]] = arith.select %[[IS_NAN]], %[[NAN]], %[[HALF]] : i16
// CHECK: %[[F16:.*]] = arith.bitcast %[[SELECTED]] : i16 to f16
// CHECK: %[[F32:.*]] = arith.extf %[[F16]] : f16 to f32
// CHECK: %[[FACTOR:.*]] = arith.constant 2.560000e+02 : f32
// CHECK: %[[Y:.*]] = arith.mulf %[[F32]], %[[FACTOR]] : f32
// CHECK: return %[[Y]] : f32
func.func @extend(%x: f8E4M3FN) -> f32 {
  %0 = arith.extf %x : f8E4M3FN to f32
  return %0 : f32
}

// -----

// The bits of f8E5M2 are the upper half of an f16: no mask, no NaN, no factor.

// CHECK-LABEL: func.func @extend_f8E5M2(
// CHECK: arith.shli
// CHECK-NOT: arith.select
// CHECK-NOT: arith.mulf
// CHECK: return
func.func @extend_f8E5M2(%x: f8E5M2) -> f32 {
  %0 = arith.extf %x : f8E5M2 to f32
  return %0 : f32
}

// -----

// A scale is an exponent field; 0x00400000 is 2^-127, for code 0, and 0x7FC00000 NaN, for code 255.

// CHECK-LABEL: func.func @extend_scale(
// CHECK-SAME: %[[X:.*]]: f8E8M0FNU) -> f32
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : f8E8M0FNU to i8
// CHECK: %[[CODE:.*]] = arith.extui %[[BITS]] : i8 to i32
// CHECK: %[[FIELD:.*]] = arith.shli %[[CODE]]
// CHECK: %[[LEAST:.*]] = arith.constant 4194304 : i32
// CHECK: %[[NUMBER:.*]] = arith.maxui %[[FIELD]], %[[LEAST]] : i32
// CHECK: %[[IS_NAN:.*]] = arith.cmpi eq, %[[CODE]]
// CHECK: %[[NAN:.*]] = arith.constant 2143289344 : i32
// CHECK: %[[SELECTED:.*]] = arith.select %[[IS_NAN]], %[[NAN]], %[[NUMBER]] : i32
// CHECK: %[[Y:.*]] = arith.bitcast %[[SELECTED]] : i32 to f32
// CHECK: return %[[Y]] : f32
func.func @extend_scale(%x: f8E8M0FNU) -> f32 {
  %0 = arith.extf %x : f8E8M0FNU to f32
  return %0 : f32
}

// -----

// Vectors keep their shape. bf16 is rounded in integers: arith.truncf to bf16 flushes 2^-127 on some processors.

// CHECK-LABEL: func.func @vector(
// CHECK-SAME: %[[X:.*]]: vector<2x4xf8E8M0FNU>)
// CHECK: arith.bitcast %[[X]] : vector<2x4xf8E8M0FNU> to vector<2x4xi8>
// CHECK: arith.trunci %{{.*}} : vector<2x4xi32> to vector<2x4xi16>
// CHECK: arith.bitcast %{{.*}} : vector<2x4xi16> to vector<2x4xbf16>
func.func @vector(%x: vector<2x4xf8E8M0FNU>) -> vector<2x4xbf16> {
  %0 = arith.extf %x : vector<2x4xf8E8M0FNU> to vector<2x4xbf16>
  return %0 : vector<2x4xbf16>
}

// -----

// Between MX types the way is f32, in both directions and at equal width.

// CHECK-LABEL: func.func @narrow_to_narrow(
// CHECK-NOT: arith.{{(extf|truncf|convertf)}} {{.*}}f{{[468]}}E
// CHECK: arith.bitcast %{{.*}} : i8 to f8E4M3FN
// CHECK: arith.bitcast %{{.*}} : i6 to f6E2M3FN
// CHECK: arith.bitcast %{{.*}} : i8 to f8E5M2
// CHECK-NOT: arith.{{(extf|truncf|convertf)}} {{.*}}f{{[468]}}E
// CHECK: return
func.func @narrow_to_narrow(%x: f4E2M1FN, %y: f8E4M3FN) -> (f8E4M3FN, f6E2M3FN, f8E5M2) {
  %0 = arith.extf %x : f4E2M1FN to f8E4M3FN
  %1 = arith.truncf %y : f8E4M3FN to f6E2M3FN
  %2 = arith.convertf %y : f8E4M3FN to f8E5M2
  return %0, %1, %2 : f8E4M3FN, f6E2M3FN, f8E5M2
}

// -----

// f64 is rounded once, in its own width; the default rounding mode may be spelt out.

// CHECK-LABEL: func.func @truncate_f64(
// CHECK-SAME: %[[X:.*]]: f64)
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : f64 to i64
// CHECK-NOT: arith.truncf
// CHECK: %[[CODE:.*]] = arith.trunci %{{.*}} : i64 to i4
// CHECK: %[[Y:.*]] = arith.bitcast %[[CODE]] : i4 to f4E2M1FN
// CHECK: return %[[Y]]
func.func @truncate_f64(%x: f64) -> f4E2M1FN {
  %0 = arith.truncf %x to_nearest_even : f64 to f4E2M1FN
  return %0 : f4E2M1FN
}

// -----

// Inside loops and the bodies of linalg operations; a NaN scale stays NaN although it is a constant.

#map = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @nested(
// CHECK: scf.for
// CHECK: linalg.generic
// CHECK: ^bb0(%[[IN:.*]]: f8E4M3FN, %[[SCALE:.*]]: f8E8M0FNU, %{{.*}}: f32):
// CHECK: arith.bitcast %[[IN]] : f8E4M3FN to i8
// CHECK: arith.bitcast %[[SCALE]] : f8E8M0FNU to i8
// CHECK-NOT: f8E{{.*}} to f32
func.func @nested(%x: tensor<8xf8E4M3FN>, %out: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %nan = arith.constant dense<0xFF> : tensor<8xf8E8M0FNU>
  %result = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %out) -> tensor<8xf32> {
    %0 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
        ins(%x, %nan : tensor<8xf8E4M3FN>, tensor<8xf8E8M0FNU>) outs(%acc : tensor<8xf32>) {
    ^bb0(%in: f8E4M3FN, %scale: f8E8M0FNU, %old: f32):
      %1 = arith.extf %in : f8E4M3FN to f32
      %2 = arith.extf %scale : f8E8M0FNU to f32
      %3 = arith.mulf %1, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  }
  return %result : tensor<8xf32>
}

// -----

// Scaling: a power of two in two factors, both normal numbers; an f32 scale becomes a power of two first.

// CHECK-LABEL: func.func @scaling(
// CHECK-SAME: %[[X:.*]]: f8E4M3FN, %[[S:.*]]: f8E8M0FNU, %[[Y:.*]]: f32, %[[F:.*]]: f32)
// CHECK: arith.bitcast %[[S]] : f8E8M0FNU to i8
// CHECK: %[[ELEMENT:.*]] = arith.mulf
// CHECK: %[[PART:.*]] = arith.mulf %[[ELEMENT]]
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[PART]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[PRODUCT]] : f32
// CHECK: %[[TRUNCATED:.*]] = arith.bitcast %{{.*}} : i8 to f8E8M0FNU
// CHECK: arith.bitcast %[[TRUNCATED]] : f8E8M0FNU to i8
// CHECK: %[[PART:.*]] = arith.mulf %[[Y]]
// CHECK: arith.mulf %[[PART]]
// CHECK-NOT: arith.divf
// CHECK-NOT: arith.scaling
// CHECK: return
func.func @scaling(%x: f8E4M3FN, %s: f8E8M0FNU, %y: f32, %f: f32) -> (f32, f4E2M1FN) {
  %0 = arith.scaling_extf %x, %s : f8E4M3FN, f8E8M0FNU to f32
  %1 = arith.scaling_truncf %y, %f : f32, f32 to f4E2M1FN
  return %0, %1 : f32, f4E2M1FN
}

// -----

// What converts no MX float stays: other types, other operations, values that only move.

// CHECK-LABEL: func.func @untouched(
// CHECK-NEXT: arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NEXT: arith.extf %{{.*}} : f8E4M3FNUZ to f32
// CHECK-NEXT: arith.select %{{.*}} : f8E4M3FN
// CHECK-NEXT: arith.bitcast %{{.*}} : f8E4M3FN to i8
// CHECK-NEXT: memref.store %{{.*}} : memref<4xf8E4M3FN>
// CHECK-NEXT: return
func.func @untouched(%a: f16, %b: f32, %c: f8E4M3FNUZ, %d: f8E4M3FN, %e: i1, %m: memref<4xf8E4M3FN>, %i: index) -> (f32, bf16, f32, i8) {
  %0 = arith.extf %a : f16 to f32
  %1 = arith.truncf %b : f32 to bf16
  %2 = arith.extf %c : f8E4M3FNUZ to f32
  %3 = arith.select %e, %d, %d : f8E4M3FN
  %4 = arith.bitcast %3 : f8E4M3FN to i8
  memref.store %3, %m[%i] : memref<4xf8E4M3FN>
  return %0, %1, %2, %4 : f32, bf16, f32, i8
}

// -----

// One refusal leaves the module as it is; every refusal is reported.

func.func @refused(%x: f32, %t: tensor<4xf8E4M3FN>, %v: vector<[4]xf8E4M3FN>, %e: f8E4M3FN, %z: f8E3M4, %s: f8E5M2) {
  // expected-error @below {{'arith.truncf' cannot be expanded: only rounding mode to_nearest_even is supported; remove the mode}}
  %0 = arith.truncf %x toward_zero : f32 to f8E4M3FN
  // expected-error @below {{'arith.extf' cannot be expanded: 'tensor<4xf8E4M3FN>' is a tensor; run --convert-elementwise-to-linalg first}}
  %1 = arith.extf %t : tensor<4xf8E4M3FN> to tensor<4xf32>
  // expected-error @below {{'arith.extf' cannot be expanded: 'vector<[4]xf8E4M3FN>' is a scalable vector; use vectors of fixed size}}
  %2 = arith.extf %v : vector<[4]xf8E4M3FN> to vector<[4]xf32>
  // expected-error @below {{'arith.extf' cannot be expanded: 'f128' is not supported; convert through f32}}
  %3 = arith.extf %e : f8E4M3FN to f128
  // expected-error @below {{'arith.convertf' cannot be expanded: 'f8E3M4' is not supported; convert through f32}}
  %4 = arith.convertf %z : f8E3M4 to f8E4M3FN
  // expected-error @below {{'arith.scaling_extf' cannot be expanded: a scale of type f8E5M2 is not supported; use f8E8M0FNU or f32}}
  %5 = arith.scaling_extf %e, %s : f8E4M3FN, f8E5M2 to f32
  // expected-error @below {{'arith.scaling_truncf' cannot be expanded: the result is not an MX float; use arith.divf and arith.truncf}}
  %6 = arith.scaling_truncf %x, %x : f32, f32 to f16
  %7 = arith.extf %e : f8E4M3FN to f32
  return
}

// -----

// A clamp to the format's own range, or a wider one, is what truncation does; a narrower one is not.
// CHECK-LABEL: func.func @clamped(
// CHECK-SAME: %[[X:.*]]: f32)
// CHECK: arith.bitcast %[[X]] : f32 to i32
func.func @clamped(%x: f32) -> f8E4M3FN {
  %max = arith.constant 448.0 : f32
  %min = arith.constant -500.0 : f32
  %0 = arith.minimumf %x, %max : f32
  %1 = arith.maximumf %0, %min : f32
  %2 = arith.truncf %1 : f32 to f8E4M3FN
  return %2 : f8E4M3FN
}

// CHECK-LABEL: func.func @clamped_more(
// CHECK: %[[C:.*]] = arith.minimumf
// CHECK: arith.bitcast %[[C]] : f32 to i32
func.func @clamped_more(%x: f32) -> f8E4M3FN {
  %max = arith.constant 447.0 : f32
  %0 = arith.minimumf %x, %max : f32
  %1 = arith.truncf %0 : f32 to f8E4M3FN
  return %1 : f8E4M3FN
}

// Zero for NaN is what a format without NaN gives.
// CHECK-LABEL: func.func @zero_for_nan(
// CHECK-SAME: %[[X:.*]]: f32)
// CHECK: arith.bitcast %[[X]] : f32 to i32
func.func @zero_for_nan(%x: f32) -> f4E2M1FN {
  %zero = arith.constant 0.0 : f32
  %nan = arith.cmpf uno, %x, %x : f32
  %0 = arith.select %nan, %zero, %x : f32
  %1 = arith.truncf %0 : f32 to f4E2M1FN
  return %1 : f4E2M1FN
}

// CHECK-LABEL: func.func @zero_for_nan_is_kept(
// CHECK: %[[S:.*]] = arith.select
// CHECK: arith.bitcast %[[S]] : f32 to i32
func.func @zero_for_nan_is_kept(%x: f32) -> f8E4M3FN {
  %zero = arith.constant 0.0 : f32
  %nan = arith.cmpf uno, %x, %x : f32
  %0 = arith.select %nan, %zero, %x : f32
  %1 = arith.truncf %0 : f32 to f8E4M3FN
  return %1 : f8E4M3FN
}
