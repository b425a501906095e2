"""The three operators on checked arrays, compiled once for each combination of shapes and options.

JAX inlines them into other traced functions, because the lowering of a call depends on the code around the call.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from maxops.engines.jax import integer_keys, maxima
from maxops.engines.jax.segments import Segments, empty_segments, index_dtype

Results = tuple[jax.Array, ...]


maximum: Any = jax.jit(maxima.maximum, inline=True, static_argnames=("ties", "nan", "native"))


@partial(jax.jit, inline=True, static_argnames=("axes", "keepdims", "return_indices", "ties", "nan", "native"))
def reduce_max(
    data: jax.Array,
    initial: jax.Array | None,
    *,
    axes: tuple[int, ...] | None,
    keepdims: bool,
    return_indices: bool,
    ties: str,
    nan: str,
    native: bool,
) -> Results:
    """Compute ReduceMax along sorted axes. If `axes` is None, return the data."""
    if axes is None:
        return (data, jnp.zeros(data.shape, index_dtype())) if return_indices else (data,)
    values = maxima.reduce_max(data, axes=axes, ties=ties, nan=nan, native=native)
    values = _with_initial(values, initial, nan, native) if initial is not None else _or_lowest(values, data, axes, nan)
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
    """Compute SegmentMax, given ids or offsets."""
    values = maxima.segment_max(data, ids, how=how, ties=ties, native=native)
    if initial is not None:
        values = _with_initial(values, initial, how.nan, native)
    results = [values]
    if return_indices:
        first = maxima.first_in_segments(stop_gradient(data), stop_gradient(values), ids, how=how, native=native)
        results.append(first)
    if return_empty:
        results.append(empty_segments(ids, data.shape[0], how))
    return tuple(results)


def _with_initial(values: jax.Array, initial: jax.Array, nan: str, native: bool) -> jax.Array:
    """Return the maximum of both arguments. Only `values` receives a gradient, even if both are equal."""
    return maxima.maximum(values, stop_gradient(initial), ties="first", nan=nan, native=native)


def _or_lowest(values: jax.Array, data: jax.Array, axes: tuple[int, ...], nan: str) -> jax.Array:
    """Return the maxima. If NaN is the identity of the maximum, replace the results of empty reductions with -Inf."""
    dtype = integer_keys.dtype_of(data)
    if nan == "propagate" or dtype.kind != "float":
        return values
    count = prod(data.shape[axis] for axis in axes)
    lowest = integer_keys.filled((), dtype.lowest_bits, dtype)
    if isinstance(count, int):
        return values if count else jnp.broadcast_to(lowest, values.shape)
    return jnp.where(jnp.asarray(count) == 0, lowest, values)  # the count is symbolic, and known only at run time
