"""Settings of every hypothesis test: no deadline, since the first example may pay for imports or a compilation."""

from hypothesis import settings

settings.register_profile("mx", deadline=None)
settings.load_profile("mx")
