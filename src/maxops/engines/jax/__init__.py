"""The engine for JAX's arrays: under `jit`, `vmap` and `grad` as outside of them, on any device.

Shapes and types are known while JAX traces, and what is wrong with them is an error then, as on NumPy's arrays. The
values of ids are looked at before a call outside of `jit`; within, they are looked at as they come on the CPU, where
the error is JAX's own with the same text, and not at all on other devices.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.export import is_symbolic_dim

from maxops import spec
from maxops.engines.jax import calls, given
from maxops.engines.jax.lowering import are_native, only_integer_keys
from maxops.engines.jax.segments import Segments
from maxops.engines.numpy import check_no_dim, check_ties
from maxops.errors import OutputError
from maxops.plan import plan_max, plan_reduce_max, plan_segment_max
from maxops.plan.output import output_of
from maxops.plan.values import is_python_scalar
from maxops.spec import Spec

__all__ = ["maximum", "only_integer_keys", "reduce_max", "segment_max"]


def maximum(*arrays: Any, out: Any = None, ties: str = "even") -> jax.Array:
    """See `maxops.maximum`."""
    row = spec.MAXIMUM
    check_ties(row, ties)
    _check_no_out(row, out)
    names = [f"input {number}" for number in range(len(arrays))]
    stand_ins = [given.stand_in_of(row, name, array) for name, array in zip(names, arrays, strict=True)]
    plan = plan_max(row, stand_ins, in_memory=given.are_on_cpu(*arrays))
    inputs = [
        scalar if is_python_scalar(array) else given.as_jax(row, name, array)
        for name, array, scalar in zip(names, arrays, plan.inputs, strict=True)
    ]
    result: jax.Array = calls.maximum(*inputs, ties=ties, native=are_native())
    return result


def reduce_max(
    data: Any,
    axes: Any = None,
    keepdims: bool = True,
    noop_with_empty_axes: bool = False,
    out: Any = None,
    *,
    dim: Any = None,
    initial: Any = None,
    return_indices: bool = False,
    ties: str = "even",
) -> jax.Array | tuple[jax.Array, ...]:
    """See `maxops.reduce_max`."""
    row = spec.REDUCE_MAX
    check_ties(row, ties)
    check_no_dim(row, dim)
    _check_no_out(row, out)
    plan = plan_reduce_max(
        row,
        given.stand_in_of(row, "data", data),
        axes,
        keepdims,
        noop_with_empty_axes,
        initial=given.stand_in_of(row, "initial", initial),
        return_indices=return_indices,
        in_memory=given.are_on_cpu(data),
    )
    return given.alone_if_one(
        calls.reduce_max(
            given.as_jax(row, "data", data),
            given.initial_as_jax(row, initial, plan.initial),
            axes=None if plan.identity else tuple(sorted(plan.axes)),
            keepdims=plan.keepdims,
            return_indices=plan.return_indices,
            ties=ties,
            native=are_native(),
        )
    )


def segment_max(
    data: Any,
    segment_ids: Any = None,
    num_segments: Any = None,
    *,
    fill_mode: str | None = None,
    out: Any = None,
    check_ids: bool = True,
    offsets: Any = None,
    sorted: bool = True,
    out_of_range: str | None = None,
    dim: Any = None,
    initial: Any = None,
    return_indices: bool = False,
    return_empty: bool = False,
    ties: str = "even",
) -> jax.Array | tuple[jax.Array, ...]:
    """See `maxops.segment_max`."""
    row = spec.SEGMENT_MAX
    check_ties(row, ties)
    check_no_dim(row, dim)
    _check_no_out(row, out)
    by_offsets = offsets is not None
    count = given.number_of_segments(row, num_segments)
    count_is_symbolic = is_symbolic_dim(count)
    in_memory = given.are_on_cpu(data, segment_ids, offsets) and not count_is_symbolic
    plan = plan_segment_max(
        row,
        given.stand_in_of(row, "data", data),
        given.stand_in_of(row, "segment_ids", segment_ids),
        None if count_is_symbolic else count,
        fill_mode,
        None,
        check_ids,
        offsets=given.stand_in_of(row, "offsets", offsets),
        sorted=sorted,
        out_of_range=out_of_range,
        initial=given.stand_in_of(row, "initial", initial),
        return_indices=return_indices,
        return_empty=return_empty,
        in_memory=in_memory and (by_offsets or num_segments is not None),
        values_known=False,
    )
    name = "offsets" if by_offsets else "segment_ids"
    bounds = given.Bounds(
        row,
        name,
        offsets if by_offsets else segment_ids,
        plan.data.shape[0],
        sorted=plan.sorted,
        out_of_range=None if out_of_range is None and plan.sorted else out_of_range or "error",
        count=count if count_is_symbolic else plan.num_segments if by_offsets or count is not None else None,
    )
    if plan.check_ids and bounds.are_known:
        bounds.check()
    count = bounds.count_of_segments()
    if num_segments is None and in_memory:
        output_of(row, None, plan.dtype, (count, *plan.data.shape[1:]), "shape")  # does it fit? The ids have told
    fill = 0 if plan.fill_mode == "ZERO" else plan.dtype.lowest_finite_bits
    how = Segments(
        count,
        "offsets" if by_offsets else "sorted" if plan.sorted else "any",
        checks=plan.check_ids and not bounds.are_known,
        negative_is_bad=bounds.out_of_range != "drop",
        past_is_bad=bounds.out_of_range == "error",
        # -Inf under an initial value, which is then never lower
        fill=fill if plan.initial is None else plan.dtype.lowest_bits,
        name=row.name,
        clause=row.clause("ids"),
    )
    return given.alone_if_one(
        calls.segment_max(
            given.as_jax(row, "data", data),
            bounds.as_jax(count),
            given.initial_as_jax(row, initial, plan.initial),
            how=how,
            return_indices=plan.return_indices,
            return_empty=plan.return_empty,
            ties=ties,
            native=are_native(),
        )
    )


def _check_no_out(row: Spec, out: object) -> None:
    if out is not None:
        raise OutputError(f"{row.name} out is given, but JAX's arrays never change: results are new", row.clause("out"))
