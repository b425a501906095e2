"""Sanity calls, which any runtime gets right: run at the start, and after every error to detect corrupted state."""

from __future__ import annotations

import numpy as np

from maxops import spec
from maxops.conformance.case import Call, Feed, Input, Trial
from maxops.conformance.expected import expected_result
from maxops.dtypes import FLOAT32, INT64
from maxops.spec import Spec


def sanity_calls() -> list[Trial]:
    """One of each operator, in its newest version."""
    return [sanity_call(row) for row in (spec.MAX_13, spec.REDUCE_MAX_20, spec.SEGMENT_MAX_16)]


def sanity_call(row: Spec) -> Trial:
    """A small call of a row, on float32."""
    data = Input("data", FLOAT32, (3,))
    feed: Feed = (np.array([1, 3, 2], np.float32),)
    call = Call(row, (data,), rank=1)
    if row.operator == "Max":
        call, feed = Call(row, (data, Input("other", FLOAT32, (3,))), rank=1), (*feed, feed[0][::-1].copy())
    if row.operator == "SegmentMax":
        ids = Input("segment_ids", INT64, (3,))
        call = Call(row, (data, ids), (("fill_mode", "ZERO"),), rank=1)
        feed = (*feed, np.array([0, 0, 1], np.int64))
    return Trial(call, (feed,), (expected_result(row, call, feed),))
