"""Types of arguments and results, for annotations and for type checkers such as mypy and pyright.

>>> from maxops.typing import Ties
>>> ties: Ties = "first"

maxops does not check these types at run time. The overloads in `maxops.ops` define the result for each call.
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
"""The rule for ids outside 0..num_segments-1: raise an error, or drop their rows."""

NanRule: TypeAlias = Literal["propagate", "ignore"]
"""The rule for NaN: propagate or ignore it. If NaN is ignored, a maximum is NaN only if all elements are NaN."""

Ties: TypeAlias = Literal["first", "even"]
"""The rule for the gradient if several elements equal the maximum: give it to the first, or split it evenly."""

Flag: TypeAlias = bool | Literal[0, 1]
"""True or False, or 1 or 0 as in ONNX."""

Count: TypeAlias = SupportsIndex
"""A number of segments: a Python or NumPy integer, or an integer array of rank 0."""

Axes: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""One or several axes: an integer, or a sequence or array of integers."""

Dims: TypeAlias = str | Collection[Hashable] | EllipsisType
"""The name of a dimension of an xarray array, several names, or ``...`` for all dimensions."""

# ------------------------------------------------------------------------------------------------------- numbers

PythonScalar: TypeAlias = bool | int | float | Fraction
"""A Python number, which takes the dtype of the arrays that it is combined with."""

Real: TypeAlias = "np.generic[float | Fraction]"
"""NumPy scalars that are real numbers, not complex numbers, text or times. Type checkers do not know bfloat16."""

Scalar: TypeAlias = "SupportsFloat | Real"
"""A real number: a Python scalar, a NumPy scalar, or an array of rank 0."""

RealT = TypeVar("RealT", bound=Real)
"""The scalar type of the NumPy arrays of a call and of its result."""

# -------------------------------------------------------------------------------------------------------- arrays


class SupportsArray(Protocol):
    """A non-NumPy array: a PyTorch or JAX array, pandas, Polars or Arrow data, or any object with ``__array__``.

    NumPy arrays do not match this protocol, because their ``__array__`` does not accept `dtype` as a keyword argument.
    """

    def __array__(self, *, dtype: Any = None) -> np.ndarray[Any, Any]:
        """Return the elements as a NumPy array."""


class Column(SupportsArray, Protocol):
    """A column or table of pandas, Polars or Arrow. Calls with such arguments return NumPy arrays."""

    def to_numpy(self) -> Any:
        """Return the elements as a NumPy array."""


class _Numeric(SupportsArray, Protocol):
    """A PyTorch or JAX array. Columns and tables do not match, because they have no attribute `real`."""

    @property
    def real(self) -> Any: ...


class _Namespaced(SupportsArray, Protocol):
    """An array of a library that implements the array API standard."""

    def __array_namespace__(self) -> Any: ...


class _Chunked(Protocol):
    """A Dask array."""

    @property
    def numblocks(self) -> Any: ...


class _Labelled(Protocol):
    """An xarray DataArray or Variable. Datasets are excluded, because their `dims` are not a tuple."""

    @property
    def dims(self) -> tuple[Hashable, ...]: ...


ArrayT = TypeVar("ArrayT", bound=_Numeric | _Namespaced | _Chunked | _Labelled)
"""A PyTorch, JAX, Dask or xarray array, or an array of another library that implements the array API standard.

A call returns arrays of the same kind.
"""

AnyArray: TypeAlias = Any
"""An array of any kind that an engine accepts."""

Ids: TypeAlias = "NDArray[np.generic[int]] | Column | list[int] | tuple[int, ...] | range"
"""Segment ids or offsets: integers, in an array, a column, a list, a tuple or a range."""

Indices: TypeAlias = NDArray[np.int64]
"""The result of `return_indices`: the index of the first element that equals each maximum, or -1."""

# -------------------------------------------------------------------------------------- options of several overloads


class _Options(TypedDict, total=False):
    initial: Scalar | None
    ties: Ties
    nan: NanRule


class ReduceOptions(_Options, total=False):
    """The options of `maxops.reduce_max` that do not change the type of its result."""

    axis: Axes | None


class _Segments(_Options, total=False):
    fill_mode: FillMode | None
    fill_value: Scalar | None
    check_ids: Flag
    sorted: Flag
    out_of_range: OutOfRange | None


class SegmentOptions(_Segments, total=False):
    """The options of `maxops.segment_max` that do not change the type of its result."""

    axis: SupportsIndex


class Attributes(_Segments, total=False):
    """The attributes of all operators (`maxops.operator`). Each operator accepts only those of its specification."""

    axes: Axes | None
    axis: Axes | None
    consumed_inputs: Sequence[int]
    dim: Dims | None
    keepdims: Flag
    noop_with_empty_axes: Flag
    offsets: Any
    reduction: Literal["max"]
