"""Settings of all tests.

No deadline for hypothesis, since the first example may pay for imports or a compilation. No kernels on disk: neither
those of the user, nor what one test left for another; the tests of the cache turn it on, in folders of their own.
"""

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from command_line import Run

settings.register_profile("mx", deadline=None)
settings.load_profile("mx")

os.environ["MX_CACHE"] = "0"


@pytest.fixture
def mx_opt(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> "Run":
    """Run mx-opt in process."""
    # After the environment is set, and only for the tests of the command line.
    from command_line import Run

    return Run(capfd, monkeypatch)
