// RUN: mx-opt %s --mx-tile-to-linalg --allow-unregistered-dialect --verify-diagnostics --split-input-file

func.func @other_operation(%t: !mx.tile<16x32xf32>) {
  // expected-error @below {{'test.use' op holds '!mx.tile<16x32xf32>', and --mx-tile-to-linalg does not know what it does with it; load and store tiles, and view scales as a plain tensor with mx.tensor_view, on the way to other operations}}
  "test.use"(%t) : (!mx.tile<16x32xf32>) -> ()
  return
}

// -----

func.func @other_result() {
  // expected-error @below {{'tensor.empty' op holds 'tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>', and --mx-tile-to-linalg does not know}}
  %0 = tensor.empty() : tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @other_block() {
  // expected-error @below {{'test.region' op holds '!mx.task', and --mx-tile-to-linalg does not know}}
  "test.region"() ({
  ^bb0(%t: !mx.task):
    "test.end"() : () -> ()
  }) : () -> ()
  return
}

// -----

// expected-error @below {{'func.func' op hides a tile or a task in 'tensor<4x!mx.tile<16x32xf32>>'; name its type itself}}
func.func private @hidden(tensor<4x!mx.tile<16x32xf32>>)

// -----

// expected-error @below {{'func.func' op holds 'tensor<24x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>', which is not made of boxes: MX_A_ZZ cuts [M, G] in boxes of 16 along M and 2 along G; pad it to whole boxes}}
func.func private @no_boxes_a(tensor<24x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)

// -----

// expected-error @below {{'func.func' op holds 'tensor<3x32xf8E8M0FNU, #mx.layout<"MX_B_NN">>', which is not made of boxes: MX_B_NN cuts [G, N] in boxes of 16 along N and 2 along G; pad it to whole boxes}}
func.func private @no_boxes_b(tensor<3x32xf8E8M0FNU, #mx.layout<"MX_B_NN">>)

// -----

// expected-error @below {{'func.func' op holds 'tensor<1x2x2x2x16xi8, #mx.layout<"MX_A_ZZ">>', which is not made of boxes}}
func.func private @no_boxes_blocked(tensor<1x2x2x2x16xi8, #mx.layout<"MX_A_ZZ">>)

// -----

// expected-error @below {{'func.func' op holds a distributed tensor, 'tensor<32x4xf8E8M0FNU, #mx.layout<{distributed, layout = "MX_A_ZZ"}>>', and the CPU is one device; drop 'distributed'}}
func.func private @distributed(tensor<32x4xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", distributed}>>)

// -----

// expected-error @below {{'func.func' op holds 'tensor<1x9223372036854775807x0x16x2xi8, #mx.layout<"MX_A_ZZ">>', which has more bytes than an index can count}}
func.func private @endless(tensor<1x9223372036854775807x0x16x2xi8, #mx.layout<"MX_A_ZZ">>)

// -----

func.func @endless_bytes(%x: tensor<4611686018427387904x4xi8>, %n: index) {
  // expected-error @below {{'mx.tensor_view' op views more bytes than an index can count, 'tensor<4611686018427387904x4xi8>'}}
  %0 = mx.tensor_view %x [%n, 2] : tensor<4611686018427387904x4xi8> -> tensor<?x2xi8, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

func.func @store_into_view(%t: !mx.tile<16x2xf8E8M0FNU, mat>, %x: tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) -> tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> {
  // expected-error @below {{'mx.tile_store' op cannot store into a view of scales, 'tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>'; view it as a plain tensor with mx.tensor_view}}
  %0 = mx.tile_store %t, %x[0, 0] : !mx.tile<16x2xf8E8M0FNU, mat>, tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  return %0 : tensor<16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
}

// -----

func.func @into_a_box(%x: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) {
  // expected-error @below {{'mx.tile_load' op loads whole boxes, but has offsets [0, 1, 1, 8, 0] into a box; expected [0, box, box, 0, 0]}}
  %0 = mx.tile_load %x[0, 1, 1, 8, 0] [1, 1, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}

func.func @dynamic_in_a_box(%x: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %i: index) {
  // expected-error @below {{'mx.tile_load' op loads whole boxes, but has offsets [0, ?, 1, ?, 0] into a box}}
  %0 = mx.tile_load %x[0, %i, 1, %i, 0] [1, 1, 1, 16, 2] {target = "mat"} : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU, mat>
  return
}

// -----

func.func @one_byte(%x: tensor<f8E8M0FNU>) {
  // expected-error @below {{'mx.tensor_view' op views boxes of scales, and 'tensor<f8E8M0FNU>' holds a single byte}}
  %0 = mx.tensor_view %x [1, 1] : tensor<f8E8M0FNU> -> tensor<?x?xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
  return
}

// -----

// Each error is reported, and a second one elsewhere too.
func.func private @k(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}
func.func @submits(%x: tensor<4xf32>, %i: index, %p: i1) {
  // expected-error @below {{'mx.submit' op submits @nobody, and there is no function of that name}}
  mx.submit @nobody(%x) : tensor<4xf32> -> ()
  // expected-error @below {{'mx.submit' op number of arguments is 1, but that of @k is 2}}
  %0:2 = mx.submit @k(%x) : tensor<4xf32> -> (tensor<4xf32>, tensor<4xf32>)
  // expected-error @below {{'mx.submit' op argument 1 is 'index', but that of @k is 'tensor<4xf32>'}}
  %1:2 = mx.submit @k(%x, %i) : tensor<4xf32>, index -> (tensor<4xf32>, tensor<4xf32>)
  // expected-error @below {{'mx.submit' op number of results is 0, but that of @k is 2}}
  %2 = mx.submit @k(%x, %x) : tensor<4xf32>, tensor<4xf32> -> !mx.task
  // expected-error @below {{'mx.submit' op result 1 is 'index', but that of @k is 'tensor<4xf32>'}}
  %3:2 = mx.submit @k(%x, %x) : tensor<4xf32>, tensor<4xf32> -> (tensor<4xf32>, index)
  // expected-error @below {{'mx.submit' op runs @k on other than one block, but results 0 and 1 are both made by stores into its argument 0; return the last of them only}}
  %4:2 = mx.submit @k(%x, %x) cores(%i) : tensor<4xf32>, tensor<4xf32>, index -> (tensor<4xf32>, tensor<4xf32>)
  // One block is one call.
  %c1 = arith.constant 1 : index
  %5:2 = mx.submit @k(%x, %x) cores(%c1) : tensor<4xf32>, tensor<4xf32>, index -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func private @fresh(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.empty() : tensor<4xf32>
  return %x, %0 : tensor<4xf32>, tensor<4xf32>
}
func.func private @loops(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %0:2 = scf.for %j = %i to %i step %i iter_args(%u = %x, %v = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    scf.yield %v, %u : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0 : tensor<4xf32>
}
func.func private @branches(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %0 = scf.if %p -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %y : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
func.func private @returns(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  cf.cond_br %p, ^one, ^two
^one:
  return %x : tensor<4xf32>
^two:
  return %y : tensor<4xf32>
}
func.func private @recursion(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @recursion(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func @untied(%x: tensor<4xf32>, %i: index, %p: i1) {
  // expected-error @below {{'mx.submit' op runs @fresh on other than one block, but its result 1 is not made by stores into one of its arguments, to which each block could add; return the tensor that the function stores into}}
  %0:2 = mx.submit @fresh(%x) cores(%i) : tensor<4xf32>, index -> (tensor<4xf32>, tensor<4xf32>)
  // expected-error @below {{'mx.submit' op runs @fresh on other than one block}}
  %1:2 = mx.submit @fresh(%x) if(%p) : tensor<4xf32>, i1 -> (tensor<4xf32>, tensor<4xf32>)
  // expected-error @below {{'mx.submit' op runs @loops on other than one block, but its result 0 is not}}
  %2 = mx.submit @loops(%x, %x, %i) cores(%i) : tensor<4xf32>, tensor<4xf32>, index, index -> tensor<4xf32>
  // expected-error @below {{'mx.submit' op runs @branches on other than one block, but its result 0 is not}}
  %3 = mx.submit @branches(%x, %x, %p) cores(%i) : tensor<4xf32>, tensor<4xf32>, i1, index -> tensor<4xf32>
  // expected-error @below {{'mx.submit' op runs @returns on other than one block, but its result 0 is not}}
  %4 = mx.submit @returns(%x, %x, %p) cores(%i) : tensor<4xf32>, tensor<4xf32>, i1, index -> tensor<4xf32>
  // expected-error @below {{'mx.submit' op runs @recursion on other than one block, but its result 0 is not}}
  %5 = mx.submit @recursion(%x) cores(%i) : tensor<4xf32>, index -> tensor<4xf32>
  // expected-error @below {{'mx.submit' op runs @declared on other than one block, but its result 0 is not}}
  %6 = mx.submit @declared(%x) cores(%i) : tensor<4xf32>, index -> tensor<4xf32>
  return
}

// -----

func.func private @numbered() -> index {
  %0 = mx.block_idx : () -> index
  return %0 : index
}
func.func @reference() -> index {
  // expected-error @below {{'func.constant' op refers to a function that asks for the block it runs as, which only func.call and mx.submit tell it; call it directly}}
  %f = func.constant @numbered : () -> index
  %0 = func.call @numbered() : () -> index
  return %0 : index
}
