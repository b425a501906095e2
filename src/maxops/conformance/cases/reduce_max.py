"""ReduceMax: every pair of values along every kind of axis, at every position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input, Trial
from maxops.conformance.cases.family import CLOSER, Quick, ask, compute, is_quick, newest, rows, stored
from maxops.conformance.cases.pairs import SAMPLE, Pairs, Which, bands, between, lowest_alone, meanings, pairs, repeated
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.spec import Spec

Layout = Literal["rows", "columns", "whole vectors"]
LAYOUTS: tuple[Layout, ...] = ("rows", "columns", "whole vectors")
SAMPLE_LENGTHS = (8, 16, 33)  # the lengths of whole vectors in a quick run, which together cover all pairs
SAMPLE_PARTS = 3
LONG = 1000  # longer than a block of any runtime
PARTS = 8  # each length of whole vectors tests one of these parts of the pairs, so eight lengths cover all pairs
_AXIS: dict[Layout, int] = {"rows": 1, "columns": 0, "whole vectors": 0}


def cases() -> Iterator[Case]:
    """Yield the cases that test the values of ReduceMax."""
    for row in rows("ReduceMax"):
        for dtype in stored(row):
            plain = (pool.distinct(dtype, (5,)),)
            yield from compute("T", "a short vector", reducing(row, dtype, 1, [0]), plain, quick="each type and row")
            for layout in LAYOUTS:
                yield from _of_layout(row, dtype, layout)


def how_quick(dtype: DType, which: Which, *, first: bool) -> Quick:
    """Return how widely a quick run includes a layout: the first layout for each type, others for a few types."""
    if first:
        return "each type and row" if which == "value" else "each type"
    return "each type" if dtype in CLOSER else False


def _of_layout(row: Spec, dtype: DType, layout: Layout) -> Iterator[Case]:
    for which, meaning, words in (*meanings(dtype), lowest_alone(dtype)):
        if which == "lowest":
            make = partial(_along, row, dtype, which, layout, range(1, 131))
            yield from ask(row, meaning, dtype, f"{layout} of {words}, of lengths 1 to 130", make)
            continue
        of_vectors = layout == "whole vectors"
        sample = partial(
            _along, row, dtype, which, layout, *((SAMPLE_LENGTHS, SAMPLE_PARTS) if of_vectors else (SAMPLE,))
        )
        sentence = f"{layout} with {words}, one among copies of the other"
        quick = how_quick(dtype, which, first=layout == LAYOUTS[0])
        if is_quick(row, dtype, quick) or (of_vectors and row is not newest(row)):  # otherwise, see below
            yield from ask(row, meaning, dtype, f"{sentence}, a sample of lengths 1 to 130", sample, quick=quick)
        if of_vectors:  # each vector needs a call, so only the newest version tests all lengths
            if row is newest(row):
                make = partial(_along, row, dtype, which, layout, range(1, 131), PARTS)
                yield from ask(row, meaning, dtype, f"{sentence}, of lengths 1 to 130", make)
            continue
        if which != "zeros" and row is newest(row):
            make = partial(_along, row, dtype, which, layout, [LONG])
            yield from ask(row, meaning, dtype, f"{sentence} at each place, of length {LONG}", make)
        for lengths in bands(1 if which == "zeros" or row is not newest(row) else 3):
            make = partial(_along, row, dtype, which, layout, lengths)
            yield from ask(row, meaning, dtype, f"{sentence} at each place, {between(lengths)}", make)


def reducing(
    row: Spec, dtype: DType, rank: int, axes: Sequence[int] | None, keepdims: int | None = 0, **attributes: int
) -> Call:
    """Return a call of ReduceMax with known axes: an attribute or a constant input, depending on the version."""
    inputs: list[Input | None] = [Input("data", dtype, (None,) * rank)]
    given: list[tuple[str, object]] = [*attributes.items()]
    if axes is not None and row.axes_input:
        inputs.append(Input("axes", dtypes.INT64, (len(axes),), np.array(axes, np.int64)))
    elif axes is not None:
        given.append(("axes", list(axes)))
    if keepdims is not None:
        given.append(("keepdims", keepdims))
    keeps_all = keepdims != 0 or (not axes and attributes.get("noop_with_empty_axes"))
    return Call(row, tuple(inputs), tuple(given), rank if keeps_all else max(rank - len(axes or range(rank)), 0))


def copies_with_one(table: Pairs, length: int) -> list[Array]:
    """Return arrays of shape (pairs, length) whose rows contain copies of u and one v, or only v if the length is 1.

    Together, the arrays have a v that differs from u at every position.
    """
    made = []
    row = np.arange(len(table))
    for turn in range(-(-length // table.different) if table.different else 1):
        array = np.repeat(table.u, length).reshape(len(table), length)
        array[row, (table.position + turn * table.different) % length] = table.v
        made.append(array)
    return made


def best_of(table: Pairs, length: int) -> tuple[Array, Array]:
    """Return each pair's maximum in rows of this length: one that propagates NaN, and one that ignores it."""
    return (table.alone, table.alone_without_nan) if length == 1 else (table.expected, table.without_nan)


def along(
    table: Pairs, call: Call, lengths: Sequence[int], laid: Callable[[Array], Iterable[tuple[Feed, Any]]]
) -> Trial:
    """Return a trial with arrays of each length. `laid` converts an array to feeds, with the indices of the results."""
    feeds: list[Feed] = []
    expected: list[Array] = []
    other: list[Array] = []
    for length in lengths:
        best, without = best_of(table, length)
        for array in copies_with_one(table, length):
            for feed, index in laid(array):
                feeds.append(feed)
                expected.append(best[index])
                other.append(without[index])
    return Trial(call, tuple(feeds), tuple(expected), tuple(other) if table.has_nan else ())


def _along(row: Spec, dtype: DType, which: Which, layout: Layout, lengths: Sequence[int], parts: int = 1) -> Trial:
    """Return a trial with copies of u and one v. For whole vectors, each length tests one of `parts` of the pairs."""

    def laid(array: Array) -> list[tuple[Feed, Any]]:
        if layout == "whole vectors":
            return [((array[number],), (number, ...)) for number in range(array.shape[1] % parts, len(array), parts)]
        return [((array if layout == "rows" else np.ascontiguousarray(array.T),), ...)]

    table = (pairs if layout == "whole vectors" else repeated)(dtype, which)
    call = reducing(row, dtype, 1 if layout == "whole vectors" else 2, [_AXIS[layout]])
    return along(table, call, lengths, laid)
