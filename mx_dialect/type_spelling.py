"""From the storage spelling of mx types, as the bindings print them, to the custom one that users read."""

import re

from mx_dialect import tensor_spec, tile_spec

STORAGE = re.compile(f"{tensor_spec.STORAGE.pattern}|{tile_spec.STORAGE.pattern}")


def spell_types(text: str) -> str:
    """Return `text` with every storage spelling of an mx type replaced by the custom one."""
    if "!mx." not in text:
        return text
    text = tensor_spec.STORAGE.sub(lambda match: tensor_spec.of_match(match).custom(), text)
    return tile_spec.STORAGE.sub(lambda match: tile_spec.of_match(match).custom(), text)
