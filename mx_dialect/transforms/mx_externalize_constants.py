"""mx-externalize-constants: take the data of large constants out of the program.

LLVM holds a constant twice once it has made machine code: in the module that it was made from, and in the machine code.
For the weights of a model that is too much. This pass leaves declarations, whose memory somebody else provides, and
lists the data in an attribute of the module, by symbol:

    memref.global "private" constant @weight : memref<4096x2048xi8> = dense<"0x..."> {alignment = 64 : i64}

becomes

    module attributes {mx.constants = {mx_constant_0 = dense<"0x..."> : tensor<4096x2048xi8>}} {
      memref.global constant @mx_constant_0 : memref<4096x2048xi8> {alignment = 64 : i64}

The linker of the machine code has to say where each symbol is: in memory aligned to 64 bytes that holds the elements in
order, each in whole bytes as everywhere in buffers. `compile` runs this pass, and a kernel has the data once. Constants
that may change, that have no data, or whose elements or layout numpy has not, stay as they are.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mx_dialect import passes
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import MxError, error_at
from mx_dialect.element_dtypes import dtype_of
from mx_dialect.elements import resource_name
from mx_dialect.external_constants import ALIGNMENT, PREFIX
from mx_dialect.walk import in_scopes

CONSTANTS = "mx.constants"
"""The attribute of a module that has the data of the constants that were taken out, by symbol."""

_GLOBAL, _USE = "memref.global", "memref.get_global"


@dataclass(frozen=True)
class Options:
    min_bytes: int = passes.option(64 << 10, "constants of fewer bytes stay as they are")

    def __post_init__(self) -> None:
        if self.min_bytes < 0:
            raise MxError(f"option 'min-bytes' of pass 'mx-externalize-constants' is 0 or more, not {self.min_bytes}")


def _is_external(op: Any, min_bytes: int) -> bool:
    """Tell whether an operation is a constant whose data can be elsewhere, and is large enough."""
    if op.name != _GLOBAL or "constant" not in op.attributes:
        return False
    type_ = ir.TypeAttr(op.attributes["type"]).value
    dtype = dtype_of(str(type_.element_type))
    # The type first: the bindings cannot give the attribute at all where elements are complex numbers.
    if dtype is None or type_ != ir.MemRefType.get(type_.shape, type_.element_type):
        return False
    if math.prod(type_.shape) * dtype.itemsize < min_bytes or _alignment(op) > ALIGNMENT:
        return False
    value = op.attributes.get("initial_value", None)
    if isinstance(value, ir.DenseElementsAttr):
        return True
    # The bytes of a resource are as they are; those of elements that do not fill theirs are nobody's promise.
    return value is not None and resource_name(value) is not None and _width(type_.element_type) == 8 * dtype.itemsize


def _width(element: Any) -> int:
    return 64 if isinstance(element, ir.IndexType) else element.width


def _alignment(op: Any) -> int:
    return ir.IntegerAttr(op.attributes["alignment"]).value if "alignment" in op.attributes else 1


def _free_names(root: Any) -> Iterator[str]:
    """Yield names for constants that no symbol of a module has."""
    symbols = [op.operation.attributes for op in root.regions[0].blocks[0]]
    taken = {ir.StringAttr(a["sym_name"]).value for a in symbols if "sym_name" in a}
    number = 0
    while True:
        if (name := f"{PREFIX}{number}") not in taken:
            yield name
        number += 1


def _declare(op: Any, name: str) -> Any:
    """Make a constant a declaration under another name; return its data."""
    data = op.attributes["initial_value"]
    del op.attributes["initial_value"]
    if "sym_visibility" in op.attributes:
        del op.attributes["sym_visibility"]
    op.attributes["sym_name"] = ir.StringAttr.get(name)
    op.attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)
    return data


def _rename_uses(root: Any, names: dict[str, str]) -> None:
    """Let what refers to the renamed constants of a module, but not to those of modules inside it, do so again."""
    for scope, op in in_scopes(root, lambda op: op.name == "builtin.module"):
        if scope == root and op.name == _USE:
            name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
            if name in names:
                op.attributes["name"] = ir.FlatSymbolRefAttr.get(names[name])


def _known(root: Any) -> dict[str, Any]:
    """Return the data of constants that were taken out of a module before."""
    if CONSTANTS not in root.attributes:
        return {}
    attribute = root.attributes[CONSTANTS]
    if not isinstance(attribute, ir.DictAttr):
        raise error_at(
            root, f"'{root.name}' op {CONSTANTS} is where data of constants go, by symbol, but is {attribute}; drop it"
        )
    return {named.name: named.attr for named in attribute}


def run(root: Any, options: Options) -> None:
    """Take the data of the large constants of a module out of it."""
    with root.context, ir.Location.unknown():
        found = [op.operation for op in root.regions[0].blocks[0] if _is_external(op.operation, options.min_bytes)]
        if not found:
            return
        known = _known(root)
        names = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in found}
        renamed = dict(zip(names, _free_names(root), strict=False))
        data = {renamed[name]: _declare(op, renamed[name]) for name, op in names.items()}
        _rename_uses(root, renamed)
        data.update(known)
        root.attributes[CONSTANTS] = ir.DictAttr.get(data)


PASS = passes.register_pass(
    passes.Pass(
        name="mx-externalize-constants",
        summary="Take the data of large constants out of the program, for whoever links it to provide",
        run=run,
        options=Options,
        requires="buffers; symbols are those of memref.global, used by memref.get_global",
        leaves="declarations of constants, and their data in the module's mx.constants",
    )
)
