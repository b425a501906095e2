"""The arrays that a runtime is given: copies in fresh memory, looked at afterwards.

All arrays of a trial lie in one block, each at a multiple of 64 bytes in both runs, so that no result can differ by
alignment. Between them are at least 64 bytes of the run's pattern: what is read there shows in the result, and what is
written there is found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from maxops.conformance.case import Call, Feed
from maxops.plan import Array

_ALIGNMENT = 64
_GAP = 64

_Place = tuple[int, Array]  # where it begins in the block, and the array that it is a copy of


class Given:
    """The copies for one run. Arrays of objects (real numbers) are copied one by one."""

    def __init__(self, call: Call, feeds: Sequence[Feed], pattern: int) -> None:
        self._names = [each.name for each in call.fed]
        parts: list[bytes] = []
        self._places: list[list[_Place]] = []
        at = 0
        for feed in feeds:
            places: list[_Place] = []
            for array in feed:
                gap = _GAP + -(at + _GAP) % _ALIGNMENT
                data = b"" if array.dtype.hasobject else array.tobytes()
                parts += (bytes((pattern,)) * gap, data)
                places.append((at + gap, array))
                at += gap + len(data)
            self._places.append(places)
        parts.append(bytes((pattern,)) * _GAP)
        self._bytes = b"".join(parts)
        block = np.empty(len(self._bytes) + _ALIGNMENT, np.uint8)
        start = -block.ctypes.data % _ALIGNMENT
        self._block = block[start : start + len(self._bytes)]
        self._block[:] = np.frombuffer(self._bytes, np.uint8)
        self._objects: dict[int, list[tuple[Array, Array]]] = {}

    def feed(self, number: int) -> Feed:
        """The copies of a feed, in C order."""
        arrays = []
        for start, array in self._places[number]:
            if array.dtype.hasobject:
                copy = array.copy()
                self._objects.setdefault(number, []).append((array, copy))
                arrays.append(copy)
            else:
                arrays.append(np.ndarray(array.shape, array.dtype, self._block, start))
        return tuple(arrays)

    def changed(self) -> tuple[int, str] | None:
        """The first feed that the runtime wrote into, and what it did; None if it left them as they were."""
        for number, pairs in self._objects.items():
            if any(array.tolist() != copy.tolist() for array, copy in pairs):
                return number, "changed its input"
        if self._block.tobytes() == self._bytes:
            return None
        position = int(np.flatnonzero(self._block != np.frombuffer(self._bytes, np.uint8))[0])
        starts = [
            (start, number, i) for number, places in enumerate(self._places) for i, (start, _) in enumerate(places)
        ]
        # what lies before the first array is its gap
        start, number, i = starts[max(0, bisect_right(starts, (position, len(starts), 0)) - 1)]
        if start <= position < start + self._places[number][i][1].nbytes:
            return number, f"changed its input {self._names[i]}"
        return number, f"wrote beside its input {self._names[i]}"
