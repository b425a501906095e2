"""A case: one operator, shape family, type and size, with the bytes that it touches."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from maxops.dtypes import DType
from maxops.shapes import Shape

OperatorName = Literal["Max", "ReduceMax", "SegmentMax"]
View = Literal["whole", "transposed", "half-rows", "every-second"]

# How the call is written: with an input as a number of Python's, axes in a list, the number of segments as NumPy's
# integer; as an operator of a standard; or on torch's tensors.
Spelling = Literal["plain", "python-scalar", "list-axes", "numpy-integer", "operator", "torch-tensors"]

OPERATORS: tuple[OperatorName, ...] = ("Max", "ReduceMax", "SegmentMax")


@dataclass(frozen=True)
class Operand:
    """An input of `shape`: the whole of an array in C order, or a view of a larger one.

    >>> Operand((3, 4), "half-rows").base_shape
    (3, 8)
    """

    shape: Shape
    view: View = "whole"

    @property
    def base_shape(self) -> Shape:
        """The shape of the array in C order that the input is a view of."""
        if self.view == "transposed":
            return self.shape[::-1]
        return self.shape if self.view == "whole" else (*self.shape[:-1], 2 * self.shape[-1])


@dataclass(frozen=True)
class Case:
    """A call to time. `size` is nominal: the elements of the output of Max, and of the data otherwise.

    `axes` belong to ReduceMax, and the `lengths` of segments, `id_type` and `check_ids` to SegmentMax; `out` says
    whether the call is given an output, and `spelling` how it is written.
    """

    operator: OperatorName
    family: str
    dtype: DType
    size: int
    operands: tuple[Operand, ...]
    shape: Shape
    axes: tuple[int, ...] = ()
    lengths: str = ""
    id_type: str = "int64"
    check_ids: bool = True
    out: bool = False
    spelling: Spelling = "plain"

    @property
    def id(self) -> str:
        """A name that stays, such as ``Max/2-inputs,out/float32/1e5``."""
        return f"{self.operator}/{self.family}/{self.dtype}/{label(self.size)}"

    @property
    def bytes_read(self) -> int:
        """Bytes of all inputs, each element once; ids count as read."""
        ids = self.operands[0].shape[0] * int(self.id_type[3:]) // 8 if self.operator == "SegmentMax" else 0
        return sum(prod(operand.shape) for operand in self.operands) * self.dtype.bits // 8 + ids

    @property
    def bytes_written(self) -> int:
        """Bytes of the output."""
        return prod(self.shape) * self.dtype.bits // 8

    @property
    def bytes_touched(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written


def label(size: int) -> str:
    """A size in few letters.

    >>> label(1), label(30_000_000), label(9_633_792)
    ('1', '3e7', '9633792')
    """
    digits = str(size).rstrip("0")
    return f"{digits}e{len(str(size)) - 1}" if len(digits) == 1 and size > 1 else str(size)
