"""The engine for NumPy arrays: plans a call, and has the native core or the exact rationals run it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from maxops import dtypes, spec
from maxops.engines import native, rational, winners
from maxops.errors import AttributeValueError
from maxops.plan import Array, MaxPlan, ReducePlan, SegmentPlan, choice, plan_max, plan_reduce_max, plan_segment_max
from maxops.spec import Spec


def maximum(*arrays: Any, out: Array | None = None, ties: str = "first") -> Array:
    """See `maxops.maximum`."""
    check_ties(spec.MAXIMUM, ties)
    return run_max(plan_max(spec.MAXIMUM, arrays, out))


def reduce_max(
    data: Any,
    axes: Any = None,
    keepdims: bool = True,
    noop_with_empty_axes: bool = False,
    out: Array | None = None,
    *,
    dim: Any = None,
    initial: Any = None,
    return_indices: bool = False,
    ties: str = "first",
) -> Array | tuple[Array, ...]:
    """See `maxops.reduce_max`."""
    row = spec.REDUCE_MAX
    check_ties(row, ties)
    check_no_dim(row, dim)
    plan = plan_reduce_max(
        row, data, axes, keepdims, noop_with_empty_axes, out, initial=initial, return_indices=return_indices
    )
    return run_reduce_max(plan)


def segment_max(
    data: Any,
    segment_ids: Any = None,
    num_segments: Any = None,
    *,
    fill_mode: str | None = None,
    out: Array | None = None,
    check_ids: bool = True,
    offsets: Any = None,
    sorted: bool = True,
    out_of_range: str | None = None,
    dim: Any = None,
    initial: Any = None,
    return_indices: bool = False,
    return_empty: bool = False,
    ties: str = "first",
) -> Array | tuple[Array, ...]:
    """See `maxops.segment_max`."""
    row = spec.SEGMENT_MAX
    check_ties(row, ties)
    check_no_dim(row, dim)
    plan = plan_segment_max(
        row,
        data,
        segment_ids,
        num_segments,
        fill_mode,
        out,
        check_ids,
        offsets=offsets,
        sorted=sorted,
        out_of_range=out_of_range,
        initial=initial,
        return_indices=return_indices,
        return_empty=return_empty,
    )
    return run_segment_max(plan)


def check_ties(row: Spec, ties: object) -> str:
    """Who gets the gradient where several elements hold the maximum; nobody on engines without gradients."""
    return choice(row, "ties", ties, ("first", "even"))


def check_no_dim(row: Spec, dim: object) -> None:
    """Raise if an axis is named: only xarray's have names."""
    if dim is not None:
        raise AttributeValueError(f"{row.name} dim is {dim!r}; only the axes of xarray's arrays have names")


def run_max(plan: MaxPlan) -> Array:
    """Run a plan of Max."""
    return rational.maximum(plan) if plan.dtype is dtypes.REAL else native.maximum(plan)


def run_reduce_max(plan: ReducePlan) -> Array | tuple[Array, ...]:
    """Run a plan of ReduceMax: the maxima, and with return_indices where they stand."""
    if plan.dtype is dtypes.REAL:
        values = rational.reduce_max(plan)
    else:
        values = native.reduce_max(plan)
        if plan.initial is not None:
            values = native.maximum(MaxPlan(plan.spec, plan.dtype, plan.shape, (values, plan.initial), values))
    return (values, winners.in_axes(plan, values)) if plan.return_indices else values


def run_segment_max(plan: SegmentPlan) -> Array | tuple[Array, ...]:
    """Run a plan of SegmentMax: the maxima, and what else is asked for."""
    if plan.segment_ids is None:
        plan = replace(plan, segment_ids=_ids_of_offsets(plan))
    empty = winners.empty_segments(plan) if plan.return_empty or plan.initial is not None else None
    if plan.dtype is dtypes.REAL:
        values = rational.segment_max(plan)
    else:
        values = native.segment_max(plan)
        if plan.initial is not None:
            native.maximum(MaxPlan(plan.spec, plan.dtype, plan.shape, (values, plan.initial), values))
            values[empty] = plan.initial
    results = [values]
    if plan.return_indices:
        results.append(winners.in_segments(plan, values))
    if plan.return_empty:
        assert empty is not None
        results.append(empty)
    return tuple(results) if len(results) > 1 else values


def _ids_of_offsets(plan: SegmentPlan) -> Array:
    """The ids that offsets stand for."""
    assert plan.offsets is not None
    lengths = np.diff(plan.offsets)
    return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
