"""Max compared with the reference, bit for bit, for every dtype on every instruction set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.lib.stride_tricks import as_strided

import maxops as mo
from helpers.bits import (
    LAYOUTS,
    STORED,
    Array,
    arrays,
    assert_new,
    assert_same_bits,
    contiguous,
    distinct,
    each_float,
    each_type,
    each_width,
    fast_maximum,
    mixed,
    of_words,
    swapped,
    words,
)
from helpers.instruction_sets import by_itself, on_each_isa
from maxops import reference, spec
from maxops.calls import MaxCall, ReduceCall
from maxops.dtypes import FLOAT16, FLOAT32, INT8, INT64, UINT16, DType
from maxops.errors import AttributeValueError

pytestmark = pytest.mark.usefixtures("isa")

Into = Callable[[Array], tuple[Array, Array]]


@each_float
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


@each_float
def test_zeros_of_either_sign_at_every_place(dtype: DType) -> None:
    n, minus = 130, 1 << dtype.bits - 1
    negative = of_words(dtype, np.full(n, minus))
    for place in range(n):
        bits = np.full(n, minus)
        bits[place] = 0
        mixture = of_words(dtype, bits)
        for inputs in ((mixture, negative), (negative, mixture), (negative, mixture, negative, negative), (mixture,)):
            assert_same_bits(mo.maximum(*inputs), mixture)


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
        one, other = LAYOUTS[layout](a), LAYOUTS[layout](b)
        result = mo.maximum(one, other)
        assert_same_bits(result, expected)
        assert_new(result)
        assert_same_bits(mo.maximum(a, other), expected)
        assert_same_bits(one, a)  # inputs are not written
        assert_same_bits(other, b)
        if layout != "read_only":
            out = LAYOUTS[layout](np.zeros(shape, dtype.numpy))
            assert mo.maximum(a, b, out=out) is out
            assert_same_bits(out, expected)


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


def test_many_axes_that_do_not_merge() -> None:
    a, b = mixed(FLOAT16, (2,) * 13, 8), mixed(FLOAT16, (2,) * 13, 9)
    order = np.random.default_rng(13).permutation(13)
    assert_same_bits(mo.maximum(a.transpose(order), b), fast_maximum(a.transpose(order), b))


@cache
def _long(dtype: DType, count: int) -> tuple[Array, Array, Array]:
    a, b = mixed(dtype, count, 12), mixed(dtype, count, 13)
    return a, b, fast_maximum(a, b)


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


@pytest.mark.usefixtures("threads")
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


@pytest.mark.parametrize("overlap", OVERLAPS)
@each_width
def test_out_overlaps_an_input(dtype: DType, overlap: str) -> None:
    """Test arrays larger than a block: the overlap does not change the result, or the rest of the buffer.

    `tests/bindings/test_overlap.py` tests every overlap of small arrays.
    """
    start = mixed(dtype, (75, 75), 17)
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


@pytest.mark.usefixtures("threads")
@each_width
def test_long_out_overlaps_in_shares(dtype: DType) -> None:
    n = (5 << 20) // 2 // dtype.numpy.itemsize
    start, _, _ = _long(dtype, n)
    for shift in (1, -1, 40_000):
        buffer = start.copy()
        a, out = (buffer[shift:], buffer[:-shift]) if shift > 0 else (buffer[:shift], buffer[-shift:])
        expected = fast_maximum(a)
        assert_same_bits(mo.maximum(a, out=out), expected)


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
