"""The engine for NumPy arrays. It checks a call, and runs it in the native core or, for exact rationals, in Python."""

from __future__ import annotations

from typing import Any

from maxops import dtypes
from maxops.calls import Call, MaxCall, ReduceCall, ScatterCall, SegmentCall
from maxops.engines import native, rational
from maxops.engines.base import Run, by_operator
from maxops.engines.scatter import scatter_max
from maxops.plan import plan_max, plan_reduce_max, plan_scatter_max, plan_segment_max


def _maximum(call: MaxCall) -> Any:
    plan = plan_max(call)
    return _with_out(call, rational.maximum(plan) if plan.dtype is dtypes.REAL else native.maximum(plan))


def _reduce_max(call: ReduceCall) -> Any:
    plan = plan_reduce_max(call)
    return _with_out(call, rational.reduce_max(plan) if plan.dtype is dtypes.REAL else native.reduce_max(plan))


def _segment_max(call: SegmentCall) -> Any:
    plan = plan_segment_max(call)
    return _with_out(call, rational.segment_max(plan) if plan.dtype is dtypes.REAL else native.segment_max(plan))


def _with_out(call: Call | ScatterCall, result: Any) -> Any:
    """Return the result. If the caller passed `out`, return `out` itself, not the plan's view of it."""
    if call.out is None:
        return result
    return (call.out, *result[1:]) if isinstance(result, tuple) else call.out


_of_plain: Run = by_operator(_maximum, _reduce_max, _segment_max)


def run(call: Call | ScatterCall) -> Any:
    """Run a call on NumPy arrays."""
    if isinstance(call, ScatterCall):
        return _with_out(call, scatter_max(plan_scatter_max(call)))
    return _of_plain(call)
