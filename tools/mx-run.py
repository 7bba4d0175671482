#!/usr/bin/env python3
"""Runs mx-run from a source tree or an install tree; everything is in mx_dialect/run.py."""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# A source tree has the package beside tools/, a CMake install beside bin/ in python_packages/.
sys.path[:0] = [str(p) for p in (_HERE.parent, _HERE.parent / "python_packages") if (p / "mx_dialect").is_dir()]

if __name__ == "__main__":
    from mx_dialect.run import main

    sys.exit(main())
