"""SegmentMax of one column by ids in order, so long that vectors of 8 and 16 rows follow one another.

Each array of ids is one pattern three times over, which the miniature shares out as three tasks of as many rows each.
The steps from one row's id to the next make singles, short runs and gaps, at each place of a vector and after each
number of vectors. Outputs have rows around them that nobody may write.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import maxops as mo
from maxops.errors import SegmentIdsError

from .missed_rows import canonical, keys_of, special
from .states import Array, counted, fail

TYPES = (
    np.uint32, np.float64, np.uint16, np.uint64, np.float16, np.int64, np.uint8, np.float32, np.int8, np.bool_,
    np.int16, np.int32,
)  # fmt: skip
AROUND = 20  # rows before and after an output
SHARES = 3
GAPS = (1, 2, 3, 4, 5, 6, 15, 16, 17, 31, 33, 47, 48, 49, 61, 62, 63, 64, 65, 66, 130)


def _values(dtype: Any) -> Array:
    """Values from the lowest on; those that results do not tell apart lie side by side."""
    if np.dtype(dtype).kind in "iu":
        ends = np.iinfo(dtype)
        middle = ends.max // 2
        near = (ends.min, ends.min + 1, 1, middle - 1, middle, middle + 1, ends.max - 1, ends.max)
        return np.unique(np.array(near, dtype))
    values = special(dtype)
    return values[np.argsort(keys_of(values), kind="stable")]


def _takes(dtype: Any, ids: Array, count: int, seed: int, *, checks: bool) -> None:
    """Data by chance, of few values now and then, into a part of a larger array."""
    values = _values(dtype)
    rng = np.random.default_rng(seed)
    some = np.sort(rng.integers(len(values), size=int(rng.integers(2, 7))))
    drawn = some[rng.integers(len(some), size=len(ids))]
    around, fill = values[:1], canonical(values[rng.integers(len(values), size=1)])
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    data, expected = values[drawn], np.repeat(around, count + 2 * AROUND)
    out = expected.copy()
    expected[AROUND:-AROUND] = fill
    expected[AROUND + ids[starts]] = canonical(values[np.maximum.reduceat(drawn, starts)])
    mo.segment_max(data, ids, count, fill_value=fill[0], check_ids=checks, out=out[AROUND:-AROUND])
    if out.tobytes() != expected.tobytes():
        fail("segment_max", expected, out, data=data, ids=ids, count=count, fill=fill)
    counted["sorted ids: vectors of rows"] += 1


def _thrice(steps: Sequence[int]) -> Array:
    """Ids by steps from one to the next, which three shares of as many rows repeat; the last has one row fewer."""
    return np.cumsum(np.array([*steps] * SHARES)[:-1]) - steps[0]


def _patterns() -> Iterator[list[int]]:
    rng = np.random.default_rng(3)
    for kinds in ((0, 1), (0, 1, 1, 1, 1), (0, 0, 1), (0, 1, 2), (1, 1, 1, 2), (0, 1, 1, 3), (0, 1, 1, 1, 1, 1, 4, 5)):
        for length in (17, 20, 24, 25, 33, 40, 47, 64, 70):
            yield rng.choice(kinds, length).tolist()


def vectors() -> None:
    """Every type of data and both of ids; with as many segments as there are, and with so many that most are empty."""
    for number, (steps, dtype) in enumerate(itertools.product(_patterns(), TYPES)):
        ids = _thrice(steps).astype((np.int32, np.int64)[number % 2])
        last = int(ids[-1]) + 1
        _takes(dtype, ids, last + (0, 3 * len(ids))[number // 2 % 2], number, checks=number % 3 == 0)


def singles() -> None:
    """Segments of one row each after a vector that has another; at the end no row, the same segment's, a run, a gap."""
    tails = ((), (0,), (0, 1), (0, 0, 1), (1, 0, 0, 0, 0), (2,), (1, 2, 1))
    lengths = (*range(24, 29), *range(48, 54), 65, 66)
    for number, (tail, length, dtype) in enumerate(itertools.product(tails, lengths, (np.uint64, np.uint8, np.float32))):
        ids = _thrice([1, 0, *[1] * (length - 2 - len(tail)), *tail]).astype((np.int64, np.int32)[number // 3 % 2])
        for checks in (True, False):
            _takes(dtype, ids, int(ids[-1]) + 1, number, checks=checks)


def gaps() -> None:
    """One at each of some places of a vector, so long that its rows are few, as many as a mask has bits, or more."""
    kinds = itertools.product((0, 1), (1, 2, 7, 8, 9, 14, 15, 16), GAPS)
    for number, (between, place, gap) in enumerate(kinds):
        steps = [1, 0, 0, 1, *[between] * 30]
        steps[place] = gap
        ids = _thrice(steps).astype((np.int32, np.int64)[number % 2])
        for dtype in (np.uint16, np.float64):
            _takes(dtype, ids, int(ids[-1]) + 1, number, checks=False)


def down() -> None:
    """One id lower than the one before it, at each place: an error, which the vector's first and last ids hide."""
    right = _thrice([1, 0, *[1, 1, 0] * 6, 1])
    for place, id_type, dtype in itertools.product(range(1, 45), (np.int32, np.int64), (np.int8, np.int64)):
        ids = right.astype(id_type)
        ids[place] = ids[place - 1] - 1
        try:
            mo.segment_max(np.zeros(len(ids), dtype), ids, None, fill_mode="ZERO")
        except SegmentIdsError as error:
            if f"position {place} holds {ids[place]} " not in str(error):
                fail("the error of wrong ids", place, str(error), ids=ids)
        else:
            fail("segment_max of wrong ids", "an error", "none", ids=ids)
        counted["wrong ids: vectors of rows"] += 1
