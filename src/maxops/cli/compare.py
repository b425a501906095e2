"""Compares results with expected results bit for bit, including NaN payloads and the sign of zero."""

from __future__ import annotations

import sys

import numpy as np

from maxops.plan import Array


def difference(
    result: Array, expected: Array, names: tuple[str, str] = ("expected", "got"), tolerance: float = 0
) -> str:
    """Return a description of the first difference between a result and the expected result, or "" if they are equal.

    Results are compared bit for bit. `names` are the words for the expected and the actual result in the description.
    With a tolerance, floats are also equal if they differ by at most `tolerance * max(1, abs(expected))`, and all NaNs
    are equal.
    """
    first, second = names
    result, expected = (array.astype(object) if array.dtype.kind in "UT" else array for array in (result, expected))
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        return f"{first} {expected.dtype} {expected.shape}, {second} {result.dtype} {result.shape}"
    indices = different(result, expected, tolerance)
    if not indices.size:
        return ""
    number = int(indices[0])
    position = tuple(map(int, np.unravel_index(number, result.shape)))
    sides = (
        f"{name} {array[position]}{_hexadecimal(_elements(array)[number])}"
        for name, array in ((first, expected), (second, result))
    )
    differ = f"{indices.size} of {result.size} elements differ"
    return f"{differ}; first at {position}: {', '.join(sides)}"


def different(result: Array, expected: Array, tolerance: float = 0) -> Array:
    """Return the flat indices at which two arrays of the same shape and type differ."""
    differs = _elements(result) != _elements(expected)
    if tolerance and result.dtype.kind in "fV":
        one, other = (np.asarray(array, np.float64).reshape(-1) for array in (result, expected))
        with np.errstate(invalid="ignore"):
            near = np.abs(one - other) <= tolerance * np.maximum(1, np.abs(other))
        near &= np.isfinite(one) & np.isfinite(other)
        differs &= ~(near | (one == other) | (np.isnan(one) & np.isnan(other)))
    return np.flatnonzero(differs)


def _elements(array: Array) -> Array:
    """Return a flat view of the elements as void, which NumPy compares bit for bit. Object arrays keep their dtype."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat if flat.dtype.hasobject else flat.view(f"V{flat.itemsize}")


def _hexadecimal(element: object) -> str:
    if not isinstance(element, np.void):
        return ""
    return f" (0x{int.from_bytes(element.tobytes(), sys.byteorder):0{2 * element.itemsize}X})"
