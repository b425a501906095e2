"""Large calls, for which runtimes may use threads or special loops: many elements, results, inputs and segments.

The expected results are known by construction (`planted`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from maxops import dtypes
from maxops.conformance.case import Call, Case, Feed, Input, Trial
from maxops.conformance.cases import max as of_max
from maxops.conformance.cases.family import Quick, ask, newest, rows, stored
from maxops.conformance.cases.pairs import Which, meanings
from maxops.conformance.cases.planted import halves, ladder, places, planted, thirds
from maxops.conformance.cases.reduce_max import reducing
from maxops.conformance.cases.segment_max import segments
from maxops.conformance.pool import of_words
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.spec import Spec

SIZES = (10_000, 100_000, 1_000_000, 3_000_000)
# Sizes that are tested with every kind of call; other sizes are tested with one kind.
THOROUGH = (100_000, 1_000_000)
COUNTS = (100, 1000)  # inputs of a Max
SHORT, LONG = 8, 250  # sizes of an axis next to a long axis


def cases() -> Iterator[Case]:
    """Yield the cases of large calls, for the newest version of each operator."""
    for operator, of_type in (("Max", _max), ("ReduceMax", _reduce_max), ("SegmentMax", _segment_max)):
        for row in rows(operator):
            if row is newest(row):
                for dtype in stored(row):
                    yield from of_type(row, dtype)


def how_quick(dtype: DType, size: int) -> Quick:
    """Return how widely a quick run covers a size: each type for cheap sizes, one type for other sizes."""
    return "each type" if size <= SIZES[1] else dtype is dtypes.FLOAT32


def _asked(dtype: DType, size: int) -> list[tuple[Which, str, str]]:
    """Return the kinds of values for a size: ordinary values always, NaNs and zeros only at some sizes."""
    words = {"value": "", "nan": ", NaNs among them", "zeros": ", zeros of both signs"}
    return [
        (which, meaning, words[which]) for which, meaning, _ in meanings(dtype) if which == "value" or size in THOROUGH
    ]


def _trial(call: Call, made: Sequence[tuple[Feed, Array, Array]], which: Which) -> Trial:
    feeds, expected, without = zip(*made, strict=True)
    return Trial(call, feeds, expected, without if which == "nan" else ())


def _sized(call: Call, feed: Feed) -> Call:
    """Return the call with input sizes declared in the model, so a runtime knows that the inputs are large."""
    arrays = iter(feed)
    inputs = tuple(
        each if each is None or each.constant is not None else Input(each.name, each.dtype, next(arrays).shape)
        for each in call.inputs
    )
    return Call(call.row, inputs, call.attributes, call.rank)


# --------------------------------------------------------------------------------------------------------- Max


def _max(row: Spec, dtype: DType) -> Iterator[Case]:
    for size in SIZES:
        for which, meaning, words in _asked(dtype, size):
            make = partial(_of_inputs, row, dtype, which, size, 2)
            yield from ask(row, meaning, dtype, f"{size} elements{words}", make, quick=how_quick(dtype, size))
    for size in THOROUGH:
        make = partial(_broadcast, row, dtype, size)
        yield from ask(
            row,
            "shape",
            dtype,
            f"matrices of {size} elements, sizes of 1",
            make,
            quick=size == THOROUGH[0],
        )
    for count in COUNTS:
        make = partial(_of_inputs, row, dtype, "value", 1000, count)
        sentence = f"{count} inputs, the maximum in each of them"
        yield from ask(row, "inputs", dtype, sentence, make, quick="each type" if count == COUNTS[0] else True)


def _of_inputs(row: Spec, dtype: DType, which: Which, size: int, count: int) -> Trial:
    """Return a trial in which the maximum is in each input in turn."""
    made = planted(dtype, which, np.full(size, count))
    feed = tuple(np.ascontiguousarray(each) for each in made.data.reshape(size, count).T)
    call = _sized(of_max.call(row, dtype, count), feed)
    return _trial(call, [(feed, made.expected[:, 0], made.without_nan[:, 0])], which)


def _broadcast(row: Spec, dtype: DType, size: int) -> Trial:
    """Return a trial that runs one model with dynamic sizes on matrices with sizes of 1 along different axes."""
    width = LONG
    height = size // width
    made = []
    for shapes in (
        ((height, width), (1, width)),
        ((height, width), (height, 1)),
        ((1, width), (height, width)),
        ((height, 1), (height, width)),
        ((height, 1), (1, width)),
        ((height, width), (1, 1)),
        ((1, 1), (width, height)),
    ):
        made.append(_against(dtype, *shapes))
    return _trial(of_max.call(row, dtype, 2, 2), made, "value")


def _against(dtype: DType, one: tuple[int, int], other: tuple[int, int]) -> tuple[Feed, Array, Array]:
    """Return two matrices of known values, and their maximum, which is also the maximum without NaN."""
    values = ladder(dtype, "value")
    u, v = (np.indices(shape).sum(axis=0) * step % len(values) for shape, step in ((one, 1), (other, 3)))
    expected = values[np.where(u > v, u, v)]
    return (values[u], values[v]), expected, expected


# --------------------------------------------------------------------------------------------------- ReduceMax


def _reduce_max(row: Spec, dtype: DType) -> Iterator[Case]:
    for size in SIZES:
        quick = how_quick(dtype, size)
        for which, meaning, words in _asked(dtype, size):
            make = partial(_whole, row, dtype, which, size)
            sentence = f"a vector of {size} elements, the maximum at its ends and at boundaries of chunks{words}"
            yield from ask(row, meaning, dtype, sentence, make, quick=quick)
        for which, meaning, words in _asked(dtype, size):
            if which == "value" and size not in THOROUGH:
                continue
            for layout, axis in (("rows", 1), ("columns", 0)):
                make = partial(_matrices, row, dtype, which, size, axis)
                sentence = f"{layout} of matrices of {size} elements{words}"
                yield from ask(row, meaning, dtype, sentence, make, quick=quick)
    for size in THOROUGH:
        make = partial(_middle, row, dtype, size)
        sentence = f"the axis in the middle of {size} elements"
        yield from ask(row, "axes", dtype, sentence, make, quick=how_quick(dtype, size))
        make = partial(_everything, row, dtype, size)
        sentence = f"no axes, matrices of {size} elements"
        yield from ask(row, "axes.default", dtype, sentence, make, quick=how_quick(dtype, size))
        if "noop_with_empty_axes" in row.attributes:
            make = partial(_identity, row, dtype, size)
            sentence = f"1, and no axes, {size} elements"
            yield from ask(row, "noop_with_empty_axes", dtype, sentence, make, quick=how_quick(dtype, size))


def _whole(row: Spec, dtype: DType, which: Which, size: int) -> Trial:
    """Return a trial with one vector for each position of the maximum or of the NaN."""
    at = places(size)
    if size > SIZES[1]:
        at = [0, size // 2, size - 1] if size in THOROUGH else [size - 1]
    made = []
    for place in at:
        of = planted(dtype, which, [size], at=place)
        made.append(((of.data[:, 0],), of.expected.reshape(()), of.without_nan.reshape(())))
    return _trial(_sized(reducing(row, dtype, 1, [0]), made[0][0]), made, which)


def _shapes(size: int) -> list[tuple[int, int]]:
    """Return pairs (number of groups, length of a group), from single elements to a few long groups."""
    side = int(size**0.5)
    return [(size // SHORT, SHORT), (SHORT, size // SHORT), (side, side), (size // LONG, LONG), (size, 1)]


def _matrices(row: Spec, dtype: DType, which: Which, size: int, axis: int) -> Trial:
    """Return a trial that runs one model on matrices of several shapes, and reduces their rows or columns."""
    made = []
    for count, length in _shapes(size):
        of = planted(dtype, which, np.full(count, length))
        data = of.data.reshape(count, length)
        feed = (data if axis == 1 else np.ascontiguousarray(data.T),)
        made.append((feed, of.expected[:, 0], of.without_nan[:, 0]))
    return _trial(reducing(row, dtype, 2, [axis]), made, which)


def _middle(row: Spec, dtype: DType, size: int) -> Trial:
    made = []
    for outer, length, inner in (
        (size // (SHORT * LONG), LONG, SHORT),
        (SHORT, size // (SHORT * LONG), LONG),
        (SHORT, LONG, size // (SHORT * LONG)),
    ):
        of = planted(dtype, "value", np.full(outer, length), inner)
        made.append(((of.data.reshape(outer, length, inner),), of.expected, of.without_nan))
    return _trial(reducing(row, dtype, 3, [1]), made, "value")


def _everything(row: Spec, dtype: DType, size: int) -> Trial:
    made = []
    for place, (count, length) in zip((0, size // 3, size - 1), _shapes(size), strict=False):
        of = planted(dtype, "value", [count * length], at=min(place, count * length - 1))
        made.append(((of.data.reshape(count, length),), of.expected.reshape(()), of.without_nan.reshape(())))
    return _trial(reducing(row, dtype, 2, None), made, "value")


def _identity(row: Spec, dtype: DType, size: int) -> Trial:
    data = planted(dtype, "value", [size]).data[:, 0]
    call = reducing(row, dtype, 1, None, 1, noop_with_empty_axes=1)
    return _trial(_sized(call, (data,)), [((data,), data, data)], "value")


# -------------------------------------------------------------------------------------------------- SegmentMax


def _segment_max(row: Spec, dtype: DType) -> Iterator[Case]:
    for size in SIZES:
        quick = how_quick(dtype, size)
        for which, meaning, words in _asked(dtype, size):
            make = partial(_vectors, row, dtype, which, size)
            sentence = f"{size} rows in many segments, and in a few long ones{words}"
            yield from ask(row, meaning, dtype, sentence, make, quick=quick)
        if size in THOROUGH:
            make = partial(_wide, row, dtype, size)
            yield from ask(row, "ids", dtype, f"{size} elements in rows of several sizes", make, quick=quick)
            for mode, meaning in (("ZERO", "fill_mode"), ("LOWEST", "lowest")):
                make = partial(_gaps, row, dtype, size, mode)
                yield from ask(
                    row, meaning, dtype, f"{size} rows, every second segment empty, {mode}", make, quick=quick
                )
            for meaning in ("num_segments.smaller", "num_segments.larger"):
                make = partial(_numbers, row, dtype, size, meaning == "num_segments.larger")
                yield from ask(row, meaning, dtype, f"{size} rows", make, quick=quick)


def _vectors(row: Spec, dtype: DType, which: Which, size: int) -> Trial:
    """Return a trial that runs one model on vectors with segments of several lengths."""
    made = []
    kinds: list[Callable[[int], Array]] = [partial(np.ones, dtype=np.int64), thirds, halves]
    if size > SIZES[1]:  # a third of the rows for each kind
        whole = [np.concatenate([kind(size // 3) for kind in kinds])]
    else:
        whole = [*(kind(size) for kind in kinds), np.full(size // LONG, LONG)]
    for lengths in whole:
        of = planted(dtype, which, lengths)
        ids = np.repeat(np.arange(len(lengths)), lengths)
        made.append(((of.data[:, 0], ids), of.expected[:, 0], of.without_nan[:, 0]))
    return _trial(segments(row, dtype), made, which)


def _wide(row: Spec, dtype: DType, size: int) -> Trial:
    made = []
    for columns, lengths in (
        (SHORT, thirds(size // SHORT)),
        (LONG, halves(size // LONG)),
        (size // SHORT, np.array([1, SHORT - 1])),
    ):
        of = planted(dtype, "value", lengths, columns)
        made.append(((of.data, np.repeat(np.arange(len(lengths)), lengths)), of.expected, of.without_nan))
    return _trial(segments(row, dtype, rank=2), made, "value")


def _gaps(row: Spec, dtype: DType, size: int, mode: str) -> Trial:
    lengths = thirds(size)
    of = planted(dtype, "value", lengths)
    expected = np.full(2 * len(lengths), _fill(dtype, mode), dtype.numpy)
    expected[1::2] = of.expected[:, 0]
    ids = np.repeat(np.arange(1, 2 * len(lengths), 2), lengths)
    return _trial(segments(row, dtype, mode), [((of.data[:, 0], ids), expected, expected)], "value")


def _numbers(row: Spec, dtype: DType, size: int, larger: bool) -> Trial:
    """Return a trial with fewer or more segments than the ids define."""
    lengths = thirds(size)
    of = planted(dtype, "value", lengths)
    ids, count = np.repeat(np.arange(len(lengths)), lengths), len(lengths)
    made = []
    for number in (2 * count, count + 1) if larger else (count - 1, count // 2, 1):
        expected = np.full(number, _fill(dtype, "LOWEST"), dtype.numpy)
        expected[:count] = of.expected[:number, 0]
        made.append(((of.data[:, 0], ids, np.array(number)), expected, expected))
    return _trial(segments(row, dtype, "LOWEST", number=dtypes.INT64), made, "value")


def _fill(dtype: DType, mode: str) -> Array:
    return of_words(dtype, [0 if mode == "ZERO" else dtype.lowest_finite_bits]).reshape(())
