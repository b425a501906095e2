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
    came, wanted = (np.ascontiguousarray(array).reshape(-1).view(dtype.word) for array in (result, expected))
    places = np.flatnonzero(came != wanted)
    if not places.size:
        return ""
    first = int(places[0])
    position = tuple(map(int, np.unravel_index(first, result.shape)))
    digits = dtype.bits // 4
    got, want = (
        f"{array[position]} (0x{int(bits[first]):0{digits}X})" for array, bits in ((result, came), (expected, wanted))
    )
    return f"{places.size} of {result.size} elements differ; first at {position}: expected {want}, got {got}"
