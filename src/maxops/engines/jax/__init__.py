"""The engine for JAX arrays on any device, with support for `jit`, `vmap` and `grad`.

Shapes and dtypes are checked at trace time, with the same errors as for NumPy arrays. Outside `jit`, the values of ids
are checked before the call. Under `jit`, they are checked at run time and only on the CPU. If the check fails, JAX
raises its own error, which contains the message of maxops.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from maxops.extras import needed

with needed("maxops.engines.jax", "jax"):
    import jax
    import jax.numpy as jnp
    from jax.export import is_symbolic_dim

from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines.base import Run, alone_if_one, by_operator, segments_along
from maxops.engines.jax import compiled, inputs
from maxops.engines.jax.lowering import are_native, only_integer_keys
from maxops.engines.jax.segments import Segments
from maxops.errors import AttributeValueError, AxesError
from maxops.order import identity_bits
from maxops.plan import bits_of, plan_max, plan_reduce_max, plan_segment_max, shape_along
from maxops.plan.output import output_of
from maxops.plan.values import is_python_scalar
from maxops.spec import MAXIMUM, REDUCE_MAX

__all__ = ["only_integer_keys", "run"]


# Compiled functions for plain calls, keyed by everything that the plan of a call depends on. They are cached, because
# planning takes longer than a small call.
_planned: dict[Any, Any] = {}
_MOST_PLANS = 4096


def _remember(key: Any, function: Any) -> Any:
    if len(_planned) >= _MOST_PLANS:
        _planned.clear()
    _planned[key] = compiled_once = jax.jit(function, inline=True)
    return compiled_once


def _maximum(call: MaxCall) -> jax.Array:
    arrays, native, key = call.inputs, are_native(), None
    if (
        call.out is None
        and call.row is MAXIMUM
        and type(call.nan) is str
        and (known := inputs.signature(*arrays)) is not None
    ):
        key = native, call.ties, call.nan, known
    function: Any = _planned.get(key)
    ready = None if function is None else inputs.with_scalars(arrays)
    if ready is None:
        ready, nan = _plan_maximum(call)
        function = partial(compiled.maximum, ties=call.ties, nan=nan, native=native)
        if key is not None and all(map(inputs.is_plain, arrays, ready)):
            function = _remember(key, function)
    result: jax.Array = function(*ready)
    return result


def _plan_maximum(call: MaxCall) -> tuple[list[Any], str]:
    row, call = call.row, call._replace(inputs=inputs.typed(call.inputs))
    planned = plan_max(call.map(partial(inputs.abstract_of, row)), in_memory=inputs.are_on_cpu(*call.inputs)).call
    arrays = [
        known if is_python_scalar(array) else inputs.as_jax(row, name, array)
        for (name, array), known in zip(call.arrays, planned.inputs, strict=True)
    ]
    return arrays, planned.nan


def _reduce_max(call: ReduceCall) -> Any:
    given, native, key = [call.data, call.initial], are_native(), None
    if _is_plain_reduction(call) and (known := inputs.signature(*given)) is not None:
        axes = tuple(call.axes) if type(call.axes) is list else call.axes
        key = native, call.ties, call.nan, known, axes, call.keepdims, call.noop_with_empty_axes, call.return_indices
    function: Any = _planned.get(key)
    ready = None if function is None else inputs.with_scalars(given)
    if ready is None:
        *ready, options = _plan_reduce_max(call)
        function = partial(compiled.reduce_max, ties=call.ties, native=native, **options)
        if key is not None and all(map(inputs.is_plain, given, ready)):
            function = _remember(key, function)
    return alone_if_one(function(*ready))


def _is_plain_reduction(call: ReduceCall) -> bool:
    """Return whether a cache key can contain all options of a call: defaults, Python bools and Python integers."""
    axes = call.axes
    return (
        call.out is None
        and call.row is REDUCE_MAX
        and type(call.nan) is str
        and {*map(type, (call.keepdims, call.noop_with_empty_axes, call.return_indices))} == {bool}
        and (axes is None or type(axes) is int or (type(axes) in (list, tuple) and {*map(type, axes)} <= {int}))
    )


def _plan_reduce_max(call: ReduceCall) -> tuple[Any, Any, dict[str, Any]]:
    data, initial = inputs.typed([call.data, call.initial])
    row, call = call.row, call._replace(data=data, initial=initial)
    inputs.reject_traced(row, "axes", call.axes, AxesError)
    inputs.reject_traced(row, "keepdims", call.keepdims, AttributeValueError)
    abstract = partial(inputs.abstract_of, row)
    planned = plan_reduce_max(call.map(abstract, abstract), in_memory=inputs.are_on_cpu(data)).call
    return (
        inputs.as_jax(row, "data", data),
        inputs.initial_as_jax(row, call.initial, planned.initial),
        {
            "axes": None if planned.noop_with_empty_axes else tuple(sorted(planned.axes)),
            "keepdims": planned.keepdims,
            "return_indices": planned.return_indices,
            "nan": planned.nan,
        },
    )


def _segment_max(call: SegmentCall) -> Any:
    data, initial = inputs.typed([call.data, call.initial])
    row, call = call.row, call._replace(data=data, initial=initial)
    by_offsets = call.offsets is not None
    count = inputs.number_of_segments(row, call.num_segments)
    count_is_symbolic = is_symbolic_dim(count)
    in_memory = inputs.are_on_cpu(*(array for _, array in call.arrays)) and not count_is_symbolic
    abstract = partial(inputs.abstract_of, row)
    plan = plan_segment_max(
        call.map(abstract, partial(inputs.scalar_of, row), num_segments=None if count_is_symbolic else count),
        in_memory=in_memory and (by_offsets or count is not None),
        values_known=False,
    )
    planned, axis = plan.call, plan.call.axis
    bounds = inputs.Bounds(
        row,
        "offsets" if by_offsets else "segment_ids",
        call.offsets if by_offsets else call.segment_ids,
        planned.data.shape[axis],
        sorted=planned.sorted,
        out_of_range=planned.out_of_range,
        count=count if count_is_symbolic else planned.num_segments if by_offsets or count is not None else None,
    )
    if planned.check_ids and bounds.are_known:
        bounds.check()
    segments = bounds.count_of_segments()
    if count is None and in_memory:  # raises an error if the result is too large
        output_of(row, None, plan.dtype, shape_along(plan.shape, axis, segments), "shape")
    rows = inputs.as_jax(row, "data", data)
    how = Segments(
        segments,
        "offsets" if by_offsets else "sorted" if planned.sorted else "any",
        checks=planned.check_ids and not bounds.are_known,
        rejects_negative=bounds.out_of_range != "drop",
        rejects_past=bounds.out_of_range == "error",
        # with an initial value, empty segments have the identity of the maximum
        fill=identity_bits(plan.dtype, planned.nan)
        if planned.initial is not None
        else bits_of(planned.fill_value, plan.dtype),
        nan=planned.nan,
    )
    results = compiled.segment_max(
        jnp.moveaxis(rows, axis, 0) if axis else rows,
        bounds.as_jax(segments),
        inputs.initial_as_jax(row, call.initial, planned.initial),
        how=how,
        return_indices=planned.return_indices,
        return_empty=planned.return_empty,
        ties=call.ties,
        native=are_native(),
    )
    return alone_if_one(segments_along(axis, jnp.moveaxis, results))


run: Run = by_operator(_maximum, _reduce_max, _segment_max)
