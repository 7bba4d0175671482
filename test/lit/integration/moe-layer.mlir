// The example: the steps of an expert's loads, and the whole of it down to LLVM.
// RUN: mx-opt %S/../../../examples/moe_layer.mlir --mx-neuron-expand-load | filecheck %s
// RUN: mx-opt %S/../../../examples/moe_layer.mlir --mx-neuron-expand-load=scale-path=static | filecheck %s --check-prefix=STATIC
// RUN: mx-opt %S/../../../examples/moe_layer.mlir --mx-neuron-expand-load --mx-neuron-to-linalg --mx-lower-to-llvm | filecheck %s --check-prefix=LLVM

// I of 512 fills all quadrants in gate, up and down; what follows uses what was loaded.
// CHECK-LABEL: func.func @expert_512(
// CHECK: mx.expert_index %{{.*}} {full_quadrants = 4 : i64, remaining_rows = 0 : i64, scale_rows = 16 : i64}
// CHECK: mx.expert_index %{{.*}} {full_quadrants = 4 : i64, remaining_rows = 0 : i64, scale_rows = 16 : i64}

// CHECK-LABEL: func.func @expert_192(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<16x1024xf32>, %[[W:[a-z0-9]+]]: {{[^%]*}}, %[[S:[a-z0-9]+]]: {{[^%]*}}, %[[B:[a-z0-9]+]]: {{[^%]*}}, %[[DW:[a-z0-9]+]]: {{[^%]*}}, %[[DS:[a-z0-9]+]]: {{[^%]*}}, %[[DB:[a-z0-9]+]]: {{[^%]*}}, %[[E:[a-z0-9]+]]: index)
// CHECK: %[[V:.*]] = mx.view_cast %[[W]] : tensor<4x128x2x2x192xui16> -> tensor<4x128x2x2x192x!mx.x4<f4E2M1FN>>
// CHECK-NEXT: %[[GW:.*]] = mx.select_expert %[[V]], %[[E]][0, 0, 0, 0] {dge_mode = "hwdge", oob_mode = "error"}
// CHECK-NEXT: %[[I:.*]] = mx.expert_index %[[E]] {full_quadrants = 4 : i64, remaining_rows = 0 : i64, scale_rows = 16 : i64}
// CHECK-NEXT: %[[GS:.*]] = mx.scale_gather %[[S]], %[[I]] {oob_mode = "skip"}
// CHECK-NEXT: %[[GB:.*]] = mx.select_expert %[[B]], %[[E]][0, 0, 0, 0] {dge_mode = "hwdge"}
// CHECK-NEXT: %[[V:.*]] = mx.view_cast %[[DW]]
// CHECK-NEXT: %[[DWE:.*]] = mx.select_expert %[[V]], %[[E]][0, 0, 0] {dge_mode = "hwdge", oob_mode = "error"}
// CHECK-NEXT: %[[I:.*]] = mx.expert_index %[[E]] {full_quadrants = 1 : i64, remaining_rows = 2 : i64, scale_rows = 6 : i64}
// CHECK-NEXT: %[[DSE:.*]] = mx.scale_gather %[[DS]], %[[I]] {oob_mode = "skip"}
// CHECK-NEXT: %[[DBE:.*]] = mx.select_expert %[[DB]], %[[E]][0] {dge_mode = "hwdge"}
// CHECK: call @quantized_hidden(%[[X]])
// CHECK: linalg.transpose ins(%[[GB]]
// CHECK: tensor.extract_slice %[[GW]][
// CHECK: tensor.extract_slice %[[GS]][
// CHECK: mx.nc_matmul_mx {{.*}} {accumulate, weights = "stationary"}
// CHECK: mx.quantize_mx
// CHECK: linalg.broadcast ins(%[[DBE]]
// CHECK: tensor.extract_slice %[[DWE]][
// CHECK: tensor.extract_slice %[[DSE]][
// CHECK: mx.nc_matmul_mx {{.*}} {accumulate, weights = "moving"}

// STATIC-NOT: mx.scale_gather
// STATIC-COUNT-4: mx.scale_load_static

// LLVM: llvm.func @expert_192
// LLVM-NOT: mx.
