"""Determine the size of the machine's memory."""

from __future__ import annotations

import os
import sys


def physical_memory() -> int:
    """Return the size of the physical memory in bytes, or `sys.maxsize` if it is unknown, as on Windows.

    Callers reject allocations that exceed this size, because some operating systems grant them although the memory does
    not exist. Windows does not grant such allocations.
    """
    if not hasattr(os, "sysconf"):
        return sys.maxsize
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
