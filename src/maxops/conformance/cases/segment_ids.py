"""SegmentMax: segments of every kind, the number of segments, and the values of empty segments."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Case, Trial
from maxops.conformance.cases.family import Quick, ask, compute, computed, rows, stored, subsampled
from maxops.conformance.cases.segment_max import segments
from maxops.conformance.runs import KINDS, Kind, Run, ids_of, lengths
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.shapes import Shape
from maxops.spec import Spec

WHOLE: dict[str, list[int]] = {  # no segment is empty
    "one row": [0],
    "one segment": [0, 0, 0, 0, 0],
    "a segment each row": [0, 1, 2, 3, 4],
    "segments of several lengths": [0, 1, 1, 2, 2, 2, 3],
    "long segments": [0] * 70 + [1] * 3 + [2] * 130,
}
GAPS: dict[str, list[int]] = {
    "empty at the start": [2, 2, 3],
    "empty in the middle": [0, 0, 3, 4],
    "one id that is not 0": [2, 2, 2],
    "many empty": [0, 50],
    "empty between long ones": [1] * 70 + [4] * 130,
}
INDEX = (dtypes.INT32, dtypes.INT64)
RANKS: tuple[Shape, ...] = ((6,), (6, 3), (6, 2, 3), (6, 2, 1, 3))
BARE: tuple[Shape, ...] = ((6, 0), (6, 2, 0), (6, 0, 3))
MODES = ("ZERO", "LOWEST")
IDS = [0, 0, 1, 3, 3, 4]


def cases() -> Iterator[Case]:
    """Yield the cases that test the segments of SegmentMax."""
    for row in rows("SegmentMax"):
        for dtype in stored(row):
            yield from subsampled(row, dtype, _of_type(row, dtype))


def _of_type(row: Spec, dtype: DType) -> Iterator[Case]:
    for family in (_kinds, _runs, _types, _numbers, _no_ids, _shapes, _constants):
        yield from family(row, dtype)


def _feed(dtype: DType, ids: list[int], index: DType = dtypes.INT64, row: Shape = ()) -> tuple[Array, Array]:
    return pool.distinct(dtype, (len(ids), *row)), np.array(ids, index.numpy)


def _count(number: int, index: DType = dtypes.INT64) -> Array:
    return np.array(number, index.numpy)


def _kinds(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases of each kind of segment, in vectors and in rows. Only the ids determine the number of segments."""
    vectors, whole, gaps = segments(row, dtype), WHOLE.values(), GAPS.values()
    feeds = [_feed(dtype, ids) for ids in whole]
    yield from compute("ids", "sorted ids, no segment empty", vectors, *feeds, quick=True)
    feeds = [_feed(dtype, ids, row=(3,)) for ids in whole]
    yield from compute("ids", "sorted ids of rows, no segment empty", segments(row, dtype, rank=2), *feeds)
    for mode, meaning in zip(MODES, ("fill_mode", "lowest"), strict=True):
        call = segments(row, dtype, mode)
        for words, ids in GAPS.items():
            quick: Quick = words == "empty in the middle"
            if quick and mode == "LOWEST":  # each type has its own lowest value
                quick = "each type"
            yield from compute(meaning, f"{words}, {mode}", call, _feed(dtype, ids), quick=quick)
        feeds = [_feed(dtype, ids, row=(3,)) for ids in gaps]
        yield from compute(meaning, f"rows, some segments empty, {mode}", segments(row, dtype, mode, 2), *feeds)
        lower = segments(row, dtype, mode.lower())
        yield from compute("fill_mode", f"{mode.lower()} in lower case", lower, _feed(dtype, [0, 2]))
    feeds = [_feed(dtype, ids) for ids in (*whole, *gaps)]
    yield from compute("num_segments.default", "as many as the ids say", vectors, *feeds, quick=True)


def _runs(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases of runs of one kind, with lengths near block and vector sizes. A run may resume the last segment."""
    for kind in KINDS:
        for layout, inner in (("vectors", ()), ("rows of two", (2,))):
            make = partial(_of_runs, row, dtype, kind, inner)
            sentence = f"{layout}, runs of {kind} of lengths around 4 to 128, resumed or not"
            yield from ask(row, "ids", dtype, sentence, make, quick=kind == "singles")


def _of_runs(row: Spec, dtype: DType, kind: Kind, inner: Shape) -> Trial:
    ids = [
        ids_of((Run(kind, rows), Run(after, 3, resumes))).tolist()
        for number, rows in enumerate(lengths(130))
        for resumes in (False, True)
        for after in (KINDS[number % len(KINDS)],)
    ]
    return computed(row, segments(row, dtype, rank=1 + len(inner)), [_feed(dtype, each, row=inner) for each in ids])


def _types(row: Spec, dtype: DType) -> Iterator[Case]:
    ids = [0, 0, 1, 3]
    for index in INDEX:
        call, feed = segments(row, dtype, ids=index), _feed(dtype, ids, index)
        yield from compute("T_IDX", f"{index} ids", call, feed, quick=index is dtypes.INT32)
        for number in INDEX:
            call = segments(row, dtype, ids=index, number=number)
            sentence = f"{index} ids and {number} num_segments"
            yield from compute("T_IDX", sentence, call, (*feed, _count(5, number)))
    feed = _feed(dtype, ids)
    yield from compute("inputs", "data and ids", segments(row, dtype), feed)
    call = segments(row, dtype, number=dtypes.INT64)
    yield from compute("inputs", "data, ids and num_segments", call, (*feed, _count(4)), quick=True)


def _numbers(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases with as many segments as the ids define, with fewer, and with more, by a constant or an input."""
    for meaning, counts in (
        ("num_segments", (5,)),
        ("num_segments.smaller", (0, 1, 2, 3, 4)),
        ("num_segments.larger", (6, 7, 100)),
    ):
        for mode in MODES:
            feeds = [(*_feed(dtype, IDS, row=(2,)), _count(count)) for count in counts]
            call = segments(row, dtype, mode, 2, number=dtypes.INT64)
            sentence = f"{', '.join(map(str, counts))} for 5 segments, with the data, {mode}"
            yield from compute(meaning, sentence, call, *feeds, quick=mode == "ZERO")
        for count in counts:
            call = segments(row, dtype, number=_count(count))
            yield from compute(meaning, f"a constant {count} for 5 segments", call, _feed(dtype, IDS))


def _no_ids(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases without data. With num_segments, all segments are empty. Without it, there are no segments."""
    for index, inner in product(INDEX, ((), (3,))):
        rank, feed = 1 + len(inner), _feed(dtype, [], index, inner)
        sentence = f"no rows of rank {rank}, {index} ids"
        call = segments(row, dtype, "ZERO", rank, ids=index)
        yield from compute("num_segments.no_ids", sentence, call, feed, quick=rank == 1)
        for mode in MODES:
            call = segments(row, dtype, mode, rank, ids=index, number=dtypes.INT64)
            yield from compute("num_segments.larger", f"{sentence}, 3 segments, {mode}", call, (*feed, _count(3)))


def _shapes(row: Spec, dtype: DType) -> Iterator[Case]:
    for meaning, shapes in (("data", RANKS), ("shape", (*RANKS[1:], *BARE))):
        for shape in shapes:
            call, feed = segments(row, dtype, rank=len(shape)), _feed(dtype, IDS, row=shape[1:])
            yield from compute(meaning, f"data {'x'.join(map(str, shape))}", call, feed, quick=shape == shapes[0])
    call, feed = segments(row, dtype, rank=2), _feed(dtype, [0], row=(1,))
    yield from compute("ids.shape", "one id for one row of one element", call, feed, quick=True)


def _constants(row: Spec, dtype: DType) -> Iterator[Case]:
    data, ids = _feed(dtype, IDS, row=(2,))
    yield from compute("ids.shape", "constant ids", segments(row, dtype, rank=2, ids=ids), (data,))
    call = segments(row, dtype, "LOWEST", 2, ids=ids, number=_count(6))
    yield from compute("num_segments.larger", "constant ids and a constant 6 for 5 segments", call, (data,))
