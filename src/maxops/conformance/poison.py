"""Memory poisoning: fills free memory with a different pattern in each run, to reveal uses of uninitialized memory.

With glibc, malloc fills new blocks with a byte (MALLOC_PERTURB_), except blocks from a thread's own cache: start the
process with TUNABLES to disable that cache. NumPy caches small blocks, so `poison_cached` allocates all blocks of a
size, fills them and frees them. Without glibc, only these blocks are filled.
"""

from __future__ import annotations

import ctypes
import os

import numpy as np

from maxops.dtypes import BOOL, DType

TUNABLES = "glibc.malloc.tcache_count=0"
_M_PERTURB = -6
_CACHED_BYTES = 1024  # NumPy caches smaller blocks, seven of each size
_CACHED_BLOCKS = 7
# In every type, the two patterns are numbers that are far apart; in signed types, the second is negative. In a bool,
# every byte except 0 means True, so the first pattern is 0.
_PATTERNS = (0x5A, 0xA5)
_PATTERNS_OF_BOOL = (0x00, 0x5A)


def patterns(dtype: DType) -> tuple[int, int]:
    """Return the bytes that fill memory in the first run and in the second run."""
    return _PATTERNS_OF_BOOL if dtype is BOOL else _PATTERNS


class Memory:
    """The process's free memory. `poison` sets the pattern of new blocks, and `poison_cached` fills NumPy's cache."""

    def __init__(self) -> None:
        self._mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        self._tunables = os.environ.get("GLIBC_TUNABLES", "")
        self._blocks: dict[int, np.ndarray[tuple[int], np.dtype[np.uint8]]] = {}
        self._pattern = 0

    def poison(self, pattern: int) -> None:
        """Fill new blocks with this byte from now on, including those in processes that a runtime starts."""
        complement = pattern ^ 0xFF  # glibc expects the complement
        if self._mallopt is not None:
            self._mallopt(_M_PERTURB, complement)
        os.environ["GLIBC_TUNABLES"] = f"{self._tunables}:glibc.malloc.perturb={complement}".lstrip(":")
        self._blocks.clear()
        self._pattern = pattern

    def reset(self) -> None:
        """Stop poisoning, because it slows down every allocation."""
        if self._mallopt is not None:
            self._mallopt(_M_PERTURB, 0)
        os.environ["GLIBC_TUNABLES"] = self._tunables

    def poison_cached(self, size: int) -> None:
        """Fill NumPy's cached blocks of `size` bytes with the same byte."""
        if 0 < size < _CACHED_BYTES:
            block = self._blocks.get(size)
            if block is None:
                block = self._blocks[size] = np.full(size, self._pattern, np.uint8)
            copy = block.copy
            held = [copy(), copy(), copy(), copy(), copy(), copy(), copy()]
            assert len(held) == _CACHED_BLOCKS
