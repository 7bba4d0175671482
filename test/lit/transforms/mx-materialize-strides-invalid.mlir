// RUN: mx-opt %s --mx-materialize-strides --split-input-file --verify-diagnostics

// One error for each operation.

!a = tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

// expected-error @below {{'func.func' op has a view 'tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>' that is not in blocked shape; run --mx-block-scale-views first}}
func.func @logical(%a: !a, %x: tensor<256xi8>) {
  // expected-error @below {{'mx.tensor_view' op has a view 'tensor<4x64xi8, #mx.layout<"MX_B_NN">>' that is not in blocked shape}}
  %0 = mx.tensor_view %x[4, 64] : tensor<256xi8> -> tensor<4x64xi8, #mx.layout<"MX_B_NN">>
  return
}

// -----

// expected-error @below {{that is not in blocked shape}}
func.func private @first(tensor<2x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{that is not in blocked shape}}
func.func private @box(tensor<1x4x2x2x16xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{that is not in blocked shape}}
func.func private @dynamic(tensor<1x?x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{'func.func' op has a view 'tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [256, 64, 32, 1, 16]}>>' with strides other than [256, 64, 32, 2, 1]; leave them out}}
func.func private @strides(tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [256, 64, 32, 1, 16]}>>)

// -----

func.func private @fits(tensor<1x1x288230376151711743x16x2xi8, #mx.layout<"MX_A_ZZ">>)
// expected-error @below {{'func.func' op has a view 'tensor<1x2x144115188075855872x16x2xi8, #mx.layout<"MX_A_ZZ">>' of 9223372036854775808 bytes, more than strides of 64 bits can count; make it smaller}}
func.func private @too_large(tensor<1x2x144115188075855872x16x2xi8, #mx.layout<"MX_A_ZZ">>)
