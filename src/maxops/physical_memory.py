"""How much memory this machine has."""

from __future__ import annotations

import os
import sys


def physical_memory() -> int:
    """Its bytes; where the system does not tell them, as Windows does not, as many as can be addressed.

    Callers compare it with what the system would promise and could not keep: Windows promises no memory that it lacks.
    """
    if not hasattr(os, "sysconf"):
        return sys.maxsize
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
