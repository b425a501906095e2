"""The operators as JAX primitives, with their rules for vmap and gradients.

Under vmap, each operator remains one call, and the mapped axis becomes an extra axis. The elements that equal the
maxima receive the gradient. The gradient rule is a JVP rule that uses only JAX's own operations and is linear in the
tangents. So JAX can transpose the rule for `grad`, and differentiate it again. The rule uses masks instead of gathers,
so its transpose contains no scatter.
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad
from jax.lax import stop_gradient

from maxops.engines.jax import integer_keys
from maxops.engines.jax.integer_keys import keys_of
from maxops.engines.jax.lowering import primitive
from maxops.engines.jax.segments import Segments, for_columns, ids_of_rows, index_dtype

_Pair = tuple[jax.Array, Any]


def maximum(*arrays: jax.Array, ties: str, nan: str, native: bool) -> jax.Array:
    """Compute Max with broadcasting."""
    shape = jnp.broadcast_shapes(*(array.shape for array in arrays))
    if prod(shape) == 0:
        return integer_keys.maximum(*arrays, nan=nan)  # JAX's operations keep the mesh axes of empty arrays
    return _maximum(*arrays, ties=ties, nan=nan, native=native)


def _maximum_vmap(_: int, are_mapped: list[bool], *arrays: jax.Array, **how: Any) -> jax.Array:
    rank = max(array.ndim - is_mapped for array, is_mapped in zip(arrays, are_mapped, strict=True))
    aligned = [
        array.reshape(array.shape[0], *[1] * (rank + 1 - array.ndim), *array.shape[1:]) if is_mapped else array
        for array, is_mapped in zip(arrays, are_mapped, strict=True)
    ]
    return maximum(*aligned, **how)


def _maximum_jvp(primals: tuple[jax.Array, ...], tangents: tuple[Any, ...], *, ties: str, **how: Any) -> _Pair:
    values = maximum(*primals, ties=ties, **how)
    key = keys_of(values)
    held = [jnp.broadcast_to(keys_of(array), key.shape) == key for array in primals]
    tangent = _wide(jnp.zeros_like(values))
    if ties == "first":
        for holds, part in zip(reversed(held), reversed(tangents), strict=True):
            tangent = jnp.where(holds, _whole(part, key.shape), tangent)
        return values, tangent.astype(values.dtype)
    for holds, part in zip(held, tangents, strict=True):
        tangent += jnp.where(holds, _whole(part, key.shape), 0)
    return values, _share(tangent, jnp.sum(jnp.stack(held), 0)).astype(values.dtype)


def _whole(tangent: Any, shape: tuple[int, ...]) -> Any:
    """Widen an input's tangent and broadcast it to the shape of the result. Return 0 for an input without a tangent."""
    return 0 if type(tangent) is ad.Zero else jnp.broadcast_to(_wide(tangent), shape)


def _wide(tangent: jax.Array) -> jax.Array:
    """Convert a half-precision tangent to float32, because sums and divisions need more precision."""
    return tangent.astype(np.float64 if tangent.dtype == np.float64 else np.float32)


def _share(total: jax.Array, count: jax.Array) -> jax.Array:
    """Divide a sum of `_wide` tangents by the number of elements that equal the maximum."""
    return total / jnp.maximum(count, 1).astype(total.dtype)


def reduce_max(data: jax.Array, *, axes: tuple[int, ...], ties: str, nan: str, native: bool) -> jax.Array:
    """Compute ReduceMax along axes in 0..r-1, and remove these axes. Empty reductions return the identity."""
    if data.size == 0:
        return integer_keys.reduce_max(data, axes, nan=nan)
    return _reduce_max(data, axes=axes, ties=ties, nan=nan, native=native)


def _reduce_max_vmap(
    _: int, are_mapped: list[bool], data: jax.Array, *, axes: tuple[int, ...], **how: Any
) -> jax.Array:
    return reduce_max(data, axes=tuple(axis + 1 for axis in axes), **how)


def _reduce_max_jvp(
    primals: tuple[jax.Array], tangents: tuple[jax.Array], *, axes: tuple[int, ...], ties: str, nan: str, native: bool
) -> _Pair:
    (data,), (part,) = primals, tangents
    values = reduce_max(data, axes=axes, ties=ties, nan=nan, native=native)
    if ties == "first":
        first = first_in_axes(stop_gradient(data), stop_gradient(values), axes=axes, native=native)
        holds = integer_keys.indices_in_axes(data.shape, axes)[0] == jnp.expand_dims(first, axes)
        return values, jnp.where(holds, part, 0).sum(axes)
    holds = integer_keys.holders_in_axes(data, values, axes)
    return values, _share(jnp.where(holds, _wide(part), 0).sum(axes), holds.sum(axes)).astype(values.dtype)


def segment_max(data: jax.Array, ids: jax.Array, *, how: Segments, ties: str, native: bool) -> jax.Array:
    """Compute SegmentMax of data of shape (*batch, rows, *row), given ids of shape (*batch, rows) or offsets."""
    batch = ids.shape[:-1]
    shape = (*batch, how.count, *data.shape[len(batch) + 1 :])
    if prod(shape) == 0:
        empty = (jax.lax.full_like(stop_gradient(array), 0, dtype=data.dtype, shape=shape) for array in (data, ids))
        return jnp.maximum(*empty)  # the result varies over the mesh axes of both arrays
    if data.size == 0:
        data = stop_gradient(data)  # no element can receive a gradient
    return _segment_max(data, ids, how=how, ties=ties, native=native)


def _segment_max_vmap(size: int, are_mapped: list[bool], data: jax.Array, ids: jax.Array, **how: Any) -> jax.Array:
    data_is_mapped, ids_are_mapped = are_mapped
    if ids_are_mapped:
        whole = data if data_is_mapped else jnp.broadcast_to(data, (size, *data.shape))
        return segment_max(whole, ids, **how)
    after_rows = ids.ndim  # all members of the batch have the same ids, so the mapped axis becomes an axis of each row
    return jnp.moveaxis(segment_max(jnp.moveaxis(data, 0, after_rows), ids, **how), after_rows, 0)


def _segment_max_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, Any], *, how: Segments, ties: str, native: bool
) -> _Pair:
    data, ids = primals
    values = segment_max(data, ids, how=how, ties=ties, native=native)

    def tangent_of(data: jax.Array, ids: jax.Array, values: jax.Array, part: jax.Array) -> jax.Array:
        segments, inside = ids_of_rows(ids, data.shape[0], how)
        if ties == "first":
            rows = jax.lax.broadcasted_iota(index_dtype(), data.shape, 0)
            first = first_in_segments(stop_gradient(data), stop_gradient(values), ids, how=how, native=native)
            holds = (first[segments] == rows) & for_columns(inside, data)
        else:
            holds = integer_keys.holders_in_segments(data, values, segments, inside)
        tangent = _wide(jnp.zeros_like(values)).at[segments].add(jnp.where(holds, _wide(part), 0))
        if ties == "even":
            tangent = _share(tangent, jnp.zeros(values.shape, jnp.int32).at[segments].add(holds.astype(jnp.int32)))
        return tangent.astype(values.dtype)

    for _ in ids.shape[:-1]:
        tangent_of = jax.vmap(tangent_of)
    return values, tangent_of(data, ids, values, tangents[0])


def first_in_axes(data: jax.Array, values: jax.Array, *, axes: tuple[int, ...], native: bool) -> jax.Array:
    """Return the index of the first element that equals each maximum, or -1. The result lacks the reduced axes."""
    if data.size == 0:
        return integer_keys.first_in_axes(data, values, axes)
    return _first_in_axes(data, values, axes=axes, native=native)


def _first_in_axes_vmap(
    size: int, are_mapped: list[bool], *arrays: jax.Array, axes: tuple[int, ...], native: bool
) -> jax.Array:
    return first_in_axes(*_mapped(size, are_mapped, arrays), axes=tuple(axis + 1 for axis in axes), native=native)


def first_in_segments(data: jax.Array, values: jax.Array, ids: jax.Array, *, how: Segments, native: bool) -> jax.Array:
    """Return the first row with the maximum of each segment and column, or -1. Batch axes are as in `segment_max`."""
    if data.size == 0 or values.size == 0:
        return integer_keys.first_in_segments(data, values, ids, how)
    return _first_in_segments(data, values, ids, how=how, native=native)


def _first_in_segments_vmap(size: int, are_mapped: list[bool], *arrays: jax.Array, **how: Any) -> jax.Array:
    return first_in_segments(*_mapped(size, are_mapped, arrays), **how)


def _mapped(size: int, are_mapped: list[bool], arrays: tuple[jax.Array, ...]) -> list[jax.Array]:
    """Return the arrays, broadcast so that all have the mapped axis first."""
    return [
        array if is_mapped else jnp.broadcast_to(array, (size, *array.shape))
        for array, is_mapped in zip(arrays, are_mapped, strict=True)
    ]


_maximum = primitive("maximum", _maximum_vmap, _maximum_jvp)
_reduce_max = primitive("reduce_max", _reduce_max_vmap, _reduce_max_jvp)
_segment_max = primitive("segment_max", _segment_max_vmap, _segment_max_jvp)
_first_in_axes = primitive("first_in_axes", _first_in_axes_vmap)
_first_in_segments = primitive("first_in_segments", _first_in_segments_vmap)
