"""Tests ReduceMax along all axes of all shapes up to rank four with sizes up to four. Each element is a maximum once.

Longer shapes up to rank two test the loops for the tails of long rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import maxops as mo

from .states import Array, counted, fail, threads

SIZES = range(5)


def _apart(x: Array) -> Array:
    """Return the values with gaps along every axis, so that no two axes are one run of memory."""
    for axis in range(x.ndim):
        x = np.repeat(x, 2, axis=axis)
    return x[(slice(None, None, 2),) * x.ndim]


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda x: x,
    "fortran": lambda x: x.copy(order="F"),
    "transposed": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0) if x.ndim else x,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
    "pitched": lambda x: np.repeat(x, 2, axis=0)[::2] if x.ndim else x,
    "apart": _apart,
    "backwards": lambda x: x[(slice(None, None, -1),) * x.ndim].copy()[(slice(None, None, -1),) * x.ndim],
    "swapped": lambda x: x.astype(x.dtype.newbyteorder("S")),
}


def shapes(most_rank: int) -> Iterator[tuple[int, ...]]:
    """Yield every shape up to a rank."""
    for rank in range(most_rank + 1):
        yield from itertools.product(SIZES, repeat=rank)


def longer() -> Iterator[tuple[int, ...]]:
    """Yield long 1-D shapes, all small matrices, long matrices with few rows or columns, and columns of vectors."""
    yield from ((size,) for size in range(5, 71))
    yield from itertools.product(range(1, 10), repeat=2)
    yield from ((few, many)[::turn] for few in (1, 2, 3) for many in range(10, 41) for turn in (1, -1))
    yield from itertools.product((4, 5, 8, 9, 17), (7, 8, 9, 10, 15, 16, 17, 18, 20, 22, 33, 36, 40))


def many_rows() -> Iterator[tuple[int, ...]]:
    """Yield shapes for one-byte types: enough rows for the lanes of a vector and for a transposed square."""
    yield from itertools.product((2, 3, 7, 8, 9, 16, 17, 20, 33), (2, 3, 4, 5, 8, 9, 16, 17, 31, 33))
    yield from ((2, 70), (3, 100), (2, 130), (3, 140))


def vectors() -> Iterator[tuple[int, ...]]:
    """Yield some long shapes."""
    yield from ((size,) for size in (5, 8, 9, 17, 31, 33, 47, 64, 70))
    yield from ((5, 3), (4, 9), (9, 8), (3, 20), (2, 40), (40, 2), (17, 3), (2, 24), (2, 33), (3, 35))


def every(
    dtype: Any = np.float32,
    layouts: tuple[str, ...] = ("contiguous",),
    most_rank: int = 4,
    of: Callable[[], Iterator[tuple[int, ...]]] | None = None,
) -> None:
    """Test values and indices. The maximum is at every position in turn, and other elements are distinct and negative.

    For the indices, each output has its maximum at a different position, and some later elements are equal to it.
    """
    for shape in shapes(most_rank) if of is None else of():
        for count in range(len(shape) + 1):
            for axes in itertools.combinations(range(len(shape)), count):
                _one(shape, axes or tuple(range(len(shape))), dtype, layouts, axes == ())


def _one(shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any, layouts: tuple[str, ...], absent: bool) -> None:
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    kept_shape = [shape[axis] for axis in kept]
    outputs, each = int(np.prod(kept_shape)), int(np.prod([shape[axis] for axis in axes]))
    lowest = -np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min
    back = np.argsort([*kept, *axes]) if shape else ()
    # One-byte types have few values: maxima are non-negative, and other elements repeat after 100 positions.
    is_narrow = np.dtype(dtype).itemsize == 1
    ranks = np.arange(outputs * each).reshape(outputs, each) - 2000
    highest, middle = np.arange(outputs) - 1000, -1001 + outputs // 2
    if is_narrow:
        ranks, highest, middle = (ranks + 2000) % 100 - 128, highest % 100, min(outputs // 2, 100)
    for winner in range(max(each, 1)):
        groups = ranks.astype(dtype)
        expected = np.full(outputs, lowest, dtype)
        index = np.full(outputs, -1, np.int64)
        if each:
            groups[:, winner] = expected[:] = highest
        ties = ranks.astype(dtype)
        for output in range(outputs if each else 0):
            index[output] = (winner + output) % each
            ties[output, index[output] :: 3] = expected[output]
        data, twice = (
            x.reshape([*kept_shape, *(shape[axis] for axis in axes)]).transpose(*back).reshape(shape)
            for x in (groups, ties)
        )
        for layout in layouts:
            given = LAYOUTS[layout](np.ascontiguousarray(data))
            got = mo.reduce_max(given, None if absent else axes, keepdims=False)
            if got.tobytes() != expected.tobytes():
                fail(f"reduce_max, {layout}", expected, got, data=given, axes=axes)
            tied = LAYOUTS[layout](np.ascontiguousarray(twice))
            best, places = mo.reduce_max(tied, None if absent else axes, return_indices=True)
            if best.tobytes() != expected.tobytes() or places.tobytes() != index.tobytes():
                fail(f"reduce_max, indices, {layout}", (expected, index), (best, places), data=tied, axes=axes)
            got = mo.reduce_max(given, axes, keepdims=False, initial=dtype(middle))
            if got.tobytes() != np.maximum(expected, dtype(middle)).tobytes():
                fail(f"reduce_max, initial, {layout}", expected, got, data=given, axes=axes)
            counted[f"reduce_max: {layout}"] += 3


def threaded(dtype: Any = np.float32, most_rank: int = 3) -> None:
    """Test outputs and reduced axes that threads share, and the merge of their parts."""
    for count in (2, 3):
        with threads(count):
            every(dtype, ("contiguous", "fortran"), most_rank)


def outputs() -> None:
    """Test outputs of the caller: in every layout, and overlapping the data."""
    for shape in shapes(3):
        for axis in range(len(shape)):
            data = -np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
            expected = data.max(axis, keepdims=True, initial=-np.inf)
            for layout in ("fortran", "strided", "backwards", "swapped"):
                out = LAYOUTS[layout](np.ones_like(expected))
                mo.reduce_max(data, axis, out=out)
                if (out != expected).any():
                    fail(f"reduce_max, out {layout}", expected, out, data=data, axes=axis)
                counted["reduce_max: out="] += 1
            if shape[axis] > 0:
                for place in range(shape[axis]):
                    own = data.copy()
                    out = own.take([0], axis)[:0] if own.size == 0 else np.moveaxis(own, axis, 0)[place : place + 1]
                    if own.size == 0:
                        continue
                    mo.reduce_max(own, axis, out=np.moveaxis(out, 0, axis))
                    if (np.moveaxis(out, 0, axis) != expected).any():
                        fail("reduce_max, out within the data", expected, out, data=data, axes=axis, place=place)
                    counted["reduce_max: out within the data"] += 1
