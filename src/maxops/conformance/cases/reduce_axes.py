"""ReduceMax: axes in every form, kept or not, none at all, and the maximum of nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input
from maxops.conformance.cases.family import CLOSER, Quick, ask, computed, rows, stored, subsampled
from maxops.conformance.cases.reduce_max import reducing
from maxops.conformance.runs import lengths
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.shapes import Shape
from maxops.spec import Spec

FOUR: Shape = (2, 3, 4, 5)
SUBSETS = [list(axes) for count in range(1, 5) for axes in combinations(range(4), count)]
LISTS = [[0], [1], [2], [0, 2], [2, 0], [0, 1], [2, 1, 0]]  # of rank 3
NEGATIVE = [[-1], [-3], [-1, 0], [0, -1], [-3, -2, -1]]
EMPTY: list[tuple[Shape, list[int]]] = [((0,), [0]), ((2, 0, 3), [1]), ((2, 0, 3), [0, 1, 2]), ((0, 0), [1, 0])]
KEPT: list[tuple[Shape, list[int]]] = [((2, 0, 3), [0]), ((0, 3), [1]), ((0, 3, 0), [1])]


def cases() -> Iterator[Case]:
    """The cases of ReduceMax's axes and attributes."""
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
    """How a version takes axes that are known beforehand."""
    return "constant axes" if row.axes_input else "axes"


def dynamic(row: Spec, dtype: DType, rank: int, count: int, keepdims: int | None = 0, **attributes: int) -> Call:
    """ReduceMax over so many axes that come with the data: a model must say the rank of its output."""
    inputs = (Input("data", dtype, (None,) * rank), Input("axes", dtypes.INT64, (None,)))
    given = [*attributes.items(), *([] if keepdims is None else [("keepdims", keepdims)])]
    return Call(row, inputs, tuple(given), rank - count if keepdims == 0 else rank)


def int64(values: Sequence[int]) -> Array:
    """Axes as an array."""
    return np.array(values, np.int64)


def _subsets(row: Spec) -> Iterator[Case]:
    """All subsets of four axes, over the types in turn."""
    types = stored(row)
    for number, axes in enumerate(SUBSETS):
        dtype = types[number % len(types)]
        data = pool.distinct(dtype, FOUR)
        for keepdims in (0, 1):
            make = partial(computed, row, reducing(row, dtype, (None,) * 4, axes, keepdims), [(data,)])
            yield from ask(row, "axes", dtype, f"{form(row)} {axes} of rank 4, keepdims {keepdims}", make)


def _lists(row: Spec, dtype: DType) -> Iterator[Case]:
    data = pool.distinct(dtype, (3, 4, 5))
    for axes in LISTS:
        make = partial(computed, row, reducing(row, dtype, (None,) * 3, axes), [(data,)])
        yield from ask(row, "axes", dtype, f"{form(row)} {axes}", make, quick="once" if axes == [2, 0] else None)
    for axes in NEGATIVE if row.negative_axes else []:
        make = partial(computed, row, reducing(row, dtype, (None,) * 3, axes), [(data,)])
        yield from ask(row, "axes.range", dtype, f"{form(row)} {axes}", make, quick="once" if axes == [-1] else None)
    make = partial(computed, row, reducing(row, dtype, (None,) * 3, [2]), [(data,)])
    yield from ask(row, "axes.range", dtype, f"the last axis of rank 3 as {form(row)} [2]", make)
    if row.axes_input:
        make = partial(computed, row, reducing(row, dtype, (None,) * 3, [1]), [(data,)])
    else:
        make = partial(computed, row, reducing(row, dtype, (None,) * 3, None), [(data,)])
    sentence = "data and axes" if row.axes_input else "data alone"
    yield from ask(row, "inputs", dtype, sentence, make, quick="once")


def _lengths(row: Spec, dtype: DType) -> Iterator[Case]:
    """Sizes around blocks and vectors, of the axis that is reduced and of the other."""
    for axis in (0, 1):
        for words, shapes in (
            ("rows", [(3, size) for size in lengths(260)]),
            ("columns", [(size, 3) for size in lengths(260)]),
        ):
            feeds: list[Feed] = [(pool.distinct(dtype, shape),) for shape in shapes]
            make = partial(computed, row, reducing(row, dtype, (None, None), [axis], 0), feeds)
            sentence = f"{form(row)} [{axis}] of {words} of lengths around 4 to 256"
            yield from ask(row, "axes", dtype, sentence, make)


def _none(row: Spec, dtype: DType) -> Iterator[Case]:
    """No axes: left out, an empty list, or an input without a name."""
    for words, dims, data in (
        ("rank 3", (None,) * 3, pool.distinct(dtype, (2, 3, 4))),
        ("a vector", (None,), pool.distinct(dtype, (7,))),
        ("a scalar", (), pool.distinct(dtype, ())),
    ):
        for keepdims in (0, 1):
            label = f"{words}, keepdims {keepdims}"
            make = partial(computed, row, reducing(row, dtype, dims, None, keepdims), [(data,)])
            quick: Quick | None = "once" if label == "rank 3, keepdims 0" else None
            yield from ask(row, "axes.default", dtype, f"no axes, {label}", make, quick=quick)
        make = partial(computed, row, reducing(row, dtype, dims, []), [(data,)])
        yield from ask(row, "axes.default", dtype, f"empty {form(row)}, {words}", make)
    if row.axes_input:
        data = pool.distinct(dtype, (2, 3, 4))
        plain = reducing(row, dtype, (None,) * 3, None)
        make = partial(computed, row, Call(row, (*plain.inputs, None), plain.attributes, 0), [(data,)])
        yield from ask(row, "axes.default", dtype, "axes an input without a name", make)
        make = partial(computed, row, dynamic(row, dtype, 3, 3), [(data, int64([]))])
        yield from ask(row, "axes.default", dtype, "axes an input that comes empty", make)
        make = partial(computed, row, reducing(row, dtype, (None,) * 3, [], 1, noop_with_empty_axes=0), [(data,)])
        yield from ask(row, "noop_with_empty_axes", dtype, "0, and empty constant axes", make)


def _keepdims(row: Spec, dtype: DType) -> Iterator[Case]:
    data = pool.distinct(dtype, (2, 3, 4))
    for keepdims in (0, 1, None):
        words = "left out" if keepdims is None else str(keepdims)
        for axes in ([1], [0, 2], [0, 1, 2]):
            make = partial(computed, row, reducing(row, dtype, (None,) * 3, axes, keepdims), [(data,)])
            sentence = f"keepdims {words}, {form(row)} {axes}"
            quick: Quick | None = "once" if axes == [1] and keepdims is None else None
            yield from ask(row, "keepdims", dtype, sentence, make, quick=quick)


def _nothing(row: Spec, dtype: DType) -> Iterator[Case]:
    """Data without elements: the maximum of nothing, and results without elements."""
    for meaning, sets in (("empty", EMPTY), ("value", KEPT)):
        for shape, axes in sets:
            for keepdims in (0, 1):
                data = pool.distinct(dtype, shape)
                make = partial(computed, row, reducing(row, dtype, (None,) * len(shape), axes, keepdims), [(data,)])
                sentence = f"data {'x'.join(map(str, shape))}, {form(row)} {axes}, keepdims {keepdims}"
                quick: Quick = "each type" if meaning == "empty" else "once"  # of nothing, each type has its own
                wide = quick if shape == (2, 0, 3) and keepdims == 0 and len(axes) == 1 else None
                yield from ask(row, meaning, dtype, sentence, make, quick=wide)
    make = partial(computed, row, reducing(row, dtype, (None, None), None), [(pool.distinct(dtype, (0, 0)),)])
    yield from ask(row, "empty", dtype, "data 0x0, no axes", make)


def _dynamic(row: Spec, dtype: DType) -> Iterator[Case]:
    data = pool.distinct(dtype, FOUR)
    for keepdims in (0, 1, None):
        words = "left out" if keepdims is None else str(keepdims)
        for count in range(1, 5):
            feeds: list[Feed] = [(data, int64(axes)) for axes in SUBSETS if len(axes) == count]
            make = partial(computed, row, dynamic(row, dtype, 4, count, keepdims), feeds)
            sentence = f"axes that come with the data, each {count} of rank 4, keepdims {words}"
            quick: Quick | None = "once" if keepdims == 0 and count == 2 else None
            yield from ask(row, "axes", dtype, sentence, make, quick=quick)
    small = pool.distinct(dtype, (3, 4, 5))
    feeds = [(small, int64(axes)) for axes in NEGATIVE]
    make = partial(computed, row, dynamic(row, dtype, 3, 0, 1), feeds)
    yield from ask(row, "axes.range", dtype, "axes that come with the data, negative ones", make)


def _noop(row: Spec, dtype: DType) -> Iterator[Case]:
    """With noop_with_empty_axes, the output is the input: every bit of it, those of a NaN too."""
    plain = pool.distinct(dtype, (2, 3, 4))
    values = np.concatenate([pool.ordinary(dtype), pool.nans(dtype)])
    ways: dict[str, tuple[Call, Feed]] = {}
    for keepdims in (0, 1):
        absent = reducing(row, dtype, (None,) * 3, None, keepdims, noop_with_empty_axes=1)
        absent = Call(row, absent.inputs, absent.attributes, 3)
        ways[f"1, and no axes, keepdims {keepdims}"] = absent, (plain,)
        empty = reducing(row, dtype, (None,) * 3, [], keepdims, noop_with_empty_axes=1)
        ways[f"1, and empty constant axes, keepdims {keepdims}"] = (
            Call(row, empty.inputs, empty.attributes, 3),
            (plain,),
        )
    ways["1, and axes an input without a name"] = Call(row, (*absent.inputs, None), absent.attributes, 3), (plain,)
    coming = dynamic(row, dtype, 3, 0, 1, noop_with_empty_axes=1)
    ways["1, and axes an input that comes empty"] = coming, (plain, int64([]))
    ways["1, and axes that come with the data"] = coming, (plain, int64([1]))
    ways["1, and constant axes [1]"] = reducing(row, dtype, (None,) * 3, [1], 1, noop_with_empty_axes=1), (plain,)
    ways["0, and no axes"] = reducing(row, dtype, (None,) * 3, None, 1, noop_with_empty_axes=0), (plain,)
    scalar = reducing(row, dtype, (), None, 1, noop_with_empty_axes=1)
    ways["1, and no axes, a scalar"] = scalar, (pool.distinct(dtype, ()),)
    bits = reducing(row, dtype, (None,), None, 1, noop_with_empty_axes=1)
    ways["1, and no axes, boundary values"] = bits, (values,)
    for sentence, (call, feed) in ways.items():
        make = partial(computed, row, call, [feed])
        quick: Quick | None = None
        if sentence == "1, and no axes, boundary values":
            quick = "each type" if dtype in CLOSER else "once"
        yield from ask(row, "noop_with_empty_axes", dtype, sentence, make, quick=quick)
