// RUN: mx-opt %s --mx-block-scale-views --split-input-file | filecheck %s

// Offsets that are proven to be whole boxes and not negative (C2 and the rest of the two tables of proofs). The whole
// offset is divided, never a part of its arithmetic.

!a = tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!t = !mx.tile<16x2xf8E8M0FNU, mat>

// CHECK-LABEL: func.func @c2(
func.func @c2(%a: !a) {
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %block = mx.block_idx : -> index

  // (block % 2) * 512
  // CHECK: %[[R:.*]] = arith.remsi
  // CHECK: %[[M:.*]] = arith.muli %[[R]],
  // CHECK: %[[Q:.*]] = arith.floordivsi %[[M]],
  // CHECK: mx.tile_load %{{.*}}[0, %[[Q]], 0, 0, 0]
  %rest = arith.remsi %block, %c2 : index
  %m0 = arith.muli %rest, %c512 : index
  %0 = mx.tile_load %a[%m0, 0] [16, 2] {target = "mat"} : !a -> !t

  // (block // 2) * 128
  // CHECK: %[[M:.*]] = arith.muli %{{.*}}, %{{.*}}
  // CHECK: %[[Q:.*]] = arith.floordivsi %[[M]],
  // CHECK: mx.tile_load %{{.*}}[0, %[[Q]], 0, 0, 0]
  %half = arith.floordivsi %block, %c2 : index
  %m1 = arith.muli %half, %c128 : index
  %1 = mx.tile_load %a[%m1, 0] [16, 2] {target = "mat"} : !a -> !t

  // block * 256: its own name is divided
  // CHECK: %[[N0:.*]] = arith.muli %{{.*}}, %{{.*}}
  // CHECK-NEXT: %[[C:.*]] = arith.constant 16 : index
  // CHECK-NEXT: %[[Q:.*]] = arith.floordivsi %[[N0]], %[[C]] : index
  // CHECK-NEXT: mx.tile_load %{{.*}}[0, %[[Q]], 0, 0, 0]
  %n0 = arith.muli %block, %c256 : index
  %2 = mx.tile_load %a[%n0, 0] [16, 2] {target = "mat"} : !a -> !t

  // min and max of proven values
  // CHECK: %[[MIN:.*]] = arith.minsi
  // CHECK: arith.floordivsi %[[MIN]],
  // CHECK: %[[MAX:.*]] = arith.maxsi
  // CHECK: arith.floordivsi %[[MAX]],
  %min = arith.minsi %n0, %m0 : index
  %3 = mx.tile_load %a[%min, 0] [16, 2] {target = "mat"} : !a -> !t
  %max = arith.maxsi %n0, %m0 : index
  %4 = mx.tile_load %a[%max, 0] [16, 2] {target = "mat"} : !a -> !t
  return
}

// -----

// A maximum is not negative if one side is not.

!a = tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @maximum(
// CHECK: %[[M:.*]] = arith.maxsi
// CHECK: arith.floordivsi %[[M]],
func.func @maximum(%a: !a, %any: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %m = arith.muli %any, %c16 : index
  %row = arith.maxsi %m, %c0 : index
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}

// -----

// The index dialect, unsigned division, casts, affine maps, scf.forall.

!a = tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
!t = !mx.tile<16x2xf8E8M0FNU, mat>

// CHECK-LABEL: func.func @dialects(
// CHECK-COUNT-5: mx.tile_load %{{.*}}[0, %{{[^,]*}}, %{{[^,]*}}, 0, 0]
func.func @dialects(%a: !a) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c16_i32 = arith.constant 16 : i32
  %c512 = arith.constant 512 : index
  scf.forall (%m, %k) = (0, %c0) to (4096, %c512) step (16, %c16) {
    %g0 = index.divs %k, %c4
    %0 = mx.tile_load %a[%m, %g0] [16, 2] {target = "mat"} : !a -> !t

    %g1 = arith.divui %k, %c4 : index
    %m1 = index.add %m, %k
    %1 = mx.tile_load %a[%m1, %g1] [16, 2] {target = "mat"} : !a -> !t

    %m2 = affine.apply affine_map<(d0)[s0] -> (d0 + (s0 * 3 + 1) * 16 + (d0 ceildiv 2) * 64)>(%k)[%m]
    %g2 = affine.apply affine_map<(d0) -> (d0 floordiv 8 + (d0 mod 3) * 2)>(%k)
    %2 = mx.tile_load %a[%m2, %g2] [16, 2] {target = "mat"} : !a -> !t
  }
  scf.for %i = %c16_i32 to %c16_i32 step %c16_i32 : i32 {
    %m3 = arith.index_cast %i : i32 to index
    %g3 = index.casts %i : i32 to index
    %3 = mx.tile_load %a[%m3, %g3] [16, 2] {target = "mat"} : !a -> !t

    %m4 = index.maxs %m3, %c0
    %g4 = index.mins %m3, %g3
    %4 = mx.tile_load %a[%m4, %g4] [16, 2] {target = "mat"} : !a -> !t
  }
  return
}

// -----

// Arithmetic on constants is computed.

!a = tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @constants(
// CHECK: %[[D:.*]] = arith.subi
// CHECK: arith.floordivsi %[[D]],
func.func @constants(%a: !a) {
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  %row = arith.subi %c40, %c8 : index
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}

// -----

// What a parameter can be is what the calls give it, also the one that calls through another function.

!a = tensor<4096x64xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %{{.*}}, %[[ROW:.*]]: index)
// CHECK: arith.floordivsi %[[ROW]],
func.func @kernel(%a: !a, %row: index) {
  %0 = mx.tile_load %a[%row, 0] [16, 2] {target = "mat"} : !a -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}
func.func @passes_on(%row: index, %a: !a) {
  call @kernel(%a, %row) : (!a, index) -> ()
  return
}
func.func @root(%a: !a) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  call @kernel(%a, %c0) : (!a, index) -> ()
  call @passes_on(%c32, %a) : (index, !a) -> ()
  return
}
