"""Invalid calls, which runtimes must refuse: wrong types, numbers of inputs, axes, segments and attributes.

`max_shapes` has the shapes that do not broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input
from maxops.conformance.cases import max as of_max
from maxops.conformance.cases.family import Refused, judges, refuse, rows, stored
from maxops.conformance.cases.reduce_axes import dynamic, form, int64
from maxops.conformance.cases.reduce_max import reducing
from maxops.conformance.cases.segment_max import segments
from maxops.dtypes import DType
from maxops.spec import Spec

DTYPE = dtypes.FLOAT32
IDS = np.array([0, 0, 1], np.int64)
# Rank and axes of one refusal of each kind for a quick run; -1 is valid in versions with negative axes.
QUICK_AXES = [(0, [0]), (1, [1]), (1, [-2]), (1, [0, 0]), (3, [1, -2])]
# The rank of the data, and axes that are out of range or duplicated.
OUTSIDE: list[tuple[int, list[int]]] = [(1, [1]), (2, [0, 2]), (3, [2**31]), (0, [0])]
BELOW: list[tuple[int, list[int]]] = [(1, [-2]), (2, [0, -3]), (3, [-(2**63)]), (0, [-1])]
TWICE: list[tuple[int, list[int]]] = [(1, [0, 0]), (3, [1, 0, 1])]
TWICE_BY_SIGN: list[tuple[int, list[int]]] = [(1, [0, -1]), (3, [1, -2])]
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
# Refusals of each kind for a quick run; few, because each one may end the process of a runtime that starts slowly.
QUICK_SEGMENTS = (
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


def cases() -> Iterator[Case]:
    """Yield the cases of invalid calls."""
    for operator in ("Max", "ReduceMax", "SegmentMax"):
        for row in rows(operator):
            yield from _unlisted(row)
            if operator == "Max":
                yield from _mixed(row)
            yield from _inputs(row)
            if operator == "ReduceMax":
                yield from _reduce_max(row)
            if operator == "SegmentMax":
                yield from _segment_max(row)


def small(row: Spec, dtype: DType) -> tuple[Call, Feed]:
    """Return a small call in which only the type may be invalid."""
    data = pool.distinct(dtype, (3,))
    if row.operator == "Max":
        return of_max.call(row, dtype, 2), (data, pool.distinct(dtype, (3,), 1))
    if row.operator == "ReduceMax":
        return reducing(row, dtype, 1, [0]), (data,)
    return segments(row, dtype), (data, IDS)


def _unlisted(row: Spec) -> Iterator[Case]:
    """Yield cases with unsupported types. A quick run tests the first, and the first that another version supports."""
    unlisted = [dtype for dtype in dtypes.ALL if dtype not in row.dtypes]
    later = [dtype for dtype in unlisted if any(dtype in each.dtypes for each in rows(row.operator))]
    for dtype in dtypes.ALL:
        refusing = [judge for judge in judges(row) if dtype not in judge.dtypes]
        if refusing and dtype is not dtypes.REAL:  # models cannot hold real numbers
            quick: Refused = "each row" if dtype in later[:1] else dtype in unlisted[:1]
            yield from refuse("T", "a type that is not listed", *small(row, dtype), among=refusing, quick=quick)


def _mixed(row: Spec) -> Iterator[Case]:
    """Yield cases that mix each type with the next type, and one pair of types in both orders."""
    types = stored(row)
    pairs = [*zip(types, [*types[1:], types[0]], strict=True), (types[1], types[0])]
    for first, second in pairs:
        inputs = Input("a", first, (None,)), Input("b", second, (None,))
        feed = pool.distinct(first, (3,)), pool.distinct(second, (3,), 1)
        listing = [judge for judge in judges(row) if {first, second} <= {*judge.dtypes}]
        call = Call(row, inputs, (), 1)
        yield from refuse("T", f"beside {second}", call, feed, among=listing, quick=first is types[0])


def _inputs(row: Spec) -> Iterator[Case]:
    nothing = Call(row, (), (("fill_mode", "ZERO"),) if row.operator == "SegmentMax" else (), 1, DTYPE)
    yield from refuse("inputs", "no inputs", nothing, (), quick=True)
    call, feed = small(row, DTYPE)
    if row.operator == "ReduceMax":
        number, words = (2, "three inputs") if row.axes_input else (1, "axes as an input")
        more = [Input(name, dtypes.INT64, (None,)) for name in ("more", "most")[:number]]
        wrong = Call(row, (call.inputs[0], *more), (), call.rank)
        yield from refuse("inputs", words, wrong, (*feed, *[np.zeros(1, np.int64)] * number), quick=True)
    elif row.operator == "SegmentMax":
        bare = replace(call, inputs=call.inputs[:1])
        yield from refuse("inputs", "data alone", bare, feed[:1], quick=True)
        scalars = Input("num_segments", dtypes.INT64, ()), Input("more", dtypes.INT64, ())
        count = np.array(2, np.int64)
        wrong = replace(call, inputs=(*call.inputs, *scalars))
        yield from refuse("inputs", "four inputs", wrong, (*feed, count, count))


def _reduce_max(row: Spec) -> Iterator[Case]:
    below = BELOW if row.negative_axes else [(1, [-1]), (2, [0, -1]), *BELOW]
    wrong = [("axes.range", *each) for each in (*OUTSIDE, *below)]
    wrong += [("axes.unique", *each) for each in TWICE + (TWICE_BY_SIGN if row.negative_axes else [])]
    for meaning, rank, axes in wrong:
        quick: Refused = (rank, axes) in QUICK_AXES
        if axes == [-1] and not row.negative_axes and rank:  # only versions without negative axes refuse it
            quick = "each row"
        data, label = pool.distinct(DTYPE, (2,) * rank), f"{axes} of rank {rank}"
        call = reducing(row, DTYPE, rank, axes, 1)
        yield from refuse(meaning, f"{form(row)} {label}", call, (data,), quick=quick)
        if row.axes_input:
            call = dynamic(row, DTYPE, rank, 0, 1)
            sentence = f"axes that come with the data, {label}"
            yield from refuse(meaning, sentence, call, (data, int64(axes)), quick=rank < 2 and quick)
    if row.axes_input:
        yield from _no_list(row)
    data = pool.distinct(DTYPE, (2,))
    for value in (2, -1):
        yield from refuse(
            "keepdims", f"keepdims {value}", reducing(row, DTYPE, 1, [0], value), (data,), quick=value == 2
        )
        if "noop_with_empty_axes" in row.attributes:
            call = reducing(row, DTYPE, 1, None, 1, noop_with_empty_axes=value)
            yield from refuse("noop_with_empty_axes", str(value), call, (data,), quick=value == 2)


def _no_list(row: Spec) -> Iterator[Case]:
    """Yield cases in which the axes are not a list of int64."""
    data = pool.distinct(DTYPE, (2, 2))
    for words, dtype, shape in (
        ("float32", dtypes.FLOAT32, (1,)),
        ("int32", dtypes.INT32, (1,)),
        ("of rank 2", dtypes.INT64, (1, 1)),
        ("a scalar", dtypes.INT64, ()),
    ):
        axes = np.zeros(shape, dtype.numpy)
        for how, given, feed, quick in (
            ("axes that come with the data", Input("axes", dtype, (None,) * axes.ndim), (data, axes), "int32"),
            ("constant axes", Input("axes", dtype, axes.shape, axes), (data,), "of rank 2"),
        ):
            call = Call(row, (Input("data", DTYPE, (None, None)), given), (("keepdims", 1),), 2)
            yield from refuse("axes", f"{how}, {words}", call, feed, quick=words == quick)


def _segment_max(row: Spec) -> Iterator[Case]:
    for meaning, sentence, call, feed in (*_ids(row), *_shapes(row), *_types(row), *_numbers(row), *_modes(row)):
        yield from refuse(meaning, sentence, call, feed, quick=sentence in QUICK_SEGMENTS)


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
