"""IR in documents: excerpts that say after which pass they were printed, and where they stand in a program."""

import re


def excerpts(text):
    """Return (pass, line groups) of each excerpt in a document: a group's lines follow each other in the program."""
    found = []
    for name, body in re.findall(r"<!-- after ([\w-]+) -->\n```mlir\n(.*?)```", text, re.DOTALL):
        groups = re.split(r"^\s*\.\.\.\n", body, flags=re.MULTILINE)
        found.append((name, [[line.strip() for line in group.splitlines()] for group in groups]))
    return found


def place_after(lines, group, start):
    """Return where in `lines` a group ends, looking from `start` on, None if it is not there."""
    for first in range(start, len(lines) - len(group) + 1):
        if lines[first : first + len(group)] == group:
            return first + len(group)
    return None


def assert_in_program(lines, groups):
    """Demand groups of lines in a program, in their order."""
    place = 0
    for group in groups:
        place = place_after(lines, group, place)
        assert place is not None, "not in the program after this pass, in this order:\n" + "\n".join(group)
