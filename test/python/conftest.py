"""Settings of all tests.

No deadline for hypothesis, since the first example may pay for imports or a compilation. No kernels on disk: neither
those of the user, nor what one test left for another; the tests of the cache turn it on, in folders of their own.
"""

import os

from hypothesis import settings

settings.register_profile("mx", deadline=None)
settings.load_profile("mx")

os.environ["MX_CACHE"] = "0"
