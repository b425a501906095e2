"""Computes the maxima of large arrays with NumPy, for calls that the kit makes while it shrinks a finding.

Each element has an integer key that compares like the element, and NumPy computes the maximum of the keys. The
reference is simpler and judges all small calls, but takes microseconds for each element. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from maxops import dtypes
from maxops.calls import MaxCall, ReduceCall, ScatterCall
from maxops.dtypes import DType
from maxops.plan import Array, Plan


def compute(plan: Plan[Any], arrays: Sequence[Array]) -> Array:
    """Return the result of a plan on nonempty arrays of its shapes."""
    call, dtype = plan.call, dtypes.of(arrays[0].dtype)
    assert dtype is not None
    if isinstance(call, ReduceCall) and call.noop_with_empty_axes:
        return np.array(arrays[0], order="C", copy=True)
    keys = [_keys(dtype, array) for array in arrays]
    if isinstance(call, MaxCall):
        return _values(dtype, reduce(np.maximum, keys))
    if isinstance(call, ReduceCall):
        return _values(dtype, np.max(keys[0], axis=call.axes or None, keepdims=call.keepdims))
    if isinstance(call, ScatterCall):
        return _scatter(dtype, call, arrays[0], keys)
    ids = call.segment_ids
    inside = ids < call.num_segments
    filled = dtype.lowest_finite_bits if call.fill_mode == "LOWEST" else 0
    result = np.full((call.num_segments, *keys[0].shape[1:]), filled, dtype.word).view(dtype.numpy)
    present, starts = np.unique(ids[inside], return_index=True)
    if len(present):
        result[present] = _values(dtype, np.maximum.reduceat(keys[0][inside], starts, axis=0))
    return result


def _scatter(dtype: DType, call: ScatterCall, data: Array, keys: Sequence[Any]) -> Array:
    maxima, updates = keys
    if call.axis is None:
        at = tuple(np.moveaxis(call.indices, -1, 0))
    else:
        places: list[Any] = list(np.indices(updates.shape, sparse=True))
        places[call.axis] = call.indices
        at = tuple(places)
    np.maximum.at(maxima, at, updates)
    result = np.array(data, dtype.numpy, order="C", copy=True)
    result[at] = _values(dtype, maxima)[at]  # the other elements keep their bits
    return result


def _keys(dtype: DType, array: Array) -> Any:
    native = np.array(array, dtype.numpy, order="C", copy=True)
    if dtype.kind != "float":
        return native
    words: Any = native.reshape(-1).view(f"i{native.itemsize}").astype(np.int64).reshape(native.shape)
    magnitude = words & (1 << dtype.bits - 1) - 1
    return np.where(magnitude > dtype.infinity_bits, dtype.nan_bits, np.where(words < 0, -1 - magnitude, magnitude))


def _values(dtype: DType, keys: Any) -> Array:
    if dtype.kind != "float":
        return np.asarray(keys, dtype.numpy)
    # a negative key already has the sign bit of its element
    words = np.where(keys < 0, keys ^ (1 << dtype.bits - 1) - 1, keys).astype(f"i{dtype.bits // 8}")
    result: Array = words.reshape(-1).view(dtype.numpy).reshape(np.shape(keys))
    return result
