"""SegmentMax by offsets, with no rows at all, and calls that a signal's handler stops or changes the offsets under."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import maxops as mo

from .states import Array, counted, fail, made, threads

# Of up to six segments: runs that are laid, long ones, empty ones before, between and after them.
LENGTHS = (
    (5,), (1, 8), (2, 9), (9, 2), (0, 3), (3, 0), (3, 3, 3), (1, 1, 1), (0, 5, 0, 7), (1, 1, 12, 1), (4, 6, 0, 0),
    (0, 0, 4, 1), (1, 6, 1, 6, 1), (2, 2, 2, 2, 2), (0, 1, 2, 5, 0, 3), (1, 1, 1, 1, 1, 1), (4, 4, 4, 4, 4, 4),
)  # fmt: skip


def _values(rows: int, width: int, dtype: Any) -> Array:
    """Negative ones, each row's its own in every column; the highest are anywhere."""
    return (-1 - (np.arange(rows)[:, np.newaxis] * 37 + np.arange(width) * 5) % 101).astype(dtype)


def _layouts(rows: int) -> Iterator[Array]:
    """In place, and gathered: in steps, in the other byte order, turned; narrow rows and wide ones."""
    for dtype, width in ((np.int8, 1), (np.int8, 2), (np.int8, 9), (np.int8, 20), (np.float32, 1), (np.float32, 2)):
        data = _values(rows, width, dtype)
        yield data if width > 1 else data[:, 0].copy()
        yield np.repeat(data, 2, axis=1)[:, ::2]
        yield np.repeat(data, 2, axis=0)[::2]
        yield data.astype(data.dtype.newbyteorder("S")) if width == 2 else np.asfortranarray(data)


def _offsets(starts: Array) -> Iterator[Array]:
    """The same ones in both types: in place, in steps forwards and backwards, and in the other byte order."""
    for dtype in (np.int32, np.int64):
        given = starts.astype(dtype)
        yield given
        yield np.repeat(given, 2)[::2]
        yield np.repeat(given[::-1], 3)[::-3]
        yield given.astype(given.dtype.newbyteorder("S"))


def by_offsets() -> None:
    """Fewer segments than the offsets have, as many and more; maxima alone, and with indices and the empty ones."""
    turn = 0
    for lengths, count in itertools.product(LENGTHS, (1, 3)):
        starts = np.cumsum((0, *lengths))
        every = [*_offsets(starts)]
        with threads(count):
            for data in _layouts(int(starts[-1])):
                rows = data.reshape(len(data), -1)
                for more in (0, -1, 1) if count == 1 else (0,):
                    size = len(lengths) + more
                    best = np.zeros((size, rows.shape[1]), data.dtype.newbyteorder("="))
                    index = np.full(best.shape, -1, np.int64)
                    for segment in range(min(size, len(lengths))):
                        if lengths[segment] > 0:
                            own = rows[starts[segment] : starts[segment + 1]]
                            best[segment], index[segment] = own.max(0), starts[segment] + own.argmax(0)
                    turn += 1
                    for offsets in every if more == 0 and count == 1 and data.ndim == 1 else every[turn % 8 :][:1]:
                        _one(data, offsets, size, best, index, lengths)


def _one(data: Array, offsets: Array, size: int, best: Array, index: Array, lengths: tuple[int, ...]) -> None:
    guarded = np.full((size + 2, *data.shape[1:]), 7, best.dtype)
    mo.segment_max(data, num_segments=size, offsets=offsets, fill_mode="ZERO", out=guarded[1:-1])
    if guarded[1:-1].tobytes() != best.tobytes() or (guarded[[0, -1]] != 7).any():
        fail("segment_max by offsets, out=", best, guarded, data=data, offsets=offsets)
    values, places, none = mo.segment_max(
        data, num_segments=size, offsets=offsets, fill_mode="ZERO", return_indices=True, return_empty=True
    )
    gone = [segment >= len(lengths) or lengths[segment] == 0 for segment in range(size)]
    if values.tobytes() != best.tobytes() or places.tobytes() != index.tobytes() or none.tolist() != gone:
        fail("segment_max by offsets", (best, index, gone), (values, places, none), data=data, offsets=offsets)
    counted["offsets: every layout"] += 2


# ---------------------------------------------------------------------- no rows


def _none(dtype: Any, *shape: int) -> Array:
    """No elements, at the end of what others have: past them nothing may be read."""
    memory = np.zeros(8, dtype)
    return np.ndarray((0, *shape), dtype, memory, memory.nbytes)


def no_rows() -> None:
    """Neither ids nor data are read where there are none of them, nor are data of wrong offsets that nobody checks."""
    for dtype, width, count in itertools.product((np.int32, np.int64), (1, 2, 9), (1, 3, 9, 40)):
        data, ids = _none(np.int8, width), _none(dtype)
        for is_sorted, _ in itertools.product((True, False), range(2)):  # twice: where they lie is the other one then
            got = mo.segment_max(data, ids, count, fill_mode="ZERO", sorted=is_sorted)
            both = mo.segment_max(
                data, ids, count, fill_mode="ZERO", sorted=is_sorted, return_indices=True, return_empty=True
            )
            if got.any() or both[0].any() or (both[1] != -1).any() or not both[2].all() or len(got) != count:
                fail("segment_max of no rows", "zeros, -1, true", (got, *both), width=width, count=count)
            counted["segments: no rows"] += 2
    for wrong, dtype, _ in itertools.product(
        ((0, -1), (-1, -1), (-5, -5, -5), (0, -1, -1), (1, -1), (0, 9)), (np.int32, np.int64), range(2)
    ):
        guarded = np.full((len(wrong) + 1, 4), 7, np.int8)
        made(mo, _unchecked, _none(np.int8, 4), np.array(wrong, dtype), out=guarded[1:-1])
        if (guarded[[0, -1]] != 7).any():
            fail("segment_max by unchecked offsets of no rows", "nothing beside the output", guarded, offsets=wrong)
        counted["segments: no rows"] += 1


def _unchecked(data: Array, offsets: Array, out: Array) -> Array:
    mo.segment_max(data, offsets=offsets, fill_mode="ZERO", check_ids=False, out=out)
    out[...] = 0  # what it holds is not specified
    return out
