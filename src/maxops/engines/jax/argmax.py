"""The argmax on any device: the index of the first element that equals each maximum, or -1."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from maxops.engines.jax.integer_keys import keys_of
from maxops.engines.jax.segments import Segments, for_columns, ids_of_rows


def index_dtype() -> np.dtype:
    """The type of indices: int64, or int32 where the user's configuration leaves JAX no wider type."""
    dtype: np.dtype = np.dtype(jax.dtypes.canonicalize_dtype(np.int64))
    return dtype


def holders_in_axes(data: jax.Array, values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Whether each element holds the maximum, of `values` without the axes, that it went into."""
    return keys_of(data) == jnp.expand_dims(keys_of(values), axes)


def indices_in_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[jax.Array, int]:
    """Each element's index among the reduced axes in C order, and how many there are."""
    indices, step = jnp.zeros(shape, index_dtype()), 1
    for axis in sorted(axes, reverse=True):
        indices += lax.broadcasted_iota(index_dtype(), shape, axis) * step
        step *= shape[axis]
    return indices, step


def first_in_axes(data: jax.Array, values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """The index of the first element that is each maximum; without the axes."""
    indices, count = indices_in_axes(data.shape, axes)
    first = jnp.min(jnp.where(holders_in_axes(data, values, axes), indices, count), axis=axes, initial=count)
    return jnp.where(first == count, -1, first)


def holders_in_segments(data: jax.Array, values: jax.Array, segments: jax.Array, inside: jax.Array) -> jax.Array:
    """Whether each element of the data holds its segment's maximum."""
    return (keys_of(data) == keys_of(values)[segments]) & for_columns(inside, data)


def first_in_segments(data: jax.Array, values: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """The first row of each segment that holds its maximum, for each column; ids may have batches in front."""
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
