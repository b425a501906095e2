"""A plan: the checked form of a request."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from maxops.calls import Call, MaxCall, ReduceCall, ScatterCall, SegmentCall
from maxops.dtypes import DType
from maxops.shapes import Shape

AnyCall = TypeVar("AnyCall", MaxCall, ReduceCall, SegmentCall, ScatterCall, Call)


class Plan(NamedTuple, Generic[AnyCall]):
    """The request, checked and each value in one form, and what its result is.

    Arrays are NumPy's, of one type, or abstract ones; ids and offsets are of int32 or int64, whatever type was given.
    Flags are True or False, `axes` and `axis` count from 0, and `num_segments` is there. `initial` and `fill_value` are
    arrays of rank 0: unless there is an initial value, `fill_value` is what empty segments hold, however that was asked
    for, with the bits that a result has (of an abstract one these are not known). `check_ids` says whether ids or
    offsets are still to be checked; an id outside 0..num_segments-1 after that is one to be dropped. `out_of_range` is
    None of sorted ids by default, and of offsets. With `noop_with_empty_axes` the result is the data. `dim` and `ties`
    are as they were given: engines look at them.
    """

    dtype: DType
    shape: Shape
    call: AnyCall
