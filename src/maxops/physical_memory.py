"""Finds out how much memory this machine has."""

from __future__ import annotations

import os
import sys


def physical_memory() -> int:
    """Return the machine's memory in bytes, or the size of the address space if it is unknown, as on Windows.

    Callers compare it with allocations that the system would promise but could not keep. Windows promises only memory
    that it has.
    """
    if not hasattr(os, "sysconf"):
        return sys.maxsize
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
