"""The engine for NumPy arrays: plans a call, and has the native core or the exact rationals run it."""

from __future__ import annotations

import numpy as np

from maxops import _native, dtypes, spec
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines import argmax, native, rational
from maxops.engines.base import by_operator
from maxops.plan import Array, ReducePlan, SegmentPlan, plan_max, plan_reduce_max, plan_segment_max


def _maximum(call: MaxCall) -> Array:
    plan = plan_max(call)
    return rational.maximum(plan) if plan.dtype is dtypes.REAL else native.maximum(plan)


def _reduce_max(call: ReduceCall) -> Array | tuple[Array, ...]:
    plan = plan_reduce_max(call)
    is_real = plan.dtype is dtypes.REAL
    run = rational.reduce_max if is_real else native.reduce_max
    if not plan.return_indices:
        return run(plan)
    # Nothing is written to the caller's output before the indices are there.
    if is_real:
        values = run(plan._replace(out=None))
        indices = argmax.in_axes(plan, values)
        return _into(plan, values), indices
    indices = native.new_indices(plan)
    values = run(plan._replace(out=None))
    native.indices_in_axes(plan, values, indices)
    return _into(plan, values), indices


def _segment_max(call: SegmentCall) -> Array | tuple[Array, ...]:
    if call.check_ids is True and call.row is spec.SEGMENT_MAX:  # a standard's row takes fewer types of ids
        if call.offsets is not None:
            bounds = native.as_signed(call.offsets)
            if native.are_valid_offsets(bounds, call.data):
                call = call._replace(offsets=bounds, check_ids=False)
        else:
            ids = native.as_signed(call.segment_ids)
            plain = call.out_of_range is None and call.return_indices is call.return_empty is False
            if plain and ids is not call.segment_ids:
                # The way in of int32 and int64, which takes a tenth of the planner's time for a small call.
                given = {"fill_mode": call.fill_mode, "out": call.out, "sorted": call.sorted, "initial": call.initial}
                done = _native.segment_max(call.data, ids, call.num_segments, **given)
                if done is not None:
                    return done
            # The planner's look takes longer, and finds what is wrong.
            rules = {"sorted": call.sorted, "out_of_range": call.out_of_range, "num_segments": call.num_segments}
            if native.are_valid_ids(ids, **rules):
                looked_at = call.out_of_range != "drop"
                call = call._replace(segment_ids=ids if looked_at else call.segment_ids, check_ids=False)
    plan = plan_segment_max(call)
    if plan.dtype is dtypes.REAL:
        return _run_rational_segment_max(plan)
    if not plan.return_indices and not plan.return_empty:
        return native.segment_max(plan)
    empty = [native.empty_segments(plan)] if plan.return_empty else []
    if not plan.return_indices:
        return (native.segment_max(plan), *empty)
    indices = native.new_indices(plan)
    values = native.segment_max(plan._replace(out=None))
    native.indices_in_segments(plan, values, indices)
    return (_into(plan, values), indices, *empty)


run = by_operator(_maximum, _reduce_max, _segment_max)


def _run_rational_segment_max(plan: SegmentPlan) -> Array | tuple[Array, ...]:
    if plan.segment_ids is None:
        plan = plan._replace(segment_ids=_ids_of_offsets(plan))
    if not plan.return_indices and not plan.return_empty:
        return rational.segment_max(plan)
    values = rational.segment_max(plan._replace(out=None))
    indices = [argmax.in_segments(plan, values)] if plan.return_indices else []
    empty = [argmax.empty_segments(plan)] if plan.return_empty else []
    return (_into(plan, values), *indices, *empty)


def _into(plan: ReducePlan | SegmentPlan, values: Array) -> Array:
    """The values in the plan's output, if it has one."""
    if plan.out is None:
        return values
    np.copyto(plan.out, values, casting="equiv")
    return plan.out


def _ids_of_offsets(plan: SegmentPlan) -> Array:
    """The ids that offsets stand for; of bad ones, which nobody has checked, that of no segment."""
    assert plan.offsets is not None
    if plan.offsets[0] != 0 or plan.offsets[-1] != len(plan.data) or (plan.offsets[1:] < plan.offsets[:-1]).any():
        return np.full(len(plan.data), -1, np.int64)
    lengths = np.diff(plan.offsets)
    return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
