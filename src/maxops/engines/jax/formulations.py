"""The maxima by the formulation that fits the platform a call is compiled for, and how they are mapped.

On the CPU that is the custom calls, if they were built; anywhere else, and without them, integer keys. Both give the
same bits. Under vmap each stays one call: the mapped axis becomes one more axis of the operator's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from maxops.engines.jax import custom_calls, integer_keys, winners
from maxops.engines.jax.segments import Segments
from maxops.errors import NotBuiltWarning

_Function = Callable[..., jax.Array]
# The size of the mapped axis, which of the arrays have it in front, and the arrays; whether the result has it.
_Mapped = Callable[..., tuple[jax.Array, bool]]

_only_keys = False


@contextmanager
def only_integer_keys() -> Iterator[None]:
    """Integer keys on the CPU too, for what is traced within."""
    global _only_keys  # noqa: PLW0603 - a setting of the process, as JAX's are
    before, _only_keys = _only_keys, True
    try:
        yield
    finally:
        _only_keys = before


def are_native() -> bool:
    """Whether a call on the CPU goes to the native core. If it does not because that was not built, a warning."""
    if _only_keys:
        return False
    if not custom_calls.are_built() and jax.default_backend() == "cpu":
        _warn_once()
    return custom_calls.are_built()


@cache
def _warn_once() -> None:
    warnings.warn(
        "maxops was built without its custom calls for JAX: on the CPU its operators run as XLA's own integer "
        "operations, with the same bits but slower. MAXOPS_JAX=1 python -m pip install --no-binary maxops "
        "'maxops[jax]' builds them",
        NotBuiltWarning,
        stacklevel=5,  # past the engine and the public function, to who called it
    )


def _run(native: bool, ours: _Function, keys: _Function, mapped: _Mapped, *arrays: jax.Array) -> jax.Array:
    """The one that fits the platform. `mapped` is what vmap makes of it."""

    def by_platform(*arrays: jax.Array) -> Any:
        return jax.lax.platform_dependent(*arrays, cpu=ours, default=keys) if native else keys(*arrays)

    call: Any = custom_vmap(by_platform)
    call.def_vmap(mapped)
    result: jax.Array = call(*arrays)
    return result


def maximum(native: bool, *arrays: jax.Array) -> jax.Array:
    """Max of arrays that broadcast."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    if prod(shape) == 0:
        return jnp.zeros(shape, arrays[0].dtype)

    def mapped(_: int, are_mapped: list[bool], *arrays: jax.Array) -> tuple[jax.Array, bool]:
        rank = max(array.ndim - is_mapped for array, is_mapped in zip(arrays, are_mapped, strict=True))
        aligned = [
            array.reshape(array.shape[0], *[1] * (rank + 1 - array.ndim), *array.shape[1:]) if is_mapped else array
            for array, is_mapped in zip(arrays, are_mapped, strict=True)
        ]
        return maximum(native, *aligned), True

    return _run(native, custom_calls.maximum, integer_keys.maximum, mapped, *arrays)


def reduce_max(native: bool, data: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """ReduceMax along axes in 0..r-1, which the result is without."""
    shape = tuple(size for axis, size in enumerate(data.shape) if axis not in axes)
    if data.size == 0:
        dtype = integer_keys.dtype_of(data)
        return integer_keys.filled(shape, dtype.lowest_bits, dtype)

    def mapped(_: int, are_mapped: list[bool], data: jax.Array) -> tuple[jax.Array, bool]:
        return reduce_max(native, data, tuple(axis + 1 for axis in axes)), True

    ours, keys = (partial(where.reduce_max, axes=axes) for where in (custom_calls, integer_keys))
    return _run(native, ours, keys, mapped, data)


def segment_max(native: bool, data: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """SegmentMax of data (*batch, rows, *row) by ids (*batch, rows), or by offsets."""
    batch = ids.shape[:-1]
    shape = (*batch, how.count, *data.shape[len(batch) + 1 :])
    if prod(shape) == 0:
        return jnp.zeros(shape, data.dtype)

    def mapped(size: int, are_mapped: list[bool], data: jax.Array, ids: jax.Array) -> tuple[jax.Array, bool]:
        data_is_mapped, ids_are_mapped = are_mapped
        if ids_are_mapped:
            whole = data if data_is_mapped else jnp.broadcast_to(data, (size, *data.shape))
            return segment_max(native, whole, ids, how), True
        after_rows = ids.ndim  # one set of ids: the mapped axis is one of the rows' own
        result = segment_max(native, jnp.moveaxis(data, 0, after_rows), ids, how)
        return jnp.moveaxis(result, after_rows, 0), True

    ours, keys = (partial(where.segment_max, how=how) for where in (custom_calls, integer_keys))
    return _run(native, ours, keys, mapped, data, ids)


def first_in_axes(native: bool, data: jax.Array, values: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    """The place of the first element that holds each maximum, or -1; without the axes."""
    ours, keys = (partial(where.first_in_axes, axes=axes) for where in (custom_calls, winners))
    if data.size == 0:
        return winners.first_in_axes(data, values, axes)

    def mapped(size: int, are_mapped: list[bool], *arrays: jax.Array) -> tuple[jax.Array, bool]:
        data, values = _all_mapped(size, are_mapped, arrays)
        return first_in_axes(native, data, values, tuple(axis + 1 for axis in axes)), True

    return _run(native, ours, keys, mapped, data, values)


def first_in_segments(native: bool, data: jax.Array, values: jax.Array, ids: jax.Array, how: Segments) -> jax.Array:
    """The first row of each segment that holds its maximum, or -1; batches as in `segment_max`."""
    ours, keys = (partial(where.first_in_segments, how=how) for where in (custom_calls, winners))
    if data.size == 0 or values.size == 0:
        return winners.first_in_segments(data, values, ids, how)

    def mapped(size: int, are_mapped: list[bool], *arrays: jax.Array) -> tuple[jax.Array, bool]:
        data, values, ids = _all_mapped(size, are_mapped, arrays)
        return first_in_segments(native, data, values, ids, how), True

    return _run(native, ours, keys, mapped, data, values, ids)


def _all_mapped(size: int, are_mapped: list[bool], arrays: tuple[jax.Array, ...]) -> list[jax.Array]:
    """Arrays that all have the mapped axis in front."""
    return [
        array if is_mapped else jnp.broadcast_to(array, (size, *array.shape))
        for array, is_mapped in zip(arrays, are_mapped, strict=True)
    ]
