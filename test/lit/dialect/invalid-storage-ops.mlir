// RUN: mx-opt %s --split-input-file --verify-diagnostics

func.func @element(%x: tensor<4x8xi8>) {
  // expected-error @below {{'mx.pack' op element must be one of f6E3M2FN, f6E2M3FN, f4E2M1FN, whose codes are less than a byte, but is 'f8E5M2'}}
  %0 = mx.pack %x {element = f8E5M2} : tensor<4x8xi8> -> tensor<4x8xi8>
  return
}

// -----

func.func @codes(%x: tensor<4x8xi4>) {
  // expected-error @below {{'mx.pack' op codes must be a ranked tensor of i8 without encoding, but is 'tensor<4x8xi4>'}}
  %0 = mx.pack %x {element = f4E2M1FN} : tensor<4x8xi4> -> tensor<4x4xi8>
  return
}

// -----

func.func @packed(%x: tensor<4x8xi8>) {
  // expected-error @below {{'mx.pack' op packed must be a ranked tensor of i8 without encoding, but is 'tensor<4x4xi16>'}}
  %0 = mx.pack %x {element = f4E2M1FN} : tensor<4x8xi8> -> tensor<4x4xi16>
  return
}

// -----

func.func @rank(%x: tensor<i8>) {
  // expected-error @below {{'mx.pack' op codes must be a ranked tensor of i8}}
  %0 = mx.pack %x {element = f4E2M1FN} : tensor<i8> -> tensor<i8>
  return
}

// -----

func.func @groups(%x: tensor<4x6xi8>) {
  // expected-error @below {{'mx.pack' op the last extent of codes 'tensor<4x6xi8>' must be a multiple of 4 for f6E3M2FN}}
  %0 = mx.pack %x {element = f6E3M2FN} : tensor<4x6xi8> -> tensor<4x4xi8>
  return
}

// -----

func.func @shape(%x: tensor<4x8xi8>) {
  // expected-error @below {{'mx.unpack' op 'tensor<4x8xi8>' and 'tensor<4x8xi8>' do not fit: 2 codes of f4E2M1FN are 1 byte of the last axis}}
  %0 = mx.unpack %x {element = f4E2M1FN} : tensor<4x8xi8> -> tensor<4x8xi8>
  return
}

// -----

func.func @dynamic(%x: tensor<4x?xi8>) {
  // expected-error @below {{do not fit: 4 codes of f6E2M3FN are 3 bytes of the last axis}}
  %0 = mx.unpack %x {element = f6E2M3FN} : tensor<4x?xi8> -> tensor<4x8xi8>
  return
}

// -----

func.func @attribute(%x: tensor<4x8xi8>) {
  // expected-error @below {{'mx.pack' op has unknown attribute 'axis'; it takes element}}
  %0 = mx.pack %x {axis = 1, element = f4E2M1FN} : tensor<4x8xi8> -> tensor<4x4xi8>
  return
}

// -----

func.func @missing(%x: tensor<4x8xi8>) {
  // expected-error @below {{'mx.pack' op attribute "element" is expected but not provided}}
  %0 = mx.pack %x : tensor<4x8xi8> -> tensor<4x4xi8>
  return
}
