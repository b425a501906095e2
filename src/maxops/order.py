"""Convert elements to integer keys with the same order, for engines that do not use the native core.

Keys are signed integers that compare like the elements. The key of a float depends only on its bits: every NaN becomes
the same quiet NaN, and the magnitude bits of negative numbers are flipped. If NaN is ignored, its sign bit is set, so
that it has the lowest key. The conversion uses no float arithmetic, so processor modes and compiler optimizations
cannot change any bits.

`xp` is the array library, such as `jax.numpy` or `torch`.

>>> import numpy as np
>>> from maxops import dtypes
>>> keys_of(np, np.array([-1.0, -0.0, 0.0, 1.0, np.inf, np.nan], np.float16), dtypes.FLOAT16).tolist()
[-15361, -1, 0, 15360, 31744, 32256]
>>> keys_of(np, np.array([-np.inf, np.nan], np.float16), dtypes.FLOAT16, "ignore").tolist()
[-31745, -32257]
"""

from __future__ import annotations

from typing import Any

from maxops.dtypes import DType


def keys_of(xp: Any, array: Any, dtype: DType, nan: str = "propagate") -> Any:
    """Return the keys of the elements of an array."""
    bits = array.view(_signed(xp, dtype))
    if dtype.kind == "bool":  # any nonzero byte is True
        return (bits != 0).view(bits.dtype)
    if dtype.kind == "uint":
        return bits ^ -(1 << dtype.bits - 1)
    if dtype.kind == "float":
        is_nan = (bits & _magnitude(dtype)) > dtype.infinity_bits
        lowest = dtype.nan_bits - (1 << dtype.bits - 1)  # the quiet NaN with the sign bit, as a signed integer
        return _flipped(xp.where(is_nan, lowest if nan == "ignore" else dtype.nan_bits, bits), dtype)
    return bits


def values_of(xp: Any, keys: Any, dtype: DType, nan: str = "propagate") -> Any:
    """Convert keys back to elements. This is the inverse of `keys_of`, except that every NaN is the same quiet NaN."""
    if dtype.kind == "bool":
        return keys != 0
    if dtype.kind == "uint":
        keys = keys ^ -(1 << dtype.bits - 1)
    elif dtype.kind == "float":
        keys = _flipped(keys, dtype)
        if nan == "ignore":  # the sign bit of NaN is set
            keys = xp.where((keys & _magnitude(dtype)) > dtype.infinity_bits, dtype.nan_bits, keys)
    return keys.view(getattr(xp, dtype.name))


def identity_bits(dtype: DType, nan: str) -> int:
    """Return the bits of the identity element of the maximum: the lowest value, or NaN if NaN is ignored."""
    return dtype.nan_bits if dtype.kind == "float" and nan == "ignore" else dtype.lowest_bits


def filled(xp: Any, shape: Any, bits: int, dtype: DType, **where: Any) -> Any:
    """Return an array filled with the value of `bits`. `where` is the library's keyword argument for the device."""
    signed = bits - (1 << dtype.bits) if bits >> dtype.bits - 1 else bits
    return xp.full(shape, signed, dtype=_signed(xp, dtype), **where).view(getattr(xp, dtype.name))


def _flipped(bits: Any, dtype: DType) -> Any:
    """Convert bits to keys, or keys to bits: flip the magnitude bits if the sign bit is set."""
    return bits ^ (bits >> dtype.bits - 1 & _magnitude(dtype))


def _magnitude(dtype: DType) -> int:
    """Return a mask of all bits except the sign bit."""
    return (1 << dtype.bits - 1) - 1


def _signed(xp: Any, dtype: DType) -> Any:
    """Return the signed integer dtype of the same width."""
    return getattr(xp, f"int{dtype.bits}")
