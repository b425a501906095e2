"""Calls that every operator must refuse: unlisted or mixed types, and too few or too many inputs.

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
from maxops.conformance.cases import refusals_reduce_max, refusals_segment_max
from maxops.conformance.cases.family import Refused, judges, refuse, rows, stored
from maxops.conformance.cases.reduce_max import reducing
from maxops.conformance.cases.segment_max import segments
from maxops.dtypes import DType
from maxops.spec import Spec

IDS = np.array([0, 0, 1], np.int64)


def cases() -> Iterator[Case]:
    """Yield the cases that must be refused."""
    for operator in ("Max", "ReduceMax", "SegmentMax"):
        for row in rows(operator):
            yield from _unlisted(row)
            if operator == "Max":
                yield from _mixed(row)
            yield from _inputs(row)
            if operator == "ReduceMax":
                yield from refusals_reduce_max.cases(row)
            if operator == "SegmentMax":
                yield from refusals_segment_max.cases(row)


def small(row: Spec, dtype: DType) -> tuple[Call, Feed]:
    """Return a small call in which only the type may be invalid."""
    data = pool.distinct(dtype, (3,))
    if row.operator == "Max":
        return of_max.call(row, dtype, 2), (data, pool.distinct(dtype, (3,), 1))
    if row.operator == "ReduceMax":
        return reducing(row, dtype, 1, [0]), (data,)
    return segments(row, dtype), (data, IDS)


def _unlisted(row: Spec) -> Iterator[Case]:
    """Yield cases of unlisted types; a quick run has the first one, and the first one that other versions list."""
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
    dtype = dtypes.FLOAT32
    nothing = Call(row, (), (("fill_mode", "ZERO"),) if row.operator == "SegmentMax" else (), 1, dtype)
    yield from refuse("inputs", "no inputs", nothing, (), quick=True)
    call, feed = small(row, dtype)
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
