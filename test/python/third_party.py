"""Other people's implementations, which the tests compare with: imported where they are installed."""

import importlib
import os
import warnings

import pytest


def load(module):
    """Return a module by name; without it the tests of a file are skipped, or fail if MX_REQUIRE_ORACLES is 1.

    Call it where a test file is imported. pytest makes warnings errors, and what other packages warn of while they are
    imported (their own deprecations, and those of what they import) is not this project's to fix: it is ignored here,
    and here only.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if os.environ.get("MX_REQUIRE_ORACLES") == "1":
                raise
            pytest.skip(f"{error.name} is not installed", allow_module_level=True)
