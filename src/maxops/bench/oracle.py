"""The expected results, fast: NumPy's integer maximum of ranks. No trick is shared with the native core.

A rank is an unsigned integer that orders a type's values as the standards do. The oracle is itself held against the
slow reference, in the tests and whenever a session begins.
"""

from __future__ import annotations

import numpy as np

from maxops import dtypes, reference
from maxops.bench.case import Case
from maxops.bench.inputs import FILL_MODE, Inputs
from maxops.dtypes import DType
from maxops.plan import Array

SMALL = 2_000  # elements up to which the reference judges directly


def words(array: Array) -> Array:
    """The elements' bits."""
    whole: Array = np.ascontiguousarray(array)
    return whole.view(f"u{array.dtype.itemsize}")


def same_bits(actual: Array, expected: Array) -> bool:
    """Whether two arrays agree in type, shape and every bit."""
    return (actual.dtype, actual.shape) == (expected.dtype, expected.shape) and bool(
        np.array_equal(words(actual), words(expected))
    )


def ranks(array: Array) -> Array:
    """A number for each element, in the order of the values; every NaN has the one highest."""
    dtype = _row(array)
    bits = words(array)
    if dtype.kind in ("uint", "bool"):
        return bits
    sign = dtype.word.type(1 << dtype.bits - 1)
    if dtype.kind == "int":
        return np.asarray(bits ^ sign)
    magnitude = bits & ~sign
    result = np.where(bits >= sign, ~bits, bits | sign)
    result[magnitude > dtype.infinity_bits] = ~dtype.word.type(0)
    return result


def values(dtype: DType, ranked: Array) -> Array:
    """The values of ranks."""
    if dtype.kind in ("uint", "bool"):
        return np.asarray(ranked).view(dtype.numpy)
    sign = dtype.word.type(1 << dtype.bits - 1)
    if dtype.kind == "int":
        return np.asarray(ranked ^ sign).view(dtype.numpy)
    bits = np.where(ranked >= sign, ranked ^ sign, ~ranked)
    bits[ranked == ~dtype.word.type(0)] = dtype.nan_bits
    return bits.view(dtype.numpy)


def _row(array: Array) -> DType:
    dtype = dtypes.of(array.dtype)
    assert dtype is not None
    return dtype


def maximum(*arrays: Array) -> Array:
    """Max."""
    result = ranks(arrays[0])
    for array in arrays[1:]:
        result = np.maximum(result, ranks(array))
    return values(_row(arrays[0]), result)


def reduce_max(data: Array, axes: tuple[int, ...]) -> Array:
    """ReduceMax of data that is not empty, reduced axes dropped."""
    return values(_row(data), np.asarray(ranks(data).max(axis=axes)))


def segment_max(data: Array, ids: Array, num_segments: int, fill_mode: str) -> Array:
    """SegmentMax of sorted ids that are all below num_segments."""
    dtype = _row(data)
    fill = dtype.lowest_finite_bits if fill_mode == "LOWEST" else 0
    result = np.full((num_segments, *data.shape[1:]), fill, dtype.word).view(dtype.numpy)
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    result[ids[starts]] = values(dtype, np.maximum.reduceat(ranks(data), starts, axis=0))
    return result


def expected_result(case: Case, inputs: Inputs, *, slow: bool | None = None) -> Array:
    """What a case gives: by the reference where that is quick (or `slow`), by ranks otherwise."""
    elements = max(array.size for array in inputs.arrays)
    by_reference = elements <= SMALL if slow is None else slow
    if case.operator == "Max":
        return (reference.maximum if by_reference else maximum)(*inputs.arrays)
    data = inputs.arrays[0]
    if case.operator == "ReduceMax":
        return reference.reduce_max(data, case.axes, keepdims=False) if by_reference else reduce_max(data, case.axes)
    assert inputs.ids is not None
    assert case.segments is not None
    judge = reference.segment_max if by_reference else segment_max
    return judge(data, inputs.ids, case.segments.count, FILL_MODE)
