"""Flags of mlir-opt that `mx-opt` cannot honour, and why: a user who knows them gets a reason, not "unknown"."""

_NO_PLUGINS = "the Python bindings cannot load C++ plugins"
_NO_ACTIONS = "the Python bindings have no access to MLIR's actions; --mlir-print-ir-after-all shows what passes do"
_NO_COUNTERS = "the Python bindings have no access to debug counters"
_NO_PRINTER = "the printer of the Python bindings has no such setting"
_NO_REMARKS = "the Python bindings have no access to MLIR's optimization remarks; remarks of passes are always shown"

REFUSED = {
    "load-pass-plugin": f"{_NO_PLUGINS}; --load=FILE.py loads passes written in Python",
    "load-dialect-plugin": f"{_NO_PLUGINS}; --irdl-file=FILE loads dialects written in IRDL",
    "log-actions-to": _NO_ACTIONS,
    "log-mlir-actions-filter": _NO_ACTIONS,
    "profile-actions-to": f"{_NO_ACTIONS}, --mlir-timing how long they take",
    "mlir-enable-debugger-hook": _NO_ACTIONS,
    "mlir-debug-counter": _NO_COUNTERS,
    "mlir-print-debug-counter": _NO_COUNTERS,
    "mlir-print-unique-ssa-ids": _NO_PRINTER,
    "mlir-print-value-users": _NO_PRINTER,
    "mlir-print-elementsattrs-with-hex-if-larger": _NO_PRINTER,
    "emit-bytecode-producer": "the Python bindings always name themselves as the producer of bytecode",
    "elide-resource-data-from-bytecode": (
        "the Python bindings always write resources; --mlir-elide-resource-strings-if-larger=N leaves them out of text"
    ),
    "mlir-very-unsafe-disable-verifier-on-parsing": (
        "the Python bindings verify whatever they parse; --verify-each=0 turns verification after passes off"
    ),
    "remark-format": _NO_REMARKS,
    "remark-policy": _NO_REMARKS,
    "remarks-filter": _NO_REMARKS,
    "remarks-filter-analyse": _NO_REMARKS,
    "remarks-filter-failed": _NO_REMARKS,
    "remarks-filter-missed": _NO_REMARKS,
    "remarks-filter-passed": _NO_REMARKS,
    "remarks-output-file": _NO_REMARKS,
    "debug": "these bindings are a release build of LLVM, which has no debug output",
    "debug-only": "these bindings are a release build of LLVM, which has no debug output",
}
