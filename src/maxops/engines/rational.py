"""The engine for `real`: object arrays of exact rationals, compared without rounding. Ties keep the first."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxops.plan import MaxPlan, ReducePlan, SegmentPlan

Array = np.ndarray[Any, np.dtype[Any]]


def _higher(a: Any, b: Any) -> Any:
    return b if a < b else a


_fold = np.frompyfunc(_higher, 2, 1)


def maximum(plan: MaxPlan) -> Array:
    """Run a plan of Max."""
    result = np.empty(plan.shape, object)
    result[...] = plan.inputs[0]
    for array in plan.inputs[1:]:
        result[...] = _fold(result, array)
    return _give(result, plan.out)


def reduce_max(plan: ReducePlan) -> Array:
    """Run a plan of ReduceMax."""
    result = np.empty(plan.shape, object)
    if plan.identity:
        result[...] = plan.data
    elif result.size:
        # one axis, since NumPy takes no function of ours over several
        first = np.moveaxis(plan.data, plan.axes, range(len(plan.axes)))
        kept = first.shape[len(plan.axes) :]
        highest = np.empty(kept, object)
        rows = first.reshape(-1, *kept)
        if plan.initial is not None:  # last, since ties keep the first
            rows = np.concatenate([rows, np.broadcast_to(plan.initial, (1, *kept))])
        highest[...] = _fold.reduce(rows, axis=0)
        result[...] = highest.reshape(plan.shape)
    return _give(result, plan.out)


def segment_max(plan: SegmentPlan) -> Array:
    """Run a plan of SegmentMax. Without a value for it an empty segment is 0: the planner has refused LOWEST there."""
    fill = plan.fill_value if plan.initial is None else plan.initial
    result = np.full(plan.shape, 0 if fill is None else fill[()], object)
    ids = np.asarray(plan.segment_ids)
    for segment in np.unique(ids[(ids >= 0) & (ids < plan.num_segments)]).tolist():
        highest = _fold.reduce(plan.data[ids == segment], axis=0)
        result[segment] = highest if plan.initial is None else _fold(highest, plan.initial)
    return _give(result, plan.out)


def _give(result: Array, out: Array | None) -> Array:
    if out is None:
        return result
    out[...] = result
    return out
