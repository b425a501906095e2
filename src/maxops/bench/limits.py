"""The machine's memory limit: how fast bare loads and stores move bytes, with and without streaming stores."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from maxops.bench.candidate import Candidate, UnsupportedError
from maxops.bench.case import Case
from maxops.bench.measure import fastest
from maxops.plan import Array

Mix = Literal["read", "2 reads, 1 write"]
LINE = 64
TABLE_BYTES = 384 * 10**6  # far past any cache
# Below this a sweep is over before its caller's thread could be separated from its work.
MIN_BYTES = 100_000
# Below this the table's callers wake no helpers: the core's own caches are the limit.
THREADED_BYTES = 4_000_000


@dataclass(frozen=True)
class Limit:
    """What one mix of reads and writes reached, at best."""

    mix: Mix
    streaming: bool
    threads: int
    bytes: int
    bytes_per_second: float


def _native() -> Any:
    try:
        return import_module("maxops._limits")
    except ImportError as error:
        raise UnsupportedError(f"the limit cannot be measured: {error}") from error


class Limits:
    """Buffers to sweep over, as large as the largest case; made once, since new pages would be measured too."""

    def __init__(self, read: int, written: int, threads: int) -> None:
        self._sweep = _native().sweep
        self.has_streaming: bool = bool(_native().has_streaming)
        self._source, self._target = _lines(read), _lines(written)
        self.threads = threads

    def candidate(self, read: int, written: int, *, streaming: bool, threads: int) -> Candidate:
        """A sweep over so many bytes, up to whole lines."""
        source, target = (self._source[: _up(read)], self._target[: _up(written)])
        name = f"{threads} thread{'s' if threads > 1 else ''}{', streaming stores' if streaming else ''}"
        return Candidate(name, self._sweep, (source, target, streaming, threads))

    def candidates(self, case: Case) -> list[Candidate]:
        """The ways to move a case's bytes; the fastest is the limit."""
        if case.bytes_touched < MIN_BYTES:
            raise UnsupportedError("too few bytes: the call's cost is all")
        threads = {1, self.threads} if case.bytes_touched >= THREADED_BYTES else {1}
        streaming = (False, True) if self.has_streaming and case.bytes_written >= case.bytes_read // 16 else (False,)
        return [
            self.candidate(case.bytes_read, case.bytes_written, streaming=stream, threads=count)
            for stream in streaming
            for count in sorted(threads)
        ]


def table(threads: int, *, size: int = TABLE_BYTES, seconds: float = 1.0) -> list[Limit]:
    """The limit for reading, and for two reads and a write, on one thread and on all."""
    limits = Limits(size, size // 3, threads)
    mixes: dict[Mix, tuple[int, int]] = {"read": (size, 0), "2 reads, 1 write": (2 * (size // 3), size // 3)}
    found = []
    for mix, (read, written) in mixes.items():
        for streaming in (False, True) if written and limits.has_streaming else (False,):
            for count in sorted({1, threads}):
                candidate = limits.candidate(read, written, streaming=streaming, threads=count)
                best = fastest(candidate, seconds / 6)
                found.append(Limit(mix, streaming, count, read + written, (read + written) / best))
    return found


def _up(size: int) -> int:
    return -(-size // LINE) * LINE


def _lines(size: int) -> Array:
    """Touched memory that begins with a cache line."""
    buffer = np.ones(_up(size) + LINE, np.uint8)
    start = -buffer.ctypes.data % LINE
    return buffer[start : start + _up(size)]
