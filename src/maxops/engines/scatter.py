"""Runs ScatterElements and ScatterND with the reduction "max", as SegmentMax of the updates and Max with the data."""

from __future__ import annotations

from math import prod

import numpy as np

from maxops.calls import MaxCall, ScatterCall, SegmentCall
from maxops.engines import native
from maxops.errors import OutputTooLargeError
from maxops.plan import Array, Plan, plan_max, plan_segment_max
from maxops.plan.values import allocate

FEW = 4  # if the data has at least this many rows per update, only the rows with updates are processed


def scatter_max(plan: Plan[ScatterCall]) -> Array:
    """Run a plan. Return the result, or the plan's view of the caller's `out`."""
    call = plan.call
    try:
        result: Array = allocate(_scattered, plan)
    except MemoryError as error:
        raise OutputTooLargeError(
            f"{call.row.name} cannot allocate an output of shape {plan.shape}: {error}", call.row.clause("shape")
        ) from error
    if call.out is None:
        return result
    out: Array = call.out
    np.copyto(out, result, casting="equiv")
    return out


def _scattered(plan: Plan[ScatterCall]) -> Array:
    call = plan.call
    result = np.array(call.data, plan.dtype.numpy, order="C")
    if not call.updates.size:
        return result
    ids = _ids(call)
    count = prod(plan.shape[: call.indices.shape[-1]]) if call.axis is None else result.size
    rows = result.reshape(count, -1) if count < result.size else result.reshape(-1)
    updates = call.updates.reshape(ids.size, *rows.shape[1:])
    if ids.size * FEW <= count:
        named, ids = np.unique(ids, return_inverse=True)
        highest, _ = _highest(updates, ids, len(named))
        rows[named] = native.maximum(plan_max(MaxCall((rows[named], highest))))
    else:
        highest, empty = _highest(updates, ids, count)
        larger = native.maximum(plan_max(MaxCall((rows, highest))))
        np.copyto(rows, larger, where=~empty.reshape(count, *[1] * (rows.ndim - 1)))
    return result


def _highest(updates: Array, ids: Array, count: int) -> tuple[Array, Array]:
    """Return the maximum of the updates of each row, and a mask of rows without updates."""
    call = SegmentCall(updates, ids, count, "LOWEST", sorted=False, return_empty=True)
    highest, empty = native.segment_max(plan_segment_max(call))
    return highest, empty


def _ids(call: ScatterCall) -> Array:
    """Return the target of each update: the index of an element or row of the data in C order."""
    indices, shape, axis = call.indices, call.data.shape, call.axis
    if axis is None:
        named = shape[: indices.shape[-1]]
        steps = [prod(named[place + 1 :]) for place in range(len(named))]
        ids: Array = (indices * np.array(steps, np.int64)).sum(axis=-1)
        return ids.reshape(-1)
    ids = indices * prod(shape[axis + 1 :])
    for other, size in enumerate(indices.shape):
        if other != axis:
            places = np.arange(size).reshape(size, *[1] * (indices.ndim - other - 1))
            ids += places * prod(shape[other + 1 :])
    return ids.reshape(-1)
