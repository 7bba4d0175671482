// A library of transforms that holds mx operations in custom syntax.
module attributes {transform.with_named_sequence} {
  func.func private @unrelated(%x: !mx.tensor<4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> tensor<4x32xf32> {
    %0 = mx.dequantize_block %x : <4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<4x32xf32>
    return %0 : tensor<4x32xf32>
  }

  transform.named_sequence @remark_at_dequantize(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["mx.dequantize_block"]} in %root : (!transform.any_op) -> !transform.op<"mx.dequantize_block">
    transform.debug.emit_remark_at %op, "found by the library" : !transform.op<"mx.dequantize_block">
    transform.yield
  }

  transform.named_sequence @fails(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %no = transform.get_producer_of_operand %op[0] : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
