"""Cases that vary the form of small calls: memory layouts, changing shapes, model constructs, and more axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Construct, Feed, Layout, Trial
from maxops.conformance.cases import max as of_max
from maxops.conformance.cases.family import CLOSER, Quick, ask, computed, newest, rows, stored, subsampled
from maxops.conformance.cases.planted import planted
from maxops.conformance.cases.reduce_axes import dynamic, form, int64
from maxops.conformance.cases.reduce_max import reducing
from maxops.conformance.cases.segment_max import segments
from maxops.conformance.layouts import LAYOUTS
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.shapes import Shape
from maxops.spec import Spec

RANKS = (5, 6, 7, 8)
WITHIN: tuple[tuple[Construct, ...], ...] = (
    ("If",),
    ("Loop",),
    ("function",),
    ("function", "function"),
    ("If", "function"),
    ("function", "If"),
    ("Loop", "If"),
)
TYPES_WITHIN = (*CLOSER, dtypes.FLOAT16)
# Shapes of small matrices, and of matrices that exceed a block of vectors.
MATRICES: tuple[Shape, ...] = ((3, 4), (37, 65), (90, 111))
# Sizes that grow, shrink and repeat, including 0.
TURNS = (5, 300, 3, 300, 0, 7, 1, 40)


def cases() -> Iterator[Case]:
    """Yield cases of each form for the newest versions, and cases with constructs also for some older versions."""
    for operator in ("Max", "ReduceMax", "SegmentMax"):
        for row in rows(operator):
            if row is newest(row):
                for dtype in stored(row):
                    made = chain(_layouts(row, dtype), _turns(row, dtype), _ranks(row, dtype))
                    yield from subsampled(row, dtype, made)
            if row.standard == "ONNX" and (row is newest(row) or row.version in (8, 13)):
                yield from _within(row)


# ----------------------------------------------------------------------------------------------------- layouts


def _layouts(row: Spec, dtype: DType) -> Iterator[Case]:
    for layout in LAYOUTS[1:]:
        for axis in (0, 1) if row.operator == "ReduceMax" else (0,):
            words = "" if row.operator != "ReduceMax" else ", rows" if axis else ", columns"
            make = partial(_laid, row, dtype, layout, axis)
            quick: Quick = "each type" if dtype in CLOSER or (layout == LAYOUTS[2] and not axis) else False
            yield from ask(row, "value", dtype, f"{layout} arrays{words}", make, quick=quick)


def _laid(row: Spec, dtype: DType, layout: Layout, axis: int) -> Trial:
    feeds: list[Feed] = []
    expected: list[Array] = []
    for height, width in MATRICES:
        if row.operator == "Max":
            of = planted(dtype, "plain", np.full(height * width, 2))
            arrays = [of.data.reshape(height * width, 2)[:, number].reshape(height, width) for number in (0, 1)]
            result = of.expected.reshape(height, width)
            if layout == "zero strides":
                arrays, result = [_row_repeated(array) for array in arrays], _row_repeated(result)
            feeds.append(tuple(np.ascontiguousarray(array) for array in arrays))
        elif row.operator == "ReduceMax":
            of = planted(dtype, "plain", np.full(height, width))
            data, result = of.data.reshape(height, width), of.expected[:, 0]
            if layout == "zero strides":
                data, result = _row_repeated(data), _row_repeated(result)
                result = data[0] if axis == 0 else result
            elif axis == 0:
                data = data.T
            feeds.append((np.ascontiguousarray(data),))
        else:
            lengths = np.resize([1, 2, 3, 5], height)
            of = planted(dtype, "plain", lengths, width)
            data, result, ids = of.data, of.expected, np.repeat(np.arange(height), lengths)
            if layout == "zero strides":
                data, result = _row_repeated(data), np.repeat(data[:1], height, axis=0)
            feeds.append((data, ids))
        expected.append(np.ascontiguousarray(result))
    return Trial(_of_matrices(row, dtype, axis), tuple(feeds), tuple(expected), layout=layout)


def _of_matrices(row: Spec, dtype: DType, axis: int = 1) -> Call:
    """Return a call on matrices: two for Max, one for ReduceMax along an axis, and one with ids for SegmentMax."""
    if row.operator == "Max":
        return of_max.call(row, dtype, 2, 2)
    return reducing(row, dtype, 2, [axis]) if row.operator == "ReduceMax" else segments(row, dtype, rank=2)


def _row_repeated(array: Array) -> Array:
    """Return an array in which every row is a copy of the first row."""
    return np.repeat(array[:1], len(array), axis=0)


# ------------------------------------------------------------------------------------------------------ shapes


def _turns(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases of one prepared model that runs on several sizes in turn, each time with new values."""
    make = partial(_in_turn, row, dtype)
    of = {"Max": "shape", "ReduceMax": "axes", "SegmentMax": "ids"}[row.operator]
    yield from ask(row, of, dtype, "one model, shapes in turn", make, quick="each type")
    if row.axes_input:
        make = partial(_axes_in_turn, row, dtype)
        yield from ask(row, of, dtype, "one model, axes that come with the data in turn", make, quick=True)


def _in_turn(row: Spec, dtype: DType) -> Trial:
    feeds: list[Feed] = []
    for turn, size in enumerate(TURNS):
        data = _falling(dtype, (size, 3), turn)
        if row.operator == "Max":
            feeds.append((data, _falling(dtype, (1, 3) if turn % 3 == 2 else (size, 3), turn + 1)))
        elif row.operator == "ReduceMax":
            feeds.append((data,))
        else:
            feeds.append((data, np.arange(size) // (1 + turn % 3)))
    return computed(row, _of_matrices(row, dtype), feeds)


def _falling(dtype: DType, shape: Shape, turn: int) -> Array:
    """Return values that decrease from turn to turn, so values left over from an earlier result change the maximum."""
    values = np.sort(pool.distinct(dtype, (250,)))
    numbers = np.arange(int(np.prod(shape))) * 7 % 25 + 25 * (9 - turn)
    result: Array = values[numbers].reshape(shape)
    return result


def _axes_in_turn(row: Spec, dtype: DType) -> Trial:
    feeds: list[Feed] = []
    for turn, axes in enumerate(([0], [1], [2], [1], [-1], [0])):
        feeds.append((_falling(dtype, (4 + turn, 3, 5), turn), int64(axes)))
    return computed(row, dynamic(row, dtype, 3, 1), feeds)


def _ranks(row: Spec, dtype: DType) -> Iterator[Case]:
    for rank in RANKS:
        quick: Quick = "each type" if dtype in CLOSER else False
        if row.operator == "Max":
            make = partial(_broadcast, row, dtype, rank)
            yield from ask(row, "shape", dtype, f"rank {rank}, sizes of 1 on either side", make, quick=quick)
        elif row.operator == "ReduceMax":
            for axes in ([0], [rank - 1], list(range(0, rank, 2)), list(range(1, rank, 2)), list(range(rank))):
                make = partial(_reduced, row, dtype, rank, axes)
                sentence = f"{form(row)} {axes} of rank {rank}"
                yield from ask(row, "axes", dtype, sentence, make, quick=quick)
        else:
            make = partial(_segmented, row, dtype, rank)
            yield from ask(row, "data", dtype, f"data of rank {rank}", make, quick=quick)


def _broadcast(row: Spec, dtype: DType, rank: int) -> Trial:
    full = tuple(2 + axis % 2 for axis in range(rank))
    every_second = tuple(size if axis % 2 else 1 for axis, size in enumerate(full))
    others = tuple(1 if axis % 2 else size for axis, size in enumerate(full))
    pairs = ((full, full), (full, (1,) * rank), (every_second, full), (every_second, others), ((1,) * rank, others))
    feeds: list[Feed] = [(pool.distinct(dtype, one), pool.distinct(dtype, other, 1)) for one, other in pairs]
    return computed(row, of_max.call(row, dtype, 2, rank), feeds)


def _reduced(row: Spec, dtype: DType, rank: int, axes: Sequence[int]) -> Trial:
    shape = tuple(2 + (axis == rank // 2) for axis in range(rank))
    return computed(row, reducing(row, dtype, rank, axes), [(pool.distinct(dtype, shape),)])


def _segmented(row: Spec, dtype: DType, rank: int) -> Trial:
    feeds: list[Feed] = [(pool.distinct(dtype, (5, *(2,) * (rank - 1))), int64([0, 0, 1, 3, 3]))]
    return computed(row, segments(row, dtype, rank=rank), feeds)


# -------------------------------------------------------------------------------------------------- constructs


def _within(row: Spec) -> Iterator[Case]:
    """Yield cases of the operator in branches, loop bodies and functions."""
    for within, dtype in product(WITHIN, TYPES_WITHIN):
        if dtype not in row.dtypes:
            continue
        names = ("an If" if construct == "If" else f"a {construct}" for construct in reversed(within))
        sentence = f"within {', in '.join(names)}"
        quick: Quick = dtype is dtypes.FLOAT32
        yield from ask(row, "value", dtype, sentence, partial(_trial_within, row, dtype, within), quick=quick)


def _trial_within(row: Spec, dtype: DType, within: tuple[Construct, ...]) -> Trial:
    data = pool.distinct(dtype, (4, 5))
    arrays: Feed = (data, pool.distinct(dtype, (4, 5), 1)) if row.operator == "Max" else (data,)
    call = replace(_of_matrices(row, dtype), within=within)
    flags = [True] if "Loop" in within or "If" not in within else [True, False]
    trips = [0, 1, 3] if "Loop" in within else [None]
    feeds = [
        (*arrays, *([np.array(flag)] if call.controls else []), *([] if trip is None else [np.array(trip)]))
        for flag, trip in product(flags, trips)
    ]
    return computed(row, call, feeds)
