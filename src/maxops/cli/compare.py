"""Results against what was expected: bits, not values, so that NaNs and the sign of zero count."""

from __future__ import annotations

import numpy as np

from maxops import dtypes
from maxops.plan import Array


def difference(result: Array, expected: Array) -> str:
    """Where and how a result differs from what was expected, bit for bit; "" if it does not."""
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        return f"expected {expected.dtype} {expected.shape}, got {result.dtype} {result.shape}"
    dtype = dtypes.of(result.dtype)
    if dtype is None:  # a type of other operators
        same = result.tolist() == expected.tolist()
        return "" if same else f"expected {expected.tolist()}, got {result.tolist()}"
    actual_bits, expected_bits = (
        np.ascontiguousarray(array).reshape(-1).view(dtype.word) for array in (result, expected)
    )
    indices = np.flatnonzero(actual_bits != expected_bits)
    if not indices.size:
        return ""
    first = int(indices[0])
    position = tuple(map(int, np.unravel_index(first, result.shape)))
    digits = dtype.bits // 4
    sides = (
        f"{array[position]} (0x{int(bits[first]):0{digits}X})"
        for array, bits in ((expected, expected_bits), (result, actual_bits))
    )
    differ = f"{indices.size} of {result.size} elements differ"
    return "{}; first at {}: expected {}, got {}".format(differ, position, *sides)
