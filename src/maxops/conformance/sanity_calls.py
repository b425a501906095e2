"""Sanity calls: small calls that detect corrupted state, at the start and after each error or missing error."""

from __future__ import annotations

import numpy as np

from maxops import spec
from maxops.conformance.case import Call, Feed, Input, Trial
from maxops.conformance.expected import expected_result
from maxops.dtypes import FLOAT32, INT64
from maxops.spec import Spec


def sanity_calls() -> list[Trial]:
    """Return one sanity call of each operator, in its newest version."""
    rows = (spec.MAX_13, spec.REDUCE_MAX_20, spec.SEGMENT_MAX_16, spec.SCATTER_ELEMENTS_18, spec.SCATTER_ND_18)
    return [sanity_call(row) for row in rows]


def sanity_call(row: Spec) -> Trial:
    """Return a small call of a row, on float32."""
    data = Input("data", FLOAT32, (3,))
    feed: Feed = (np.array([1, 3, 2], np.float32),)
    call = Call(row, (data,), rank=1)
    if row.operator == "Max":
        call, feed = Call(row, (data, Input("other", FLOAT32, (3,))), rank=1), (*feed, feed[0][::-1].copy())
    if row.operator == "SegmentMax":
        ids = Input("segment_ids", INT64, (3,))
        call = Call(row, (data, ids), (("fill_mode", "ZERO"),), rank=1)
        feed = (*feed, np.array([0, 0, 1], np.int64))
    if row.is_scatter:
        names = zip(("indices", "updates"), (INT64, FLOAT32), (1 if row.has("axis") else 2, 1), strict=True)
        inputs = (Input(name, dtype, (3,) * rank if rank == 1 else (3, 1)) for name, dtype, rank in names)
        call = Call(row, (data, *inputs), (("reduction", "max"),), rank=1)
        indices = np.array([0, 0, 1], np.int64)
        feed = (*feed, indices if row.has("axis") else indices.reshape(3, 1), feed[0][::-1].copy())
    return Trial(call, (feed,), (expected_result(row, call, feed),))
