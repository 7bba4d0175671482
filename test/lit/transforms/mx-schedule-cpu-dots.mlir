// RUN: mx-opt %s --mx-to-linalg --mx-conversions-to-linalg --mx-expand-narrow-floats --mx-schedule-cpu=vector-bits=512 --canonicalize --split-input-file | filecheck %s --check-prefix=PACKED
// RUN: mx-opt %s --mx-schedule-cpu=emit=true --split-input-file | filecheck %s

// A contraction takes in the unpacking of its codes, and rows has a way of its own to read them.

// PACKED: #[[BYTES:.*]] = affine_map<(d0, d1, d2) -> (d0, d2 floordiv 2)>
// PACKED-LABEL: func.func @packed(
// PACKED-SAME: %[[BYTE:[^:]*]]: tensor<48x32xi8>
// PACKED-NOT: tensor.collapse_shape
// PACKED: linalg.generic {indexing_maps = [#[[BYTES]],
// PACKED-SAME: ins(%[[BYTE]],
// PACKED-SAME: mx.schedule = {decode = "nibbles", kind = "rows"
// PACKED: linalg.index 2
// PACKED: arith.shrui
!w = !mx.tensor<48x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @packed(%bytes: tensor<48x32xi8>, %scales: tensor<48x2xf8E8M0FNU>, %x: tensor<64x2xf32>, %c: tensor<48x2xf32>) -> tensor<48x2xf32> {
  %codes = mx.unpack %bytes {element = f4E2M1FN} : tensor<48x32xi8> -> tensor<48x64xi8>
  %w = mx.compose %codes, %scales : tensor<48x64xi8>, tensor<48x2xf8E8M0FNU> -> !w
  %0 = mx.block_matmul %w, %x, %c : !w, tensor<64x2xf32>, tensor<48x2xf32> -> tensor<48x2xf32>
  return %0 : tensor<48x2xf32>
}

// -----

// Codes that something else needs as well are unpacked for that.

// PACKED-LABEL: func.func @shared(
// PACKED: tensor.collapse_shape
// PACKED: linalg.generic
// PACKED-SAME: ins(%arg0,
// PACKED-SAME: mx.schedule
!w = !mx.tensor<48x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>
func.func @shared(%bytes: tensor<48x32xi8>, %scales: tensor<48x2xf8E8M0FNU>, %x: tensor<64x2xf32>, %c: tensor<48x2xf32>) -> (tensor<48x2xf32>, tensor<48x64xi8>) {
  %codes = mx.unpack %bytes {element = f4E2M1FN} : tensor<48x32xi8> -> tensor<48x64xi8>
  %w = mx.compose %codes, %scales : tensor<48x64xi8>, tensor<48x2xf8E8M0FNU> -> !w
  %0 = mx.block_matmul %w, %x, %c : !w, tensor<64x2xf32>, tensor<48x2xf32> -> tensor<48x2xf32>
  return %0, %codes : tensor<48x2xf32>, tensor<48x64xi8>
}

// -----

// MXINT8 on both sides, on buffers: panels of words, and a tile of 2 x 1 dot products in registers.

// CHECK-LABEL: func.func @panels(
// CHECK-SAME: llvm.passthrough = ["stackrealign"]
// CHECK-NOT: linalg.generic
// CHECK-DAG: memref.alloc() {alignment = 64 : i64} : memref<4x48xi32>
// CHECK-DAG: memref.alloc() {alignment = 64 : i64} : memref<2x16x16xi32>
// CHECK: %[[SIGN:.*]] = arith.xori %{{.*}} : vector<64xi8>
// CHECK: vector.bitcast %[[SIGN]] : vector<64xi8> to vector<16xi32>
// CHECK: scf.if
// CHECK: arith.sitofp
// CHECK: else
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: vector.fma
// CHECK-NOT: arith.sitofp
// CHECK: return
#a = affine_map<(m, n, k) -> (m, k)>
#sa = affine_map<(m, n, k) -> (m, k floordiv 32)>
#b = affine_map<(m, n, k) -> (k, n)>
#sb = affine_map<(m, n, k) -> (k floordiv 32, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @panels(%a: memref<4x64xi8>, %s: memref<4x2xi8>, %b: memref<64x32xi8>, %t: memref<2x32xi8>, %c: memref<4x32xf32>) {
  linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #c], iterator_types = ["parallel", "parallel", "reduction"],
                  mx.schedule = {kind = "dots", rows = 2 : i64, vectors = 1 : i64, block_m = 4 : i64, block_n = 32 : i64, block_k = 64 : i64}}
      ins(%a, %s, %b, %t : memref<4x64xi8>, memref<4x2xi8>, memref<64x32xi8>, memref<2x32xi8>) outs(%c : memref<4x32xf32>) {
  ^bb0(%x: i8, %e: i8, %y: i8, %f: i8, %z: f32):
    %unit = arith.constant 0.015625 : f32
    %c23 = arith.constant 23 : i32
    %c255 = arith.constant 255 : i32
    %least = arith.constant 0x00400000 : i32
    %nan = arith.constant 0x7FC00000 : i32
    %x0 = arith.sitofp %x : i8 to f32
    %x1 = arith.mulf %x0, %unit : f32
    %e0 = arith.extui %e : i8 to i32
    %e1 = arith.shli %e0, %c23 : i32
    %e2 = arith.maxui %e1, %least : i32
    %e3 = arith.cmpi eq, %e0, %c255 : i32
    %e4 = arith.select %e3, %nan, %e2 : i32
    %e5 = arith.bitcast %e4 : i32 to f32
    %x2 = arith.mulf %x1, %e5 : f32
    %y0 = arith.sitofp %y : i8 to f32
    %y1 = arith.mulf %y0, %unit : f32
    %f0 = arith.extui %f : i8 to i32
    %f1 = arith.shli %f0, %c23 : i32
    %f2 = arith.maxui %f1, %least : i32
    %f3 = arith.cmpi eq, %f0, %c255 : i32
    %f4 = arith.select %f3, %nan, %f2 : i32
    %f5 = arith.bitcast %f4 : i32 to f32
    %y2 = arith.mulf %y1, %f5 : f32
    %product = arith.mulf %x2, %y2 : f32
    %sum = arith.addf %z, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// The same with the matrix unit: the dot products of two blocks, sixteen rows and columns each, are on their way.

// CHECK-LABEL: func.func @tiles(
// CHECK-NOT: linalg.generic
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<2x16x16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK: scf.if
// CHECK: arith.sitofp
// CHECK: else
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbusd"
// CHECK: vector.fma
// CHECK-NOT: vpdpbusd
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// CHECK: return
#a = affine_map<(m, n, k) -> (m, k)>
#sa = affine_map<(m, n, k) -> (m, k floordiv 32)>
#b = affine_map<(m, n, k) -> (k, n)>
#sb = affine_map<(m, n, k) -> (k floordiv 32, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @tiles(%a: memref<4x64xi8>, %s: memref<4x2xi8>, %b: memref<64x32xi8>, %t: memref<2x32xi8>, %c: memref<4x32xf32>) {
  linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #c], iterator_types = ["parallel", "parallel", "reduction"],
                  mx.schedule = {kind = "dot_tiles", block_m = 16 : i64, block_n = 32 : i64, block_k = 64 : i64}}
      ins(%a, %s, %b, %t : memref<4x64xi8>, memref<4x2xi8>, memref<64x32xi8>, memref<2x32xi8>) outs(%c : memref<4x32xf32>) {
  ^bb0(%x: i8, %e: i8, %y: i8, %f: i8, %z: f32):
    %unit = arith.constant 0.015625 : f32
    %c23 = arith.constant 23 : i32
    %c255 = arith.constant 255 : i32
    %least = arith.constant 0x00400000 : i32
    %nan = arith.constant 0x7FC00000 : i32
    %x0 = arith.sitofp %x : i8 to f32
    %x1 = arith.mulf %x0, %unit : f32
    %e0 = arith.extui %e : i8 to i32
    %e1 = arith.shli %e0, %c23 : i32
    %e2 = arith.maxui %e1, %least : i32
    %e3 = arith.cmpi eq, %e0, %c255 : i32
    %e4 = arith.select %e3, %nan, %e2 : i32
    %e5 = arith.bitcast %e4 : i32 to f32
    %x2 = arith.mulf %x1, %e5 : f32
    %y0 = arith.sitofp %y : i8 to f32
    %y1 = arith.mulf %y0, %unit : f32
    %f0 = arith.extui %f : i8 to i32
    %f1 = arith.shli %f0, %c23 : i32
    %f2 = arith.maxui %f1, %least : i32
    %f3 = arith.cmpi eq, %f0, %c255 : i32
    %f4 = arith.select %f3, %nan, %f2 : i32
    %f5 = arith.bitcast %f4 : i32 to f32
    %y2 = arith.mulf %y1, %f5 : f32
    %product = arith.mulf %x2, %y2 : f32
    %sum = arith.addf %z, %product : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// The same for one column: the left side's bytes are read in place, sixteen rows of them at once.

// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[A:[^:]*]]: memref<32x64xi8>
// CHECK-NOT: linalg.generic
// CHECK: memref.prefetch %[[A]][
// CHECK: vector.load %[[A]][{{.*}}] : memref<32x64xi8>, vector<64xi8>
// CHECK-COUNT-16: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vpdpbusd
// CHECK: scf.if
// CHECK: arith.sitofp
// CHECK: else
// CHECK: vector.fma
// CHECK: return
#a = affine_map<(m, n, k) -> (m, k)>
#sa = affine_map<(m, n, k) -> (m, k floordiv 32)>
#b = affine_map<(m, n, k) -> (k, n)>
#sb = affine_map<(m, n, k) -> (k floordiv 32, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @rows(%a: memref<32x64xi8>, %s: memref<32x2xi8>, %b: memref<64x1xi8>, %t: memref<2x1xi8>, %c: memref<32x1xf32>) {
  linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #c], iterator_types = ["parallel", "parallel", "reduction"],
                  mx.schedule = {kind = "dot_rows", long = "lhs", ahead = 16 : i64}}
      ins(%a, %s, %b, %t : memref<32x64xi8>, memref<32x2xi8>, memref<64x1xi8>, memref<2x1xi8>) outs(%c : memref<32x1xf32>) {
  ^bb0(%x: i8, %e: i8, %y: i8, %f: i8, %z: f32):
    %unit = arith.constant 0.015625 : f32
    %c23 = arith.constant 23 : i32
    %c255 = arith.constant 255 : i32
    %least = arith.constant 0x00400000 : i32
    %nan = arith.constant 0x7FC00000 : i32
    %x0 = arith.sitofp %x : i8 to f32
    %x1 = arith.mulf %x0, %unit : f32
    %e0 = arith.extui %e : i8 to i32
    %e1 = arith.shli %e0, %c23 : i32
    %e2 = arith.maxui %e1, %least : i32
    %e3 = arith.cmpi eq, %e0, %c255 : i32
    %e4 = arith.select %e3, %nan, %e2 : i32
    %e5 = arith.bitcast %e4 : i32 to f32
    %x2 = arith.mulf %x1, %e5 : f32
    %y0 = arith.sitofp %y : i8 to f32
    %y1 = arith.mulf %y0, %unit : f32
    %f0 = arith.extui %f : i8 to i32
    %f1 = arith.shli %f0, %c23 : i32
    %f2 = arith.maxui %f1, %least : i32
    %f3 = arith.cmpi eq, %f0, %c255 : i32
    %f4 = arith.select %f3, %nan, %f2 : i32
    %f5 = arith.bitcast %f4 : i32 to f32
    %y2 = arith.mulf %y1, %f5 : f32
    %product = arith.mulf %x2, %y2 : f32
    %sum = arith.addf %z, %product : f32
    linalg.yield %sum : f32
  }
  return
}
