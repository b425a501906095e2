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
        raise AttributeValueError(
            f"{row.name} dim is {dim!r}; only the axes of xarray's arrays have names", row.clause("dim")
        )


def run_max(plan: MaxPlan) -> Array:
    """Run a plan of Max."""
    return rational.maximum(plan) if plan.dtype is dtypes.REAL else native.maximum(plan)


def run_reduce_max(plan: ReducePlan) -> Array | tuple[Array, ...]:
    """Run a plan of ReduceMax: the maxima, and with return_indices where they stand."""
    if plan.dtype is not dtypes.REAL:
        return native.reduce_max(plan)
    if not plan.return_indices:
        return rational.reduce_max(plan)
    # Nothing is written to the caller's output before the indices are there.
    values = rational.reduce_max(replace(plan, out=None))
    indices = winners.in_axes(plan, values)
    return _into(plan, values), indices


def run_segment_max(plan: SegmentPlan) -> Array | tuple[Array, ...]:
    """Run a plan of SegmentMax: the maxima, and what else is asked for."""
    return _run_rational_segment_max(plan) if plan.dtype is dtypes.REAL else native.segment_max(plan)


def _run_rational_segment_max(plan: SegmentPlan) -> Array | tuple[Array, ...]:
    if plan.segment_ids is None:
        plan = replace(plan, segment_ids=_ids_of_offsets(plan))
    if not plan.return_indices and not plan.return_empty:
        return rational.segment_max(plan)
    values = rational.segment_max(replace(plan, out=None))
    places = [winners.in_segments(plan, values)] if plan.return_indices else []
    empty = [winners.empty_segments(plan)] if plan.return_empty else []
    return (_into(plan, values), *places, *empty)


def _into(plan: ReducePlan | SegmentPlan, values: Array) -> Array:
    """The values in the plan's output, if it has one."""
    if plan.out is None:
        return values
    np.copyto(plan.out, values, casting="equiv")
    return plan.out


def _ids_of_offsets(plan: SegmentPlan) -> Array:
    """The ids that offsets stand for; of bad ones, which nobody has checked, that of no segment."""
    assert plan.offsets is not None
    if plan.offsets[0] != 0 or plan.offsets[-1] != len(plan.data) or (plan.offsets[1:] < plan.offsets[:-1]).any():
        return np.full(len(plan.data), -1, np.int64)
    lengths = np.diff(plan.offsets)
    return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
