"""The types of the functions' arguments and results: for annotations of your own, and for mypy and pyright.

>>> from maxops.typing import Ties
>>> ties: Ties = "first"

No call uses these types at run time. The overloads in `maxops.ops` say which arguments give which result.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from fractions import Fraction
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsFloat, SupportsIndex, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AnyArray",
    "ArrayT",
    "Attributes",
    "Axes",
    "Column",
    "Count",
    "Dims",
    "FillMode",
    "Flag",
    "Ids",
    "Indices",
    "NanRule",
    "OutOfRange",
    "PythonScalar",
    "Real",
    "RealT",
    "ReduceOptions",
    "Scalar",
    "SegmentOptions",
    "SupportsArray",
    "Ties",
]

# ------------------------------------------------------------------------------------------------------- options

FillMode: TypeAlias = Literal["ZERO", "LOWEST", "zero", "lowest"]
"""The value of empty segments: zero, or the lowest finite value."""

OutOfRange: TypeAlias = Literal["error", "drop"]
"""The treatment of an id outside 0..num_segments-1: an error, or a dropped row."""

NanRule: TypeAlias = Literal["propagate", "ignore"]
"""The rule for NaN: NaN propagates, or NaN is ignored, and a maximum is NaN only if all its elements are NaN."""

Ties: TypeAlias = Literal["first", "even"]
"""The gradient of tied elements: all of it to the first, or an equal part to each."""

Flag: TypeAlias = bool | Literal[0, 1]
"""True or False, also as ONNX writes them."""

Count: TypeAlias = SupportsIndex
"""How many: an integer of Python or NumPy, or an array of one."""

Axes: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""An axis, or several: an integer, or a sequence or array of integers."""

Dims: TypeAlias = str | Collection[Hashable] | EllipsisType
"""The name of an axis of xarray's arrays, or several, or ``...`` for all."""

# ------------------------------------------------------------------------------------------------------- numbers

PythonScalar: TypeAlias = bool | int | float | Fraction
"""A number without a type of its own, which takes that of the arrays beside it."""

Real: TypeAlias = "np.generic[float | Fraction]"
"""NumPy's scalars that are real numbers: no complex numbers, text or times. bfloat16 has no type."""

Scalar: TypeAlias = "SupportsFloat | Real"
"""One real number: of Python, of NumPy, or in an array of rank 0."""

RealT = TypeVar("RealT", bound=Real)
"""The element type of the NumPy arrays of a call, and of its result."""

# -------------------------------------------------------------------------------------------------------- arrays


class SupportsArray(Protocol):
    """Any array but NumPy's own: of PyTorch, JAX, pandas, Polars, Arrow, or a class of yours with ``__array__``.

    NumPy's own arrays do not accept this `dtype` by name, so type checkers can tell them apart.
    """

    def __array__(self, *, dtype: Any = None) -> np.ndarray[Any, Any]:
        """Return the elements, in memory."""


class Column(SupportsArray, Protocol):
    """A column or table of pandas, Polars or Arrow, whose results are NumPy's arrays."""

    def to_numpy(self) -> Any:
        """Return the elements, in memory."""


class _Numeric(SupportsArray, Protocol):
    """An array of PyTorch or JAX: these have `real`, and columns and tables do not."""

    @property
    def real(self) -> Any: ...


class _Namespaced(SupportsArray, Protocol):
    """An array of any library of the array API standard."""

    def __array_namespace__(self) -> Any: ...


class _Chunked(Protocol):
    """An array of Dask."""

    @property
    def numblocks(self) -> Any: ...


class _Labelled(Protocol):
    """A DataArray or a Variable of xarray; the `dims` of a Dataset, which is no array, are no tuple."""

    @property
    def dims(self) -> tuple[Hashable, ...]: ...


ArrayT = TypeVar("ArrayT", bound=_Numeric | _Namespaced | _Chunked | _Labelled)
"""An array of PyTorch, JAX, Dask, xarray or the array API standard: a call returns the kind of its arguments."""

AnyArray: TypeAlias = Any
"""An array of any kind that an engine accepts."""

Ids: TypeAlias = "NDArray[np.generic[int]] | Column | list[int] | tuple[int, ...] | range"
"""Segment ids or offsets: integers, in an array, a column, a list, a tuple or a range."""

Indices: TypeAlias = NDArray[np.int64]
"""The indices that `return_indices` adds: of each first maximum, or -1."""

# -------------------------------------------------------------------------------------- options of several overloads


class _Options(TypedDict, total=False):
    initial: Scalar | None
    ties: Ties
    nan: NanRule


class ReduceOptions(_Options, total=False):
    """The options of `maxops.reduce_max` that do not change the kind of its result."""

    axis: Axes | None


class _Segments(_Options, total=False):
    fill_mode: FillMode | None
    fill_value: Scalar | None
    check_ids: Flag
    sorted: Flag
    out_of_range: OutOfRange | None


class SegmentOptions(_Segments, total=False):
    """The options of `maxops.segment_max` that do not change the kind of its result."""

    axis: SupportsIndex


class Attributes(_Segments, total=False):
    """The attributes of all operators (`maxops.operator`); the specification of each operator lists its own."""

    axes: Axes | None
    axis: Axes | None
    consumed_inputs: Sequence[int]
    dim: Dims | None
    keepdims: Flag
    noop_with_empty_axes: Flag
    offsets: Any
    reduction: Literal["max"]
