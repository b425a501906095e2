"""The machine's memory limit: how fast bare loads and stores move bytes, with and without streaming stores."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from maxops.bench.case import Case
from maxops.bench.timing import Candidate, Stopwatch, UnsupportedError, fastest
from maxops.plan import Array

LINE = 64
TABLE_BYTES = 384 * 10**6  # far past any cache
# Below this a sweep is over before its caller's thread could be separated from its work.
MIN_BYTES = 100_000
# Below this the table's callers wake no helpers: the core's own caches are the limit.
THREADED_BYTES = 4_000_000


class Limits:
    """Buffers to sweep over, as large as the largest case; made once, since new pages would be measured too."""

    def __init__(self, read: int, written: int, threads: int) -> None:
        try:
            self.native: Any = import_module("maxops._limits")
        except ImportError as error:
            raise UnsupportedError(f"the limit cannot be measured: {error}") from error
        self._source, self._target = _lines(read), _lines(written)
        self.threads = threads

    def candidate(self, read: int, written: int, *, streaming: bool, threads: int) -> Candidate:
        """A sweep over so many bytes, up to whole lines."""
        names = {
            "sweep": self.native.sweep,
            "source": self._source[: _up(read)],
            "target": self._target[: _up(written)],
        }
        return Candidate(f"sweep(source, target, {streaming}, {threads})", names)

    def candidates(self, case: Case) -> dict[str, Candidate]:
        """The ways to move a case's bytes, by name; the fastest is the limit."""
        if case.bytes_touched < MIN_BYTES:
            raise UnsupportedError("too few bytes: the call's cost is all")
        threads = {1, self.threads} if case.bytes_touched >= THREADED_BYTES else {1}
        may_stream = self.native.has_streaming and case.bytes_written >= case.bytes_read // 16
        return {
            f"{count} thread{'s' if count > 1 else ''}{', streaming stores' if stream else ''}": self.candidate(
                case.bytes_read, case.bytes_written, streaming=stream, threads=count
            )
            for stream, count in product((False, True) if may_stream else (False,), sorted(threads))
        }


def table(threads: int, *, size: int = TABLE_BYTES, seconds: float = 1.0) -> list[dict[str, Any]]:
    """The bytes a second for reading, and for two reads and a write, on one thread and on all."""
    third = size // 3
    limits, found = Limits(size, third, threads), []
    for mix, read, written in (("read", size, 0), ("2 reads, 1 write", 2 * third, third)):
        ways = (False, True) if written and limits.native.has_streaming else (False,)
        for streaming, count in product(ways, sorted({1, threads})):
            candidate = limits.candidate(read, written, streaming=streaming, threads=count)
            pace = (read + written) / fastest(Stopwatch(candidate), seconds / 6)
            row = {"mix": mix, "streaming": streaming, "threads": count, "bytes": read + written}
            found.append(row | {"bytes_per_second": pace})
    return found


def _up(size: int) -> int:
    return -(-size // LINE) * LINE


def _lines(size: int) -> Array:
    """Touched memory that begins with a cache line."""
    buffer = np.ones(_up(size) + LINE, np.uint8)
    start = -buffer.ctypes.data % LINE
    return buffer[start : start + _up(size)]
