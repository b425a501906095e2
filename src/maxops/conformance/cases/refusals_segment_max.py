"""SegmentMax: ids, numbers of segments and modes that must be refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input
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
# What stands for its kind in a short run: few, for each may end a runtime's process, and many take long to start.
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
    """The cases of a row."""
    sorted_ids = np.array([0, 0, 1], np.int64)
    for index in (dtypes.INT32, dtypes.INT64):
        for words, ids in WRONG_IDS.items():
            array = np.array(ids, index.numpy)
            call = segments(row, DTYPE, ids=index)
            yield from _refuse(row, "ids", f"{words}, {index}", call, (DATA, array))
    known = Call(row, (Input("data", DTYPE, (None,)), _ids(np.array([1, 0, 2], np.int64))), (("fill_mode", "ZERO"),), 1)
    yield from _refuse(row, "ids", "constant ids that decrease", known, (DATA,))
    counted = segments(row, DTYPE, number=dtypes.INT64)
    feed = DATA, np.array([0, -1, 1], np.int64), np.array(2, np.int64)
    yield from _refuse(row, "ids", "an id in the middle negative, with num_segments", counted, feed)

    scalar = Call(row, (Input("data", DTYPE, ()), _ids()), (("fill_mode", "ZERO"),), 1)
    yield from _refuse(row, "data", "data a scalar", scalar, (pool.distinct(DTYPE, ()), np.zeros(1, np.int64)))
    for words, shape in (("fewer ids than rows", (2,)), ("more ids than rows", (4,)), ("no ids", (0,))):
        yield from _refuse(row, "ids.shape", words, segments(row, DTYPE), (DATA, np.zeros(shape, np.int64)))
    odd: dict[str, Array] = {"ids of rank 2": np.zeros((3, 1), np.int64), "ids a scalar": np.array(0, np.int64)}
    for words, array in odd.items():
        flat = Input("data", DTYPE, (None,)), Input("segment_ids", dtypes.INT64, (None,) * array.ndim)
        yield from _refuse(row, "ids.shape", words, Call(row, flat, (("fill_mode", "ZERO"),), 1), (DATA, array))
    for index in (dtypes.FLOAT32, dtypes.UINT8, dtypes.INT16, dtypes.UINT64):
        feed_ids = sorted_ids.astype(index.numpy)
        yield from _refuse(row, "T_IDX", f"{index} ids", segments(row, DTYPE, ids=index), (DATA, feed_ids))
    for index in (dtypes.FLOAT32, dtypes.UINT64):
        call = segments(row, DTYPE, number=index)
        count = np.array(2, index.numpy)
        yield from _refuse(row, "T_IDX", f"{index} num_segments", call, (DATA, sorted_ids, count))
    yield from _numbers(row, sorted_ids)
    for words, mode in (("left out", None), ("unknown", "HIGHEST"), ("empty", "")):
        call = segments(row, DTYPE, mode)
        yield from _refuse(row, "fill_mode", f"fill_mode {words}", call, (DATA, sorted_ids))


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
        yield from _refuse(row, "num_segments", f"{sentence}, with the data", call, (DATA, ids, number))
        call = segments(row, DTYPE, number=number)
        yield from _refuse(row, "num_segments", f"{sentence}, a constant", call, (DATA, ids))
    for words, shape in (("of rank 1", (1,)), ("of two", (2,))):
        array = np.full(shape, 2, np.int64)
        call = segments(row, DTYPE, number=array)
        yield from _refuse(row, "num_segments", f"num_segments {words}, a constant", call, (DATA, ids))
        count = Input("num_segments", dtypes.INT64, (None,))
        call = Call(row, (*segments(row, DTYPE).inputs, count), call.attributes, 1)
        sentence = f"num_segments {words}, with the data"
        yield from _refuse(row, "num_segments", sentence, call, (DATA, ids, array))


def _refuse(row: Spec, meaning: str, sentence: str, call: Call, feed: Feed) -> Iterator[Case]:
    return refuse(row, meaning, DTYPE, sentence, call, feed, quick="once" if sentence in QUICK else None)


def _ids(constant: Array | None = None) -> Input:
    return Input("segment_ids", dtypes.INT64, (None,) if constant is None else constant.shape, constant)
