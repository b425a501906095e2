"""A call against a row of the spec table: a plan that engines run without looking back, or a clause error.

Every check of every call is here. A plan holds plain NumPy arrays of one type whose shapes go together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isnan, prod
from operator import index
from typing import Any, Literal

import numpy as np

from maxops import dtypes, shapes
from maxops.dtypes import DType
from maxops.errors import (
    AttributeValueError,
    AxesError,
    DTypeError,
    EmptyReductionError,
    InputCountError,
    NumSegmentsError,
    OutputError,
    OutputTooLargeError,
    SegmentIdsError,
    ShapeError,
)
from maxops.shapes import Shape
from maxops.spec import Spec

Array = np.ndarray[Any, np.dtype[Any]]
FillMode = Literal["ZERO", "LOWEST"]

MOST_INPUTS = 2**31 - 1
# An output past the machine's memory is refused before any work: systems promise such memory freely, and
# end the process when it is touched.
LARGEST_OUTPUT = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class MaxPlan:
    """Max of inputs of one type that broadcast to `shape`; `out` is None for a new output."""

    spec: Spec
    dtype: DType
    shape: Shape
    inputs: tuple[Array, ...]
    out: Array | None


@dataclass(frozen=True)
class ReducePlan:
    """ReduceMax over `axes`, each in 0..r-1; or, if `identity`, the input itself."""

    spec: Spec
    dtype: DType
    shape: Shape
    data: Array
    axes: tuple[int, ...]
    keepdims: bool
    identity: bool
    out: Array | None


@dataclass(frozen=True)
class SegmentPlan:
    """SegmentMax of the rows of `data` by ids that are sorted if `check_ids`."""

    spec: Spec
    dtype: DType
    shape: Shape
    data: Array
    segment_ids: Array
    num_segments: int
    fill_mode: FillMode
    check_ids: bool
    out: Array | None


def plan_max(spec: Spec, inputs: Sequence[object], out: object = None) -> MaxPlan:
    """Plan a call of Max."""
    count_clause = "L" if spec.explicit_types else "inputs"
    shape_clause = "C1" if spec.explicit_types else "shape"
    if not 1 <= len(inputs) <= MOST_INPUTS:
        raise InputCountError(
            f"{spec.name} got {len(inputs)} inputs; it takes 1 to {MOST_INPUTS}", spec.clause(count_clause)
        )
    names = [f"input {number}" for number in range(len(inputs))]
    arrays = [None if _is_python_scalar(value) else _array(spec, names[i], value) for i, value in enumerate(inputs)]
    first = next((i for i, array in enumerate(arrays) if array is not None), None)
    if first is None:
        raise DTypeError(
            f"{spec.name} got only Python scalars, which have no type of their own; give one input as a NumPy array "
            f"or scalar, such as numpy.float32(...)",
            spec.clause("T"),
        )
    first_array = arrays[first]
    assert first_array is not None
    dtype = _dtype(spec, names[first], first_array)
    whole: list[Array] = []
    for i, (name, array) in enumerate(zip(names, arrays, strict=True)):
        if array is None:
            whole.append(_scalar_as(spec, name, inputs[i], dtype, beside=names[first]))
            continue
        if (found := _dtype(spec, name, array)) is not dtype:
            raise DTypeError(
                f"{spec.name} {name} is {found}, but {names[first]} is {dtype}; all inputs share one type",
                spec.clause("T"),
            )
        whole.append(array)

    if spec.broadcast == "none" and (odd := [i for i, array in enumerate(whole) if array.shape != whole[0].shape]):
        raise ShapeError(
            f"{spec.name} input {odd[0]} has shape {whole[odd[0]].shape}, but input 0 has shape {whole[0].shape}; "
            f"version {spec.version} does not broadcast: all shapes are the same",
            spec.clause(shape_clause),
        )
    try:
        shape = shapes.broadcast([array.shape for array in whole], zero_with_one=spec.broadcast != "strict")
    except shapes.MismatchError as mismatch:
        zero_with_one = {mismatch.size, mismatch.other} == {0, 1}
        rule = "an axis of size 0 does not go with one of size 1" if zero_with_one else "sizes are equal, or one is 1"
        raise ShapeError(
            f"{spec.name} input {mismatch.number} has shape {whole[mismatch.number].shape}, which does not broadcast "
            f"with those before it: axis {mismatch.axis} has size {mismatch.size} against {mismatch.other}; {rule}",
            spec.clause("zero-size" if zero_with_one else shape_clause),
        ) from None
    return MaxPlan(spec, dtype, shape, tuple(whole), _output(spec, out, dtype, shape, shape_clause))


def plan_reduce_max(
    spec: Spec,
    data: object,
    axes: object = None,
    keepdims: object = True,
    noop_with_empty_axes: object = False,
    out: object = None,
) -> ReducePlan:
    """Plan a call of ReduceMax."""
    array = _array(spec, "data", data)
    dtype = _dtype(spec, "data", array)
    keeps = flag(spec, "keepdims", keepdims)
    noop = flag(spec, "noop_with_empty_axes", noop_with_empty_axes)
    listed = _axes(spec, axes, array.ndim)
    identity = noop and not listed
    taken = () if identity else listed or tuple(range(array.ndim))
    shape = array.shape if identity else shapes.reduced(array.shape, taken, keepdims=keeps)
    if dtype is dtypes.REAL and not identity and array.size == 0 and prod(shape) > 0:
        raise EmptyReductionError(
            f"{spec.name} data has shape {array.shape}: the maximum of no rationals does not exist, since they have "
            "no lowest value",
            spec.clause("empty"),
        )
    return ReducePlan(spec, dtype, shape, array, taken, keeps, identity, _output(spec, out, dtype, shape, "value"))


def plan_segment_max(
    spec: Spec,
    data: object,
    segment_ids: object,
    num_segments: object = None,
    fill_mode: object = None,
    out: object = None,
    check_ids: object = True,
) -> SegmentPlan:
    """Plan a call of SegmentMax."""
    array = _array(spec, "data", data)
    dtype = _dtype(spec, "data", array)
    mode = _fill_mode(spec, fill_mode)
    check = flag(spec, "check_ids", check_ids)
    if array.ndim == 0:
        raise ShapeError(f"{spec.name} data has rank 0; it needs rank 1 or more", spec.clause("data"))
    ids = _array(spec, "segment_ids", segment_ids)
    _index_dtype(spec, "segment_ids", ids)
    if ids.ndim != 1 or len(ids) != len(array):
        raise SegmentIdsError(
            f"{spec.name} segment_ids has shape {ids.shape}; it is 1-D, and as long as the first axis of data, "
            f"which has shape {array.shape}: ({len(array)},)",
            spec.clause("ids.shape"),
        )
    if check:
        _check_ids(spec, ids)
    count = _num_segments(spec, num_segments, ids)
    if dtype is dtypes.REAL and mode == "LOWEST" and len({*ids[ids < count].tolist()}) < count:
        raise EmptyReductionError(
            f"{spec.name} fill_mode is LOWEST and a segment is empty, but rationals have no lowest value; use ZERO",
            spec.clause("fill_mode"),
        )
    shape = (count, *array.shape[1:])
    whole_out = _output(spec, out, dtype, shape, "shape")
    return SegmentPlan(spec, dtype, shape, array, ids, count, mode, check, whole_out)


# ---------------------------------------------------------------------------------------------------- types


def _is_python_scalar(value: object) -> bool:
    return isinstance(value, (bool, int, float, Fraction)) and not isinstance(value, np.generic)


def _array(spec: Spec, name: str, value: object) -> Array:
    """The value as a plain array, without conversion: an ndarray, a memory map or a NumPy scalar."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.memmap):
        return value.view(np.ndarray)
    if isinstance(value, np.generic):
        return np.asarray(value)
    what = type(value).__name__
    if isinstance(value, np.ndarray):
        hint = f"maxops does not know what {what} adds to an array; numpy.asarray(...) takes the plain array out of it"
    elif _is_python_scalar(value):
        hint = "give a NumPy array or scalar, such as numpy.float32(...)"
    else:
        hint = "give a NumPy array; maxops converts nothing, so that no type is guessed"
    raise DTypeError(f"{spec.name} {name} is of type {what}, not a NumPy array; {hint}", spec.clause("T"))


def _dtype(spec: Spec, name: str, array: Array) -> DType:
    dtype = dtypes.of(array.dtype)
    if dtype not in spec.dtypes:
        listed = ", ".join(map(str, spec.dtypes))
        raise DTypeError(
            f"{spec.name} {name} is {dtype or array.dtype}; the types are {listed}"
            + (" (object arrays of Fraction and int)" if dtypes.REAL in spec.dtypes else ""),
            spec.clause("T"),
        )
    assert dtype is not None
    if dtype is dtypes.REAL:
        _check_rationals(spec, name, array)
    return dtype


def _check_rationals(spec: Spec, name: str, array: Array) -> None:
    for flat, value in enumerate(array.reshape(-1)):  # not numpy.ndenumerate, which ends at rank 32
        if type(value) not in (Fraction, int):
            position = tuple(map(int, np.unravel_index(flat, array.shape)))
            where = f" at position {position}" if position else ""
            raise DTypeError(
                f"{spec.name} {name} holds {value!r} of type {type(value).__name__}{where}; an object array holds "
                "exact rationals only: fractions.Fraction and int",
                spec.clause("T"),
            )


def _scalar_as(spec: Spec, name: str, value: Any, dtype: DType, beside: str) -> Array:
    """A Python scalar in the type of the arrays beside it, if that type holds exactly this value."""
    if spec.explicit_types:
        raise DTypeError(
            f"{spec.name} {name} is a Python {type(value).__name__} without a type of its own; "
            f"{spec.standard} wants explicit types: give a NumPy array or scalar",
            spec.clause("types"),
        )
    if _holds(dtype, value):
        array = np.empty((), dtype.numpy)
        array[()] = float(value) if dtype.kind == "float" else value  # bfloat16 takes no long integers
        return array
    raise DTypeError(
        f"{spec.name} {name} is the Python {type(value).__name__} {value!r}, which {dtype}, the type of {beside}, "
        "does not hold exactly; no input is converted",
        spec.clause("T"),
    )


def _holds(dtype: DType, value: Any) -> bool:
    if dtype is dtypes.REAL:
        return type(value) in (Fraction, int)
    if isinstance(value, bool) or dtype is dtypes.BOOL:
        return isinstance(value, bool) and dtype is dtypes.BOOL
    if isinstance(value, Fraction):
        return False
    if dtype.kind in ("int", "uint"):
        info = np.iinfo(dtype.numpy)
        return isinstance(value, int) and info.min <= value <= info.max
    if isinstance(value, float) and isnan(value):
        return True
    try:
        with np.errstate(all="ignore"):
            return bool(float(dtype.numpy.type(float(value))) == value)
    except OverflowError:  # an integer past every float
        return False


def _index_dtype(spec: Spec, name: str, array: Array) -> None:
    if dtypes.of(array.dtype) not in (dtypes.INT32, dtypes.INT64):
        raise DTypeError(f"{spec.name} {name} is {array.dtype}; it is int32 or int64", spec.clause("T_IDX"))


# ----------------------------------------------------------------------------------------------- attributes


def flag(spec: Spec, name: str, value: object) -> bool:
    """The value of an attribute that is 0 or 1."""
    if isinstance(value, (bool, np.bool)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    clause = spec.clause(name) if name in dict(spec.rules) else ""
    raise AttributeValueError(f"{spec.name} {name} is {value!r}; it is 0 or 1 (False or True)", clause)


def _fill_mode(spec: Spec, value: object) -> FillMode:
    clause = spec.clause("fill_mode")
    if value is None:
        raise AttributeValueError(f"{spec.name} fill_mode is missing; it is required: 'ZERO' or 'LOWEST'", clause)
    if isinstance(value, str):
        if value.upper() == "ZERO":
            return "ZERO"
        if value.upper() == "LOWEST":
            return "LOWEST"
    raise AttributeValueError(f"{spec.name} fill_mode is {value!r}; it is 'ZERO' or 'LOWEST'", clause)


def _axes(spec: Spec, axes: object, rank: int) -> tuple[int, ...]:
    """The axes in 0..r-1; empty if none are given."""
    if axes is None:
        return ()
    if isinstance(axes, np.ndarray):
        if dtypes.of(axes.dtype) is not dtypes.INT64 or axes.ndim != 1:
            raise AxesError(
                f"{spec.name} axes is an array of {axes.dtype} and shape {axes.shape}; it is int64 and 1-D",
                spec.clause("axes"),
            )
        values: Iterable[object] = axes.tolist()
    elif isinstance(axes, (list, tuple)):
        values = axes
    else:
        values = (axes,)
    result: list[int] = []
    for value in values:
        if isinstance(value, (bool, np.bool)) or not isinstance(value, (int, np.integer)):
            raise AxesError(
                f"{spec.name} axes holds {value!r} of type {type(value).__name__}; axes are integers",
                spec.clause("axes"),
            )
        axis = index(value)
        lowest = -rank if spec.negative_axes else 0
        if not lowest <= axis < rank:
            wanted = f"{lowest} to {rank - 1}" if rank else "none, since a scalar has no axes"
            raise AxesError(
                f"{spec.name} axes holds {axis}, but data has rank {rank}; axes are {wanted}", spec.clause("axes.range")
            )
        if axis % rank in result:
            raise AxesError(f"{spec.name} axes names axis {axis % rank} twice", spec.clause("axes"))
        result.append(axis % rank)
    return tuple(result)


# ------------------------------------------------------------------------------------------------- segments


def _check_ids(spec: Spec, ids: Array) -> None:
    block = 1 << 20  # bounds the memory that comparing takes
    for start in range(0, len(ids), block):
        part = ids[start : start + block]
        if (negative := np.flatnonzero(part < 0)).size:
            position = start + int(negative[0])
            raise SegmentIdsError(
                f"{spec.name} segment_ids must not be negative: position {position} holds {ids[position]}",
                spec.clause("ids"),
            )
        part = ids[start : start + block + 1]
        if (down := np.flatnonzero(part[1:] < part[:-1])).size:
            position = start + int(down[0]) + 1
            raise SegmentIdsError(
                f"{spec.name} segment_ids must not decrease: position {position} holds {ids[position]} "
                f"after {ids[position - 1]}",
                spec.clause("ids"),
            )


def _num_segments(spec: Spec, value: Any, ids: Array) -> int:
    clause = spec.clause("num_segments")
    if value is None:
        return max(int(ids[-1]) + 1, 0) if len(ids) else 0
    if isinstance(value, (np.ndarray, np.generic)):
        array = _array(spec, "num_segments", value)
        _index_dtype(spec, "num_segments", array)
        if array.ndim != 0:
            raise NumSegmentsError(f"{spec.name} num_segments has shape {array.shape}; it is a scalar", clause)
        value = int(array)
    if isinstance(value, bool) or not isinstance(value, int):
        raise NumSegmentsError(
            f"{spec.name} num_segments is {value!r} of type {type(value).__name__}; it is an integer scalar", clause
        )
    if value < 0:
        raise NumSegmentsError(f"{spec.name} num_segments is {value}; it is not negative", clause)
    return value


# --------------------------------------------------------------------------------------------------- output


def _output(spec: Spec, out: object, dtype: DType, shape: Shape, clause: str) -> Array | None:
    """The caller's output as a plain array, or None after a look at whether a new one fits into memory."""
    if out is None:
        size = prod(shape) * (dtype.bits // 8 or np.dtype(object).itemsize)
        if size > LARGEST_OUTPUT:
            raise OutputTooLargeError(
                f"{spec.name} output would have shape {shape} of {dtype}: {size / 2**30:.4g} GiB, but this machine "
                f"has {LARGEST_OUTPUT / 2**30:.4g} GiB of memory",
                spec.clause(clause),
            )
        if max(shape, default=0) > np.iinfo(np.intp).max:
            raise OutputTooLargeError(
                f"{spec.name} output would have shape {shape}; an axis has at most {np.iinfo(np.intp).max} elements",
                spec.clause(clause),
            )
        return None
    if not isinstance(out, np.ndarray) or type(out) not in (np.ndarray, np.memmap):
        raise OutputError(f"{spec.name} out is of type {type(out).__name__}; it is a NumPy array", spec.clause("T"))
    found = dtypes.of(out.dtype)
    if found is not dtype:
        raise OutputError(f"{spec.name} out is {found or out.dtype}, but the inputs are {dtype}", spec.clause("T"))
    if out.shape != shape:
        raise OutputError(
            f"{spec.name} out has shape {out.shape}, but the result has shape {shape}", spec.clause(clause)
        )
    if not out.flags.writeable:
        raise OutputError(f"{spec.name} out is read-only; it needs to be writeable")
    return out
