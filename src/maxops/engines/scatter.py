"""ScatterElements and ScatterND with the reduction "max": segments of updates, and a maximum with the data."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from maxops.calls import MaxCall, ScatterCall, SegmentCall
from maxops.engines import native
from maxops.plan import Array, Plan, plan_max, plan_segment_max


def scatter_max(plan: Plan[ScatterCall]) -> Any:
    """Run a plan: the result, or the caller's output."""
    call = plan.call
    result = np.array(call.data, plan.dtype.numpy, order="C")
    ids = _ids(call)
    if call.updates.size:
        count = prod(plan.shape[: call.indices.shape[-1]]) if call.axis is None else result.size
        rows = result.reshape(count, -1) if count < result.size else result.reshape(-1)
        updates = call.updates.reshape(ids.size, *rows.shape[1:])
        segments = SegmentCall(updates, ids, count, "LOWEST", sorted=False, return_empty=True)
        highest, empty = native.segment_max(plan_segment_max(segments))
        larger = native.maximum(plan_max(MaxCall((rows, highest))))
        np.copyto(rows, larger, where=~empty.reshape(count, *[1] * (rows.ndim - 1)))
    if call.out is None:
        return result
    np.copyto(call.out, result, casting="equiv")
    return call.out


def _ids(call: ScatterCall) -> Array:
    """For each update, or row of updates, the element or row of data in C order that it goes to."""
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
