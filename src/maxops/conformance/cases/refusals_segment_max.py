"""SegmentMax: ids, numbers of segments and modes that must be refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Input
from maxops.conformance.cases.family import refuse
from maxops.conformance.cases.segment_max import segments
from maxops.plan import Array
from maxops.spec import Spec

DTYPE = dtypes.FLOAT32
DATA = pool.distinct(DTYPE, (3,))
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


def cases(row: Spec) -> Iterator[Case]:
    """The cases of a row."""
    sorted_ids = np.array([0, 0, 1], np.int64)
    for index in (dtypes.INT32, dtypes.INT64):
        for words, ids in WRONG_IDS.items():
            array = np.array(ids, index.numpy)
            call = segments(row, DTYPE, ids=index)
            quick = index is dtypes.INT64
            yield from refuse(row, "ids", DTYPE, f"{words}, {index}", call, (DATA, array), quick=quick)
    known = Call(row, (Input("data", DTYPE, (None,)), _ids(np.array([1, 0, 2], np.int64))), (("fill_mode", "ZERO"),), 1)
    yield from refuse(row, "ids", DTYPE, "constant ids that decrease", known, (DATA,))
    counted = segments(row, DTYPE, number=dtypes.INT64)
    feed = DATA, np.array([0, -1, 1], np.int64), np.array(2, np.int64)
    yield from refuse(row, "ids", DTYPE, "an id in the middle negative, with num_segments", counted, feed)

    scalar = Call(row, (Input("data", DTYPE, ()), _ids()), (("fill_mode", "ZERO"),), 1)
    yield from refuse(row, "data", DTYPE, "data a scalar", scalar, (pool.distinct(DTYPE, ()), np.zeros(1, np.int64)))
    for words, shape in (("fewer ids than rows", (2,)), ("more ids than rows", (4,)), ("no ids", (0,))):
        yield from refuse(row, "ids.shape", DTYPE, words, segments(row, DTYPE), (DATA, np.zeros(shape, np.int64)))
    odd: dict[str, Array] = {"ids of rank 2": np.zeros((3, 1), np.int64), "ids a scalar": np.array(0, np.int64)}
    for words, array in odd.items():
        flat = Input("data", DTYPE, (None,)), Input("segment_ids", dtypes.INT64, (None,) * array.ndim)
        yield from refuse(row, "ids.shape", DTYPE, words, Call(row, flat, (("fill_mode", "ZERO"),), 1), (DATA, array))
    for index in (dtypes.FLOAT32, dtypes.UINT8, dtypes.INT16, dtypes.UINT64):
        feed_ids = sorted_ids.astype(index.numpy)
        yield from refuse(row, "T_IDX", DTYPE, f"{index} ids", segments(row, DTYPE, ids=index), (DATA, feed_ids))
    for index in (dtypes.FLOAT32, dtypes.UINT64):
        call = segments(row, DTYPE, number=index)
        count = np.array(2, index.numpy)
        yield from refuse(row, "T_IDX", DTYPE, f"{index} num_segments", call, (DATA, sorted_ids, count))
    yield from _numbers(row, sorted_ids)
    for words, mode in (("left out", None), ("unknown", "HIGHEST"), ("empty", "")):
        call = segments(row, DTYPE, mode)
        yield from refuse(row, "fill_mode", DTYPE, f"fill_mode {words}", call, (DATA, sorted_ids))


def _numbers(row: Spec, ids: Array) -> Iterator[Case]:
    for words, number in (
        ("-1", np.array(-1, np.int64)),
        ("-1 in int32", np.array(-1, np.int32)),
        ("the lowest there is", np.array(-(2**63), np.int64)),
    ):
        dtype = dtypes.of(number.dtype)
        assert dtype is not None
        call = segments(row, DTYPE, number=dtype)
        sentence = f"num_segments {words}"
        yield from refuse(row, "num_segments", DTYPE, f"{sentence}, with the data", call, (DATA, ids, number))
        call = segments(row, DTYPE, number=number)
        yield from refuse(row, "num_segments", DTYPE, f"{sentence}, a constant", call, (DATA, ids))
    for words, shape in (("of rank 1", (1,)), ("of two", (2,))):
        array = np.full(shape, 2, np.int64)
        call = segments(row, DTYPE, number=array)
        yield from refuse(row, "num_segments", DTYPE, f"num_segments {words}, a constant", call, (DATA, ids))
        count = Input("num_segments", dtypes.INT64, (None,))
        call = Call(row, (*segments(row, DTYPE).inputs, count), call.attributes, 1)
        sentence = f"num_segments {words}, with the data"
        yield from refuse(row, "num_segments", DTYPE, sentence, call, (DATA, ids, array))


def _ids(constant: Array | None = None) -> Input:
    return Input("segment_ids", dtypes.INT64, (None,) if constant is None else constant.shape, constant)
