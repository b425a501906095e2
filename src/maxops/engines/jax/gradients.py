"""The maxima as functions that JAX differentiates, forwards and backwards, by the elements that hold them.

The rule is a forward one, linear in the tangents and made of JAX's own operations: JAX transposes it for `grad`, and
differentiates it again for higher orders. It masks rather than gathers, so that its transpose scatters nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient

from maxops.engines.jax import formulations, winners
from maxops.engines.jax.integer_keys import keys_of
from maxops.engines.jax.segments import Segments, ids_of_rows


def _is_float(array: jax.Array) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def _share(total: jax.Array, count: jax.Array) -> jax.Array:
    """An even part. Counted in float32 at least: float16 and bfloat16 do not hold large counts."""
    wide = jnp.promote_types(total.dtype, jnp.float32)
    parts = total.astype(wide) / jnp.maximum(count, 1).astype(wide)
    return parts.astype(total.dtype)


def maximum(native: bool, ties: str, *arrays: jax.Array) -> jax.Array:
    """Max of arrays that broadcast."""
    if not _is_float(arrays[0]):
        return formulations.maximum(native, *arrays)

    def rule(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        values = call(*primals)
        key = keys_of(values)
        held = [jnp.broadcast_to(keys_of(array), key.shape) == key for array in primals]
        tangent = jnp.zeros_like(values)
        if ties == "first":
            for holds, part in zip(reversed(held), reversed(tangents), strict=True):
                tangent = jnp.where(holds, part, tangent)
            return values, tangent
        for holds, part in zip(held, tangents, strict=True):
            tangent += jnp.where(holds, part, 0)
        return values, _share(tangent, jnp.sum(jnp.stack(held), 0))

    call = _with_rule(partial(formulations.maximum, native), rule)
    return call(*arrays)


def reduce_max(native: bool, ties: str, data: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """ReduceMax along axes in 0..r-1, which the result is without."""
    if not _is_float(data) or data.size == 0:
        return formulations.reduce_max(native, data, axes)

    def rule(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
        values = call(*primals)
        if ties == "first":
            first = formulations.first_in_axes(native, stop_gradient(primals[0]), stop_gradient(values), axes)
            holds = winners.places_in_axes(data.shape, axes)[0] == jnp.expand_dims(first, axes)
            return values, jnp.where(holds, tangents[0], 0).sum(axes)
        holds = winners.holders_in_axes(primals[0], values, axes)
        return values, _share(jnp.where(holds, tangents[0], 0).sum(axes), holds.sum(axes))

    call = _with_rule(partial(formulations.reduce_max, native, axes=axes), rule)
    return call(data)


def segment_max(native: bool, ties: str, data: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """SegmentMax of data (rows, *row) by ids (rows,), or by offsets."""
    if not _is_float(data) or data.size == 0 or how.count == 0:
        return formulations.segment_max(native, stop_gradient(data), ids, how)  # no element to give a gradient to

    def rule(primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, Any]) -> tuple[jax.Array, jax.Array]:
        data, ids = primals
        values = call(data, ids)
        segments, inside = ids_of_rows(ids, len(data), how)
        if ties == "first":
            rows = jax.lax.broadcasted_iota(winners.index_dtype(), data.shape, 0)
            across = (slice(None), *[np.newaxis] * (data.ndim - 1))
            first = formulations.first_in_segments(native, stop_gradient(data), stop_gradient(values), ids, how)
            holds = (first[segments] == rows) & inside[across]
        else:
            holds = winners.holders_in_segments(data, values, segments, inside)
        tangent = jnp.zeros_like(values).at[segments].add(jnp.where(holds, tangents[0], 0))
        if ties == "first":
            return values, tangent
        return values, _share(tangent, jnp.zeros(values.shape, jnp.int32).at[segments].add(holds))

    call = _with_rule(partial(formulations.segment_max, native, how=how), rule)
    return call(data, ids)


def _with_rule(function: Callable[..., jax.Array], rule: Callable[..., Any]) -> Callable[..., jax.Array]:
    call: Callable[..., jax.Array] = jax.custom_jvp(function)
    call.defjvp(rule)  # type: ignore[attr-defined]
    return call
