"""The argmax of exact rationals: the index of the first element that is each maximum, or -1 where none is."""

from __future__ import annotations

from math import prod

import numpy as np

from maxops.plan import Array, ReducePlan, SegmentPlan


def in_axes(plan: ReducePlan, values: Array) -> Array:
    """The index among the reduced axes, counted in C order, of the first element that is each maximum."""
    if plan.identity:
        return np.zeros(plan.shape, np.int64)
    axes = sorted(plan.axes)
    kept = tuple(size for axis, size in enumerate(plan.data.shape) if axis not in axes)
    rows = np.moveaxis(plan.data, axes, range(-len(axes), 0)).reshape(*kept, prod(plan.data.shape[a] for a in axes))
    holds = np.asarray(rows == values.reshape(kept)[..., np.newaxis], np.bool)
    if rows.shape[-1] == 0:
        return np.full(plan.shape, -1, np.int64)
    return np.where(holds.any(-1), holds.argmax(-1), -1).astype(np.int64).reshape(plan.shape)


def in_segments(plan: SegmentPlan, values: Array) -> Array:
    """The first row of each segment that holds its maximum, for each column."""
    indices = np.full(plan.shape, -1, np.int64)
    ids, rows = _inside(plan)
    width = prod(plan.shape[1:])
    data = plan.data.reshape(len(plan.data), width)[rows]
    found = np.nonzero(data == values.reshape(plan.num_segments, width)[ids])
    # Backwards, so that the first row is written last.
    row, column = (index[::-1] for index in found)
    indices.reshape(plan.num_segments, width)[ids[row], column] = rows[row]
    return indices


def empty_segments(plan: SegmentPlan) -> Array:
    """Whether each segment has no rows."""
    empty = np.ones(plan.num_segments, np.bool)
    empty[_inside(plan)[0]] = False
    return empty


def _inside(plan: SegmentPlan) -> tuple[Array, Array]:
    """The ids that are in range, and the rows that have them."""
    assert plan.segment_ids is not None
    rows = np.flatnonzero((plan.segment_ids >= 0) & (plan.segment_ids < plan.num_segments))
    return plan.segment_ids[rows], rows
