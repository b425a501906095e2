"""The three operators with all their options on arrays that fit, each compiled once for its shapes and options."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from maxops.engines.jax import formulations, gradients, winners
from maxops.engines.jax.segments import Segments, empty_segments

Results = tuple[jax.Array, ...]


@partial(jax.jit, static_argnames=("ties", "native"))
def maximum(*arrays: jax.Array, ties: str, native: bool) -> jax.Array:
    """Max of arrays of one type that broadcast."""
    return gradients.maximum(native, ties, *arrays)


@partial(jax.jit, static_argnames=("axes", "keepdims", "return_indices", "ties", "native"))
def reduce_max(
    data: jax.Array,
    initial: jax.Array | None,
    *,
    axes: tuple[int, ...] | None,
    keepdims: bool,
    return_indices: bool,
    ties: str,
    native: bool,
) -> Results:
    """ReduceMax along sorted axes, or the data itself without any (None)."""
    if axes is None:
        return (data, jnp.zeros(data.shape, winners.index_dtype())) if return_indices else (data,)
    values = _with_initial(native, gradients.reduce_max(native, ties, data, axes), initial)
    results = [values]
    if return_indices:
        results.append(formulations.first_in_axes(native, stop_gradient(data), stop_gradient(values), axes))
    return tuple(jnp.expand_dims(part, axes) for part in results) if keepdims else tuple(results)


@partial(jax.jit, static_argnames=("how", "return_indices", "return_empty", "ties", "native"))
def segment_max(
    data: jax.Array,
    ids: jax.Array,
    initial: jax.Array | None,
    *,
    how: Segments,
    return_indices: bool,
    return_empty: bool,
    ties: str,
    native: bool,
) -> Results:
    """SegmentMax by ids or offsets."""
    values = _with_initial(native, gradients.segment_max(native, ties, data, ids, how), initial)
    results = [values]
    if return_indices:
        results.append(formulations.first_in_segments(native, stop_gradient(data), stop_gradient(values), ids, how))
    if return_empty:
        results.append(empty_segments(ids, len(data), how))
    return tuple(results)


def _with_initial(native: bool, values: jax.Array, initial: jax.Array | None) -> jax.Array:
    """The higher of the two; the gradient is that of the elements, also where both are as high."""
    if initial is None:
        return values
    return gradients.maximum(native, "first", values, stop_gradient(initial))
