"""Our own candidate: the public functions, as anyone calls them."""

from __future__ import annotations

import maxops as mo
from maxops.bench.candidate import Candidate, Work
from maxops.bench.inputs import FILL_MODE


def candidate(work: Work) -> Candidate:
    """The call."""
    case = work.case
    if case.operator == "Max":
        return Candidate("maxops.maximum", mo.maximum, work.inputs.arrays, {"out": work.inputs.out} if case.out else {})
    if case.operator == "ReduceMax":
        axes = None if len(case.axes) == work.data.ndim else case.axes
        return Candidate("maxops.reduce_max", mo.reduce_max, (work.data, axes, False))
    assert case.segments is not None
    options = {} if case.segments.check_ids else {"check_ids": False}
    return Candidate(
        "maxops.segment_max",
        mo.segment_max,
        (work.data, work.ids, work.num_segments),
        {"fill_mode": FILL_MODE, **options},
    )
