"""Where the maxima stand, on any device: the first element that holds each result, or -1 where none does."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from maxops.engines.jax.integer_keys import keys_of
from maxops.engines.jax.segments import Segments, ids_of_rows


def index_dtype() -> np.dtype:
    """The type of indices: int64, or int32 where the user's configuration leaves JAX no wider type."""
    dtype: np.dtype = np.dtype(jax.dtypes.canonicalize_dtype(np.int64))
    return dtype


def holders_in_axes(data: jax.Array, values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """Whether each element holds the maximum, of `values` without the axes, that it went into."""
    return keys_of(data) == jnp.expand_dims(keys_of(values), axes)


def places_in_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[jax.Array, int]:
    """Each element's place among the reduced axes in C order, and how many there are."""
    places, step = jnp.zeros(shape, index_dtype()), 1
    for axis in sorted(axes, reverse=True):
        places += lax.broadcasted_iota(index_dtype(), shape, axis) * step
        step *= shape[axis]
    return places, step


def first_in_axes(data: jax.Array, values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """The place of the first element that holds each maximum; without the axes."""
    places, count = places_in_axes(data.shape, axes)
    first = jnp.min(jnp.where(holders_in_axes(data, values, axes), places, count), axis=axes, initial=count)
    return jnp.where(first == count, -1, first)


def holders_in_segments(data: jax.Array, values: jax.Array, segments: jax.Array, inside: jax.Array) -> jax.Array:
    """Whether each element of the data holds its segment's maximum."""
    across = (slice(None), *[np.newaxis] * (data.ndim - 1))
    return (keys_of(data) == keys_of(values)[segments]) & inside[across]


def first_in_segments(data: jax.Array, values: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """The first row of each segment that holds its maximum, for each column; ids may have batches in front."""
    if ids.ndim > 1:
        return jax.vmap(lambda data, values, ids: first_in_segments(data, values, ids, how))(data, values, ids)
    if values.size == 0:
        return jnp.zeros(values.shape, index_dtype())
    count = data.shape[0]
    segments, inside = ids_of_rows(ids, count, how)
    rows = lax.broadcasted_iota(index_dtype(), data.shape, 0)
    places = jnp.where(holders_in_segments(data, values, segments, inside), rows, count)
    first = jnp.full(values.shape, count, index_dtype()).at[segments].min(places)
    return jnp.where(first == count, -1, first)
