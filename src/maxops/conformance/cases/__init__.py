"""The cases, derived from the spec table: a file for each family, in which a clause, a type and a sentence make a case.

Each row of ONNX and OpenVINO is iterated over; rows that profile the newest version of an operator (SONNX) have a say
in the same trials, and in refusals of their own. A new row or type of the table gets its cases automatically.
"""

from __future__ import annotations

from collections.abc import Iterator

from maxops.conformance.case import Case
from maxops.conformance.cases import (
    forms,
    large,
    max_shapes,
    reduce_axes,
    reduce_max,
    refusals,
    scatter,
    segment_ids,
    segment_max,
)
from maxops.conformance.cases import max as of_max
from maxops.conformance.cases.choice import NoSuchCaseError, select

__all__ = ["FAMILIES", "NoSuchCaseError", "cases", "select"]

FAMILIES = (of_max, max_shapes, reduce_max, reduce_axes, segment_max, segment_ids, scatter, large, forms, refusals)


def cases() -> Iterator[Case]:
    """All cases, in an order that stays; those that share a trial stand together."""
    for family in FAMILIES:
        yield from family.cases()
