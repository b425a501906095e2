"""Generates values that reveal any row that is dropped, swapped or merged into the wrong segment.

A maximum reveals a row only if the row has the highest value. Each row of a segment therefore has the highest value in
some column (the rotations). The values of each segment exceed those of the segments before it in some columns, and are
below them in others (the directions), so that a row of a wrong segment would change a maximum. All values
of signed types are negative, so that a wrong fill of zero would change a maximum, too. All values are distinct, so that
each result identifies its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def columns(ids: Sequence[int]) -> list[list[int]]:
    """Return values, numbered from 0, for rows with these ids: one column for each rotation and direction."""
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
    """Return all columns as an array (rows, columns) of distinct values: negative, or positive for unsigned types."""
    every = np.array(columns(ids), np.int64)
    step = int(every.max(initial=0)) + 1
    lowest = 1 if np.dtype(dtype).kind == "u" else -2000
    ranks = every + np.arange(len(every))[:, np.newaxis] * step
    return np.ascontiguousarray((ranks.T + lowest).astype(dtype))


def tied(every: Array) -> Array:
    """Return the values with ties of two or three rows, for tests of the first index."""
    return np.floor_divide(every, 3, dtype=every.dtype)


@cache
def groups(count: int, width: int) -> tuple[Any, ...]:
    """Return groups of `width` columns as indices of the last axis. The last group wraps around to the first column."""
    if width == 1:
        return tuple(range(count))
    return tuple([(start + k) % count for k in range(width)] for start in range(0, count, width))


def pieces(width: int, *arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Yield each group of columns of all arrays as contiguous arrays: (rows,) for one column, else (rows, width)."""
    for chosen in groups(arrays[0].shape[1], width):
        yield tuple(np.ascontiguousarray(array[:, chosen]) for array in arrays)
