"""Tests SegmentMax by offsets, without rows, with long runs that threads share, and with a decrease in a run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

import maxops as mo
from maxops import segment_max  # a recorder of calls does not record calls of this name
from maxops.errors import SegmentIdsError

from .states import Array, counted, fail, made, threads

# The lengths of up to six segments: short, long and empty ones.
LENGTHS = (
    (5,), (2, 9), (0, 3), (3, 0), (3, 3, 3), (1, 1, 1), (0, 5, 0, 7), (1, 1, 12, 1), (4, 6, 0, 0),
    (1, 6, 1, 6, 1), (0, 1, 2, 5, 0, 3), (1, 1, 1, 1, 1, 1), (4, 4, 4, 4, 4, 4),
)  # fmt: skip


def _values(rows: int, width: int, dtype: Any) -> Array:
    """Return negative values that differ between rows in every column, with maxima in any row."""
    return (-1 - (np.arange(rows)[:, np.newaxis] * 37 + np.arange(width) * 5) % 101).astype(dtype)


def _layouts(rows: int) -> Iterator[Array]:
    """Yield narrow and wide rows that are used in place, and rows that are gathered: strided, swapped or transposed."""
    for dtype, width in ((np.int8, 1), (np.int8, 2), (np.int8, 9), (np.int8, 20), (np.float32, 1), (np.float32, 2)):
        data = _values(rows, width, dtype)
        yield data if width > 1 else data[:, 0].copy()
        yield np.repeat(data, 2, axis=1)[:, ::2]
        yield np.repeat(data, 2, axis=0)[::2]
        yield data.astype(data.dtype.newbyteorder("S")) if width == 2 else np.asfortranarray(data)


def _offsets(starts: Array) -> Iterator[Array]:
    """Yield the offsets in both types: contiguous, with positive and negative steps, and byte-swapped."""
    for dtype in (np.int32, np.int64):
        given = starts.astype(dtype)
        yield given
        yield np.repeat(given, 2)[::2]
        yield np.repeat(given[::-1], 3)[::-3]
        yield given.astype(given.dtype.newbyteorder("S"))


def by_offsets() -> None:
    """Test fewer, as many and more segments than the offsets have, with and without indices and masks."""
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
    """Return an empty array at the end of a buffer: any read would be out of bounds."""
    memory = np.zeros(8, dtype)
    return np.ndarray((0, *shape), dtype, memory, memory.nbytes)


def no_rows() -> None:
    """Test that calls without rows read neither ids nor data, even with unchecked invalid offsets."""
    both: dict[str, Any] = {"return_indices": True, "return_empty": True}
    for dtype, width, count, is_sorted in itertools.product(
        (np.int32, np.int64), (1, 2, 9), (1, 3, 9, 40), (True, False)
    ):
        data, ids = _none(np.int8, width), _none(dtype)
        for more in ({}, {}, both, both):  # each twice: a recorder of calls puts inputs at either end of a page
            got = mo.segment_max(data, ids, count, fill_mode="ZERO", sorted=is_sorted, **more)
            best, *rest = got if more else (got,)
            if best.any() or len(best) != count or (more and ((rest[0] != -1).any() or not rest[1].all())):
                fail("segment_max of no rows", "zeros, -1, true", got, width=width, count=count)
            counted["segments: no rows"] += 1
    for wrong, dtype, of, _ in itertools.product(
        ((0, -1), (-1, -1), (-5, -5, -5), (0, -1, -1), (1, -1), (0, 9)),
        (np.int32, np.int64),
        (np.int8, np.float32),
        range(2),
    ):
        guarded = np.full((len(wrong) + 1, 4), 7, of)
        made(mo, _unchecked, _none(of, 4), np.array(wrong, dtype), out=guarded[1:-1])
        if (guarded[[0, -1]] != 7).any():
            fail("segment_max by unchecked offsets of no rows", "nothing beside the output", guarded, offsets=wrong)
        counted["segments: no rows"] += 1


def _unchecked(data: Array, offsets: Array, out: Array) -> Array:
    segment_max(data, offsets=offsets, fill_mode="ZERO", check_ids=False, out=out)
    out[...] = 0  # its content is unspecified
    return out


# ---------------------------------------------------------------------- threads


def held_up() -> None:
    """Test that the first index wins if a later share finds its index before the first share does."""
    rows = 1_200_000
    starts = np.array([0, rows])
    for empty in (0, 1):
        data = np.full((rows, 2), -2, np.int8)
        data[rows // 3 - 50 : rows // 3 + 50] = data[2 * (rows // 3) - 50 : 2 * (rows // 3) + 50] = -1
        offsets = starts if empty == 0 else np.array([0, 0, rows])
        expected = np.full((len(offsets) - 1, 2), rows // 3 - 50)
        expected[:empty] = -1
        for count in (2, 3):
            with threads(count):
                _, places = mo.segment_max(data, offsets=offsets, fill_mode="ZERO", return_indices=True)
            if places.tolist() != expected.tolist():
                fail("segment_max, indices, threads", expected, places, offsets=offsets)
            counted["offsets: a share that is held up"] += 1


# ---------------------------------------------------------------------- steps within runs


def steps_in_rows() -> None:
    """Test a long run of rows with one lower id: an error at every position."""
    for rows, width in itertools.product((9, 17, 40), (1, 2, 5)):
        data = np.ones((rows, width), np.float32)
        for place in range(1, rows):
            ids = np.ones(rows, np.int64)
            ids[place] = 0
            got = made(mo, _refused, data, ids)
            if got[0] != "refused":
                fail("segment_max of a run with a step", "an error", got, ids=ids)
            counted["ids: steps in runs of rows"] += 1


def _refused(data: Array, ids: Array) -> Array:
    try:
        segment_max(data, ids, 3, fill_mode="ZERO")
    except SegmentIdsError:
        return np.array(["refused"])
    return np.array(["none"])
