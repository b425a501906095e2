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
class Segments:
    """The distribution and the type of the ids, whether the call checks them, and the number of segments."""

    lengths: str
    id_type: str
    check_ids: bool
    count: int


@dataclass(frozen=True)
class Case:
    """A call to time. `size` is nominal: the elements of the output of Max, and of the data otherwise.

    `axes` and `segments` belong to ReduceMax and SegmentMax; `out` says whether the call is given an output,
    and `spelling` how it is written.
    """

    operator: OperatorName
    family: str
    dtype: DType
    size: int
    operands: tuple[Operand, ...]
    shape: Shape
    axes: tuple[int, ...] = ()
    segments: Segments | None = None
    out: bool = False
    spelling: Spelling = "plain"

    @property
    def id(self) -> str:
        """A name that stays, such as ``Max/2-inputs,out/float32/1e5``."""
        return f"{self.operator}/{self.family}/{self.dtype}/{label(self.size)}"

    @property
    def bytes_of_ids(self) -> int:
        """Bytes of the segment ids, if there are any."""
        return self.operands[0].shape[0] * int(self.segments.id_type[3:]) // 8 if self.segments else 0

    @property
    def bytes_read(self) -> int:
        """Bytes of all inputs, each element once; ids count as read."""
        return sum(prod(operand.shape) for operand in self.operands) * self.dtype.bits // 8 + self.bytes_of_ids

    @property
    def bytes_written(self) -> int:
        """Bytes of the output."""
        return prod(self.shape) * self.dtype.bits // 8

    @property
    def bytes_touched(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def largest_array(self) -> int:
        """Bytes of the largest array: an input, the ids or the output."""
        largest = max(prod(shape) for shape in (*(operand.shape for operand in self.operands), self.shape))
        return max(largest * self.dtype.bits // 8, self.bytes_of_ids)


def label(size: int) -> str:
    """A size in few letters.

    >>> label(1), label(30_000_000), label(9_633_792)
    ('1', '3e7', '9633792')
    """
    digits = str(size).rstrip("0")
    return f"{digits}e{len(str(size)) - 1}" if len(digits) == 1 and size > 1 else str(size)
