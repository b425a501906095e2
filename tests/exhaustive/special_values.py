"""Tests special values with random ids and offsets, some of them of thousands of rows.

The expected results are computed from bits: a NaN is the highest value, or the lowest if it is ignored; a NaN result is
the quiet NaN; -0 is below +0; and any nonzero byte of a bool is True.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import maxops as mo
from maxops import _native

from .reduce import LAYOUTS
from .states import Array, counted, fail, made, threads

WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
INFINITY = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0000000000000}
TYPES = (np.float32, np.float16, np.float64, np.bool_, np.int8, np.int16, np.uint16, np.int64)
NONE = -(1 << 63)  # a key below all others


def special(dtype: Any) -> Array:
    """Return zeros, small numbers, infinities and NaNs of both signs, or the limits of an integer type."""
    kind = np.dtype(dtype)
    word = WORDS[kind.itemsize]
    if kind.kind != "f":
        return np.array([0, 1, 2, 3, 127, 128, 254, 255], np.uint8).astype(word).view(dtype)
    infinity = INFINITY[kind.itemsize]
    sign = 1 << (8 * kind.itemsize - 1)
    finite = np.array([0.0, 1, 1.5, 2, 3, 1000], dtype).view(word).tolist()
    nans = [infinity + 1, infinity + 2, sign - 1]
    return np.array([bits + side for bits in (*finite, 1, infinity, *nans) for side in (0, sign)], word).view(dtype)


RULES: Any = ("propagate", "ignore")  # for NaN


def keys_of(values: Array, nan: str = "propagate") -> Array:
    """Return integers in the same order as the values."""
    if values.dtype == np.bool_:
        return np.minimum(values.view(np.uint8), 1).astype(np.int64)
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    size = values.itemsize
    bits = values.view(WORDS[size]).astype(np.uint64)
    sign = np.uint64(1 << (8 * size - 1))
    magnitude = (bits & (sign - np.uint64(1))).astype(np.int64)
    keys = np.where((bits & sign) != 0, -1 - magnitude, magnitude)
    # The key of -Inf as float64 is far above the minimum of int64.
    of_nan = np.iinfo(np.int64).min if nan == "ignore" else np.iinfo(np.int64).max
    return np.where(magnitude > INFINITY[size], np.int64(of_nan), keys)


def canonical(values: Array) -> Array:
    """Return values as results have them: with canonical NaNs and bools."""
    if values.dtype == np.bool_:
        return np.asarray(values.view(np.uint8) != 0)
    if values.dtype.kind != "f":
        return values
    return np.where(values != values, np.array(np.nan, values.dtype), values)  # noqa: PLR0124 - NaN alone is not itself


def best_of(values: Array, axis: int, nan: str = "propagate") -> tuple[Array, Array]:
    """Return the maxima along a nonempty axis, and their first indices."""
    places = np.asarray(keys_of(np.ascontiguousarray(values), nan).argmax(axis))
    found = np.take_along_axis(values, np.expand_dims(places, axis), axis)
    return canonical(np.ascontiguousarray(found)).reshape(places.shape), places.astype(np.int64)


def _drawn(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Return random special values, drawn from at most eight."""
    values = special(dtype)
    return rng.choice(values[rng.integers(len(values), size=int(rng.integers(1, 9)))], shape)


def values(times: int = 60) -> None:
    """Test Max of one to four inputs, and ReduceMax of rows and of columns with indices."""
    for dtype in TYPES:
        rng = np.random.default_rng(7)
        for _ in range(times):
            shape = (int(rng.integers(1, 12)), int(rng.integers(1, 40)))
            inputs = [_drawn(rng, dtype, shape) for _ in range(int(rng.integers(1, 5)))]
            nan = RULES[rng.integers(2)]
            expected, _places = best_of(np.stack(inputs), 0, nan)
            got = mo.maximum(*inputs, nan=nan)
            if got.tobytes() != expected.tobytes():
                fail("maximum", expected, got, inputs=inputs)
            layout = [*LAYOUTS][int(rng.integers(len(LAYOUTS)))]
            data = LAYOUTS[layout](inputs[0])
            for axis in (0, 1):
                expected, places = best_of(inputs[0], axis, nan)
                got, index = mo.reduce_max(data, axis, keepdims=False, return_indices=True, nan=nan)
                if got.tobytes() != expected.tobytes() or index.tobytes() != places.tobytes():
                    fail("reduce_max", (expected, places), (got, index), data=data, axis=axis)
            counted["special values"] += 3


def _ids(rng: np.random.Generator, rows: int, most: int) -> Array:
    """Return random sorted ids: short runs, long runs or single rows, with or without gaps."""
    kind = rng.integers(5)
    if kind == 0:
        return np.sort(rng.integers(0, most + 1, rows))
    if kind == 1:
        return np.arange(rows) + rng.integers(0, 3)
    if kind == 2:
        return np.repeat(np.arange(rows), rng.integers(1, 20))[:rows]
    if kind == 3:
        return np.cumsum(rng.integers(0, 4, rows))
    return np.sort(rng.integers(0, 3, rows) * rng.integers(1, 50))


def _best(data: Array, ids: Sequence[int], count: int, fill: Any, nan: str) -> tuple[Array, Array, Array]:
    """Return the maxima by the definition, their first rows, and the mask of empty segments."""
    best = np.full((count, *data.shape[1:]), fill, data.dtype)
    index = np.full(best.shape, -1, np.int64)
    empty = np.ones(count, bool)
    for segment in {*ids}:
        if not 0 <= segment < count:
            continue
        rows = np.flatnonzero(np.equal(ids, segment))
        best[segment], place = best_of(data[rows], 0, nan)
        index[segment], empty[segment] = rows[place], False
    return best, index, empty


def _by_the_core(*inputs: Any, **options: Any) -> Array:
    """Return the result of the core alone, which must accept clearly valid calls."""
    given = _native.segment_max(*inputs, **options)
    return np.array("not taken") if given is None else np.asarray(given)


def _laid(rng: np.random.Generator, data: Array) -> Array:
    name = rng.choice(["contiguous", "contiguous", *LAYOUTS])
    return LAYOUTS[str(name)](data) if data.dtype != np.bool_ or name != "swapped" else data


SHAPES = ((), (1,), (2,), (3,), (5,), (9,), (17,), (2, 3), (3, 1, 2))


def rows(times: int = 45, seed: int = 11) -> None:
    """Test SegmentMax with sorted ids, unsorted ids and offsets, with new and given outputs, and with indices."""
    for count in (1, 2, 3):
        with threads(count):
            for dtype in TYPES:
                rng = np.random.default_rng(seed + count)
                for _ in range(times):
                    _one(rng, dtype)


def many_rows() -> None:
    """Test more rows than any buffer holds, in short and in long segments."""
    for count in (1, 2):
        with threads(count):
            for dtype in (np.float32, np.int8, np.float64):
                rng = np.random.default_rng(5)
                for size in (700, 1500, 3000):
                    _one(rng, dtype, size)


def _one(rng: np.random.Generator, dtype: Any, size: int | None = None) -> None:
    size = int(rng.integers(0, 45)) if size is None else size
    data = _drawn(rng, dtype, (size, *SHAPES[int(rng.integers(len(SHAPES)))]))
    ids = _ids(rng, size, int(rng.integers(1, 30)))
    width = [np.int32, np.int64][int(rng.integers(2))]
    highest = int(ids[-1]) + 1 if size else 0
    given = [None, 0, 1, highest, highest + 2, 3 * size + 40, max(highest - 2, 0)][int(rng.integers(7))]
    count = highest if given is None else given
    zero, nan = np.zeros((), dtype)[()], RULES[rng.integers(2)]
    lies = _laid(rng, data)

    best, index, empty = _best(data, ids.tolist(), count, zero, nan)
    in_order = partial(mo.segment_max, lies, _laid(rng, ids.astype(width)), given, nan=nan)
    _same("ids in order", in_order(fill_mode="ZERO"), best)
    _same("ids in order", made(mo, _by_the_core, *in_order.args, fill_mode="zero", nan=nan), best)
    _same("unchecked", in_order(fill_mode="ZERO", check_ids=False), best)
    message: Any = in_order(fill_mode="ZERO", return_indices=True, return_empty=True)
    for got, expected in zip(message, (best, index, empty), strict=True):
        _same("ids in order, indices", got, expected)
    memory = np.full((count + 2, *data.shape[1:]), 1, dtype)
    out = memory[1:-1]
    in_order(fill_mode="ZERO", out=out)
    if out.tobytes() != best.tobytes() or (memory[[0, -1]] != 1).any():
        fail("segment_max, out", best, memory)

    bounds = np.searchsorted(ids, np.arange(highest + 1)).astype(width)
    bounds[-1:] = size
    by_offsets = partial(mo.segment_max, lies, offsets=_laid(rng, bounds), num_segments=given, nan=nan)
    _same("offsets", by_offsets(fill_mode="ZERO"), best)
    message = by_offsets(fill_mode="ZERO", return_indices=True, return_empty=True)
    for got, expected in zip(message, (best, index, empty), strict=True):
        _same("offsets, indices", got, expected)

    order = rng.permutation(size)
    mixed = ids[order] - (rng.integers(0, 2) if size else 0)
    last = int(mixed.max()) + 1 if size else 0
    count = max(last, 0) if given is None else given
    best, index, empty = _best(data, mixed.tolist(), count, zero, nan)
    message = mo.segment_max(
        lies,
        _laid(rng, mixed.astype(width)),
        given,
        fill_mode="ZERO",
        sorted=False,
        out_of_range="drop",
        return_indices=True,
        return_empty=True,
        nan=nan,
    )
    for got, expected in zip(message, (best, index, empty), strict=True):
        _same("ids in any order", got, expected)
    counted["rows of special values"] += 7

    shifted = ids - rng.integers(1, 4)
    if width is np.int64 and given is not None:
        shifted[size - int(rng.integers(0, 3)) :] += 1 << 32  # belongs to no segment
    count = (max(int(shifted[-1]), -1) + 1 if size else 0) if given is None else given
    best, index, empty = _best(data, shifted.tolist(), count, zero, nan)
    memory = np.full((count + 2, *data.shape[1:]), 1, dtype)
    dropped = partial(mo.segment_max, lies, _laid(rng, shifted.astype(width)), given, out_of_range="drop", nan=nan)
    dropped(fill_mode="ZERO", out=memory[1:-1])
    if memory[1:-1].tobytes() != best.tobytes() or (memory[[0, -1]] != 1).any():
        fail("segment_max, dropped, out", best, memory, ids=shifted)
    message = dropped(fill_mode="ZERO", return_indices=True, return_empty=True)
    for got, expected in zip(message, (best, index, empty), strict=True):
        _same("ids in order, dropped", got, expected)
    counted["rows of special values"] += 2


def _same(what: str, got: Array, expected: Array) -> None:
    if got.tobytes() != expected.tobytes() or got.shape != expected.shape:
        fail(f"segment_max, {what}", expected, got)
