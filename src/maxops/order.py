"""The order as integer keys, by operations of every array library, for engines that do not use the native core.

Keys are signed integers that compare as the elements do, and are equal where the order has the elements equal. A
float's key is made of its bits alone: every NaN becomes the one NaN, and the magnitude's bits of negative numbers are
flipped. Where NaN is ignored, that NaN has the sign bit, and so the lowest key of all. There is no float arithmetic, so
no mode of a processor and no compiler optimization changes a bit.

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
    """The keys of an array's elements."""
    bits = array.view(_signed(xp, dtype))
    if dtype.kind == "bool":  # any byte but 0 is True
        return (bits != 0).view(bits.dtype)
    if dtype.kind == "uint":
        return bits ^ -(1 << dtype.bits - 1)
    if dtype.kind == "float":
        is_nan = (bits & _magnitude(dtype)) > dtype.infinity_bits
        lowest = dtype.nan_bits - (1 << dtype.bits - 1)  # the quiet NaN with the sign bit, as a signed integer
        return _flipped(xp.where(is_nan, lowest if nan == "ignore" else dtype.nan_bits, bits), dtype)
    return bits


def values_of(xp: Any, keys: Any, dtype: DType, nan: str = "propagate") -> Any:
    """The elements whose keys these are; a NaN is the one quiet NaN."""
    if dtype.kind == "bool":
        return keys != 0
    if dtype.kind == "uint":
        keys = keys ^ -(1 << dtype.bits - 1)
    elif dtype.kind == "float":
        keys = _flipped(keys, dtype)
        if nan == "ignore":  # the NaN has the sign bit there
            keys = xp.where((keys & _magnitude(dtype)) > dtype.infinity_bits, dtype.nan_bits, keys)
    return keys.view(getattr(xp, dtype.name))


def identity_bits(dtype: DType, nan: str) -> int:
    """The bits of the value that changes no maximum: the lowest, or NaN where that is ignored."""
    return dtype.nan_bits if dtype.kind == "float" and nan == "ignore" else dtype.lowest_bits


def filled(xp: Any, shape: Any, bits: int, dtype: DType, **where: Any) -> Any:
    """An array of one value, by its bits; `where` says on which device, in the library's own words."""
    signed = bits - (1 << dtype.bits) if bits >> dtype.bits - 1 else bits
    return xp.full(shape, signed, dtype=_signed(xp, dtype), **where).view(getattr(xp, dtype.name))


def _flipped(bits: Any, dtype: DType) -> Any:
    """Bits as keys, and keys as bits: the magnitude's bits flipped where the sign bit is set."""
    return bits ^ (bits >> dtype.bits - 1 & _magnitude(dtype))


def _magnitude(dtype: DType) -> int:
    """All bits but the sign."""
    return (1 << dtype.bits - 1) - 1


def _signed(xp: Any, dtype: DType) -> Any:
    """The signed integer type of a type's width."""
    return getattr(xp, f"int{dtype.bits}")
