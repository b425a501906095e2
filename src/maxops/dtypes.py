"""The table of element types. All code that depends on the format of a type reads this table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import ml_dtypes
import numpy as np

Kind = Literal["float", "int", "uint", "bool", "real"]


@dataclass(frozen=True, eq=False)
class DType:
    """An element type: its names, its NumPy dtype and its format.

    ``bits`` is the width, or 0 for `real`. ``exponent_bits`` is 0 except for floats.
    """

    name: str
    onnx: str
    kind: Kind
    bits: int
    numpy: np.dtype
    exponent_bits: int = 0

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], DType], tuple[str]]:
        """Pickle the type by name, because code compares types by identity, as in `dtype is REAL`."""
        return _named, (self.name,)

    @cached_property
    def word(self) -> np.dtype:
        """The unsigned integer dtype of the same width, for access to the bits."""
        return np.dtype(f"u{self.bits // 8}")

    @property
    def mantissa_bits(self) -> int:
        """The number of stored bits of the significand."""
        return self.bits - 1 - self.exponent_bits

    @property
    def infinity_bits(self) -> int:
        """The bits of +Inf."""
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def nan_bits(self) -> int:
        """The bits of NaN in results: the quiet NaN with sign 0 and payload 0."""
        return self.infinity_bits | 1 << self.mantissa_bits - 1

    @property
    def lowest_bits(self) -> int:
        """The bits of the lowest value (-Inf for floats), which is the maximum of an empty set."""
        if self.kind == "float":
            return 1 << self.bits - 1 | self.infinity_bits
        return 1 << self.bits - 1 if self.kind == "int" else 0

    @property
    def lowest_finite_bits(self) -> int:
        """The bits of the lowest finite value. SegmentMax's fill mode LOWEST fills empty segments with this value."""
        return self.lowest_bits - 1 if self.kind == "float" else self.lowest_bits


def _numeric(name: str, onnx: str, kind: Kind, exponent_bits: int = 0) -> DType:
    numpy = np.dtype(getattr(ml_dtypes, name, name))  # ml_dtypes defines the dtypes that NumPy lacks
    return DType(name, onnx, kind, 8 * numpy.itemsize, numpy, exponent_bits)


FLOAT16 = _numeric("float16", "float16", "float", 5)
BFLOAT16 = _numeric("bfloat16", "bfloat16", "float", 8)
FLOAT32 = _numeric("float32", "float", "float", 8)
FLOAT64 = _numeric("float64", "double", "float", 11)
INT8 = _numeric("int8", "int8", "int")
INT16 = _numeric("int16", "int16", "int")
INT32 = _numeric("int32", "int32", "int")
INT64 = _numeric("int64", "int64", "int")
UINT8 = _numeric("uint8", "uint8", "uint")
UINT16 = _numeric("uint16", "uint16", "uint")
UINT32 = _numeric("uint32", "uint32", "uint")
UINT64 = _numeric("uint64", "uint64", "uint")
BOOL = _numeric("bool", "bool", "bool")
# SONNX's real numbers: exact rationals (fractions.Fraction and int) in an object array.
REAL = DType("real", "", "real", 0, np.dtype(object))

ALL = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL, REAL)
BY_NAME = {dtype.name: dtype for dtype in ALL}


def _named(name: str) -> DType:
    return BY_NAME[name]


def short_names(dtypes: Sequence[DType]) -> str:
    """Return the names of types as text, with a range if all four signed or all four unsigned types are present.

    >>> short_names([FLOAT32, INT8, INT16, INT32, INT64, UINT8])
    'float32, int8 to int64, uint8'
    """
    names = [dtype.name for dtype in dtypes]
    for integers in ([INT8, INT16, INT32, INT64], [UINT8, UINT16, UINT32, UINT64]):
        group = [dtype.name for dtype in integers]
        if set(group) <= set(names):
            at = names.index(group[0])
            names = [*names[:at], f"{group[0]} to {group[-1]}", *(name for name in names[at:] if name not in group)]
    return ", ".join(names)


# Keys are scalar types, which do not depend on the byte order. C's long long ("q" and "Q") is also int64 or uint64, but
# may have a scalar type of its own.
_BY_SCALAR = {dtype.numpy.type: dtype for dtype in ALL} | {np.dtype("q").type: INT64, np.dtype("Q").type: UINT64}


def of(numpy: np.dtype) -> DType | None:
    """Return the DType of a NumPy dtype in any byte order, or None if maxops does not support it.

    >>> import numpy as np
    >>> str(of(np.dtype(">f4")))
    'float32'
    """
    return _BY_SCALAR.get(numpy.type)
