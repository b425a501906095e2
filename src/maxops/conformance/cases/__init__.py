"""The cases, derived from the spec table. Each module builds a family of cases from clauses, types and sentences.

Each row of ONNX and OpenVINO has its own cases. The rows that profile the newest version of an operator (SONNX) judge
the same trials, and add their own refusals. Cases for a new row or type of the table are created automatically.
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
    """Yield all cases in a stable order; cases that share a trial are adjacent."""
    for family in FAMILIES:
        yield from family.cases()
