"""SegmentMax: segments of every kind, how many there are to be, and what fills those that are empty."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input, Trial
from maxops.conformance.cases.family import Quick, ask, computed, rows, stored, subsampled
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


def cases() -> Iterator[Case]:
    """The cases of SegmentMax's segments."""
    for row in rows("SegmentMax"):
        for dtype in stored(row):
            yield from subsampled(row, dtype, _of_type(row, dtype))


def _of_type(row: Spec, dtype: DType) -> Iterator[Case]:
    for family in (_kinds, _runs, _types, _numbers, _no_ids, _shapes, _constants):
        yield from family(row, dtype)


def _feed(dtype: DType, ids: list[int], index: DType = dtypes.INT64, row: Shape = ()) -> tuple[Array, Array]:
    return pool.distinct(dtype, (len(ids), *row)), np.array(ids, index.numpy)


def _kinds(row: Spec, dtype: DType) -> Iterator[Case]:
    """Each kind of segments, in vectors and in rows, as the ids alone say how many there are."""
    whole: list[Feed] = [_feed(dtype, ids) for ids in WHOLE.values()]
    make = partial(computed, row, segments(row, dtype), whole)
    yield from ask(row, "ids", dtype, "sorted ids, no segment empty", make, quick="once")
    rows_of = [_feed(dtype, ids, row=(3,)) for ids in WHOLE.values()]
    make = partial(computed, row, segments(row, dtype, rank=2), rows_of)
    yield from ask(row, "ids", dtype, "sorted ids of rows, no segment empty", make)
    for mode, meaning in (("ZERO", "fill_mode"), ("LOWEST", "lowest")):
        for words, ids in GAPS.items():
            make = partial(computed, row, segments(row, dtype, mode), [_feed(dtype, ids)])
            quick: Quick = "each type" if mode == "LOWEST" else "once"  # the lowest value is a type's own
            yield from ask(
                row, meaning, dtype, f"{words}, {mode}", make, quick=quick if words == "empty in the middle" else None
            )
        make = partial(
            computed, row, segments(row, dtype, mode, 2), [_feed(dtype, ids, row=(3,)) for ids in GAPS.values()]
        )
        yield from ask(row, meaning, dtype, f"rows, some segments empty, {mode}", make)
        lower = partial(computed, row, segments(row, dtype, mode.lower()), [_feed(dtype, [0, 2])])
        yield from ask(row, "fill_mode", dtype, f"{mode.lower()} in lower case", lower)
    make = partial(
        computed, row, segments(row, dtype), [_feed(dtype, ids) for ids in (*WHOLE.values(), *GAPS.values())]
    )
    yield from ask(row, "num_segments.default", dtype, "as many as the ids say", make, quick="once")


def _runs(row: Spec, dtype: DType) -> Iterator[Case]:
    """Runs of one kind, of lengths around blocks and vectors, and a run that resumes the last segment or not."""
    for kind in KINDS:
        for layout, inner in (("vectors", ()), ("rows of two", (2,))):
            make = partial(_of_runs, row, dtype, kind, inner)
            sentence = f"{layout}, runs of {kind} of lengths around 4 to 128, resumed or not"
            yield from ask(row, "ids", dtype, sentence, make, quick="once" if kind == "singles" else None)


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
        make = partial(computed, row, segments(row, dtype, ids=index), [_feed(dtype, ids, index)])
        yield from ask(row, "T_IDX", dtype, f"{index} ids", make, quick="once" if index is dtypes.INT32 else None)
        for number in INDEX:
            call = segments(row, dtype, ids=index, number=number)
            make = partial(computed, row, call, [(*_feed(dtype, ids, index), np.array(5, number.numpy))])
            yield from ask(row, "T_IDX", dtype, f"{index} ids and {number} num_segments", make)
    make = partial(computed, row, segments(row, dtype), [_feed(dtype, ids)])
    yield from ask(row, "inputs", dtype, "data and ids", make)
    call = segments(row, dtype, number=dtypes.INT64)
    make = partial(computed, row, call, [(*_feed(dtype, ids), np.array(4, np.int64))])
    yield from ask(row, "inputs", dtype, "data, ids and num_segments", make, quick="once")


def _numbers(row: Spec, dtype: DType) -> Iterator[Case]:
    """Fewer segments than the ids have, as many, and more; known beforehand, and with the data."""
    ids = [0, 0, 1, 3, 3, 4]
    for meaning, counts in (
        ("num_segments", (5,)),
        ("num_segments.smaller", (0, 1, 2, 3, 4)),
        ("num_segments.larger", (6, 7, 100)),
    ):
        for mode in ("ZERO", "LOWEST"):
            feeds: list[Feed] = [(*_feed(dtype, ids, row=(2,)), np.array(count, np.int64)) for count in counts]
            make = partial(computed, row, segments(row, dtype, mode, 2, number=dtypes.INT64), feeds)
            listed = ", ".join(map(str, counts))
            sentence = f"{listed} for 5 segments, with the data, {mode}"
            yield from ask(row, meaning, dtype, sentence, make, quick="once" if mode == "ZERO" else None)
        for count in counts:
            known = np.array(count, np.int64)
            make = partial(computed, row, segments(row, dtype, number=known), [_feed(dtype, ids)])
            yield from ask(row, meaning, dtype, f"a constant {count} for 5 segments", make)


def _no_ids(row: Spec, dtype: DType) -> Iterator[Case]:
    """No data: no segments without num_segments, else empty ones."""
    for index in INDEX:
        for rank, inner in ((1, ()), (2, (3,))):
            feed = _feed(dtype, [], index, inner)
            make = partial(computed, row, segments(row, dtype, "ZERO", rank, ids=index), [feed])
            sentence = f"no rows of rank {rank}, {index} ids"
            quick: Quick | None = "once" if rank == 1 else None
            yield from ask(row, "num_segments.no_ids", dtype, sentence, make, quick=quick)
            for mode in ("ZERO", "LOWEST"):
                call = segments(row, dtype, mode, rank, ids=index, number=dtypes.INT64)
                make = partial(computed, row, call, [(*feed, np.array(3, np.int64))])
                yield from ask(row, "num_segments.larger", dtype, f"{sentence}, 3 segments, {mode}", make)


def _shapes(row: Spec, dtype: DType) -> Iterator[Case]:
    ids = [0, 0, 1, 3, 3, 4]
    for meaning, shapes in (("data", RANKS), ("shape", (*RANKS[1:], *BARE))):
        for shape in shapes:
            feed = pool.distinct(dtype, shape), np.array(ids, np.int64)
            call = segments(row, dtype, rank=len(shape))
            make = partial(computed, row, call, [feed])
            quick = shape == (RANKS[0] if meaning == "data" else RANKS[1])
            sentence = f"data {'x'.join(map(str, shape))}"
            yield from ask(row, meaning, dtype, sentence, make, quick="once" if quick else None)
    make = partial(computed, row, segments(row, dtype, rank=2), [_feed(dtype, [0], row=(1,))])
    yield from ask(row, "ids.shape", dtype, "one id for one row of one element", make, quick="once")


def _constants(row: Spec, dtype: DType) -> Iterator[Case]:
    ids = np.array([0, 0, 1, 3, 3, 4], np.int64)
    inputs = Input("data", dtype, (None, None)), Input("segment_ids", dtypes.INT64, (6,), ids)
    data = pool.distinct(dtype, (6, 2))
    call = Call(row, inputs, (("fill_mode", "ZERO"),), 2)
    yield from ask(row, "ids.shape", dtype, "constant ids", partial(computed, row, call, [(data,)]))
    known = Input("num_segments", dtypes.INT64, (), np.array(6, np.int64))
    call = Call(row, (*inputs, known), (("fill_mode", "LOWEST"),), 2)
    make = partial(computed, row, call, [(data,)])
    yield from ask(row, "num_segments.larger", dtype, "constant ids and a constant 6 for 5 segments", make)
