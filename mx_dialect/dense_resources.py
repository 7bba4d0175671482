"""The bytes of dense resources, where modules keep large constants; the bindings give them as text only."""

import re
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import unescape

_RESOURCE = re.compile(r'dense_resource<(?:"((?:[^"\\]|\\.)*)"|([^">]*))>')

# Where a blob begins in the text of an operation; its first four bytes are its alignment.
_BLOB = ': "0x'


def resource_name(attribute: Any) -> str | None:
    """Return the name of a dense resource, which the bindings give as a plain attribute; None for anything else."""
    if isinstance(attribute, ir.DenseElementsAttr):
        return None
    match = _RESOURCE.match(str(attribute))
    return match and unescape(match[1] or match[2])


def resource_bytes(attribute: Any, size: int) -> bytes:
    """Return the bytes of a dense resource, which are to be `size`.

    Raises:
        LookupError: it has no data, or another number of bytes; the text is the end of a sentence.
    """
    # Only an operation that is in no other is printed with its resources.
    with ir.Location.unknown(attribute.context):
        alone = ir.Operation.create(
            "arith.constant", results=[attribute.type], attributes={"value": attribute}, ip=False
        )
    text = str(alone)
    start = text.rfind(_BLOB)
    if start < 0:
        raise LookupError("its resource has no data")
    start += len(_BLOB)
    data = bytes.fromhex(text[start : text.index('"', start)])[4:]
    if len(data) != size:
        raise LookupError(f"its resource has {len(data)} bytes, not {size}")
    return data
