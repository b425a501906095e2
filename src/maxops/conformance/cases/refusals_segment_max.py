"""SegmentMax: ids, numbers of segments and modes that must be refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input
from maxops.conformance.cases.family import refuse
from maxops.conformance.cases.segment_max import segments
from maxops.spec import Spec

DTYPE = dtypes.FLOAT32
DATA = pool.distinct(DTYPE, (3,))
IDS = np.array([0, 0, 1], np.int64)
WRONG_IDS = {
    "the first id negative": [-1, 0, 1],
    "an id in the middle negative": [0, -1, 1],
    "the last id negative": [0, 1, -1],
    "all ids negative": [-2, -2, -1],
    "the lowest id there is": [-(2**31), 0, 1],
    "ids that decrease": [0, 1, 0],
    "ids that decrease at the start": [2, 1, 1],
    "ids that rise again": [1, 0, 2],
}
# Refusals of each kind for a quick run; few, because each one may end the process of a runtime that starts slowly.
QUICK = (
    "an id in the middle negative, int64",
    "ids that decrease, int64",
    "data a scalar",
    "fewer ids than rows",
    "ids of rank 2",
    "uint64 ids",
    "float32 num_segments",
    "num_segments -1, with the data",
    "num_segments of two, with the data",
    "fill_mode left out",
    "fill_mode unknown",
)


def cases(row: Spec) -> Iterator[Case]:
    """Yield the refusals for a row."""
    for meaning, sentence, call, feed in (*_ids(row), *_shapes(row), *_types(row), *_numbers(row), *_modes(row)):
        yield from refuse(meaning, sentence, call, feed, quick=sentence in QUICK)


Wrong = Iterator[tuple[str, str, Call, Feed]]  # the clause's meaning, a sentence, the call, and its feed


def _ids(row: Spec) -> Wrong:
    for index in (dtypes.INT32, dtypes.INT64):
        for words, ids in WRONG_IDS.items():
            yield "ids", f"{words}, {index}", segments(row, DTYPE, ids=index), (DATA, np.array(ids, index.numpy))
    yield "ids", "constant ids that decrease", segments(row, DTYPE, ids=np.array([1, 0, 2], np.int64)), (DATA,)
    feed = DATA, np.array([0, -1, 1], np.int64), np.array(2, np.int64)
    yield "ids", "an id in the middle negative, with num_segments", segments(row, DTYPE, number=dtypes.INT64), feed


def _shapes(row: Spec) -> Wrong:
    call = segments(row, DTYPE)
    scalar = replace(segments(row, DTYPE, rank=0), rank=1)
    yield "data", "data a scalar", scalar, (pool.distinct(DTYPE, ()), np.zeros(1, np.int64))
    for words, shape in (
        ("fewer ids than rows", (2,)),
        ("more ids than rows", (4,)),
        ("no ids", (0,)),
        ("ids of rank 2", (3, 1)),
        ("ids a scalar", ()),
    ):
        ids = Input("segment_ids", dtypes.INT64, (None,) * len(shape))
        yield "ids.shape", words, replace(call, inputs=(call.inputs[0], ids)), (DATA, np.zeros(shape, np.int64))


def _types(row: Spec) -> Wrong:
    for index in (dtypes.FLOAT32, dtypes.UINT8, dtypes.INT16, dtypes.UINT64):
        yield "T_IDX", f"{index} ids", segments(row, DTYPE, ids=index), (DATA, IDS.astype(index.numpy))
    for index in (dtypes.FLOAT32, dtypes.UINT64):
        feed = DATA, IDS, np.array(2, index.numpy)
        yield "T_IDX", f"{index} num_segments", segments(row, DTYPE, number=index), feed


def _numbers(row: Spec) -> Wrong:
    for words, number in (
        ("-1", np.array(-1, np.int64)),
        ("-1 in int32", np.array(-1, np.int32)),
        ("the lowest there is", np.array(-(2**63), np.int64)),
    ):
        coming = segments(row, DTYPE, number=dtypes.of(number.dtype))
        yield "num_segments", f"num_segments {words}, with the data", coming, (DATA, IDS, number)
        yield "num_segments", f"num_segments {words}, a constant", segments(row, DTYPE, number=number), (DATA, IDS)
    for words, shape in (("of rank 1", (1,)), ("of two", (2,))):
        number = np.full(shape, 2, np.int64)
        yield "num_segments", f"num_segments {words}, a constant", segments(row, DTYPE, number=number), (DATA, IDS)
        call = segments(row, DTYPE)
        coming = replace(call, inputs=(*call.inputs, Input("num_segments", dtypes.INT64, (None,))))
        yield "num_segments", f"num_segments {words}, with the data", coming, (DATA, IDS, number)


def _modes(row: Spec) -> Wrong:
    for words, mode in (("left out", None), ("unknown", "HIGHEST"), ("empty", "")):
        yield "fill_mode", f"fill_mode {words}", segments(row, DTYPE, mode), (DATA, IDS)
