"""The reference implementation: slow, simple and independent. It shares no code with the native core.

Floats are decoded from their bits into exact integers, which Python compares. Elements of the dtype `real` are Python's
own rational numbers. The functions expect valid arguments, because the planner checks them.

>>> import numpy as np
>>> maximum(np.array([-0.0, 1.0]), np.array([0.0, np.nan])).view("u8").tolist()
[0, 9221120237041090560]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from maxops import dtypes, shapes
from maxops.dtypes import DType

Array = np.ndarray[Any, np.dtype[Any]]


@lru_cache(1 << 16)  # the same boundary values occur often
def order(dtype: DType, bits: int) -> tuple[int, int, int]:
    """Return a sort key for the value with the given bits. Keys are tuples that have the same order as the values.

    The key of NaN is (1, 0, 0). All other keys start with 0 and the exact value, and end with 0 for -0 or 1
    otherwise. Values of floats are integers in units of the smallest subnormal number. The value of Inf is the power of
    two above the highest finite value.

    >>> order(dtypes.FLOAT16, 0x8000) < order(dtypes.FLOAT16, 0x0000) < order(dtypes.FLOAT16, 0x0001)
    True
    """
    if dtype.kind != "float":
        sign = bits >> dtype.bits - 1 if dtype.kind == "int" else 0
        return (0, bits - (sign << dtype.bits), 1)
    sign = bits >> dtype.bits - 1
    exponent = bits >> dtype.mantissa_bits & (1 << dtype.exponent_bits) - 1
    fraction = bits & (1 << dtype.mantissa_bits) - 1
    if exponent == (1 << dtype.exponent_bits) - 1 and fraction != 0:
        return (1, 0, 0)
    significand = fraction if exponent == 0 else fraction + (1 << dtype.mantissa_bits)
    magnitude = significand << max(exponent - 1, 0)
    return (0, -magnitude if sign else magnitude, 0 if sign and magnitude == 0 else 1)


def _highest_bits(dtype: DType, column: Iterable[int], nan: str = "propagate") -> int:
    if dtype.kind == "bool":  # NumPy allows any byte for a bool, and all bytes except 0 are True
        return int(any(column))
    if nan == "ignore":  # NaN counts only if there are no numbers
        column = list(column)
        column = [bits for bits in column if order(dtype, bits)[0] == 0] or column
    best = max(column, key=partial(order, dtype), default=dtype.lowest_bits)
    return dtype.nan_bits if dtype.kind == "float" and order(dtype, best)[0] == 1 else best


def _to_items(array: Array) -> tuple[DType, Array]:
    """Return the dtype of an array, and an object array of the elements' bits, or of rationals for `real`."""
    dtype = dtypes.of(array.dtype)
    assert dtype is not None
    if dtype is dtypes.REAL:
        return dtype, array
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=True)
    return dtype, native.reshape(-1).view(dtype.word).astype(object).reshape(array.shape)


def _from_items(dtype: DType, items: Array) -> Array:
    if dtype is dtypes.REAL:
        return items
    words = np.array(items.reshape(-1).tolist(), dtype.word)
    return words.view(dtype.numpy).reshape(items.shape)


def _highest(dtype: DType, nan: str) -> Callable[[Sequence[Any]], Any]:
    return max if dtype is dtypes.REAL else partial(_highest_bits, dtype, nan=nan)


def maximum(*arrays: Array, nan: str = "propagate") -> Array:
    """Compute Max of arrays of one dtype with broadcasting."""
    dtype, _ = _to_items(arrays[0])
    highest = _highest(dtype, nan)
    shape = shapes.broadcast([array.shape for array in arrays])
    items = [np.broadcast_to(_to_items(array)[1], shape).reshape(-1) for array in arrays]
    result = np.empty(items[0].size, object)
    result[:] = [highest(column) for column in zip(*items, strict=True)]
    return _from_items(dtype, result.reshape(shape))


def reduce_max(
    data: Array,
    axes: Sequence[int] = (),
    *,
    keepdims: bool = True,
    identity: bool = False,
    initial: Array | None = None,
    nan: str = "propagate",
) -> Array:
    """Compute ReduceMax along axes in 0..r-1 (default: all), with an optional initial value.

    With `identity`, return a copy of the data.
    """
    dtype, items = _to_items(data)
    if identity:
        return _from_items(dtype, items.copy())
    taken = axes or range(data.ndim)
    kept = [axis for axis in range(data.ndim) if axis not in taken]
    result = np.empty([data.shape[axis] for axis in kept], object)
    more = [] if initial is None else _to_items(initial)[1].reshape(-1).tolist()
    for position, column in _columns(items, kept):
        result[position] = _highest(dtype, nan)(column + more)
    shape = [1 if axis in taken else size for axis, size in enumerate(data.shape)] if keepdims else result.shape
    return _from_items(dtype, result.reshape(shape))


def first_in_axes(data: Array, axes: Sequence[int], result: Array) -> Array:
    """Return the index (argmax) of the first element that equals each result of ReduceMax, or -1 if there is none."""
    dtype, items = _to_items(data)
    kept = [axis for axis in range(data.ndim) if axis not in (axes or range(data.ndim))]
    maxima = _to_items(result)[1].reshape([data.shape[axis] for axis in kept])
    indices = np.empty(maxima.shape, np.int64)
    for position, column in _columns(items, kept):
        indices[position] = _first(dtype, column, maxima[position])
    return indices.reshape(result.shape)


def segment_max(
    data: Array,
    segment_ids: Array,
    num_segments: int,
    fill_mode: str | None = None,
    initial: Array | None = None,
    nan: str = "propagate",
) -> Array:
    """Compute SegmentMax for ids in any order, with an optional initial value. Drop rows with ids out of range."""
    dtype, items = _to_items(data)
    lowest: Any = Fraction(0) if dtype is dtypes.REAL else dtype.lowest_finite_bits
    zero: Any = Fraction(0) if dtype is dtypes.REAL else 0
    more = [] if initial is None else _to_items(initial)[1].reshape(-1).tolist()
    result = np.empty((num_segments, *data.shape[1:]), object)
    result[...] = _highest(dtype, nan)(more) if more else lowest if fill_mode == "LOWEST" else zero
    for segment, members in _members(segment_ids, num_segments).items():
        for position in product(*map(range, data.shape[1:])):
            result[(segment, *position)] = _highest(dtype, nan)([items[(row, *position)] for row in members] + more)
    return _from_items(dtype, result)


def scatter_max(data: Array, indices: Array, updates: Array, axis: int | None = None) -> Array:
    """Compute ScatterElements along an axis, or ScatterND if `axis` is None, with the reduction "max".

    >>> scatter_max(np.int8([1, 2, 3]), np.array([-1, 0, -1]), np.int8([7, 0, 9]), 0)
    array([1, 2, 9], dtype=int8)
    """
    dtype, items = _to_items(data)
    named: dict[tuple[int, ...], list[Any]] = {}
    _, given = _to_items(updates)
    for position in np.ndindex(updates.shape):
        if axis is None:
            depth = indices.ndim - 1
            first = tuple(indices[position[:depth]].tolist())
            target = [*first, *position[depth:]]
        else:
            target = list(position)
            target[axis] = int(indices[position])
        at = tuple(place % size for place, size in zip(target, data.shape, strict=True))
        named.setdefault(at, []).append(given[position])
    result = items.copy()
    for at, column in named.items():
        result[at] = _highest_bits(dtype, [items[at], *column])
    return _from_items(dtype, result)


def first_in_segments(data: Array, segment_ids: Array, result: Array) -> Array:
    """Return, for each result of SegmentMax, the index of the first row of its segment that contains it, or -1."""
    dtype, items = _to_items(data)
    maxima = _to_items(result)[1]
    rows = np.full(result.shape, -1, np.int64)
    for segment, members in _members(segment_ids, len(result)).items():
        for position in product(*map(range, data.shape[1:])):
            first = _first(dtype, [items[(row, *position)] for row in members], maxima[(segment, *position)])
            rows[(segment, *position)] = members[first] if first >= 0 else -1
    return rows


def _members(segment_ids: Array, num_segments: int) -> dict[int, list[int]]:
    """Return the row numbers of each non-empty segment, keyed by the segment's number."""
    rows: dict[int, list[int]] = {}
    for row, segment in enumerate(segment_ids.tolist()):
        if 0 <= segment < num_segments:
            rows.setdefault(segment, []).append(row)
    return rows


def _columns(items: Array, kept: Sequence[int]) -> Iterable[tuple[tuple[int, ...], list[Any]]]:
    """Yield each index along the kept axes, and the elements that are reduced to one result, in C order."""
    for position in np.ndindex(*[items.shape[axis] for axis in kept]):
        index: list[Any] = [slice(None)] * items.ndim
        for axis, at in zip(kept, position, strict=True):
            index[axis] = at
        yield position, list(np.asarray(items[tuple(index)], object).reshape(-1))


def _first(dtype: DType, column: Sequence[Any], result: Any) -> int:
    """Return the index of the first element of a column that equals the result, or -1."""
    for position, item in enumerate(column):
        if item == result if dtype is dtypes.REAL else _highest_bits(dtype, [item]) == _highest_bits(dtype, [result]):
            return position
    return -1
