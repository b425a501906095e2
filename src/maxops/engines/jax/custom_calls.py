"""The lowering for the CPU, which adds custom calls of the native core to XLA programs.

JAX traces the functions of this module when it lowers a program. The arrays have one dtype and compatible shapes, and
the results are not empty.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from maxops import _xla
from maxops.engines.jax import integer_keys
from maxops.engines.jax.segments import Segments, index_dtype
from maxops.shapes import reduced

# For `_MANY` or more results of at most `_SHORT` elements along the last axis, XLA's loop is faster.
_SHORT, _MANY = 8, 10_000


@cache
def register() -> None:
    """Register the custom calls with XLA."""
    for name, handler in _xla.handlers().items():
        jax.ffi.register_ffi_target(name, handler, platform="cpu")


def _like(data: jax.Array, shape: tuple[int, ...], dtype: np.dtype | None = None) -> jax.ShapeDtypeStruct:
    """Return an abstract result with the given dtype (default: that of the data) and the sharding that JAX derives."""
    like: jax.ShapeDtypeStruct = jax.eval_shape(lambda x: jax.lax.full_like(x, 0, dtype=dtype, shape=shape), data)
    mesh = jax.typeof(data).sharding.mesh
    if like.sharding is None and not mesh.empty:  # eval_shape drops a mesh with axes of several types
        like = like.update(sharding=NamedSharding(mesh, PartitionSpec()))
    return like


def maximum(*arrays: jax.Array, nan: str) -> jax.Array:
    """Compute Max with broadcasting."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    return jax.ffi.ffi_call("maxops_maximum", _like(arrays[0], shape))(*arrays, ignores_nan=nan == "ignore")


def reduce_max(data: jax.Array, axes: tuple[int, ...], *, nan: str) -> jax.Array:
    """Compute ReduceMax along axes in 0..r-1, and remove these axes."""
    call = jax.ffi.ffi_call("maxops_reduce_max", _like(data, reduced(data.shape, axes, keepdims=False)))
    return call(data, axes=np.array(axes, np.int64), ignores_nan=nan == "ignore")


def segment_max(data: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """Compute SegmentMax of data of shape (*batch, rows, *row), given ids of shape (*batch, rows) or offsets."""
    return _in_segments(
        "maxops_segment_max",
        how,
        None,
        data,
        ids,
        checks=how.checks,
        rejects_negative=how.rejects_negative,
        rejects_past=how.rejects_past,
        fill=how.fill_as_int64,
        ignores_nan=how.nan == "ignore",
    )


def first_in_axes(data: jax.Array, values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Return the index of the first element that equals each maximum, or -1. The result lacks the reduced axes."""
    if data.ndim - 1 in axes and data.size <= _SHORT * values.size and values.size >= _MANY:
        return integer_keys.first_in_axes(data, values, axes)
    call = jax.ffi.ffi_call("maxops_argmax", _like(data, values.shape, index_dtype()))
    return call(data, values, axes=np.array(axes, np.int64))


def first_in_segments(data: jax.Array, values: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """Return the first row with the maximum of each segment and column, or -1. Batch axes are as in `segment_max`."""
    return _in_segments("maxops_argmax_in_segments", how, index_dtype(), data, ids, values)


def _in_segments(
    name: str,
    how: Segments,
    dtype: np.dtype | None,
    data: jax.Array,
    ids: jax.Array,
    *values: jax.Array,
    **attributes: Any,
) -> jax.Array:
    """Add a custom call. Reshape its arrays to one batch axis, one axis of rows, and one axis of a row's elements."""
    batch, row = ids.shape[:-1], data.shape[ids.ndim :]
    sizes, width = prod(batch), prod(row)
    call = jax.ffi.ffi_call(name, _like(data, (sizes, how.count, width), dtype))
    rows, *values_of_rows = (array.reshape(sizes, array.shape[len(batch)], width) for array in (data, *values))
    result = call(rows, ids.reshape(sizes, ids.shape[-1]), *values_of_rows, order=how.order, **attributes)
    return result.reshape(*batch, how.count, *row)
