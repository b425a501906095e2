"""Values that show any row that is dropped, doubled, swapped or merged into a segment that is not its own.

A maximum shows a row only where the row wins. So each row of each segment wins in some column (the rotations), and
each segment has in some column higher values than the segments before it, and in some lower ones (the directions): a
row of another segment that gets in would win. All values are negative, so that a fill of zero would win too, and
distinct, so that the result tells which row it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def columns(ids: Sequence[int]) -> list[list[int]]:
    """The columns of values for rows of these segments, as ranks from 0 on: one for each rotation and direction."""
    seen: dict[int, int] = {}
    places = []
    for segment in ids:
        places.append(seen.get(segment, 0))
        seen[segment] = places[-1] + 1
    lengths = [seen[segment] for segment in ids]
    longest = max(lengths, default=1)
    lowest, highest = min(ids, default=0), max(ids, default=0)
    return [
        [
            (segment - lowest if up else highest - segment) * longest + (place + rotation) % length
            for segment, place, length in zip(ids, places, lengths, strict=True)
        ]
        for rotation in range(longest)
        for up in (True, False)
    ]


def matrix(ids: Sequence[int], dtype: Any) -> Array:
    """All columns, (rows, columns), of distinct values of a type: negative ones, or positive ones where it has none."""
    every = np.array(columns(ids), np.int64)
    step = int(every.max(initial=0)) + 1
    lowest = 1 if np.dtype(dtype).kind == "u" else -2000
    ranks = every + np.arange(len(every))[:, np.newaxis] * step
    return np.ascontiguousarray((ranks.T + lowest).astype(dtype))


def tied(every: Array) -> Array:
    """The same with two or three rows of a segment alike: its index is the first of the highest."""
    return np.floor_divide(every, 3, dtype=every.dtype)


@cache
def groups(count: int, width: int) -> tuple[Any, ...]:
    """The columns, `width` at a time, as indices of the last axis; the last ones with some of the first."""
    if width == 1:
        return tuple(range(count))
    return tuple([(start + k) % count for k in range(width)] for start in range(0, count, width))


def pieces(width: int, *arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Those columns of each array, contiguous: (rows,) for one column, else (rows, width)."""
    for chosen in groups(arrays[0].shape[1], width):
        yield tuple(np.ascontiguousarray(array[:, chosen]) for array in arrays)
