"""Tests SegmentMax of one column with sorted ids, long enough for several vectors of 8 and 16 rows.

Each array of ids repeats a pattern three times, and the miniature splits it into three tasks of equal length. The steps
between ids make single rows, short runs and gaps at each position of a vector and after each number of vectors. Guard
rows surround the outputs.
"""

from __future__ import annotations

import itertools
import mmap
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import maxops as mo
from maxops import segment_max
from maxops.errors import SegmentIdsError

from .special_values import canonical, keys_of, special
from .states import Array, check_place, counted, fail, made

TYPES = (
    np.uint32, np.float64, np.uint16, np.uint64, np.float16, np.int64, np.uint8, np.float32, np.int8, np.bool_,
    np.int16, np.int32,
)  # fmt: skip
AROUND = 20  # rows before and after an output
SHARES = 3
OVER, OTHER = 64, 3  # the offset of ids that overlap an output, and the value of the bytes around both
GAPS = (1, 2, 3, 4, 5, 6, 15, 16, 17, 18, 19, 20, 21, 31, 33, 47, 48, 49, 61, 62, 63, 64, 65, 66, 130)


def _values(dtype: Any) -> Array:
    """Return values in ascending order. Values with the same result are adjacent."""
    if np.dtype(dtype).kind in "iu":
        ends = np.iinfo(dtype)
        middle = ends.max // 2
        near = (ends.min, ends.min + 1, 1, middle - 1, middle, middle + 1, ends.max - 1, ends.max)
        return np.unique(np.array(near, dtype))
    values = special(dtype)
    return values[np.argsort(keys_of(values), kind="stable")]


def _takes(dtype: Any, ids: Array, count: int, seed: int, *, checks: bool) -> None:
    """Test random data, which may have few distinct values, with a new output or a part of a larger array."""
    values = _values(dtype)
    rng = np.random.default_rng(seed)
    some = np.sort(rng.integers(len(values), size=int(rng.integers(2, 7))))
    drawn = some[rng.integers(len(some), size=len(ids))]
    others = np.delete(values, some)
    around, fill = values[:1], canonical(others[rng.integers(len(others), size=1)])
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    data, best = values[drawn], np.repeat(fill, count)
    best[ids[starts]] = canonical(values[np.maximum.reduceat(drawn, starts)])
    if checks:  # calls the core, because the planner would hide that the core rejects valid ids
        got = mo._native.segment_max(data, ids, count, fill_value=fill[0])
        if got is None or got.tobytes() != best.tobytes():
            fail("_native.segment_max", best, got, data=data, ids=ids, count=count, fill=fill)
    else:
        whole = np.repeat(around, count + 2 * AROUND)
        expected = np.concatenate([whole[:AROUND], best, whole[:AROUND]])
        mo.segment_max(data, ids, count, fill_value=fill[0], check_ids=False, out=whole[AROUND:-AROUND])
        if whole.tobytes() != expected.tobytes():
            fail("segment_max, check_ids=False, out=", expected, whole, data=data, ids=ids, count=count, fill=fill)
    counted["sorted ids: vectors of rows"] += 1


def _thrice(steps: Sequence[int]) -> Array:
    """Return ids whose steps repeat in three shares of equal length, except that the last share has one row fewer."""
    return np.cumsum(np.array([*steps] * SHARES)[:-1]) - steps[0]


def _patterns() -> Iterator[list[int]]:
    rng = np.random.default_rng(3)
    for kinds in ((0, 1), (0, 1, 1, 1, 1), (0, 0, 1), (0, 1, 2), (1, 1, 1, 2), (0, 1, 1, 3), (0, 1, 1, 1, 1, 1, 4, 5)):
        for length in (17, 20, 24, 25, 33, 40, 47, 64, 70):
            yield rng.choice(kinds, length).tolist()


def vectors() -> None:
    """Test every type of data and ids, without empty segments at the end and with many."""
    for number, (steps, dtype) in enumerate(itertools.product(_patterns(), TYPES)):
        ids = _thrice(steps).astype((np.int32, np.int64)[number % 2])
        last = int(ids[-1]) + 1
        _takes(dtype, ids, last + (0, 3 * len(ids))[number // 2 % 2], number, checks=number % 3 == 0)


def singles() -> None:
    """Test segments of one row after a vector with a longer segment, followed by nothing, a run or a gap."""
    tails = ((), (0,), (0, 1), (0, 0, 1), (1, 0, 0, 0, 0), (2,), (1, 2, 1))
    lengths = (*range(24, 29), *range(48, 54), 65, 66)
    for number, (tail, length, dtype) in enumerate(
        itertools.product(tails, lengths, (np.uint64, np.uint8, np.float32))
    ):
        ids = _thrice([1, 0, *[1] * (length - 2 - len(tail)), *tail]).astype((np.int64, np.int32)[number // 3 % 2])
        for checks in (True, False):
            _takes(dtype, ids, int(ids[-1]) + 1, number, checks=checks)


def gaps() -> None:
    """Test a gap at several positions of a vector: shorter than the bits of a mask, equally long, or longer."""
    kinds = itertools.product((0, 1), (1, 2, 7, 8, 9, 14, 15, 16), GAPS)
    for number, (between, place, gap) in enumerate(kinds):
        steps = [1, 0, 0, 1, *[between] * 30]
        steps[place : place + 2] = gap, 1  # a segment of one row
        ids = _thrice(steps).astype((np.int32, np.int64)[number % 2])
        for dtype in (np.uint16, np.float64):
            _takes(dtype, ids, int(ids[-1]) + 1, number, checks=False)


def down() -> None:
    """Test a single decrease at each position, which the first and the last id of the vector do not show: an error."""
    right = _thrice([1, 0, *[1, 1, 0] * 6, 1])
    for place, id_type, dtype in itertools.product(range(1, 45), (np.int32, np.int64), (np.int8, np.int64)):
        ids = right.astype(id_type)
        ids[place] = ids[place - 1] - 1
        try:
            mo.segment_max(np.zeros(len(ids), dtype), ids, None, fill_mode="ZERO")
        except SegmentIdsError as error:
            check_place(error, place, ids)
        else:
            fail("segment_max of wrong ids", "an error", "none", ids=ids)
        counted["wrong ids: vectors of rows"] += 1


def _over_ids(ids: tuple[int, ...], value: int, place: int) -> Array:
    """Return the memory after a call whose output overlaps its ids through a second mapping, which the call cannot see.

    The ids therefore change during the call, at the same time in each run. All data and the fill value are `value`. A
    recorder of calls records this function, not the call inside it, because the function allocates its own memory.
    """
    with tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        whole, same = (np.frombuffer(mmap.mmap(file.fileno(), mmap.PAGESIZE), np.int8) for _ in range(2))
        whole[:] = OTHER
        given = whole[OVER : OVER + 8 * len(ids)].view(np.int64)
        given[:] = ids
        count = ids[-1] + 1
        data, out = np.full(len(ids), value, np.int8), same[OVER + place : OVER + place + count]
        segment_max(data, given, count, fill_value=value, check_ids=False, out=out)
        return whole[: 4 * OVER].copy()


def changed() -> None:
    """Test that if ids change during a call, exactly the rows of the output are written."""
    for ids, value in itertools.product(((0, 9, 24, 25), (0, 5, 9, 25), (2, 9, 23, 25)), (-1, 30, 127)):
        for place in range(-26, 32):
            expected = np.full(4 * OVER, OTHER, np.int8)
            expected[OVER : OVER + 8 * len(ids)] = np.array(ids, np.int64).view(np.int8)
            expected[OVER + place : OVER + place + ids[-1] + 1] = value
            got = made(mo, _over_ids, ids, value, place)
            if got.tobytes() != expected.tobytes():
                fail("segment_max over its ids", expected, got, ids=ids, value=value, place=place)
            counted["ids that change"] += 1
