"""Indices of maxima from the core: along axes of every kind, in segments, with ties, NaNs and threads."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxops as mo
from helpers.bits import (
    LAYOUTS,
    STORED,
    Array,
    arrays,
    assert_same_bits,
    each_float,
    each_type,
    each_width,
    fast_first_in_axes,
    fast_first_in_segments,
    fast_reduce_max,
    fast_segment_max,
    mixed,
    of_words,
)
from helpers.instruction_sets import by_itself, on_each_isa
from maxops import reference
from maxops.dtypes import BOOL, FLOAT32, FLOAT64, DType

pytestmark = pytest.mark.usefixtures("isa")


def _assert_right(data: Array, axes: tuple[int, ...], given: Array | None = None, keepdims: bool = True) -> None:
    got, places = mo.reduce_max(data if given is None else given, axes, keepdims, return_indices=True)
    assert_same_bits(got, fast_reduce_max(data, axes, keepdims))
    assert_same_bits(places, fast_first_in_axes(data, axes, keepdims))


def _few(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return few distinct values, so that most maxima occur several times."""
    values = mixed(dtype, 4, seed, nans=0.2)
    return values[np.random.default_rng(seed).integers(0, 4, shape)]


def test_the_oracle() -> None:
    for dtype in STORED:
        data = _few(dtype, (5, 6), 1)
        values = reference.reduce_max(data, (1,))
        assert_same_bits(fast_first_in_axes(data, (1,)), reference.first_in_axes(data, (1,), values))
        ids = np.array([3, 0, 3, 1, 0])
        result = reference.segment_max(data, ids, 5, "ZERO")
        assert_same_bits(fast_first_in_segments(data, ids, result), reference.first_in_segments(data, ids, result))


@each_type
def test_rows_and_columns_of_every_length(dtype: DType) -> None:
    """Test rows of up to 32 elements, which are searched backwards, longer rows, and columns in blocks of 64 rows."""
    for length in (1, 2, 7, 31, 32, 33, 63, 64, 65, 129, 300):
        for make in (mixed, _few):
            data = make(dtype, (9, length), length)
            _assert_right(data, (1,))
            _assert_right(data, (0,))
            _assert_right(data.T, (1,))
            _assert_right(np.ascontiguousarray(data.T), (0,))
    for width in (255, 256, 257, 1023, 1024, 1025, 2100):
        _assert_right(_few(dtype, (3, width), width), (0,))


@each_float
def test_nans_and_zeros(dtype: DType) -> None:
    """Test that any NaN matches the quiet NaN, and that -0 does not match +0."""
    sign = 1 << dtype.bits - 1
    signalling, negative = dtype.infinity_bits + 1, sign | dtype.infinity_bits + 3
    words = [[0, 0, signalling, negative], [sign, 0, sign, 0], [sign, sign, sign, sign], [negative, 0, 0, signalling]]
    for data, axis in ((of_words(dtype, words), 1), (of_words(dtype, words).T, 0)):
        places = mo.reduce_max(data, axis, keepdims=False, return_indices=True)[1]
        assert_same_bits(places, np.array([2, 1, 0, 0]))


def test_bools_of_any_byte() -> None:
    data = np.array([0, 7, 1, 255], np.uint8).view(BOOL.numpy)
    assert mo.reduce_max(data, keepdims=False, return_indices=True)[1] == 1


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@each_width
def test_layouts(dtype: DType, layout: Any) -> None:
    data = _few(dtype, (4, 7, 3, 5), 2)
    for count in range(1, 5):
        for axes in combinations(range(4), count):
            _assert_right(data, axes, layout(data), keepdims=count % 2 == 0)


@cache
def _large() -> list[tuple[Array, tuple[int, ...], Array, Array]]:
    """Return (data, axes, values, indices), slightly larger than the minimum for threads."""
    cases: list[tuple[Array, tuple[int, ...], Array, Array]] = []
    for shape, axes in (
        ((1_000, 300), (1,)), ((300, 1_000), (0,)), ((600_000,), (0,)), ((2, 150_000), (1,)), ((80_000, 4), (0,)),
        ((30, 10, 1_000), (0, 2)), ((3, 100_000), (0,)),
    ):  # fmt: skip
        for data in (mixed(FLOAT32, shape, 1, nans=0.0), _few(FLOAT32, shape, 1)):
            cases.append((data, axes, fast_reduce_max(data, axes), fast_first_in_axes(data, axes)))
    return cases


def test_threads(threads: int) -> None:
    """Test outputs that threads share, and parts of the reduced axes if outputs are few."""
    for data, axes, values, indices in _large():
        got, found = mo.reduce_max(data, axes, return_indices=True)
        assert_same_bits(got, values)
        assert_same_bits(found, indices)


def test_outputs() -> None:
    """Test outputs of any layout, including one that overlaps the data."""
    data = mixed(FLOAT64, (6, 7), 3)
    expected, places = fast_reduce_max(data, (1,)), fast_first_in_axes(data, (1,))
    for layout in LAYOUTS.values():
        out = layout(np.zeros((6, 1)))
        if not out.flags.writeable:
            continue
        assert_same_bits(mo.reduce_max(data, 1, out=out, return_indices=True)[1], places)
        assert_same_bits(np.array(out, np.float64), expected)
    got, found = mo.reduce_max(data, 1, out=data[:, 3:4], return_indices=True)
    assert_same_bits(np.array(got), expected)
    assert_same_bits(np.array(data[:, 3:4]), expected)
    assert_same_bits(found, places)


def test_nothing_to_find() -> None:
    for shape, axes in (((0, 3), (0,)), ((3, 0), (0,)), ((0,), (0,)), ((2, 0, 3), (1,))):
        _assert_right(np.zeros(shape, np.float32), axes)
    values, places = mo.reduce_max(np.array([[1, 2], [3, 4]], np.float32), 1, initial=3, return_indices=True)
    assert values.tolist() == [[3], [4]]
    assert places.tolist() == [[-1], [1]]


@cache
def _large_segments() -> list[tuple[Array, Array, int, Array, Array]]:
    """Return (data, ids, number of segments, values, indices)."""
    cases = []
    for rows, width, count in ((300, 5, 40), (300_000, 1, 7), (300_000, 1, 90_000), (32_000, 9, 300), (50, 9_000, 9)):
        ids = np.sort(np.random.default_rng(rows).integers(0, count, rows))
        for data in (mixed(FLOAT32, (rows, width), 1), _few(FLOAT32, (rows, width), 1)):
            for fewer in (count, count // 2):
                expected = fast_segment_max(data, ids, fewer, "ZERO")
                cases.append((data, ids, fewer, expected, fast_first_in_segments(data, ids, expected)))
    return cases


def test_segments_in_order(threads: int) -> None:
    """Test that threads share rows, and that a segment may be in several shares."""
    for data, ids, count, values, indices in _large_segments():
        got, found = mo.segment_max(data, ids, count, fill_mode="ZERO", return_indices=True)
        assert_same_bits(got, values)
        assert_same_bits(found, indices)


@by_itself
@given(st.data())
def test_any_call(draw: st.DataObject) -> None:
    dtype = draw.draw(st.sampled_from(STORED))
    shape = tuple(draw.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4)))
    axes = tuple(draw.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    data = draw.draw(arrays(dtype, shape))
    keepdims = draw.draw(st.booleans())
    on_each_isa(lambda: _assert_right(np.array(data), axes, data, keepdims))
