"""Max compared with the reference, bit for bit, for every dtype on every instruction set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import maxops as mo
from helpers.bits import (
    FLOATS,
    LAYOUTS,
    STORED,
    Array,
    Guarded,
    arrays,
    assert_same_bits,
    at_offset,
    contiguous,
    distinct,
    fast_maximum,
    mixed,
    of_words,
    swapped,
    words,
)
from helpers.instruction_sets import by_itself, on_each_isa
from maxops import reference, spec
from maxops.calls import MaxCall, ReduceCall
from maxops.dtypes import FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8, UINT16, DType
from maxops.errors import AttributeValueError

pytestmark = pytest.mark.usefixtures("isa")

each_type = pytest.mark.parametrize("dtype", STORED, ids=str)
each_width = pytest.mark.parametrize("dtype", [UINT8, FLOAT16, FLOAT32, INT64], ids=str)
Into = Callable[[Array], tuple[Array, Array]]


@cache
def _lengths(dtype: DType) -> list[tuple[Array, Array, Array]]:
    """Return (a, b, maximum) for every length from 0 to 130, which covers the tails of all vector widths."""
    a, b = mixed(dtype, 130, 1, nans=0.1), mixed(dtype, 130, 2)
    whole = reference.maximum(a, b)
    return [(a[:n], b[:n], whole[:n]) for n in range(131)]


@each_type
def test_every_length(dtype: DType) -> None:
    for a, b, expected in _lengths(dtype):
        assert_same_bits(mo.maximum(a, b), expected)


@each_type
def test_every_length_writes_no_more(dtype: DType) -> None:
    for a, b, expected in _lengths(dtype):
        guarded = Guarded(dtype, expected.shape)
        assert mo.maximum(a, b, out=guarded.array) is guarded.array
        assert_same_bits(guarded.array, expected)
        guarded.check()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_at_every_place(dtype: DType) -> None:
    n = 130
    ordinary = mixed(dtype, n, 3, nans=0)
    nan = of_words(dtype, [dtype.lowest_bits | 1])  # negative and signaling
    for place in range(n):
        poisoned = ordinary.copy()
        poisoned[place] = nan[0]
        bits = words(ordinary)
        bits[place] = dtype.nan_bits
        expected = of_words(dtype, bits)
        assert_same_bits(mo.maximum(poisoned, ordinary), expected)
        assert_same_bits(mo.maximum(ordinary, poisoned), expected)
        assert_same_bits(mo.maximum(ordinary, ordinary, poisoned), expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_zeros_of_either_sign_at_every_place(dtype: DType) -> None:
    n, minus = 130, 1 << dtype.bits - 1
    negative = of_words(dtype, np.full(n, minus))
    for place in range(n):
        bits = np.full(n, minus)
        bits[place] = 0
        mixture = of_words(dtype, bits)
        for inputs in ((mixture, negative), (negative, mixture), (negative, mixture, negative, negative), (mixture,)):
            assert_same_bits(mo.maximum(*inputs), mixture)


@cache
def _many(dtype: DType, count: int) -> tuple[list[Array], list[Array], Array]:
    """Return inputs, the same inputs in different layouts, and their maximum."""
    inputs = [mixed(dtype, 70, seed, nans=0.3 / count) for seed in range(count)]
    apart = [layout(array) for layout, array in zip(cycle(LAYOUTS.values()), inputs, strict=False)]
    return inputs, apart, fast_maximum(*inputs)


@each_type
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 100])
def test_number_of_inputs(dtype: DType, count: int) -> None:
    inputs, apart, expected = _many(dtype, count)
    assert_same_bits(mo.maximum(*inputs), expected)
    assert_same_bits(mo.maximum(*apart), expected)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 17, 100])
@each_width
def test_each_input_and_place_counts(dtype: DType, count: int) -> None:
    """Test distinct values, with maxima in every input, so that any wrong index changes the result."""
    n = 240
    expected = distinct(dtype, (n,))
    lowest = of_words(dtype, np.full(n, dtype.lowest_bits))
    owner = np.arange(n) * 11 % count
    inputs = [np.where(owner == k, expected, lowest) for k in range(count)]
    for layout in (LAYOUTS["contiguous"], LAYOUTS["negative_apart"]):
        assert_same_bits(mo.maximum(*(layout(array) for array in inputs)), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@each_type
def test_layouts(dtype: DType, layout: str) -> None:
    for shape in [(), (1,), (67,), (5, 7), (3, 1, 4), (2, 3, 130), (130, 3)]:
        a, b = mixed(dtype, shape, 4), mixed(dtype, shape, 5)
        expected = fast_maximum(a, b)
        assert_same_bits(mo.maximum(LAYOUTS[layout](a), b), expected)
        assert_same_bits(mo.maximum(a, LAYOUTS[layout](b)), expected)
        assert_same_bits(mo.maximum(LAYOUTS[layout](a), LAYOUTS[layout](b)), expected)
        if layout != "read_only":
            out = LAYOUTS[layout](np.zeros(shape, dtype.numpy))
            assert mo.maximum(a, b, out=out) is out
            assert_same_bits(out, expected)


@each_type
def test_a_new_result_is_native_and_writable(dtype: DType) -> None:
    for layout in LAYOUTS.values():
        result = mo.maximum(layout(mixed(dtype, (3, 4))), layout(mixed(dtype, (3, 4))))
        assert result.dtype == dtype.numpy
        assert result.dtype.isnative
        assert result.flags.writeable
        assert result.flags.owndata
        assert result.flags.c_contiguous or result.flags.f_contiguous


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 1), (1, 4)),
        ((), (5,)),
        ((5,), ()),
        ((1,), (7,)),
        ((2, 1, 3), (4, 1)),
        ((1, 1, 1), (2, 3, 4)),
        ((2, 3, 1), (2, 1, 4), (1, 3, 4)),
        ((130, 1), (1, 130)),
        ((3, 1, 200), (2, 1)),
        ((4, 1, 3, 1), (1, 5, 1, 2), (3, 1), ()),
        ((0,), (1,)),
        ((0, 3), (1, 3)),
        ((3, 0), (3, 1)),
        ((1, 0), (5, 1)),
        ((0, 1), (1, 0)),
        ((0,), ()),
        ((2, 0, 3), (2, 0, 3)),
    ],
    ids=str,
)
@each_width
def test_broadcasting(dtype: DType, shapes: tuple[tuple[int, ...], ...]) -> None:
    inputs = [mixed(dtype, shape, seed) for seed, shape in enumerate(shapes)]
    expected = fast_maximum(*inputs)
    assert_same_bits(mo.maximum(*inputs), expected)
    assert_same_bits(mo.maximum(*reversed(inputs)), expected)
    assert_same_bits(mo.maximum(*(LAYOUTS["negative_apart"](array) for array in inputs)), expected)


@pytest.mark.parametrize("rank", range(65))
def test_rank(rank: int) -> None:
    shape = tuple(3 if axis in (0, rank // 2, rank - 1) else 1 for axis in range(rank))
    a, b = mixed(INT32, shape, 6), mixed(INT32, shape[rank // 3 :], 7)
    expected = fast_maximum(a, b)
    assert_same_bits(mo.maximum(a, b), expected)
    assert_same_bits(mo.maximum(a.T.copy().T, LAYOUTS["negative"](b)), expected)


@pytest.mark.parametrize("rank", [12, 13])
def test_many_axes_that_do_not_merge(rank: int) -> None:
    a, b = mixed(FLOAT16, (2,) * rank, 8), mixed(FLOAT16, (2,) * rank, 9)
    order = np.random.default_rng(rank).permutation(rank)
    assert_same_bits(mo.maximum(a.transpose(order), b), fast_maximum(a.transpose(order), b))


@each_width
def test_every_byte_offset(dtype: DType) -> None:
    """Test lengths above 2048 bytes, from which whole vectors are aligned to cache lines."""
    for count in (
        13,
        2048 // dtype.numpy.itemsize - 1,
        2048 // dtype.numpy.itemsize,
        2048 // dtype.numpy.itemsize + 77,
    ):
        a, b = mixed(dtype, count, 10), mixed(dtype, count, 11)
        expected = fast_maximum(a, b)
        for offset in range(65):
            out = at_offset(np.zeros(count, dtype.numpy), offset)
            mo.maximum(at_offset(a, 64 - offset), at_offset(b, offset * 5 % 64), out=out)
            assert_same_bits(out, expected)
            assert_same_bits(mo.maximum(at_offset(a, offset), b), expected)


@cache
def _long(dtype: DType, count: int) -> tuple[Array, Array, Array]:
    a, b = mixed(dtype, count, 12), mixed(dtype, count, 13)
    return a, b, fast_maximum(a, b)


@each_width
def test_lengths_about_the_blocks(dtype: DType) -> None:
    size = dtype.numpy.itemsize
    whole_a, whole_b, whole = _long(dtype, 3 * 4096 // size + 1)
    for blocks in (1, 2, 3):
        for step in (-1, 0, 1):
            n = blocks * 4096 // size + step
            a, b, expected = whole_a[:n], whole_b[:n], whole[:n]
            assert_same_bits(mo.maximum(a, b), expected)
            assert_same_bits(mo.maximum(LAYOUTS["strided"](a), swapped(b)), expected)
            out = LAYOUTS["negative"](np.zeros(n, dtype.numpy))
            assert_same_bits(mo.maximum(a, b, a, b, a, out=out), expected)


@pytest.mark.parametrize("row", [1, 2, 3, 63, 127, 128, 129, 511, 2049])
@each_width
def test_rows_about_the_blocks(dtype: DType, row: int) -> None:
    """Test rows of fewer than 128 elements, which are packed into blocks, and longer rows, which are used in place."""
    shape = (max(9000 // dtype.numpy.itemsize // row, 2) + 1, row)
    a, b, column = mixed(dtype, shape, 14), mixed(dtype, (1, row), 15), mixed(dtype, (shape[0], 1), 16)
    for layout in ("contiguous", "pitched", "negative_apart", "fortran"):
        own = LAYOUTS[layout](a)
        assert_same_bits(mo.maximum(own, b), fast_maximum(a, b))
        assert_same_bits(mo.maximum(own, column), fast_maximum(a, column))
        out = LAYOUTS[layout](np.zeros(shape, dtype.numpy))
        assert_same_bits(mo.maximum(a, b, column, out=out), fast_maximum(a, b, column))


@each_type
def test_long_inputs_in_shares(dtype: DType, threads: int) -> None:
    """Test three operands of 4 MiB in total, which the pool splits into shares of 256 KiB, the last one partial."""
    n = (4 << 20) // 3 // dtype.numpy.itemsize + 12_345
    a, b, expected = _long(dtype, n)
    assert_same_bits(mo.maximum(a, b), expected)
    assert_same_bits(mo.maximum(a[::-1], b[::-1]), expected[::-1])
    del threads


@each_width
def test_long_broadcast_in_shares(dtype: DType) -> None:
    shape = (1031, 1500 // dtype.numpy.itemsize)
    a, b, _ = _long(dtype, shape[0] * shape[1])
    a, row, column = a.reshape(shape), b[: shape[1]], b[: shape[0], np.newaxis]
    assert_same_bits(mo.maximum(a, row, column), fast_maximum(a, row, column))
    assert_same_bits(mo.maximum(column, row), fast_maximum(column, row))
    out = np.empty(shape[::-1], dtype.numpy).T
    assert_same_bits(mo.maximum(a, row, out=out), fast_maximum(a, row))


# ------------------------------------------------------------------------------------------- out= and overlap


OVERLAPS: dict[str, Into] = {
    "in_place": lambda m: (m, m),
    "shifted_up": lambda m: (m.reshape(-1)[:-1], m.reshape(-1)[1:]),
    "shifted_down": lambda m: (m.reshape(-1)[1:], m.reshape(-1)[:-1]),
    "far_shifted_up": lambda m: (m.reshape(-1)[:-37], m.reshape(-1)[37:]),
    "row_shifted": lambda m: (m[:-1], m[1:]),
    "row_shifted_down": lambda m: (m[1:], m[:-1]),
    "transposed": lambda m: (m, m.T),
    "transposed_out": lambda m: (m.T, m),
    "reversed": lambda m: (m.reshape(-1), m.reshape(-1)[::-1]),
    "reversed_rows": lambda m: (m, m[::-1]),
    "reversed_columns": lambda m: (m[:, ::-1], m),
    "interleaved": lambda m: (m.reshape(-1)[:-1:2], m.reshape(-1)[1::2]),
    "every_other_onto_the_front": lambda m: (m.reshape(-1)[: m.size // 2 * 2 : 2], m.reshape(-1)[: m.size // 2]),
    "front_onto_every_other": lambda m: (m.reshape(-1)[: m.size // 2], m.reshape(-1)[: m.size // 2 * 2 : 2]),
    "a_row_onto_all": lambda m: (np.broadcast_to(m[3:4], m.shape), m),
    "a_column_onto_all": lambda m: (np.broadcast_to(m[:, 3:4], m.shape), m),
    "an_element_onto_all": lambda m: (np.broadcast_to(m[2:3, 2:3], m.shape), m),
    "in_place_reversed": lambda m: (m[::-1, ::-1], m[::-1, ::-1]),
}


@pytest.mark.parametrize("side", [5, 75], ids="side-{}".format)
@pytest.mark.parametrize("overlap", OVERLAPS)
@each_width
def test_out_overlaps_an_input(dtype: DType, overlap: str, side: int) -> None:
    """Test that the result is as without overlap, and that the rest of the buffer is unchanged."""
    start = mixed(dtype, (side, side), 17)
    for wrap in (contiguous, swapped):
        for others in (0, 1, 4):
            buffer = wrap(start)
            a, out = OVERLAPS[overlap](buffer)
            rest = [mixed(dtype, out.shape, 18 + k) for k in range(others)]
            correct = fast_maximum(a, *rest)
            expected = wrap(start)
            OVERLAPS[overlap](expected)[1].view(dtype.word)[...] = wrap(correct).view(dtype.word)
            assert mo.maximum(*rest[:1], a, *rest[1:], out=out) is out
            assert_same_bits(out, correct)
            assert_same_bits(buffer, expected)


@each_width
def test_out_is_two_inputs(dtype: DType) -> None:
    a, b = mixed(dtype, 5000, 19), mixed(dtype, 5000, 20)
    out = a.copy()
    assert_same_bits(mo.maximum(out, out, b, out=out), fast_maximum(a, b))
    out = a.copy()
    assert_same_bits(mo.maximum(out, b, out[::-1], out=out), fast_maximum(a, b, a[::-1]))


def test_out_overlaps_by_less_than_an_element() -> None:
    start = np.frombuffer(np.random.default_rng(0).bytes(8008), np.uint8)
    for shift in range(1, 9):
        buffer = start.copy()
        a, out = buffer[:8000].view(np.float64), buffer[shift : 8000 + shift if shift < 8 else 8008]
        out = out.view(np.float64)
        expected = fast_maximum(a)
        assert_same_bits(mo.maximum(a, out=out), expected)


@each_width
def test_long_out_overlaps_in_shares(dtype: DType, threads: int) -> None:
    n = (5 << 20) // 2 // dtype.numpy.itemsize
    start, _, _ = _long(dtype, n)
    for shift in (1, -1, 40_000):
        buffer = start.copy()
        a, out = (buffer[shift:], buffer[:-shift]) if shift > 0 else (buffer[:shift], buffer[-shift:])
        expected = fast_maximum(a)
        assert_same_bits(mo.maximum(a, out=out), expected)
    del threads


@pytest.mark.parametrize("n", [3, 100, 5000])
@each_width
def test_out_overlaps_by_one_element(dtype: DType, n: int) -> None:
    """Test that the last element read is the first one written, or the reverse."""
    start = mixed(dtype, 2 * n - 1, 23)
    for first in (0, n - 1):
        buffer, expected = start.copy(), start.copy()
        a, b = buffer[first : first + n], mixed(dtype, n, 24)
        begin = n - 1 - first
        correct = fast_maximum(a, b)
        expected[begin : begin + n] = correct
        mo.maximum(a, b, out=buffer[begin : begin + n])
        assert_same_bits(buffer, expected)
        swapped_buffer = swapped(start)
        mo.maximum(swapped_buffer[first : first + n], b, out=swapped_buffer[begin : begin + n])
        assert_same_bits(swapped_buffer, expected)


@each_width
def test_out_is_an_input_in_the_other_byte_order(dtype: DType) -> None:
    start, b = mixed(dtype, 3000, 25), mixed(dtype, 3000, 26)
    buffer = start.copy()
    other = buffer.view(dtype.numpy.newbyteorder("S"))
    expected = fast_maximum(other, b)
    mo.maximum(other, b, out=buffer)
    assert_same_bits(buffer, expected)


def test_out_is_an_input_and_overlaps_itself() -> None:
    """Test that the result is not written in place, because it would then be read as input."""
    rows = 3000  # longer than a block
    size = 2 * rows + 6
    b = np.random.default_rng(27).integers(0, 1 << 30, (rows, 6), np.int32)
    start = np.random.default_rng(28).integers(0, 1 << 30, size, np.int32)
    for strides in [(8, 4), (4, 8), (0, 4), (8, 0), (-8, 4)]:
        buffer = start.copy()
        offset = 2 * (rows - 1) if strides[0] < 0 else 0
        out = as_strided(buffer[offset:], b.shape, strides, writeable=True)
        places = as_strided(np.arange(size)[offset:], b.shape, [2 * stride for stride in strides])
        expected = fast_maximum(out, b)
        mo.maximum(out, b, out=out)
        fits = np.bincount(places.reshape(-1), (buffer[places] == expected).reshape(-1), size) > 0
        untouched = np.setdiff1d(np.arange(size), places)
        fits[untouched] = True
        assert fits.all()
        assert (buffer[untouched] == start[untouched]).all()


def test_out_overlaps_itself() -> None:
    """Test that shared positions contain one of their results, and that nothing else changes."""
    a = np.arange(1, 31, dtype=np.int32).reshape(5, 6)
    buffer = np.zeros(40, np.int32)
    out = as_strided(buffer[4:], (5, 6), (8, 4), writeable=True)
    mo.maximum(a, a - 1, out=out)
    for place in range(len(buffer)):
        fits = {a[i, j] for i in range(5) for j in range(6) if 4 + 2 * i + j == place} or {0}
        assert buffer[place] in fits


def test_out_of_one_place() -> None:
    place = np.zeros(1, np.int32)
    out = as_strided(place, (4,), (0,), writeable=True)
    mo.maximum(np.arange(4, dtype=np.int32), out=out)
    assert place[0] in range(4)


@each_width
def test_inputs_that_overlap_each_other(dtype: DType) -> None:
    values = mixed(dtype, 600, 21)
    windows = sliding_window_view(values, 130)
    a, b = windows[:200], windows[200:400]
    assert_same_bits(mo.maximum(a, b), fast_maximum(a, b))
    assert_same_bits(mo.maximum(a.T, b.T), fast_maximum(a.T, b.T))
    assert_same_bits(mo.maximum(values[:-1], values[1:]), fast_maximum(values[:-1], values[1:]))


def test_zero_stride_inputs() -> None:
    for shape in [(9,), (300,), (7, 200), (200, 7)]:
        a, b = np.broadcast_to(np.float32(-0.0), shape), np.broadcast_to(np.float32(0.0), shape)
        assert_same_bits(mo.maximum(a, b), np.zeros(shape, np.float32))
        assert_same_bits(mo.maximum(a, a), np.full(shape, -0.0, np.float32))


def test_inputs_are_left_alone() -> None:
    for layout in LAYOUTS.values():
        values = mixed(FLOAT64, (6, 7), 22, nans=1)
        a, b = layout(values), layout(values)
        mo.maximum(a, b)
        assert_same_bits(a, values)
        assert_same_bits(b, values)


def test_rank_0_gives_an_array() -> None:
    for inputs in ([np.array(3, np.int8)], [np.int8(3), np.array(1, np.int8)], [np.float32(1), np.float32(2)]):
        result = mo.maximum(*inputs)
        assert type(result) is np.ndarray
        assert result.shape == ()


# ------------------------------------------------------------------------------------------------- hypothesis


@by_itself
@given(data=st.data())
def test_anything_goes(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(STORED))
    count = data.draw(st.integers(1, 10))
    drawn = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=5, min_side=0, max_side=4))
    inputs = [data.draw(arrays(dtype, shape)) for shape in drawn.input_shapes]
    expected = reference.maximum(*inputs)
    out = data.draw(arrays(dtype, expected.shape))
    before = out.copy()

    def check() -> None:
        assert_same_bits(mo.maximum(*inputs), expected)
        if out.flags.writeable:
            out[...] = before
            assert mo.maximum(*inputs, out=out) is out
            assert_same_bits(out, expected)

    on_each_isa(check)


@by_itself
@given(data=st.data())
def test_any_overlap(data: st.DataObject) -> None:
    """Test views of one buffer with any strides, as inputs and as output."""
    dtype = data.draw(st.sampled_from((INT8, UINT16, FLOAT32, INT64)))
    start = mixed(dtype, 60, data.draw(st.integers(0, 9)))
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))

    def view(buffer: Array, strides: tuple[int, ...], offset: int, itemsize: int) -> Array:
        return as_strided(buffer[offset:], shape, [stride * itemsize for stride in strides], writeable=True)

    def place() -> tuple[tuple[int, ...], int]:
        strides = tuple(data.draw(st.integers(-4, 5)) for _ in shape)
        reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if stride > 0)
        back = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if stride < 0)
        return strides, data.draw(st.integers(-back, 59 - reach))

    size = dtype.numpy.itemsize
    given_places = [place() for _ in range(data.draw(st.integers(1, 3)))]
    strides, offset = place()
    places = view(np.arange(60), strides, offset, 8)
    expected = fast_maximum(*(view(start, *each, size) for each in given_places))
    fits = [words(expected)[places == index].tolist() or [int(words(start)[index])] for index in range(60)]

    def check() -> None:
        buffer = start.copy()
        inputs = [view(buffer, *each, size) for each in given_places]
        mo.maximum(*inputs, out=view(buffer, strides, offset, size))
        assert [index for index, word in enumerate(words(buffer).tolist()) if word not in fits[index]] == []

    on_each_isa(check)


def test_standards_have_no_rule_that_ignores_nan() -> None:
    for row in (spec.MAX_13, spec.SONNX_MAX):
        with pytest.raises(AttributeValueError, match="nan must be 'propagate', got 'ignore'"):
            mo.run(MaxCall([np.ones(2, np.float32)] * 2, nan="ignore", row=row))
    with pytest.raises(AttributeValueError, match="nan must be 'propagate', got 'ignore'"):
        mo.run(ReduceCall(np.ones(2, np.float32), nan="ignore", row=spec.REDUCE_MAX_20))
