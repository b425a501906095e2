"""Runs the max operators on object arrays of exact rationals (`real`). If elements are equal, the first is returned."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines.base import alone_if_one
from maxops.plan import Array, Plan


def _higher(a: Any, b: Any) -> Any:
    return b if a < b else a


_fold = np.frompyfunc(_higher, 2, 1)


def maximum(plan: Plan[MaxCall]) -> Any:
    """Run a checked call of Max, and return the maxima."""
    values = np.empty(plan.shape, object)
    first, *others = plan.call.inputs
    values[...] = first
    for array in others:
        values[...] = _fold(values, array)
    return _give(plan.call.out, values)


def reduce_max(plan: Plan[ReduceCall]) -> Any:
    """Run a checked call of ReduceMax, and return the maxima and, with ``return_indices``, their indices."""
    call = plan.call
    if call.noop_with_empty_axes:
        return _give(call.out, call.data.copy(), *([np.zeros(plan.shape, np.int64)] if call.return_indices else []))
    # merge the reduced axes, because a NumPy ufunc made from a Python function reduces only one axis at a time
    axes = sorted(call.axes)
    kept = tuple(size for axis, size in enumerate(call.data.shape) if axis not in axes)
    length = prod(call.data.shape[axis] for axis in axes)
    rows = np.moveaxis(call.data, axes, range(len(axes))).reshape(length, *kept)
    values = np.empty(kept, object)
    if values.size:
        all_rows = rows
        if call.initial is not None:  # appended last, so that an equal element of the data is returned instead
            all_rows = np.concatenate([rows, np.broadcast_to(call.initial, (1, *kept))])
        values[...] = _fold.reduce(all_rows, axis=0)
    values = values.reshape(plan.shape)
    if not call.return_indices:
        return _give(call.out, values)
    indices = np.full(kept, -1, np.int64)
    if length:
        holds = np.asarray(rows == values.reshape(kept), np.bool)
        indices = np.where(holds.any(0), holds.argmax(0), -1)
    return _give(call.out, values, indices.astype(np.int64).reshape(plan.shape))


def segment_max(plan: Plan[SegmentCall]) -> Any:
    """Run a checked call of SegmentMax, and return the maxima and, if requested, the indices and the mask.

    The planner rejects ``fill_mode="LOWEST"`` if a segment is empty, because rationals have no lowest value.
    """
    call = plan.call
    fill = call.fill_value if call.initial is None else call.initial
    all_rows = np.moveaxis(call.data, call.axis, 0)
    shape = (call.num_segments, *all_rows.shape[1:])
    values = np.full(shape, fill[()], object)
    ids = _ids(call)
    rows = np.flatnonzero((ids >= 0) & (ids < call.num_segments))
    ids, data = ids[rows], all_rows[rows]
    for segment in np.unique(ids).tolist():
        highest = _fold.reduce(data[ids == segment], axis=0)
        values[segment] = highest if call.initial is None else _fold(highest, call.initial)
    others: list[Array] = []
    if call.return_indices:
        indices, width = np.full(shape, -1, np.int64), prod(shape[1:])
        found = np.nonzero(data.reshape(len(rows), width) == values.reshape(call.num_segments, width)[ids])
        row, column = (index[::-1] for index in found)  # in reverse order, so that the first row overwrites the others
        indices.reshape(call.num_segments, width)[ids[row], column] = rows[row]
        others.append(np.moveaxis(indices, 0, call.axis))
    if call.return_empty:
        empty = np.ones(call.num_segments, np.bool)
        empty[ids] = False
        others.append(empty)
    return _give(call.out, np.moveaxis(values, 0, call.axis), *others)


def _ids(call: SegmentCall) -> Array:
    """Return the segment ids, or convert offsets to ids. If unchecked offsets are invalid, all ids are -1."""
    if call.segment_ids is not None:
        ids: Array = call.segment_ids
        return ids
    offsets, rows = call.offsets, call.data.shape[call.axis]
    lengths = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != rows or (lengths < 0).any():
        return np.full(rows, -1, np.int64)
    return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)


def _give(out: Array | None, values: Array, *others: Array) -> Any:
    """Return the results. If the caller passed `out`, write the values to it, after all allocations."""
    if out is not None:
        out[...] = values
        values = out
    return alone_if_one([values, *others])
