"""Computes the argmax on any device: the index of the first element that equals each maximum, or -1."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from maxops.engines.jax.integer_keys import keys_of
from maxops.engines.jax.segments import Segments, for_columns, ids_of_rows


def index_dtype() -> np.dtype:
    """Return the dtype of indices: int64, or int32 if JAX's configuration disables 64-bit dtypes."""
    dtype: np.dtype = np.dtype(jax.dtypes.canonicalize_dtype(np.int64))
    return dtype


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
