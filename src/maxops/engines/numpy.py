"""The engine for NumPy arrays: plans a call, and has the native core or the exact rationals run it."""

from __future__ import annotations

import numpy as np

from maxops import dtypes
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines import argmax, native, rational
from maxops.engines.base import by_operator
from maxops.plan import Array, ReducePlan, SegmentPlan, plan_max, plan_reduce_max, plan_segment_max


def _maximum(call: MaxCall) -> Array:
    plan = plan_max(call)
    return rational.maximum(plan) if plan.dtype is dtypes.REAL else native.maximum(plan)


def _reduce_max(call: ReduceCall) -> Array | tuple[Array, ...]:
    plan = plan_reduce_max(call)
    if plan.dtype is not dtypes.REAL:
        return native.reduce_max(plan)
    if not plan.return_indices:
        return rational.reduce_max(plan)
    # Nothing is written to the caller's output before the indices are there.
    values = rational.reduce_max(plan._replace(out=None))
    indices = argmax.in_axes(plan, values)
    return _into(plan, values), indices


def _segment_max(call: SegmentCall) -> Array | tuple[Array, ...]:
    plan = plan_segment_max(call)
    return _run_rational_segment_max(plan) if plan.dtype is dtypes.REAL else native.segment_max(plan)


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
