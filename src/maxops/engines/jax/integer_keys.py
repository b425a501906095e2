"""The lowering for any device. It converts elements to integer keys, computes their maximum, and converts it back.

The functions of `custom_calls` have the same names and arguments.
"""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from maxops import dtypes, order
from maxops.dtypes import DType
from maxops.engines.jax.segments import Segments, for_columns, ids_of_rows, index_dtype


def dtype_of(array: jax.Array) -> DType:
    """Return the `maxops.dtypes` row for the dtype of an array."""
    dtype = dtypes.of(np.dtype(array.dtype))
    assert dtype is not None
    return dtype


def keys_of(array: jax.Array, nan: str = "propagate") -> jax.Array:
    """Return integer keys that compare like the elements in the total order."""
    # In JAX 0.9, a constant of a rematerialized function is an array without `view`.
    keys: jax.Array = order.keys_of(jnp, jnp.asarray(array), dtype_of(array), nan)
    return keys


def values_of(keys: jax.Array, dtype: DType, nan: str) -> jax.Array:
    """Return the elements with these keys. Every NaN is the quiet NaN."""
    values: jax.Array = order.values_of(jnp, keys, dtype, nan)
    return values


def filled(shape: tuple[int, ...], bits: int, dtype: DType) -> jax.Array:
    """Return an array filled with one value, given by its bits."""
    array: jax.Array = order.filled(jnp, shape, bits, dtype)
    return array


def maximum(*arrays: jax.Array, nan: str) -> jax.Array:
    """Compute Max with broadcasting."""
    shape = jnp.broadcast_shapes(*(array.shape for array in arrays))
    keys = (jnp.broadcast_to(keys_of(array, nan), shape) for array in arrays)
    return values_of(reduce(jnp.maximum, keys), dtype_of(arrays[0]), nan)


def reduce_max(data: jax.Array, axes: tuple[int, ...], *, nan: str) -> jax.Array:
    """Compute ReduceMax along nonnegative axes and remove these axes. Empty reductions return the identity."""
    dtype = dtype_of(data)
    first = keys_of(filled((), order.identity_bits(dtype, nan), dtype), nan)  # needed if a symbolic size is 0
    return values_of(jnp.max(keys_of(data, nan), axis=axes, initial=first), dtype, nan)


def segment_max(data: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """Compute SegmentMax of data of shape (*batch, rows, *row), given unchecked ids (*batch, rows) or offsets."""
    if ids.ndim > 1:
        return jax.vmap(lambda data, ids: segment_max(data, ids, how))(data, ids)
    dtype, keys = dtype_of(data), keys_of(data, how.nan)
    segments, inside = ids_of_rows(ids, data.shape[0], how)
    lowest = keys.dtype.type(np.iinfo(keys.dtype).min)
    kept = jnp.where(for_columns(inside, data), keys, lowest)
    highest = jnp.full((how.count, *data.shape[1:]), lowest).at[segments].max(kept)
    has_rows = jnp.zeros(how.count, jnp.int8).at[segments].max(inside.astype(jnp.int8)) != 0
    return jnp.where(for_columns(has_rows, data), values_of(highest, dtype, how.nan), filled((), how.fill, dtype))


# -------------------------------------------------------------------------------------- the indices of the maxima


def holders_in_axes(data: jax.Array, values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Return a mask of the elements that equal their maximum in `values`, which lacks the reduced axes."""
    return keys_of(data) == jnp.expand_dims(keys_of(values), axes)


def indices_in_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[jax.Array, int]:
    """Return each element's index along the reduced axes in C order, and the number of indices."""
    indices, step = jnp.zeros(shape, index_dtype()), 1
    for axis in sorted(axes, reverse=True):
        indices += lax.broadcasted_iota(index_dtype(), shape, axis) * step
        step *= shape[axis]
    return indices, step


def first_in_axes(data: jax.Array, values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Return the index of the first element that equals each maximum, or -1. The result lacks the reduced axes."""
    indices, count = indices_in_axes(data.shape, axes)
    first = jnp.min(jnp.where(holders_in_axes(data, values, axes), indices, count), axis=axes, initial=count)
    return jnp.where(first == count, -1, first)


def holders_in_segments(data: jax.Array, values: jax.Array, segments: jax.Array, inside: jax.Array) -> jax.Array:
    """Return a mask of the elements that equal their segment's maximum."""
    return (keys_of(data) == keys_of(values)[segments]) & for_columns(inside, data)


def first_in_segments(data: jax.Array, values: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """Return the first row with the maximum of each segment and column, or -1. The ids may have leading batch axes."""
    if ids.ndim > 1:
        return jax.vmap(lambda data, values, ids: first_in_segments(data, values, ids, how))(data, values, ids)
    if values.size == 0:
        return jnp.zeros(values.shape, index_dtype())
    count = data.shape[0]
    segments, inside = ids_of_rows(ids, count, how)
    rows = lax.broadcasted_iota(index_dtype(), data.shape, 0)
    indices = jnp.where(holders_in_segments(data, values, segments, inside), rows, count)
    first = jnp.full(values.shape, count, index_dtype()).at[segments].min(indices)
    return jnp.where(first == count, -1, first)
