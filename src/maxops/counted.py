"""Format counts in messages: "1 node", "2 nodes"."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with a noun or verb in the singular or plural. The default of `many` is `one` with an s.

    >>> counted(1, "max node"), counted(1038, "max node"), counted(2, "is broken", "are broken")
    ('1 max node', '1,038 max nodes', '2 are broken')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
