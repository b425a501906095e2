"""Boundary values of each type: only a few, because the number of pairs grows quadratically.

NaNs are separate, so other values can be tested without NaN.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from math import prod

import numpy as np

from maxops import dtypes
from maxops.dtypes import DType
from maxops.plan import Array

# Above these limits, a runtime that computes in float32, int32 or float64 changes integers.
_LIMITS = (1 << 24, 1 << 31, 1 << 53)
_DISTINCT = 251  # a prime below 2^8: every stride visits all values, and every type except bool can represent them


def of_words(dtype: DType, words: Iterable[int]) -> Array:
    """Return an array of a type with these bits."""
    return np.array(list(words), dtype.word).view(dtype.numpy)


def ordinary_words(dtype: DType) -> tuple[int, ...]:
    """Return the bits of the boundary values that are not NaN.

    >>> [hex(word) for word in ordinary_words(dtypes.INT8)][:4]
    ['0x0', '0x1', '0x10', '0x11']
    """
    if dtype.kind == "bool":
        return (0, 1)
    top = (1 << dtype.bits) - 1
    if dtype.kind == "float":
        one = ((1 << dtype.exponent_bits - 1) - 1) << dtype.mantissa_bits
        largest_subnormal = (1 << dtype.mantissa_bits) - 1
        magnitudes = (0, 1, largest_subnormal, one, one + 1, dtype.infinity_bits - 1, dtype.infinity_bits)
        return tuple(sign << dtype.bits - 1 | magnitude for sign in (0, 1) for magnitude in magnitudes)
    half = dtype.bits // 2
    middle = 1 << dtype.bits - 1  # the lowest value of a signed type
    ends = (
        {0, 1, middle - 2, middle - 1, middle, middle + 1, top} if dtype.kind == "int" else {0, 1, middle - 1, middle}
    )
    ends |= {top - 1, top} if dtype.kind == "uint" else set()
    halves = {1 << half, 1 << half | 1, 1 << half | 1 << half - 1}  # differ in the low half, without a sign bit
    past = {limit + step for limit in _LIMITS if limit < middle for step in (0, 1)}
    return tuple(sorted(ends | halves | past))


def nan_words(dtype: DType) -> tuple[int, ...]:
    """Return the bits of three NaNs: the canonical NaN, a negative NaN with a payload, and a signaling NaN."""
    if dtype.kind != "float":
        return ()
    negative = 1 << dtype.bits - 1 | dtype.nan_bits | 5
    return (dtype.nan_bits, negative, dtype.infinity_bits | 1)


@cache
def ordinary(dtype: DType) -> Array:
    """Return the boundary values that are not NaN."""
    if dtype is dtypes.REAL:
        third = Fraction(1, 3)
        values = (Fraction(0), third, -third, third + Fraction(1, 10**30), 1, -(2**70), 2**70, 2**70 + 1)
        return np.array(values, object)
    return of_words(dtype, ordinary_words(dtype))


@cache
def nans(dtype: DType) -> Array:
    """Return the NaNs. The array is empty if the type has no NaN."""
    return of_words(dtype, nan_words(dtype)) if dtype.kind == "float" else np.empty(0, dtype.numpy)


def zeros(dtype: DType) -> Array:
    """Return the two zeros of a float type, -0 first."""
    return of_words(dtype, (1 << dtype.bits - 1, 0))


def is_nan(array: Array) -> Array:
    """Return a mask of the NaNs, found by their bits."""
    dtype = dtypes.of(array.dtype)
    if dtype is None or dtype.kind != "float":
        return np.zeros(array.shape, bool)
    magnitude = array.reshape(-1).view(dtype.word) & dtype.word.type((1 << dtype.bits - 1) - 1)
    return np.asarray(magnitude > dtype.infinity_bits).reshape(array.shape)


def distinct(dtype: DType, shape: tuple[int, ...], turn: int = 0) -> Array:
    """Return small numbers (thirds for `real`) in an order that depends on `turn`. Up to 251 of them are distinct.

    Distinct values reveal elements at wrong positions.
    """
    number = np.arange(prod(shape))
    indices = (number * 97 + turn * 60) % _DISTINCT
    if dtype.kind == "bool":
        return np.asarray(indices % 3 == 0).reshape(shape)
    values = indices if dtype.kind == "uint" else indices - _DISTINCT // 2
    if dtype is dtypes.REAL:
        return np.array([Fraction(int(value), 3) for value in values] + [None], object)[:-1].reshape(shape)
    return values.astype(dtype.numpy).reshape(shape)
