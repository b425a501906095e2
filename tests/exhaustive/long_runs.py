"""Tests SegmentMax calls with more rows than segments.py: long runs, ids past the end, and rows that overlap.

Rows are short in bytes, because the miniature splits more bytes into tasks of a few rows each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

import maxops as mo
from maxops.errors import SegmentIdsError

from . import any_order, recipes, segments
from .states import Array, check_place, counted, fail

LENGTHS, MOST_ROWS = (1, 2, 4, 5, 9), 14
PIECES = ((0, 1), (0, 0), (0, 2), (0, 0, 0, 0))  # parts of invalid ids
MANY = 30_000
UNCHECKED: Any = 0  # instead of False, which means an unspecified result to a recorder of calls


def runs_of_ids() -> Iterator[tuple[int, ...]]:
    """Yield one to three runs, with and without empty segments between them."""
    for count in (1, 2, 3):
        for lengths in itertools.product(LENGTHS, repeat=count):
            if sum(lengths) > MOST_ROWS:
                continue
            for starts in ((0, 1, 2), (1, 3, 4), (0, 1, 6)):
                yield tuple(np.repeat(starts[:count], lengths).tolist())
    # A block that resumes the segment of the block before it and has a gap near its end.
    yield tuple(np.repeat((0, 1, 3), (3, 5, 2)).tolist())


def runs(dtype: Any = np.int8) -> None:
    """Test ids that the call checks and ids that it trusts, with and without num_segments."""
    for ids in runs_of_ids():
        wide, last = np.array(ids, np.int64), ids[-1] + 1
        every = recipes.matrix(ids, np.int64)
        ranked = np.searchsorted(np.unique(every), every) - 128  # the same order, as bytes
        for column in (0, 1, every.shape[1] - 2, every.shape[1] - 1):
            data = np.ascontiguousarray(ranked[:, column] - ranked[:, column].min() - 100).astype(dtype)
            best = segments.by_definition(data[:, np.newaxis], ids, 0)[0][:, 0]
            for count in (None, 2, segments.MOST_COUNT):
                expected = best[: last if count is None else count].tobytes()
                # The core must not leave the call to the planner.
                got = mo._native.segment_max(data, wide, count, fill_mode="ZERO")
                if got is None or got.tobytes() != expected:
                    fail("_native.segment_max", expected, got, data=data, ids=ids, count=count)
                got = mo.segment_max(data, wide, count, fill_mode="ZERO", check_ids=False)
                if got.tobytes() != expected:
                    fail("segment_max, check_ids=False", expected, got, data=data, ids=ids, count=count)
                counted["sorted ids: longer runs"] += 2


def rows(dtype: Any = np.int8) -> None:
    """Test rows with more columns than the registers hold, and rows that overlap."""
    for width in (2, 3, 9, 11):
        for ids in ((0, 0, 1), (0, 1, 2, 3, 4, 4), (0, 0, 0, 2), (1, 1, 2, 2, 2)):
            data = (np.arange(len(ids) * width).reshape(-1, width) * 7 % 101).astype(dtype)
            sliding = np.lib.stride_tricks.sliding_window_view(data.reshape(-1)[: len(ids) + width - 1], width)
            for given in (data, sliding):
                best = np.zeros((ids[-1] + 1, width), dtype)
                for segment in {*ids}:
                    best[segment] = given[np.equal(ids, segment)].max(0)
                got = mo._native.segment_max(given, np.array(ids, np.int64), None, fill_mode="ZERO")
                if got is None or got.tobytes() != best.tobytes():
                    fail("_native.segment_max of rows", best, got, data=given, ids=ids)
                counted["sorted ids: rows of bytes"] += 1


def blocks() -> None:
    """Test shares of more rows than a block has, lanes of 64 bits, and ids too far apart for 32 bits."""
    for dtype in (np.int8, np.int64):
        for count in (8, 9, 10, 11, 12, 30, 300):
            for ids in (
                np.arange(count) // 2,
                np.arange(count) * 2 // 3,
                np.arange(count) * 2,
                np.arange(count) // 7 * 3,
            ):
                _takes((np.arange(count) * 37 % 101).astype(dtype), ids, int(ids[-1]) + 1)
        for far in (2**31, 2**32, 2**33):
            for some in ((0, 0, far), (0, 0, far, far + 1), (0, 1, 1, far), (0, 2, 2, far, far)):
                _takes(np.arange(1, len(some) + 1).astype(dtype), np.array(some, np.int64), 3)


def _takes(data: Array, ids: Array, count: int) -> None:
    expected = np.zeros(count, data.dtype)
    for segment in {*ids.tolist()} & {*range(count)}:
        expected[segment] = data[ids == segment].max()
    for checks in (True, False):
        got = mo.segment_max(data, ids, count, fill_mode="ZERO", check_ids=checks)
        if got.tobytes() != expected.tobytes():
            fail("segment_max of blocks", expected, got, data=data, ids=ids, count=count)
        counted["sorted ids: blocks of rows"] += 1


def wrong_ids() -> Iterator[tuple[int, ...]]:
    """Yield invalid ids: sorted parts with a decrease between them, one lower id in a run, and ids past the end."""
    for first, second, start, after in itertools.product(PIECES, PIECES, range(4), range(5)):
        ids = (*(start + k for k in first), *(after + k for k in second))
        if any_order.first_wrong(ids) is not None:
            yield ids
    for place in range(1, 14):
        yield tuple(int(k != place) for k in range(15))
    for ids in itertools.product((0, 2, 3), (2, 3), (3,), (2, 3, 4), (0, 2, 3), (3, 4)):
        if any_order.first_wrong(ids) is not None:
            yield ids


def wrong() -> None:
    """Test that invalid ids raise an error if checked. If not, exactly the rows of the output are written."""
    for ids in wrong_ids():
        wide, place = np.array(ids, np.int64), any_order.first_wrong(ids)
        data = np.arange(len(ids), dtype=np.int8)
        for count in (2, 6, None):
            for given in (wide, np.repeat(wide.astype(np.int32), 2)[::2]):
                _refuses(data, given, count, place or 0)
        ones = np.ones(len(ids), np.int8)
        guarded = np.full(8, 7, np.int8)
        mo.segment_max(ones, wide, 6, fill_value=1, check_ids=UNCHECKED, out=guarded[1:-1])
        if guarded.tolist() != [7, 1, 1, 1, 1, 1, 1, 7]:
            fail("segment_max, unchecked wrong ids", "each row written, and no other", guarded, ids=ids)
        counted["wrong ids of longer runs"] += 7


def _refuses(data: Array, ids: Array, count: int | None, place: int) -> None:
    try:
        mo.segment_max(data, ids, count, fill_mode="ZERO")
    except SegmentIdsError as error:
        check_place(error, place, ids)
    else:
        fail("segment_max of wrong ids", "an error", "none", ids=ids, count=count)


def many_steps_down() -> None:
    """Test that decreasing ids do not fill output rows repeatedly, which would take quadratic time."""
    data = np.ones(MANY, np.int8)
    for low in ((0, 0), (0, 5)):
        ids = np.tile(np.array([low[0], MANY - 1, low[1], low[1]], np.int32), MANY // 4)
        got = mo.segment_max(data, ids, MANY, fill_value=1, check_ids=UNCHECKED)
        if not (got == 1).all():
            fail("segment_max, many steps down", "ones", got)
        counted["wrong ids, many steps down"] += 1


def dropped() -> None:
    """Test that unsorted ids at and past the end of the output are dropped, without a write there."""
    for ids in itertools.product(range(5), repeat=3):
        for repeats in (1, 8):
            for width in (1, 2):
                given = np.tile(np.array(ids, np.int64), repeats)
                data = np.arange(len(given) * width, dtype=np.int8).reshape(-1, width)
                best = np.zeros((3, width), np.int8)
                for segment in {*ids} & {0, 1, 2}:
                    best[segment] = data[given == segment].max(0)
                guarded = np.full((5, width), 7, np.int8)
                shaped = (data, guarded) if width > 1 else (data[:, 0], guarded[:, 0])
                mo.segment_max(
                    shaped[0], given, 3, fill_mode="ZERO", sorted=False, out_of_range="drop", out=shaped[1][1:-1]
                )
                if guarded[1:-1].tobytes() != best.tobytes() or (guarded[[0, -1]] != 7).any():
                    fail("segment_max, sorted=False, out_of_range='drop'", best, guarded, data=data, ids=given)
                counted["ids in any order, dropped at the end"] += 1
