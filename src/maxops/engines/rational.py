"""The engine for `real`: object arrays of exact rationals, compared without rounding. Ties keep the first."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from maxops.engines.base import alone_if_one
from maxops.plan import Array, MaxPlan, ReducePlan, SegmentPlan


def _higher(a: Any, b: Any) -> Any:
    return b if a < b else a


_fold = np.frompyfunc(_higher, 2, 1)


def maximum(plan: MaxPlan) -> Any:
    """Run a plan of Max."""
    values = np.empty(plan.shape, object)
    values[...] = plan.inputs[0]
    for array in plan.inputs[1:]:
        values[...] = _fold(values, array)
    return _give(plan.out, values)


def reduce_max(plan: ReducePlan) -> Any:
    """Run a plan of ReduceMax: its values, and with return_indices their argmax."""
    if plan.identity:
        return _give(plan.out, plan.data.copy(), *([np.zeros(plan.shape, np.int64)] if plan.return_indices else []))
    # the reduced axes as one, since NumPy takes no function of ours over several
    axes = sorted(plan.axes)
    kept = tuple(size for axis, size in enumerate(plan.data.shape) if axis not in axes)
    length = prod(plan.data.shape[axis] for axis in axes)
    rows = np.moveaxis(plan.data, axes, range(len(axes))).reshape(length, *kept)
    values = np.empty(kept, object)
    if values.size:
        all_rows = rows
        if plan.initial is not None:  # last, since ties keep the first
            all_rows = np.concatenate([rows, np.broadcast_to(plan.initial, (1, *kept))])
        values[...] = _fold.reduce(all_rows, axis=0)
    values = values.reshape(plan.shape)
    if not plan.return_indices:
        return _give(plan.out, values)
    indices = np.full(kept, -1, np.int64)
    if length:
        holds = np.asarray(rows == values.reshape(kept), np.bool)
        indices = np.where(holds.any(0), holds.argmax(0), -1)
    return _give(plan.out, values, indices.astype(np.int64).reshape(plan.shape))


def segment_max(plan: SegmentPlan) -> Any:
    """Run a plan of SegmentMax: its values, and what else it asks for.

    Without a value for it an empty segment is 0: the planner has refused LOWEST there.
    """
    fill = plan.fill_value if plan.initial is None else plan.initial
    all_rows = np.moveaxis(plan.data, plan.axis, 0)
    shape = (plan.num_segments, *all_rows.shape[1:])
    values = np.full(shape, 0 if fill is None else fill[()], object)
    ids = _ids(plan)
    rows = np.flatnonzero((ids >= 0) & (ids < plan.num_segments))
    ids, data = ids[rows], all_rows[rows]
    for segment in np.unique(ids).tolist():
        highest = _fold.reduce(data[ids == segment], axis=0)
        values[segment] = highest if plan.initial is None else _fold(highest, plan.initial)
    others: list[Array] = []
    if plan.return_indices:
        indices, width = np.full(shape, -1, np.int64), prod(shape[1:])
        found = np.nonzero(data.reshape(len(rows), width) == values.reshape(plan.num_segments, width)[ids])
        row, column = (index[::-1] for index in found)  # backwards, so that the first row is written last
        indices.reshape(plan.num_segments, width)[ids[row], column] = rows[row]
        others.append(np.moveaxis(indices, 0, plan.axis))
    if plan.return_empty:
        empty = np.ones(plan.num_segments, np.bool)
        empty[ids] = False
        others.append(empty)
    return _give(plan.out, np.moveaxis(values, 0, plan.axis), *others)


def _ids(plan: SegmentPlan) -> Array:
    """The ids, or those that offsets stand for; of bad offsets, which nobody has checked, that of no segment."""
    if plan.segment_ids is not None:
        return plan.segment_ids
    assert plan.offsets is not None
    lengths = np.diff(plan.offsets)
    if plan.offsets[0] != 0 or plan.offsets[-1] != plan.rows or (lengths < 0).any():
        return np.full(plan.rows, -1, np.int64)
    return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)


def _give(out: Array | None, values: Array, *others: Array) -> Any:
    """The results, of which the values go to the caller's output: only now, when all memory is there."""
    if out is not None:
        out[...] = values
        values = out
    return alone_if_one([values, *others])
