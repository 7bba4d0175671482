module attributes {transform.with_named_sequence} {
  transform.named_sequence @f(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["mx.dequantize_block"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.debug.emit_remark_at %wrong, "never" : !transform.any_op
    transform.yield
  }
}
