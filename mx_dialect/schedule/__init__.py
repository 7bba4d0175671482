"""CPU schedules: from a contraction in linalg form to loops over vectors."""
