"""The maximum functions of `jax.numpy`, and `jax.ops.segment_max`, with JAX's signatures and transformations.

>>> import jax.numpy as jnp
>>> from maxops.compat.jax import segment_max
>>> segment_max(jnp.array([3.0, 1.0, 5.0]), jnp.array([0, 0, 2]), 3)
Array([  3., -inf,   5.], dtype=float32)

Differences:

- Subnormal numbers are preserved, but JAX flushes them to zero on CPUs. NaN results always have sign bit 0.
- Gradients are split evenly among the elements that equal the maximum, as in JAX, but -0 does not equal +0. `fmax`
  also splits them evenly, but JAX's `fmax` gives the whole gradient to the second of two equal elements, and to the
  first of two NaNs.
- Complex numbers, int4, uint4 and float8 types, and data of rank 0 in ``segment_max`` are not supported. Results are
  never weakly typed.
- With ``indices_are_sorted=True``, ``segment_max`` checks the order of the ids, except under ``jit`` on GPUs and TPUs.
  Out-of-range ids are dropped, as in JAX. ``bucket_size`` is not supported, and ``mode`` must be None, "drop" or
  "fill".
"""

from __future__ import annotations

from functools import partial
from operator import index
from typing import Any

from maxops.extras import needed

with needed("maxops.compat.jax", "jax"):
    import jax
    import jax.numpy as jnp

from maxops import ops
from maxops.engines.jax.lowering import are_native
from maxops.errors import ShapeError
from maxops.shapes import is_empty_along
from maxops.typing import NanRule

__all__ = ["amax", "argmax", "fmax", "max", "maximum", "nanmax", "segment_max"]


def maximum(x: Any, y: Any, /) -> Any:
    """Return the element-wise maximum of two arrays or scalars, promoted to a common dtype by JAX's rules.

    >>> maximum(jnp.array([1, 5]), 2.5)
    Array([2.5, 5. ], dtype=float32)

    Source: JAX, `jax.numpy.maximum`.
    """
    return _maximum(x, y, "propagate", are_native())


def fmax(x1: Any, x2: Any) -> Any:
    """Return the element-wise maximum, ignoring NaN unless both elements are NaN.

    >>> fmax(jnp.array([jnp.nan, 2.0]), 1.0)
    Array([1., 2.], dtype=float32)

    Source: JAX, `jax.numpy.fmax`.
    """
    return _maximum(x1, x2, "ignore", are_native())


# As in JAX, whole functions are compiled, because running their parts one by one takes longer than computing a small
# maximum. `is_native` is a static argument, so that JAX compiles one function for the native core and one without it.


@partial(jax.jit, static_argnums=(2, 3))
def _maximum(x: Any, y: Any, nan: NanRule, is_native: bool) -> Any:
    del is_native
    dtype = jnp.result_type(x, y)
    return ops.maximum(jnp.asarray(x, dtype), jnp.asarray(y, dtype), nan=nan)


def max(
    a: Any,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Return the maximum along the given axes or, by default, of all elements.

    >>> max(jnp.array([[1, 5], [7, 2]]), axis=0, where=jnp.array([[True], [False]]), initial=3)
    Array([3, 5], dtype=int32)

    Like JAX, raises NotImplementedError for ``out``, and ValueError for ``where`` or empty data without ``initial``.

    Source: JAX, `jax.numpy.max`.
    """
    return _along("max", "propagate", a, axis, out, keepdims, initial, where)


amax = max


def nanmax(
    a: Any,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Return the maximum along axes, ignoring NaN. The result is NaN if all elements are NaN.

    >>> nanmax(jnp.array([[1.0, jnp.nan], [7.0, 2.0]]), axis=1)
    Array([1., 7.], dtype=float32)

    Raises the same errors as `max`.

    Source: JAX, `jax.numpy.nanmax`.
    """
    return _along("nanmax", "ignore", a, axis, out, keepdims, initial, where)


def _along(name: str, nan: NanRule, a: Any, axis: Any, out: None, keepdims: bool, initial: Any, where: Any) -> Any:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
    return _reduced(a, initial, where, name, nan, _static(axis), keepdims, are_native())


def _static(axis: Any) -> int | tuple[int, ...] | None:
    """Return axes as Python integers, which `jit` accepts as static arguments."""
    if isinstance(axis, (list, tuple)):
        return tuple(map(index, axis))
    return None if axis is None else index(axis)


@partial(jax.jit, static_argnums=range(3, 8))
def _reduced(
    a: Any, initial: Any, where: Any, name: str, nan: NanRule, axis: Any, keepdims: bool, is_native: bool
) -> Any:
    del is_native
    data = jnp.asarray(a)
    is_empty = is_empty_along(data.shape, axis)
    if initial is not None:
        initial = jnp.asarray(initial, data.dtype)
        if initial.ndim:
            raise ShapeError(
                f"{name}() initial must be a scalar, got shape {initial.shape}", "maxops.reduce_max.initial"
            )
    elif where is not None:
        raise ValueError(f"{name}() with where= requires initial=, the value for elements excluded by where=")
    elif is_empty:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if where is not None:
        where = jnp.asarray(where)
        if where.dtype != bool or where.ndim > data.ndim:
            raise ValueError(
                f"{name}() requires where= to be a bool array of at most {data.ndim} dimensions, got {where.dtype} of "
                f"shape {where.shape}"
            )
        data = jnp.where(where, data, initial)
    result = ops.reduce_max(data, axis=axis, keepdims=keepdims, nan=nan)
    if initial is None:
        return result
    # `initial` is not passed to `reduce_max`, because it has a gradient in JAX
    if nan == "ignore":  # ignore NaN in the data, but not in `initial`, as JAX does
        result = jnp.nan_to_num(result, nan=-jnp.inf, posinf=jnp.inf, neginf=-jnp.inf)
    return ops.maximum(result, initial)


def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Return the index of the first maximum along an axis or, by default, in the flattened array.

    >>> argmax(jnp.array([[1, 5], [7, 2]]), axis=1)
    Array([1, 0], dtype=int32)

    Source: JAX, `jax.numpy.argmax`.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.argmax is not supported.")
    return _argmax(a, None if axis is None else index(axis), bool(keepdims), are_native())


@partial(jax.jit, static_argnums=(1, 2, 3))
def _argmax(a: Any, axis: int | None, keepdims: bool, is_native: bool) -> Any:
    del is_native
    data = jnp.asarray(a)
    if is_empty_along(data.shape, axis):
        raise ValueError("attempt to get argmax of an empty sequence")
    indices = ops.reduce_max(data, axis=axis, keepdims=keepdims, return_indices=True)[1]
    return jnp.asarray(indices, jnp.result_type(int))


def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Any:
    """Return the maximum of each segment of rows. The value of empty segments is -Inf, the lowest integer or False.

    >>> segment_max(jnp.array([[1, 8], [2, 7], [9, 3]]), jnp.array([1, 1, 0]))
    Array([[9, 3],
           [2, 8]], dtype=int32)

    Source: JAX, `jax.ops.segment_max`.
    """
    del unique_indices  # maxops does not require this information
    if bucket_size is not None or mode not in (None, "drop", "fill", jax.lax.GatherScatterMode.FILL_OR_DROP):
        raise NotImplementedError(
            "maxops.compat.jax.segment_max does not support bucket_size, and mode must be None, 'drop' or 'fill'"
        )
    array = jnp.asarray(data)
    if array.dtype == bool:
        lowest: Any = False
    else:
        limits: Any = jnp.iinfo
        lowest = int(limits(array.dtype).min) if jnp.issubdtype(array.dtype, jnp.integer) else -jnp.inf
    return ops.segment_max(
        array,
        jnp.asarray(segment_ids),
        num_segments,
        fill_value=lowest,
        sorted=indices_are_sorted,
        out_of_range="drop",
    )
