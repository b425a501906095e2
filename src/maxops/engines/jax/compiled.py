"""The three operators with all their options on arrays that fit, each compiled once for its shapes and options.

Within another function that JAX traces they are part of it (`inline`): what is around a call matters to its lowering.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from maxops.engines.jax import argmax, maxima
from maxops.engines.jax.segments import Segments, empty_segments

Results = tuple[jax.Array, ...]


maximum: Any = jax.jit(maxima.maximum, inline=True, static_argnames=("ties", "native"))


@partial(jax.jit, inline=True, static_argnames=("axes", "keepdims", "return_indices", "ties", "native"))
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
        return (data, jnp.zeros(data.shape, argmax.index_dtype())) if return_indices else (data,)
    values = _with_initial(maxima.reduce_max(data, axes=axes, ties=ties, native=native), initial, native)
    results = [values]
    if return_indices:
        results.append(maxima.first_in_axes(stop_gradient(data), stop_gradient(values), axes=axes, native=native))
    return tuple(jnp.expand_dims(part, axes) for part in results) if keepdims else tuple(results)


@partial(jax.jit, inline=True, static_argnames=("how", "return_indices", "return_empty", "ties", "native"))
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
    values = _with_initial(maxima.segment_max(data, ids, how=how, ties=ties, native=native), initial, native)
    results = [values]
    if return_indices:
        first = maxima.first_in_segments(stop_gradient(data), stop_gradient(values), ids, how=how, native=native)
        results.append(first)
    if return_empty:
        results.append(empty_segments(ids, data.shape[0], how))
    return tuple(results)


def _with_initial(values: jax.Array, initial: jax.Array | None, native: bool) -> jax.Array:
    """The higher of the two; the gradient is that of the elements, also for ties."""
    if initial is None:
        return values
    return maxima.maximum(values, stop_gradient(initial), ties="first", native=native)
