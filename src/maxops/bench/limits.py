"""The machine's memory bandwidth, measured with bare loads and stores, with and without streaming stores."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from maxops.bench.grid import Case
from maxops.bench.timing import Candidate, UnsupportedError
from maxops.plan import Array

LINE = 64
MIN_BYTES = 100_000  # for fewer bytes, the overhead of the call dominates
THREADED_BYTES = 4_000_000  # for fewer bytes, the caches of one core are the limit


class Limits:
    """The buffers for sweeps, as large as the largest case requires.

    They are allocated once, because a sweep over new pages would also measure the allocation.
    """

    def __init__(self, read: int, written: int, threads: int) -> None:
        try:
            self.native: Any = import_module("maxops._limits")
        except ImportError as error:
            raise UnsupportedError(f"the memory bandwidth cannot be measured: {error}") from error
        self._source, self._target = _lines(read), _lines(written)
        self.threads = threads

    def candidate(self, read: int, written: int, *, streaming: bool, threads: int) -> Candidate:
        """Return a sweep over this many bytes, rounded up to whole cache lines."""
        arrays = {"source": self._source[: _up(read)], "target": self._target[: _up(written)]}
        return Candidate(f"sweep(source, target, {streaming}, {threads})", arrays | {"sweep": self.native.sweep})

    def candidates(self, case: Case) -> dict[str, Candidate]:
        """Return the sweeps that move the bytes of a case, by name. The fastest sweep is the limit."""
        read, written = case.bytes_read, case.bytes_written
        if read + written < MIN_BYTES:
            raise UnsupportedError("too few bytes: the overhead of the call dominates")
        threads = sorted({1, self.threads}) if read + written >= THREADED_BYTES else [1]
        found = {}
        for streaming, count in product((False, True), threads):
            if not streaming or (self.native.has_streaming and written >= read // 16):
                name = f"{count} thread{'s' if count > 1 else ''}{', streaming stores' if streaming else ''}"
                found[name] = self.candidate(read, written, streaming=streaming, threads=count)
        return found


def _up(size: int) -> int:
    return -(-size // LINE) * LINE


def _lines(size: int) -> Array:
    """Return an array that starts at a cache line, and whose memory pages are already mapped."""
    buffer = np.ones(_up(size) + LINE, np.uint8)
    start = -buffer.ctypes.data % LINE
    return buffer[start : start + _up(size)]
