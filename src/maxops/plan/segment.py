"""Check calls to SegmentMax, and return their plans."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from maxops import dtypes
from maxops.calls import SegmentCall
from maxops.dtypes import DType
from maxops.errors import (
    AttributeValueError,
    AxesError,
    EmptyReductionError,
    InputCountError,
    NumSegmentsError,
    OffsetsError,
    SegmentIdsError,
    ShapeError,
)
from maxops.plan.faults import OutOfRange, check_offsets, check_segment_ids
from maxops.plan.output import output_of
from maxops.plan.plan import Plan
from maxops.plan.values import (
    AbstractArray,
    Array,
    abstract,
    array_of,
    choice,
    dtype_of,
    flag,
    index_dtype,
    index_of,
    nan_rule,
    scalar_of,
    widened,
    widened_dtype,
)
from maxops.shapes import Shape
from maxops.shown import shown
from maxops.spec import SEGMENT_MAX, Spec

FILL_MODES = SEGMENT_MAX.choices("fill_mode")


def plan_segment_max(call: SegmentCall, *, in_memory: bool = True, values_known: bool = True) -> Plan[SegmentCall]:
    """Check a call to SegmentMax, and return its plan. If `in_memory` is False, the result may be larger than memory.

    If `values_known` is False, the values of ids and offsets are not read, and num_segments is 0 if it depends on them.
    """
    spec = call.row
    array = array_of(spec, "data", call.data)
    dtype = dtype_of(spec, "data", array)
    first = scalar_of(spec, "initial", call.initial, dtype)
    fill_value = scalar_of(spec, "fill_value", call.fill_value, dtype)
    mode = _fill_mode(spec, call.fill_mode, {"fill_value": fill_value, "initial": first})
    check = flag(spec, "check_ids", call.check_ids)
    is_sorted = flag(spec, "sorted", call.sorted)
    outside = _out_of_range(spec, call.out_of_range, is_sorted)
    indices = flag(spec, "return_indices", call.return_indices)
    empty = flag(spec, "return_empty", call.return_empty)
    nan = nan_rule(spec, call.nan)
    if array.ndim == 0:
        raise ShapeError(f"{spec.name} data must have rank 1 or more, got rank 0", spec.clause("data"))
    axis = axis_of(spec, call.axis, array.ndim)
    given = _num_segments(spec, call.num_segments)
    ids, bounds = None, None
    if call.offsets is None:
        ids = _ids(spec, call.segment_ids, array.shape, axis)
        if values_known and check:
            check_segment_ids(spec, ids, sorted=is_sorted, out_of_range=outside, num_segments=given)
        ids = _index(ids, values_known)
        count = given if given is not None else default_num_segments(ids, is_sorted) if values_known else 0
    else:
        if call.segment_ids is not None:
            raise InputCountError(
                f"{spec.name} got both segment_ids and offsets; pass only one of them", spec.clause("inputs")
            )
        if not is_sorted or call.out_of_range is not None:
            raise AttributeValueError(
                f"{spec.name} sorted=False and out_of_range= require segment_ids; omit them with offsets",
                spec.clause("offsets"),
            )
        bounds = _offsets(spec, call.offsets)
        if values_known and check:
            check_offsets(spec, bounds, array.shape[axis])
        bounds = _index(bounds, values_known)
        count = bounds.shape[0] - 1 if given is None else given
    if dtype is dtypes.REAL and mode == "LOWEST" and values_known and _has_empty(ids, bounds, count):
        raise EmptyReductionError(
            f"{spec.name} fill_mode 'LOWEST' cannot fill the empty segments, because rationals have no lowest value; "
            "pass fill_mode='ZERO'",
            spec.clause("fill_mode"),
        )
    shape = shape_along(array.shape, axis, count)
    whole_out = output_of(spec, call.out, dtype, shape, "shape", in_memory=in_memory)
    if first is None:
        fill_value = _fill(dtype, mode, fill_value)
    checked = SegmentCall(
        array,
        ids,
        count,
        mode,
        fill_value,
        whole_out,
        check and not values_known,
        bounds,
        is_sorted,
        outside,
        axis,
        call.dim,
        first,
        indices,
        empty,
        call.ties,
        nan,
        spec,
    )
    return Plan(dtype, shape, checked)


def shape_along(data: Shape, axis: int, count: int) -> Shape:
    """Return the shape of the data with `count` segments along the axis."""
    return (*data[:axis], count, *data[axis + 1 :])


def axis_of(spec: Spec, value: object, rank: int) -> int:
    """Return an axis as a number in 0..r-1."""
    if value.__class__ is int and value == 0:  # the default, and the only axis of OpenVINO's SegmentMax
        return 0
    axis = index_of(value)
    if axis is None:
        raise AxesError(
            f"{spec.name} axis must be an integer, got {shown(value)} of type {type(value).__name__}",
            spec.clause("axis"),
        )
    if not -rank <= axis < rank:
        raise AxesError(
            f"{spec.name} axis must be between {-rank} and {rank - 1} for data of rank {rank}, got {shown(axis)}",
            spec.clause("axis"),
        )
    return axis % rank


def _fill_mode(spec: Spec, value: object, others: dict[str, Array | None]) -> str | None:
    clause = spec.clause("fill_mode")
    given = [name for name, other in others.items() if other is not None]
    if value is not None and given:
        raise AttributeValueError(
            f"{spec.name} got both fill_mode {shown(value)} and {given[0]}; pass only one of them",
            clause,
        )
    if len(given) > 1:
        raise AttributeValueError(
            f"{spec.name} got both fill_value and initial; pass only one of them",
            spec.clause("fill_value"),
        )
    if given:
        return None
    fills = spec.has("fill_value")
    if value is None:
        others_too = ", fill_value= or initial=" if fills else ""
        raise AttributeValueError(
            f"{spec.name} fill_mode is missing; pass fill_mode='ZERO', fill_mode='LOWEST'{others_too}", clause
        )
    for mode in FILL_MODES:
        if isinstance(value, str) and value.upper() == mode:
            return mode
    is_nan = isinstance(value, str) and value.casefold() == "nan"
    own_value = "; for NaN, pass fill_value=np.nan" if is_nan else "; for another value, pass fill_value="
    raise AttributeValueError(
        f"{spec.name} fill_mode must be 'ZERO' or 'LOWEST', got {shown(value)}{own_value * fills}", clause
    )


def _fill(dtype: DType, mode: str | None, value: Array | None) -> Array:
    """Return the value of empty segments, from a fill mode or from `value`. NaN and True get their canonical bits."""
    if value is None:
        return _filled(dtype, mode)
    if isinstance(value, AbstractArray) or dtype is dtypes.REAL:
        return value
    bits = bits_of(value, dtype)
    if dtype.kind == "bool":  # any nonzero byte is True
        bits = int(bits != 0)
    elif dtype.kind == "float" and bits & ((1 << dtype.bits - 1) - 1) > dtype.infinity_bits:
        bits = dtype.nan_bits
    return np.array(bits, dtype.word).view(dtype.numpy)


@cache
def _filled(dtype: DType, mode: str | None) -> Array:
    """Return the value of a fill mode as an array of rank 0. It is 0 for rationals, which have no lowest value."""
    if dtype is dtypes.REAL:
        return np.array(0, object)
    filled: Array = np.array(dtype.lowest_finite_bits if mode == "LOWEST" else 0, dtype.word).view(dtype.numpy)
    filled.flags.writeable = False
    return filled


def bits_of(value: Array, dtype: DType) -> int:
    """Return the bits of an array of rank 0. Callers compare bits, because NumPy warns about signaling NaNs."""
    return int(np.ascontiguousarray(value, dtype.numpy).view(dtype.word)[0])


def _out_of_range(spec: Spec, value: object, is_sorted: bool) -> OutOfRange | None:
    if value is None:
        return None if is_sorted else "error"
    return "drop" if choice(spec, "out_of_range", value, ("error", "drop")) == "drop" else "error"


def _ids(spec: Spec, value: object, shape: Shape, axis: int) -> Array:
    if value is None:
        raise InputCountError(
            f"{spec.name} got neither segment_ids nor offsets; pass one of them", spec.clause("inputs")
        )
    ids = array_of(spec, "segment_ids", value)
    index_dtype(spec, "segment_ids", ids)
    _check_ids_shape(spec, ids.shape, shape, axis)
    return ids


def _check_ids_shape(spec: Spec, ids: Shape, data: Shape, axis: int) -> None:
    """Raise an error unless the ids have shape (n,), where n is the number of rows."""
    if ids != data[axis : axis + 1]:
        raise SegmentIdsError(
            f"{spec.name} segment_ids must have shape ({data[axis]},) for axis {axis} of data of shape {data}, "
            f"got {ids}",
            spec.clause("ids.shape"),
        )


def _index(array: Array, values_known: bool) -> Array:
    """Convert ids or offsets to int32 or int64, the only index dtypes that engines accept."""
    return widened(array) if values_known else abstract(array.shape, widened_dtype(array.dtype))


def default_num_segments(ids: Any, is_sorted: bool) -> int:
    """Return the highest id + 1, or 0 if no id is non-negative. `ids` is an array of any library."""
    if len(ids) == 0:
        return 0
    return max(int(ids[-1] if is_sorted else ids.max()), -1) + 1


def _offsets(spec: Spec, value: object) -> Array:
    offsets = array_of(spec, "offsets", value)
    index_dtype(spec, "offsets", offsets)
    if offsets.ndim != 1 or offsets.shape[0] == 0:
        raise OffsetsError(
            f"{spec.name} offsets must be 1-D with num_segments + 1 elements, got shape {offsets.shape}",
            spec.clause("offsets"),
        )
    return offsets


def _has_empty(ids: Array | None, offsets: Array | None, count: int) -> bool:
    if offsets is not None:
        return count >= len(offsets) or bool((offsets[1 : count + 1] <= offsets[:count]).any())
    assert ids is not None
    return len({*ids[(ids >= 0) & (ids < count)].tolist()}) < count


def _num_segments(spec: Spec, value: Any) -> int | None:
    clause = spec.clause("num_segments")
    if value is None:
        return None
    if isinstance(value, (np.ndarray, np.generic)):
        array = array_of(spec, "num_segments", value)
        index_dtype(spec, "num_segments", array)
        if array.ndim != 0:
            raise NumSegmentsError(f"{spec.name} num_segments must be a scalar, got shape {array.shape}", clause)
        value = int(array)
    count = index_of(value)
    if count is None:
        hint = "; convert it with int(...)" if isinstance(value, (bool, float)) else ""
        raise NumSegmentsError(
            f"{spec.name} num_segments must be an integer, got {shown(value)} of type {type(value).__name__}{hint}",
            clause,
        )
    if count < 0:
        raise NumSegmentsError(f"{spec.name} num_segments must be non-negative, got {shown(count)}", clause)
    return count
