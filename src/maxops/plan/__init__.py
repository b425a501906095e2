"""A call against a row of the spec table: a plan that engines run without looking back, or a clause error.

Every check of every call is here. A plan holds plain NumPy arrays of one type whose shapes go together; an engine
for other arrays plans with `stand_in`s, which have their shapes and types and hold nothing.
"""

from maxops.plan.faults import check_offsets, check_segment_ids
from maxops.plan.max import MOST_INPUTS, MaxPlan, plan_max
from maxops.plan.output import LARGEST_OUTPUT
from maxops.plan.reduce import ReducePlan, plan_reduce_max
from maxops.plan.segment import SegmentPlan, plan_segment_max
from maxops.plan.values import AbstractArray, Array, array_of, choice, flag, stand_in, widened, widened_dtype

__all__ = [
    "LARGEST_OUTPUT",
    "MOST_INPUTS",
    "AbstractArray",
    "Array",
    "MaxPlan",
    "ReducePlan",
    "SegmentPlan",
    "array_of",
    "check_offsets",
    "check_segment_ids",
    "choice",
    "flag",
    "plan_max",
    "plan_reduce_max",
    "plan_segment_max",
    "stand_in",
    "widened",
    "widened_dtype",
]
