"""ReduceMax: axes in every form, kept or removed, no axes, and the maximum of no elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input
from maxops.conformance.cases.family import CLOSER, Quick, compute, rows, stored, subsampled
from maxops.conformance.cases.reduce_max import reducing
from maxops.conformance.runs import lengths
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.shapes import Shape
from maxops.spec import Spec

FOUR: Shape = (2, 3, 4, 5)
SUBSETS = [list(axes) for count in range(1, 5) for axes in combinations(range(4), count)]
LISTS = [[0], [1], [2], [0, 2], [2, 0], [0, 1], [2, 1, 0]]  # axes of arrays of rank 3
NEGATIVE = [[-1], [-3], [-1, 0], [0, -1], [-3, -2, -1]]
EMPTY: list[tuple[Shape, list[int]]] = [((0,), [0]), ((2, 0, 3), [1]), ((2, 0, 3), [0, 1, 2]), ((0, 0), [1, 0])]
KEPT: list[tuple[Shape, list[int]]] = [((2, 0, 3), [0]), ((0, 3), [1]), ((0, 3, 0), [1])]


def cases() -> Iterator[Case]:
    """Yield the cases that test the axes and attributes of ReduceMax."""
    for row in rows("ReduceMax"):
        yield from _subsets(row)
        for dtype in stored(row):
            yield from subsampled(row, dtype, _of_type(row, dtype))


def _of_type(row: Spec, dtype: DType) -> Iterator[Case]:
    for family in (_lists, _lengths, _none, _keepdims, _nothing):
        yield from family(row, dtype)
    if row.axes_input:
        yield from _dynamic(row, dtype)
    if "noop_with_empty_axes" in row.attributes:
        yield from _noop(row, dtype)


def form(row: Spec) -> str:
    """Return the words for constant axes in descriptions, which depend on the version: an attribute or an input."""
    return "constant axes" if row.axes_input else "axes"


def dynamic(row: Spec, dtype: DType, rank: int, count: int, keepdims: int | None = 0, **attributes: int) -> Call:
    """Return a call of ReduceMax with `count` axes as a run-time input. The model declares the rank of its output."""
    inputs = (Input("data", dtype, (None,) * rank), Input("axes", dtypes.INT64, (None,)))
    given = [*attributes.items(), *([] if keepdims is None else [("keepdims", keepdims)])]
    return Call(row, inputs, tuple(given), rank - count if keepdims == 0 else rank)


def int64(values: Sequence[int]) -> Array:
    """Return axes as an array."""
    return np.array(values, np.int64)


def _subsets(row: Spec) -> Iterator[Case]:
    """Yield cases for all subsets of four axes, with alternating types."""
    types = stored(row)
    for number, axes in enumerate(SUBSETS):
        dtype = types[number % len(types)]
        for keepdims in (0, 1):
            sentence = f"{form(row)} {axes} of rank 4, keepdims {keepdims}"
            yield from compute("axes", sentence, reducing(row, dtype, 4, axes, keepdims), (pool.distinct(dtype, FOUR),))


def _lists(row: Spec, dtype: DType) -> Iterator[Case]:
    asked: list[tuple[str, str, list[int] | None]] = [
        *(("axes", f"{form(row)} {axes}", axes) for axes in LISTS),
        *(("axes.range", f"{form(row)} {axes}", axes) for axes in NEGATIVE if row.negative_axes),
        ("axes.range", f"the last axis of rank 3 as {form(row)} [2]", [2]),
        ("inputs", "data and axes", [1]) if row.axes_input else ("inputs", "data alone", None),
    ]
    data = pool.distinct(dtype, (3, 4, 5))
    for meaning, sentence, axes in asked:
        quick = meaning == "inputs" or axes in ([2, 0], [-1])
        yield from compute(meaning, sentence, reducing(row, dtype, 3, axes), (data,), quick=quick)


def _lengths(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases with sizes near block and vector sizes, along the reduced axis and along the other axis."""
    layouts = {
        "rows": [(3, size) for size in lengths(260)],
        "columns": [(size, 3) for size in lengths(260)],
    }
    for axis, (words, shapes) in product((0, 1), layouts.items()):
        feeds: list[Feed] = [(pool.distinct(dtype, shape),) for shape in shapes]
        sentence = f"{form(row)} [{axis}] of {words} of lengths around 4 to 256"
        yield from compute("axes", sentence, reducing(row, dtype, 2, [axis]), *feeds)


def _none(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases without axes: an omitted input, an empty list, or an input with an empty name."""
    ask = partial(compute, "axes.default")
    for words, shape in (("rank 3", (2, 3, 4)), ("a vector", (7,)), ("a scalar", ())):
        data, rank = pool.distinct(dtype, shape), len(shape)
        for keepdims in (0, 1):
            quick = rank == 3 and keepdims == 0
            sentence = f"no axes, {words}, keepdims {keepdims}"
            yield from ask(sentence, reducing(row, dtype, rank, None, keepdims), (data,), quick=quick)
        yield from ask(f"empty {form(row)}, {words}", reducing(row, dtype, rank, []), (data,))
    if row.axes_input:
        data = pool.distinct(dtype, (2, 3, 4))
        yield from ask("axes an input without a name", _unnamed(reducing(row, dtype, 3, None)), (data,))
        yield from ask("axes an input that comes empty", dynamic(row, dtype, 3, 3), (data, int64([])))
        call = reducing(row, dtype, 3, [], 1, noop_with_empty_axes=0)
        yield from compute("noop_with_empty_axes", "0, and empty constant axes", call, (data,))


def _unnamed(call: Call) -> Call:
    """Return the call with axes as an input whose name is empty."""
    return replace(call, inputs=(*call.inputs, None))


def _left_out(keepdims: int | None) -> str:
    return f"keepdims {'left out' if keepdims is None else keepdims}"


def _keepdims(row: Spec, dtype: DType) -> Iterator[Case]:
    data = pool.distinct(dtype, (2, 3, 4))
    for keepdims, axes in product((0, 1, None), ([1], [0, 2], [0, 1, 2])):
        sentence = f"{_left_out(keepdims)}, {form(row)} {axes}"
        quick = axes == [1] and keepdims is None
        yield from compute("keepdims", sentence, reducing(row, dtype, 3, axes, keepdims), (data,), quick=quick)


def _nothing(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases in which the data or the results have no elements."""
    sets = [("empty", *each) for each in EMPTY] + [("value", *each) for each in KEPT]
    for (meaning, shape, axes), keepdims in product(sets, (0, 1)):
        call = reducing(row, dtype, len(shape), axes, keepdims)
        sentence = f"data {'x'.join(map(str, shape))}, {form(row)} {axes}, keepdims {keepdims}"
        quick: Quick = shape == (2, 0, 3) and keepdims == 0 and len(axes) == 1
        if quick and meaning == "empty":  # each type has its own maximum of no elements
            quick = "each type"
        yield from compute(meaning, sentence, call, (pool.distinct(dtype, shape),), quick=quick)
    yield from compute("empty", "data 0x0, no axes", reducing(row, dtype, 2, None), (pool.distinct(dtype, (0, 0)),))


def _dynamic(row: Spec, dtype: DType) -> Iterator[Case]:
    data = pool.distinct(dtype, FOUR)
    for keepdims, count in product((0, 1, None), range(1, 5)):
        feeds: list[Feed] = [(data, int64(axes)) for axes in SUBSETS if len(axes) == count]
        sentence = f"axes that come with the data, each {count} of rank 4, {_left_out(keepdims)}"
        quick = keepdims == 0 and count == 2
        yield from compute("axes", sentence, dynamic(row, dtype, 4, count, keepdims), *feeds, quick=quick)
    feeds = [(pool.distinct(dtype, (3, 4, 5)), int64(axes)) for axes in NEGATIVE]
    sentence = "axes that come with the data, negative ones"
    yield from compute("axes.range", sentence, dynamic(row, dtype, 3, 0, 1), *feeds)


def _noop(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases of noop_with_empty_axes: without axes, the value 1 copies the input bit for bit, even NaN."""
    plain = pool.distinct(dtype, (2, 3, 4))
    noop = partial(reducing, row, dtype, noop_with_empty_axes=1)
    coming = dynamic(row, dtype, 3, 0, 1, noop_with_empty_axes=1)
    ways: dict[str, tuple[Call, Feed]] = {}
    for keepdims in (0, 1):
        ways[f"1, and no axes, keepdims {keepdims}"] = noop(3, None, keepdims), (plain,)
        ways[f"1, and empty constant axes, keepdims {keepdims}"] = noop(3, [], keepdims), (plain,)
    ways |= {
        "1, and axes an input without a name": (_unnamed(noop(3, None, 1)), (plain,)),
        "1, and axes an input that comes empty": (coming, (plain, int64([]))),
        "1, and axes that come with the data": (coming, (plain, int64([1]))),
        "1, and constant axes [1]": (noop(3, [1], 1), (plain,)),
        "0, and no axes": (reducing(row, dtype, 3, None, 1, noop_with_empty_axes=0), (plain,)),
        "1, and no axes, a scalar": (noop(0, None, 1), (pool.distinct(dtype, ()),)),
    }
    for sentence, (call, feed) in ways.items():
        yield from compute("noop_with_empty_axes", sentence, call, feed)
    values = np.concatenate([pool.ordinary(dtype), pool.nans(dtype)])
    quick: Quick = "each type" if dtype in CLOSER else True
    sentence = "1, and no axes, boundary values"
    yield from compute("noop_with_empty_axes", sentence, noop(1, None, 1), (values,), quick=quick)
