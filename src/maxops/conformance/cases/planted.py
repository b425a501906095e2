"""Large arrays with maxima that are known by construction.

The elements are values of a ladder, which is a short ascending sequence. In each group of elements, one element is
higher than all others. Its position differs between groups: first, last, or elsewhere. Groups are the rows or columns
of a reduction, segments, or the corresponding elements of Max's inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Literal

import numpy as np

from maxops.conformance import pool
from maxops.conformance.cases import pairs
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.reference import order

Which = pairs.Which | Literal["plain"]
STEPS = 8  # values of a ladder


@dataclass(frozen=True)
class Planted:
    """Elements of shape (rows, columns) with each group's maximum in each column. Rows of a group are adjacent.

    `without_nan` has the maximum of the group's elements that are not NaN, or NaN if there are none.
    """

    data: Array
    expected: Array
    without_nan: Array


@cache
def ladder(dtype: DType, which: Which) -> Array:
    """Return values of a type in ascending order: boundary values (for "nan", then a NaN), or only the two zeros.

    Plain values are small whole numbers, which every conversion preserves.
    """
    if which == "plain":
        return np.unique(pool.distinct(dtype, (STEPS,)))
    if which == "zeros":
        return pool.zeros(dtype)
    words = sorted(pool.ordinary_words(dtype), key=lambda word: order(dtype, word))
    zero = [1 << dtype.bits - 1] if dtype.kind == "float" else []  # other cases test which zero is the maximum
    kept = [word for word in words if word not in zero]
    some = kept[:: ceil(len(kept) / STEPS)]
    return pool.of_words(dtype, [*some, dtype.nan_bits] if which == "nan" else some)


def planted(
    dtype: DType, which: Which, lengths: Sequence[int] | Array, columns: int = 1, at: int | None = None
) -> Planted:
    """Return groups of the given nonzero lengths. `at`, if given, is the position of each group's maximum or NaN."""
    values = ladder(dtype, which)
    of = np.asarray(lengths, np.int64)
    starts = np.cumsum(of) - of
    top = len(values) - 1 - (which == "nan")  # the index of the highest number in the ladder
    group, column = np.arange(len(of))[:, np.newaxis], np.arange(columns)
    highest = (1 + (group * 5 + column * 3) % top).astype(np.uint8)
    rows = np.arange(int(of.sum()))
    numbers = (rows[:, np.newaxis] * 3 + column) % np.repeat(highest, of, axis=0)  # all lower
    numbers = numbers.astype(np.uint8)
    length = of[:, np.newaxis]
    any_other = (group * 7 + column) % length
    ends = np.where(group % 2, length - 1, 0 * length)
    place = np.where((group // 2 + column) % 2, any_other, ends) if at is None else np.full((len(of), columns), at)
    begins = starts[:, np.newaxis]
    beside = begins + (place + 1) % length  # the position itself if the group has one element
    at_highest, at_nan = (begins + place, beside) if at is None else (beside, begins + place)
    if which != "nan":
        at_highest = begins + place
    numbers[at_highest, column] = highest
    expected = without = values[highest]
    if which == "nan":
        numbers[at_nan, column] = top + 1
        without = np.where(length == 1, values[-1], without).astype(values.dtype)
        expected = np.full_like(expected, values[-1])
    return Planted(values[numbers], expected, without)


def thirds(count: int) -> Array:
    """Return segment lengths of 1, 2 and 3 rows in turn, for a total of `count` rows."""
    whole = np.tile([1, 2, 3], count // 6 + 1)
    ends = np.cumsum(whole)
    number = int(np.searchsorted(ends, count))
    kept = whole[: number + 1].copy()
    kept[-1] -= int(ends[number]) - count
    return kept


def halves(count: int) -> Array:
    """Return segment lengths of half of the rows, half of the rest, and so on, for a total of `count` rows."""
    found = []
    while count:
        found.append(-(-count // 2))
        count -= found[-1]
    return np.array(found)


def places(count: int) -> list[int]:
    """Return positions in a vector where chunks of threads, blocks or caches may begin or end.

    These are the ends of the vector, and positions near its quarters and near powers of two.
    """
    begins = [0, 1, count // 4, count // 2, 3 * count // 4, *(1 << power for power in (10, 12, 13, 14, 16, 18, 20))]
    found = {place for begin in begins for place in (begin - 1, begin)} | {count - 1, count - 2}
    return sorted(place for place in found if 0 <= place < count)
