"""The planner checks a call against its row in `maxops.spec`. It returns a plan or raises an error that names a clause.

The native core passes a call to the planner if the call breaks a rule or if the core does not support the arguments. A
plan contains plain NumPy arrays of one dtype with compatible shapes. Engines for arrays of other libraries plan with
`abstract` arrays, which have a shape and a dtype but no values.
"""

from typing import Any

from maxops.calls import Call, MaxCall, ReduceCall, ScatterCall
from maxops.plan.faults import are_offsets, check_offsets, check_segment_ids
from maxops.plan.max import MOST_INPUTS, plan_max
from maxops.plan.output import LARGEST_OUTPUT
from maxops.plan.plan import Plan
from maxops.plan.reduce import plan_reduce_max
from maxops.plan.scatter import plan_scatter_max
from maxops.plan.segment import (
    FILL_MODES,
    axis_of,
    bits_of,
    default_num_segments,
    plan_segment_max,
    shape_along,
)
from maxops.plan.values import Array, abstract, array_of, choice, flag, integers_of, widened, widened_dtype

__all__ = [
    "FILL_MODES",
    "LARGEST_OUTPUT",
    "MOST_INPUTS",
    "Array",
    "Plan",
    "abstract",
    "are_offsets",
    "array_of",
    "axis_of",
    "bits_of",
    "check_offsets",
    "check_segment_ids",
    "choice",
    "default_num_segments",
    "flag",
    "integers_of",
    "plan",
    "plan_max",
    "plan_reduce_max",
    "plan_scatter_max",
    "plan_segment_max",
    "shape_along",
    "widened",
    "widened_dtype",
]


def plan(call: Call | ScatterCall) -> Plan[Any]:
    """Check a call on arrays in memory, and return its plan."""
    if isinstance(call, MaxCall):
        return plan_max(call)
    if isinstance(call, ScatterCall):
        return plan_scatter_max(call)
    return plan_reduce_max(call) if isinstance(call, ReduceCall) else plan_segment_max(call)
