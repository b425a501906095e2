"""Results against what was expected: bits, not values, so that NaNs and the sign of zero count."""

from __future__ import annotations

import numpy as np

from maxops import dtypes
from maxops.plan import Array


def difference(result: Array, expected: Array, names: tuple[str, str] = ("expected", "got")) -> str:
    """Where and how a result differs from what was expected, bit for bit; "" if it does not.

    `names` is what the sides are called: the expected one, then the result.
    """
    first, second = names
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        return f"{first} {expected.dtype} {expected.shape}, {second} {result.dtype} {result.shape}"
    dtype = dtypes.of(result.dtype)
    if dtype is None:  # a type of other operators
        same = result.tolist() == expected.tolist()
        return "" if same else f"{first} {expected.tolist()}, {second} {result.tolist()}"
    actual_bits, expected_bits = (
        np.ascontiguousarray(array).reshape(-1).view(dtype.word) for array in (result, expected)
    )
    indices = np.flatnonzero(actual_bits != expected_bits)
    if not indices.size:
        return ""
    number = int(indices[0])
    position = tuple(map(int, np.unravel_index(number, result.shape)))
    digits = dtype.bits // 4
    sides = (
        f"{name} {array[position]} (0x{int(bits[number]):0{digits}X})"
        for name, array, bits in ((first, expected, expected_bits), (second, result, actual_bits))
    )
    differ = f"{indices.size} of {result.size} elements differ"
    return f"{differ}; first at {position}: {', '.join(sides)}"
