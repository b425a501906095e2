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
    `initial`, `fill_value` is the value of empty segments for every fill mode. A NaN or True in `fill_value` has the
    same bits as in results, unless `fill_value` is an abstract array.

    `check_ids` is True if the engine must still check the ids or offsets. Rows with ids outside 0..num_segments-1 are
    dropped unless a check rejects them. `out_of_range` is None for offsets and, by default, for sorted ids. With
    `noop_with_empty_axes`, the result equals the data, bit for bit. `dim` and `ties` are unchanged, and engines
    interpret them.
    """

    dtype: DType
    shape: Shape
    call: AnyCall
