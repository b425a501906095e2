"""A plan: the checked form of a request."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from maxops.calls import Call, MaxCall, ReduceCall, ScatterCall, SegmentCall
from maxops.dtypes import DType
from maxops.shapes import Shape

AnyCall = TypeVar("AnyCall", MaxCall, ReduceCall, SegmentCall, ScatterCall, Call)


class Plan(NamedTuple, Generic[AnyCall]):
    """The checked and normalized request, with the dtype and shape of its result.

    Arrays are NumPy or abstract arrays of one dtype; ids and offsets are int32 or int64. Flags are bool, `axes` and
    `axis` are non-negative, and `num_segments` is never None. `initial` and `fill_value` are arrays of rank 0. Without
    `initial`, `fill_value` is the value of empty segments for every fill mode, with the bits of a result (unknown for
    abstract arrays). `check_ids` is True if ids or offsets are still to be checked; engines then drop rows with ids
    outside 0..num_segments-1. `out_of_range` is None for offsets and, by default, for sorted ids. With
    `noop_with_empty_axes`, the result is the data. `dim` and `ties` are unchanged; engines interpret them.
    """

    dtype: DType
    shape: Shape
    call: AnyCall
