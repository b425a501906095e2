"""The one order on a GPU: bits <-> integer keys inside kernels, and the same facts for those who launch them.

A key is an integer whose ordinary order is that of semantics.md, as in native/order.h. Kernels load bits as signed
integers and never touch a floating-point register, so no mode of the device can change a result.

Types of 8 and 16 bits have keys of 32, since that is what a GPU's integer units work on. A float of 16 bits goes to
the upper half, where it looks like a float of 32 bits with a longer tail of zeros and shares its arithmetic.
"""

# ruff: noqa: N803, RET505 - constants of a kernel are in capitals, and its branches on them are told apart by else
# Kernels are in Triton's language, which has no types of Python's.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

from maxops import dtypes
from maxops.dtypes import DType

# The ways from bits to keys, by the number that kernels are compiled for.
HALF, BRAIN, SINGLE, DOUBLE, SIGNED, UNSIGNED, BOOL, KEY = range(8)
_FORMATS = {
    dtypes.FLOAT16: HALF,
    dtypes.BFLOAT16: BRAIN,
    dtypes.FLOAT32: SINGLE,
    dtypes.FLOAT64: DOUBLE,
    dtypes.BOOL: BOOL,
}
_STORAGE = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}


@triton.jit
def keys(bits, FORMAT: tl.constexpr):
    """The keys of bits; every NaN gets the one highest, so that equal keys are equal values."""
    if FORMAT == 0:  # names of constants do not reach into kernels in every Triton: these are the numbers above
        return _float_keys(bits.to(tl.int32) << 16, 0x7C000000, 0x7FFFFFFF, 31)
    elif FORMAT == 1:
        return _float_keys(bits.to(tl.int32) << 16, 0x7F800000, 0x7FFFFFFF, 31)
    elif FORMAT == 2:
        return _float_keys(bits, 0x7F800000, 0x7FFFFFFF, 31)
    elif FORMAT == 3:
        return _float_keys(bits, 0x7FF0000000000000, 0x7FFFFFFFFFFFFFFF, 63)
    elif FORMAT == 5:
        if bits.dtype == tl.int64:
            return bits ^ -0x8000000000000000
        elif bits.dtype == tl.int32:
            return bits ^ -0x80000000
        elif bits.dtype == tl.int16:
            return bits.to(tl.int32) & 0xFFFF
        else:
            return bits.to(tl.int32) & 0xFF
    elif FORMAT == 6:
        return (bits != 0).to(tl.int32)
    elif bits.dtype == tl.int64:
        return bits
    else:
        return bits.to(tl.int32)


@triton.jit
def _float_keys(word, INFINITY: tl.constexpr, TOP: tl.constexpr, SIGN: tl.constexpr):
    # Negative numbers turned round: then -Inf is TOP - INFINITY above the lowest integer, and below it are the
    # negative NaNs, which the subtraction wraps to the top.
    turned = word ^ ((word >> SIGN) & TOP)
    return tl.minimum(turned - (TOP - INFINITY), 2 * INFINITY - TOP + 1)


@triton.jit
def bits_of(key, FORMAT: tl.constexpr, storage: tl.constexpr):
    """The inverse of `keys`; a NaN comes back as the one quiet NaN."""
    if FORMAT == 0:
        return (_float_bits(key, 0x7C000000, 0x7FFFFFFF, 31, 0x7E000000) >> 16).to(storage)
    elif FORMAT == 1:
        return (_float_bits(key, 0x7F800000, 0x7FFFFFFF, 31, 0x7FC00000) >> 16).to(storage)
    elif FORMAT == 2:
        return _float_bits(key, 0x7F800000, 0x7FFFFFFF, 31, 0x7FC00000)
    elif FORMAT == 3:
        return _float_bits(key, 0x7FF0000000000000, 0x7FFFFFFFFFFFFFFF, 63, 0x7FF8000000000000)
    elif FORMAT == 5:
        if storage == tl.int64:
            return key ^ -0x8000000000000000
        elif storage == tl.int32:
            return key ^ -0x80000000
        else:
            return key.to(storage)
    else:
        return key.to(storage)


@triton.jit
def _float_bits(key, INFINITY: tl.constexpr, TOP: tl.constexpr, SIGN: tl.constexpr, NAN: tl.constexpr):
    turned = key + (TOP - INFINITY)
    return tl.where(key > 2 * INFINITY - TOP, NAN, turned ^ ((turned >> SIGN) & TOP))


class Constant(NamedTuple):
    """One element: its key, and its bits as the signed integer that is stored."""

    key: int
    stored: int


@dataclass(frozen=True)
class Order:
    """What a launch needs to know of a type: how its bits are stored and what its keys are."""

    dtype: DType

    @property
    def format(self) -> int:
        """The number of its way from bits to keys."""
        return _FORMATS.get(self.dtype, UNSIGNED if self.dtype.kind == "uint" else SIGNED)

    @property
    def storage(self) -> torch.dtype:
        """The signed integer type that its elements are looked at as."""
        return _STORAGE[self.dtype.bits]

    @property
    def key(self) -> torch.dtype:
        """The type of its keys."""
        return torch.int64 if self.dtype.bits == 64 else torch.int32

    @property
    def key_bits(self) -> int:
        """The width of its keys."""
        return max(self.dtype.bits, 32)

    def key_of(self, word: int) -> int:
        """The key of an element by its bits as an unsigned integer: what the kernels compute, for constants."""
        bits, kind = self.dtype.bits, self.dtype.kind
        signed = word - (1 << bits) if word >> bits - 1 else word
        if kind == "bool":
            return int(word != 0)
        if kind == "int":
            return signed
        if kind == "uint":
            return word if bits < 32 else word - (1 << bits - 1)
        wide = self.key_bits
        shift, top = wide - bits, (1 << wide - 1) - 1
        infinity = self.dtype.infinity_bits << shift
        if word & (1 << bits - 1) - 1 > self.dtype.infinity_bits:
            return 2 * infinity - top + 1
        number = signed << shift
        return (number ^ top if number < 0 else number) - (top - infinity)

    def constant(self, word: int) -> Constant:
        """An element by its bits as an unsigned integer."""
        return Constant(self.key_of(word), word - (1 << self.dtype.bits) if word >> self.dtype.bits - 1 else word)

    def constant_of(self, array: np.ndarray) -> Constant:
        """The element of an array of rank 0."""
        native = array.astype(array.dtype.newbyteorder("=")).reshape(1)
        return self.constant(int(native.view(self.dtype.word)[0]))

    @property
    def lowest(self) -> Constant:
        """The lowest value: the maximum of nothing, and what a lane out of range has."""
        return self.constant(self.dtype.lowest_bits)
