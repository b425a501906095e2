"""The input buffers of a runtime: copies between guard bytes, which are checked after each run.

All arrays of a trial are in one block. In each run, the data of an array starts at a multiple of 64 bytes, so alignment
does not differ between runs. At least 64 guard bytes with the run's pattern separate the arrays. Therefore, results
that depend on out-of-bounds reads differ between runs, and out-of-bounds writes are detected.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxops.conformance.case import Call, Feed, Layout
from maxops.conformance.layouts import lay
from maxops.plan import Array

_ALIGNMENT = 64
GUARD = 64
MODIFIED = "modified its input"
OUTSIDE = "wrote outside the bounds of its input"


class _Slot(NamedTuple):
    """An original array, the position and size of its bytes in the block, and its offset and strides in these bytes."""

    array: Array
    start: int
    size: int
    offset: int
    strides: tuple[int, ...] | None


class InputBuffers:
    """The input copies for one run. Arrays of objects (real numbers) are copied separately."""

    def __init__(self, call: Call, feeds: Sequence[Feed], pattern: int, layout: Layout = "contiguous") -> None:
        self._is_read_only = layout == "read-only"
        self._names = [each.name for each in call.fed]
        parts: list[bytes] = []
        self._slots: list[list[_Slot]] = []
        at = 0
        for feed in feeds:
            slots: list[_Slot] = []
            for array in feed:
                guard = GUARD + -(at + GUARD) % _ALIGNMENT
                data, offset, strides = b"", 0, None
                if layout != "contiguous" and not array.dtype.hasobject:
                    data, offset, strides = lay(array, layout, pattern)
                elif not array.dtype.hasobject:
                    data = array.tobytes()
                parts += (bytes((pattern,)) * guard, data)
                slots.append(_Slot(array, at + guard, len(data), offset, strides))
                at += guard + len(data)
            self._slots.append(slots)
        parts.append(bytes((pattern,)) * GUARD)
        self._bytes = b"".join(parts)
        block = np.empty(len(self._bytes) + _ALIGNMENT, np.uint8)
        start = -block.ctypes.data % _ALIGNMENT
        self._block = block[start : start + len(self._bytes)]
        self._block[:] = np.frombuffer(self._bytes, np.uint8)
        self._objects: dict[int, list[tuple[Array, Array]]] = {}
        self._fed: dict[int, Feed] = {}

    def feed(self, number: int) -> Feed:
        """Return the copies of a feed, in their layout."""
        arrays = []
        for array, start, _, offset, strides in self._slots[number]:
            if array.dtype.hasobject:
                copy = array.copy()
                self._objects.setdefault(number, []).append((array, copy))
                arrays.append(copy)
            else:
                copy = np.ndarray(array.shape, array.dtype, self._block, start + offset, strides)
                if self._is_read_only:
                    copy.flags.writeable = False
                arrays.append(copy)
        self._fed[number] = tuple(arrays)
        return self._fed[number]

    def changed(self) -> tuple[int, str] | None:
        """Return the number of the first feed whose arrays or guard bytes changed, and a description, or None."""
        for number, pairs in self._objects.items():
            if any(array.tolist() != copy.tolist() for array, copy in pairs):
                return number, MODIFIED
        for number, feed in self._fed.items():
            for name, array, slot in zip(self._names, feed, self._slots[number], strict=True):
                if (array.shape, array.dtype) != (slot.array.shape, slot.array.dtype):
                    return number, f"{MODIFIED} {name}: its shape or dtype"
        if self._block.tobytes() == self._bytes:
            return None
        position = int(np.flatnonzero(self._block != np.frombuffer(self._bytes, np.uint8))[0])
        starts = [(each.start, number, i) for number, slots in enumerate(self._slots) for i, each in enumerate(slots)]
        # the guard of the first array precedes it
        start, number, i = starts[max(0, bisect_right(starts, (position, len(starts), 0)) - 1)]
        if start <= position < start + self._slots[number][i].size:
            return number, f"{MODIFIED} {self._names[i]}"
        return number, f"{OUTSIDE} {self._names[i]}"
