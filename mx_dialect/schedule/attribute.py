"""The attribute that fixes how a contraction runs."""

ATTRIBUTE = "mx.schedule"
"""Its name, on a linalg.generic."""

NONE = "none"
"""The kind of an operation that no schedule shall touch."""
