"""mx-verify-scale-binding: refuse a kernel that multiplies by scales whose addresses are not bound to its data.

A matmul that reads an address bound to other data gives wrong numbers and no error. This pass finds all such matmuls in
kernel functions, whoever bound the scales, and changes nothing; `mx_dialect.analysis.scale_bindings` says what a
binding is and what ends it.

    %ls0 = mx.tget_scale_addr %ls, %l : ...
    %rs0 = mx.tget_scale_addr %rs, %r : ...
    %0 = mx.matmul_mx %l, %ls0, %r, %rs0 : ...
    %l1 = mx.tile_move %x : ...
    %1 = mx.matmul_mx_acc %0, %l, %ls0, %r, %rs0 : ...

gives

    error: 'mx.matmul_mx_acc' op the binding of lhs_scale has ended; bind it right before the matmul, as ...
    note: 'mx.tile_move' takes or gives a tile that may lie in left or left_scale
"""

from typing import Any

from mx_dialect import diagnostics, passes
from mx_dialect.analysis.scale_bindings import Fault, faults
from mx_dialect.diagnostics import Diagnostic, MxError
from mx_dialect.submit_ops import kernels


def _diagnostic(fault: Fault) -> Diagnostic:
    """Return the error about a matmul, with a note at what is to blame."""
    notes = () if fault.cause is None else (diagnostics.at(fault.cause, "note", fault.remark),)
    message = f"'{fault.matmul.operation.name}' op {fault.reason}; {fault.remedy}"
    return diagnostics.at(fault.matmul, "error", message, notes)


def run(root: Any, options: passes.NoOptions) -> None:
    """Check every matmul on MX tiles in the kernel functions under `root`.

    Raises:
        MxError: scales are not bound, one error for each matmul and side; a function is marked as no kind of kernel.
    """
    errors = [_diagnostic(fault) for kernel in kernels(root) for fault in faults(kernel)]
    if errors:
        raise MxError.of(*errors)


PASS = passes.register_pass(
    passes.Pass(
        name="mx-verify-scale-binding",
        summary="Fail if a matmul of a kernel reads scales whose addresses are not bound to its data",
        run=run,
        requires="kernel functions whose memory spaces are decided and whose scales are bound",
        leaves="the module as it is",
    )
)
