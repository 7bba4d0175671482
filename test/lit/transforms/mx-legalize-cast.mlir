// RUN: mx-opt %s --split-input-file --mx-legalize-cast | filecheck %s

!f4 = !mx.tile<16x64xf4E2M1FN>
!f4m = !mx.tile<16x64xf4E2M1FN, mat>
!f4l = !mx.tile<16x64xf4E2M1FN, left>
!f4v = !mx.tile<16x64xf4E2M1FN, vec>
!f8 = !mx.tile<16x64xf8E4M3FN>
!f8m = !mx.tile<16x64xf8E4M3FN, mat>
!f8l = !mx.tile<16x64xf8E4M3FN, left>
!f8v = !mx.tile<16x64xf8E4M3FN, vec>

// CHECK-LABEL: func.func @legal(
// CHECK-NEXT: mx.tile_cast %{{.*}} : !mx.tile<16x64xf4E2M1FN, vec> -> !mx.tile<16x64xf8E5M2, vec>
// CHECK-NEXT: return
func.func @legal(%x: !f4v) attributes {mx.kernel = "aiv"} {
  %0 = mx.tile_cast %x : !f4v -> !mx.tile<16x64xf8E5M2, vec>
  return
}

// A load for casts only goes to vec, whatever its target was.

// CHECK-LABEL: func.func @loads(
// CHECK-NEXT: %[[X:.*]] = mx.tile_load {{.*}} {target = "vec"} : {{.*}} -> !mx.tile<16x64xf4E2M1FN, vec>
// CHECK-NEXT: mx.tile_cast %[[X]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, vec>
// CHECK-NEXT: mx.tile_cast %[[X]] : {{.*}} -> !mx.tile<16x64xf8E5M2, vec>
// CHECK-NEXT: %[[Y:.*]] = mx.tile_load {{.*}} {target = "vec"} :
// CHECK-NEXT: mx.tile_cast %[[Y]] :
// CHECK-NEXT: return
func.func @loads(%w: tensor<16x64xf4E2M1FN>) attributes {mx.kernel = "aiv"} {
  %x = mx.tile_load %w[0, 0] [16, 64] : tensor<16x64xf4E2M1FN> -> !f4
  %0 = mx.tile_cast %x : !f4 -> !f8
  %1 = mx.tile_cast %x : !f4 -> !mx.tile<16x64xf8E5M2, vec>
  %y = mx.tile_load %w[0, 0] [16, 64] {target = "mat"} : tensor<16x64xf4E2M1FN> -> !f4m
  %2 = mx.tile_cast %y : !f4m -> !f8
  return
}

// Other tiles are moved, once in a block; a load with another use stays.

// CHECK-LABEL: func.func @moves(
// CHECK-SAME: %{{.*}}: i1, %[[A:.*]]: !mx.tile<16x64xf4E2M1FN>, %[[B:.*]]: !mx.tile<16x64xf4E2M1FN, mat>,
// CHECK-NEXT: %[[X:.*]] = mx.tile_load {{.*}} {target = "mat"}
// CHECK-NEXT: mx.tile_store %[[X]]
// CHECK-NEXT: %[[XV:.*]] = mx.tile_move %[[X]] : {{.*}} -> !mx.tile<16x64xf4E2M1FN, vec>
// CHECK-NEXT: mx.tile_cast %[[XV]] :
// CHECK-NEXT: mx.tile_cast %[[XV]] :
// CHECK-NEXT: %[[AV:.*]] = mx.tile_move %[[A]] : !mx.tile<16x64xf4E2M1FN> -> !mx.tile<16x64xf4E2M1FN, vec>
// CHECK-NEXT: mx.tile_cast %[[AV]] :
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[BV:.*]] = mx.tile_move %[[B]] : {{.*}} -> !mx.tile<16x64xf4E2M1FN, vec>
// CHECK-NEXT: mx.tile_cast %[[BV]] :
// CHECK: }
// CHECK-NEXT: %[[BV2:.*]] = mx.tile_move %[[B]]
// CHECK-NEXT: mx.tile_cast %[[BV2]] :
func.func @moves(%p: i1, %a: !f4, %b: !f4m, %w: tensor<16x64xf4E2M1FN>) attributes {mx.kernel = "aiv"} {
  %x = mx.tile_load %w[0, 0] [16, 64] {target = "mat"} : tensor<16x64xf4E2M1FN> -> !f4m
  %0 = mx.tile_store %x, %w[0, 0] : !f4m, tensor<16x64xf4E2M1FN> -> tensor<16x64xf4E2M1FN>
  %1 = mx.tile_cast %x : !f4m -> !f8v
  %2 = mx.tile_cast %x : !f4m -> !f8v
  %3 = mx.tile_cast %a : !f4 -> !f8v
  scf.if %p {
    %4 = mx.tile_cast %b : !f4m -> !f8v
  }
  %5 = mx.tile_cast %b : !f4m -> !f8v
  return
}

// A moved tile is cast before it is moved; moves that nothing uses any more go.

// CHECK-LABEL: func.func @moved(
// CHECK-SAME: %[[A:.*]]: !mx.tile<16x64xf4E2M1FN, vec>, %[[B:.*]]: !mx.tile<16x64xf4E2M1FN, mat>)
// CHECK-NEXT: mx.tile_cast %[[A]] : !mx.tile<16x64xf4E2M1FN, vec> -> !mx.tile<16x64xf8E4M3FN, vec>
// CHECK-NEXT: mx.tile_cast %[[A]] :
// CHECK-NEXT: %[[BV:.*]] = mx.tile_move %[[B]] : {{.*}}, vec>
// CHECK-NEXT: mx.tile_cast %[[BV]] :
// CHECK-NEXT: return
func.func @moved(%a: !f4v, %b: !f4m) attributes {mx.kernel = "aiv"} {
  %m = mx.tile_move %a : !f4v -> !f4m
  %l = mx.tile_move %m : !f4m -> !f4l
  %r = mx.tile_move %m : !f4m -> !mx.tile<16x64xf4E2M1FN, right>
  %0 = mx.tile_cast %l : !f4l -> !f8v
  %1 = mx.tile_cast %r : !mx.tile<16x64xf4E2M1FN, right> -> !f8v
  %bl = mx.tile_move %b : !f4m -> !f4l
  %2 = mx.tile_cast %bl : !f4l -> !f8v
  return
}

// A moved load is loaded to vec, and its result moved to where it was declared.

// CHECK-LABEL: func.func @results(
// CHECK-NEXT: %[[X:.*]] = mx.tile_load {{.*}} {target = "vec"}
// CHECK-NEXT: %[[Y:.*]] = mx.tile_cast %[[X]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, vec>
// CHECK-NEXT: %[[YM:.*]] = mx.tile_move %[[Y]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, mat>
// CHECK-NEXT: %[[YL:.*]] = mx.tile_move %[[YM]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, left>
// CHECK-NEXT: mx.matmul_mx %[[YL]],
// CHECK-NEXT: %[[Z:.*]] = mx.tile_cast %[[X]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, vec>
// CHECK-NEXT: %[[ZM:.*]] = mx.tile_move %[[Z]] : {{.*}} -> !mx.tile<16x64xf8E4M3FN, mat>
// CHECK-NEXT: mx.tile_store %[[ZM]],
func.func @results(%w: tensor<16x64xf4E2M1FN>, %out: tensor<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU, left_scale>, %b: !mx.tile<64x32xf8E4M3FN, right>, %bs: !mx.tile<2x32xf8E8M0FNU, right_scale>) -> tensor<16x64xf8E4M3FN> attributes {mx.kernel = "incore"} {
  %x = mx.tile_load %w[0, 0] [16, 64] {target = "mat"} : tensor<16x64xf4E2M1FN> -> !f4m
  %l = mx.tile_move %x : !f4m -> !f4l
  %y = mx.tile_cast %l : !f4l -> !f8l
  %0 = mx.matmul_mx %y, %as, %b, %bs : !f8l, !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<64x32xf8E4M3FN, right>, !mx.tile<2x32xf8E8M0FNU, right_scale> -> !mx.tile<16x32xf32, acc>
  %z = mx.tile_cast %x : !f4m -> !f8m
  %1 = mx.tile_store %z, %out[0, 0] : !f8m, tensor<16x64xf8E4M3FN> -> tensor<16x64xf8E4M3FN>
  return %1 : tensor<16x64xf8E4M3FN>
}

// A result that is not decided is vec where its users take it from there; else --mx-infer-memory-space decides.

// CHECK-LABEL: func.func @undecided(
// CHECK: %[[Y:.*]] = mx.tile_cast %{{.*}} -> !mx.tile<16x64xf8E4M3FN, vec>
// CHECK-NEXT: mx.tile_store %[[Y]]
// CHECK-NEXT: %[[Z:.*]] = mx.tile_cast %{{.*}} -> !mx.tile<16x64xf8E4M3FN>
// CHECK-NEXT: mx.tile_move %[[Z]]
// CHECK: mx.tile_cast %{{.*}} -> !mx.tile<16x64xf8E4M3FN>
// CHECK-NEXT: scf.yield
func.func @undecided(%p: i1, %a: !f4v, %b: !f8, %out: tensor<16x64xf8E4M3FN>) -> tensor<16x64xf8E4M3FN> attributes {mx.kernel = "aiv"} {
  %y = mx.tile_cast %a : !f4v -> !f8
  %0 = mx.tile_store %y, %out[0, 0] : !f8, tensor<16x64xf8E4M3FN> -> tensor<16x64xf8E4M3FN>
  %z = mx.tile_cast %a : !f4v -> !f8
  %1 = mx.tile_move %z : !f8 -> !f8l
  %2 = scf.if %p -> !f8 {
    %3 = mx.tile_cast %a : !f4v -> !f8
    scf.yield %3 : !f8
  } else {
    scf.yield %b : !f8
  }
  return %0 : tensor<16x64xf8E4M3FN>
}
