#!/usr/bin/env python3
"""Writes the generated pages of the documentation: `python tools/gen-docs.py`, then commit what changed.

With `--assembly` the machine code in the tutorial is replaced by what this processor gets; without, it is kept if it is
from another one.
"""

import sys
from pathlib import Path

_TOOLS = Path(__file__).resolve().parent
# The package, the modules beside this script, and the decoder of machine code that tests use.
sys.path[:0] = [str(_TOOLS.parent), str(_TOOLS), str(_TOOLS.parent / "test" / "python")]

if __name__ == "__main__":
    from gendocs import pages

    for path, text in pages.generate(new_assembly="--assembly" in sys.argv[1:]).items():
        target = pages.DOCS / path
        target.parent.mkdir(parents=True, exist_ok=True)
        changed = not target.exists() or target.read_text(encoding="utf-8") != text
        target.write_text(text, encoding="utf-8")
        print(f"{'wrote' if changed else 'kept'} docs/{path}")
