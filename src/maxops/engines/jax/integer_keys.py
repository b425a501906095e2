"""The lowering for any device: converts elements to integer keys, computes XLA's maximum, and converts back."""

from __future__ import annotations

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from maxops import dtypes, order
from maxops.dtypes import DType
from maxops.engines.jax.segments import Segments, for_columns, ids_of_rows


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
    """Compute SegmentMax of data (*batch, rows, *row), given ids (*batch, rows) or offsets, without checks."""
    if ids.ndim > 1:
        return jax.vmap(lambda data, ids: segment_max(data, ids, how))(data, ids)
    dtype, keys = dtype_of(data), keys_of(data, how.nan)
    segments, inside = ids_of_rows(ids, data.shape[0], how)
    lowest = keys.dtype.type(np.iinfo(keys.dtype).min)
    kept = jnp.where(for_columns(inside, data), keys, lowest)
    highest = jnp.full((how.count, *data.shape[1:]), lowest).at[segments].max(kept)
    has_rows = jnp.zeros(how.count, jnp.int8).at[segments].max(inside.astype(jnp.int8)) != 0
    return jnp.where(for_columns(has_rows, data), values_of(highest, dtype, how.nan), filled((), how.fill, dtype))
