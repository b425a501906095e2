"""ReduceMax compared with the reference, bit for bit, for every dtype on every instruction set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import chain, combinations

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
    each_float,
    each_type,
    each_width,
    fast_reduce_max,
    mixed,
    of_words,
    spread,
    swapped,
    words,
)
from helpers.instruction_sets import by_itself, on_each_isa
from maxops import reference
from maxops.dtypes import FLOAT32, INT8, INT64, UINT8, UINT16, DType
from maxops.typing import Axes

pytestmark = pytest.mark.usefixtures("isa")


def subsets(rank: int) -> list[tuple[int, ...]]:
    """Return every nonempty set of axes."""
    return list(chain.from_iterable(combinations(range(rank), count) for count in range(1, rank + 1)))


@by_itself
def test_a_list_of_axes_that_changes_while_it_is_read() -> None:
    class Shrinks(np.int64):
        def __index__(self) -> int:
            axes.clear()
            return 0

    axes: list[int | np.int64] = [Shrinks(0), *(10**6 + i for i in range(7))]
    data = mixed(FLOAT32, (2,) * 8)
    assert_same_bits(mo.reduce_max(data, axes), reference.reduce_max(data, (0,)))


@each_float
def test_nan_at_every_place(dtype: DType) -> None:
    """Test a NaN among negative numbers, among other numbers, and with an infinity."""
    nan = of_words(dtype, [dtype.lowest_bits | 1])[0]
    result = of_words(dtype, [dtype.nan_bits])
    negative, any_sign = np.full(131, dtype.numpy.type(-2)), mixed(dtype, 131, 3, nans=0)
    for row in (negative, any_sign):
        for place in range(131):
            poisoned = row.copy()
            poisoned[place] = nan
            assert_same_bits(mo.reduce_max(poisoned), result)
            assert_same_bits(mo.reduce_max(poisoned.reshape(1, 131).T.copy()).reshape(1), result)
    poisoned = np.tile(any_sign[:40], (40, 1))
    np.fill_diagonal(poisoned, nan)
    assert_same_bits(mo.reduce_max(poisoned, (1,), False), np.repeat(result, 40))
    assert_same_bits(mo.reduce_max(poisoned, (0,), False), np.repeat(result, 40))


@each_float
def test_zeros_of_either_sign_at_every_place(dtype: DType) -> None:
    minus, plus = of_words(dtype, [1 << dtype.bits - 1]), of_words(dtype, [0])
    for n in (1, 2, 3, 4, 8, 17, 64, 131):
        row = np.repeat(minus, n)
        assert_same_bits(mo.reduce_max(row), minus)
        for place in range(n):
            mixture = row.copy()
            mixture[place] = plus[0]
            assert_same_bits(mo.reduce_max(mixture), plus)


@pytest.mark.parametrize("layout", LAYOUTS)
@each_type
def test_layouts(dtype: DType, layout: str) -> None:
    for shape in [(), (1,), (67,), (5, 7), (3, 1, 4), (3, 4, 131), (131, 3), (9, 70, 2)]:
        values = mixed(dtype, shape, 4)
        data = LAYOUTS[layout](values)
        for axes in [(), *subsets(len(shape))]:
            expected = fast_reduce_max(values, axes)
            result = mo.reduce_max(data, axes)
            assert_same_bits(result, expected)
            assert_new(result)
            assert_same_bits(data, values)  # the input is not written
            if layout != "read_only":
                out = LAYOUTS[layout](np.zeros(expected.shape, dtype.numpy))
                assert mo.reduce_max(values, axes, out=out) is out
                assert_same_bits(out, expected)


@each_type
def test_negative_axes_and_the_ways_to_write_axes(dtype: DType) -> None:
    data = mixed(dtype, (3, 4, 5), 5)
    expected = fast_reduce_max(data, (0, 2))
    ways: list[Axes] = [
        (0, 2), (2, 0), (-1, 0), (-3, -1), [0, 2], np.array([0, -1]), np.array([2, 0], ">i8"),
        (np.int64(0), np.int8(2)),
    ]  # fmt: skip
    for axes in ways:
        assert_same_bits(mo.reduce_max(data, axes), expected)
        assert_same_bits(mo.reduce_max(data, axis=axes), np.squeeze(expected, (0, 2)))
        assert_same_bits(mo.reduce_max(data, axis=axes, keepdims=True), expected)
    assert_same_bits(mo.reduce_max(data, -1), fast_reduce_max(data, (2,)))
    assert_same_bits(mo.reduce_max(data, np.int32(1)), fast_reduce_max(data, (1,)))
    nothing: list[Axes | None] = [None, (), [], np.array([], np.int64)]
    for empty in nothing:
        assert_same_bits(mo.reduce_max(data, empty), fast_reduce_max(data))
        dropped = data if empty is not None else fast_reduce_max(data).reshape(())
        assert_same_bits(mo.reduce_max(data, axis=empty), dropped)
        assert_same_bits(mo.reduce_max(data, empty, False), fast_reduce_max(data).reshape(()))
        assert_same_bits(mo.reduce_max(data, empty, noop_with_empty_axes=True), data)


@each_type
def test_no_axes_and_noop_give_the_data_bit_for_bit(dtype: DType) -> None:
    """Test that the result has the data's bits, including NaN payloads."""
    values = np.tile(spread(dtype, 60), (2, 1))
    for layout in LAYOUTS.values():
        data = layout(values)
        result = mo.reduce_max(data, (), noop_with_empty_axes=True)
        assert_same_bits(result, values)
        assert not np.shares_memory(result, data)
        assert result.dtype.isnative
        out = swapped(np.zeros(values.shape, dtype.numpy))
        assert mo.reduce_max(data, noop_with_empty_axes=True, out=out) is out
        assert_same_bits(out, values)
    assert_same_bits(mo.reduce_max(values, (0,), noop_with_empty_axes=True), fast_reduce_max(values, (0,)))
    buffer = values.copy()
    mo.reduce_max(buffer[0, ::-1], noop_with_empty_axes=True, out=buffer[0])
    assert_same_bits(buffer[0], values[0, ::-1])


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((0,), ()),
        ((0,), (0,)),
        ((0, 3), (0,)),
        ((0, 3), (1,)),
        ((3, 0), (0,)),
        ((3, 0), (1,)),
        ((2, 0, 3), (1,)),
        ((2, 0, 3), (0, 2)),
        ((2, 0, 3), (0, 1)),
        ((2, 0, 0), (1,)),
        ((2, 0, 0), ()),
        ((300, 0, 200), (1,)),
    ],
    ids=str,
)
@each_type
def test_nothing_to_reduce(dtype: DType, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    data = np.zeros(shape, dtype.numpy)
    for keepdims in (True, False):
        expected = fast_reduce_max(data, axes, keepdims)
        assert_same_bits(mo.reduce_max(data, axes, keepdims), expected)
        if expected.size:
            assert (words(expected) == dtype.lowest_bits).all()
        out = swapped(np.ones(expected.shape, dtype.numpy))
        mo.reduce_max(data, axes, keepdims, out=out)
        assert_same_bits(out, expected)


def test_many_axes_that_do_not_merge() -> None:
    data = mixed(FLOAT32, (2,) * 13, 7).transpose(np.random.default_rng(7).permutation(13))
    for axes in [tuple(range(0, 13, 2)), tuple(range(1, 13, 2)), (0, 1, 2, 12), (5,)]:
        assert_same_bits(mo.reduce_max(data, axes), fast_reduce_max(data, axes))


# ------------------------------------------------------------------------------------------- blocks and shares


@each_type
def test_the_highest_at_the_ends_of_blocks(dtype: DType) -> None:
    """Test blocks of 8192 bytes. Negative floats have their own loop, and NaN and True end the search early."""
    size = dtype.numpy.itemsize
    block = 8192 // size
    lowest, one = of_words(dtype, [dtype.lowest_bits])[0], dtype.numpy.type(1)
    highest = of_words(dtype, [dtype.nan_bits])[0] if dtype.kind == "float" else one
    low = dtype.numpy.type(-3) if dtype.kind == "float" else lowest
    for n in (block - 1, block, block + 1, 2 * block + 1, 3 * block):
        for place in {0, 63, 64, block - 1, block, n - 1} & set(range(n)):
            for special in (one, highest, dtype.numpy.type(-1) if dtype.kind == "float" else one):
                row = np.full(n, low)
                row[place] = special
                expected = reference.maximum(np.array([special]))
                for layout in ("contiguous", "strided", "negative", "swapped"):
                    assert_same_bits(mo.reduce_max(LAYOUTS[layout](row)), expected)


@pytest.mark.parametrize("inner", [1, 3, 8, 129, 513])
@each_width
def test_widths(dtype: DType, inner: int) -> None:
    """Test short contiguous rows, which are reduced like long rows, and rows of 2, 3, 4 and 8 elements."""
    outer = max(12_000 // inner, 5)
    data = mixed(dtype, (outer, inner), 10, nans=1e-4)
    for layout in ("contiguous", "pitched", "negative", "fortran", "swapped"):
        own = LAYOUTS[layout](data)
        for axes in [(0,), (1,), (0, 1)]:
            assert_same_bits(mo.reduce_max(own, axes), fast_reduce_max(data, axes))
    for axes in subsets(3):
        cube = data[: outer // 5 * 5].reshape(5, -1, inner)
        assert_same_bits(mo.reduce_max(cube, axes), fast_reduce_max(cube, axes))


@cache
def _long(dtype: DType, mebibytes: int) -> Array:
    return mixed(dtype, (mebibytes << 20) // dtype.numpy.itemsize + 4_097, 11, nans=1e-6)


LONG: dict[str, Callable[[Array], tuple[Array, tuple[int, ...]]]] = {
    "all": lambda row: (row, ()),
    "all_reversed": lambda row: (row[::-1], ()),
    "all_strided": lambda row: (row[::2], ()),
    "two_long_rows": lambda row: (row[: row.size // 2 * 2].reshape(2, -1), (1,)),
    "three_long_columns": lambda row: (row[: row.size // 3 * 3].reshape(-1, 3), (0,)),
    "few_columns": lambda row: (row[: row.size // 300 * 300].reshape(-1, 300), (0,)),
    "columns_of_many": lambda row: (row[: row.size // 9 * 9].reshape(9, -1), (0,)),
    "short_rows": lambda row: (row[: row.size // 7 * 7].reshape(-1, 7), (1,)),
    "rows": lambda row: (row[: row.size // 3001 * 3001].reshape(-1, 3001), (1,)),
    "middle": lambda row: (row[: row.size // 700 * 700].reshape(7, -1, 100), (1,)),
    "ends": lambda row: (row[: row.size // 700 * 700].reshape(7, -1, 100), (0, 2)),
    "outer_is_short": lambda row: (row[: row.size // 2 * 2].reshape(2, -1), (0, 1)),
    "transposed": lambda row: (row[: row.size // 64 * 64].reshape(64, -1).T, (0,)),
}


MEBIBYTES = (2, 4)  # the size of the data, and of strided data with gaps


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("case", LONG)
@pytest.mark.parametrize("dtype", [UINT8, FLOAT32], ids=str)
def test_long_data_in_shares(dtype: DType, case: str) -> None:
    """Test data above 1 MiB: threads share the outputs or, if outputs are few, the reduced axes."""
    data, axes = LONG[case](_long(dtype, MEBIBYTES[case == "all_strided"]))
    expected = _expected_of_long(dtype, case)
    assert_same_bits(mo.reduce_max(data, axes), expected)
    out = swapped(np.zeros(expected.shape, dtype.numpy))
    assert_same_bits(mo.reduce_max(swapped(data), axes, out=out), expected)


@cache
def _expected_of_long(dtype: DType, case: str) -> Array:
    data, axes = LONG[case](_long(dtype, MEBIBYTES[case == "all_strided"]))
    return fast_reduce_max(data, axes)


# ------------------------------------------------------------------------------------------- repeats, overlap


def test_repeats_are_looked_at_once() -> None:
    """Test that 2^60 elements that repeat three values take no time."""
    data = as_strided(np.array([-0.0, 0.0, -1.0]), (1 << 30, 3, 1 << 28), (0, 8, 0))
    assert_same_bits(mo.reduce_max(data), np.array([[[0.0]]]))
    assert_same_bits(mo.reduce_max(data, (0, 2), False), np.array([-0.0, 0.0, -1.0]))


# ------------------------------------------------------------------------------------------------- hypothesis


@by_itself
@given(data=st.data())
def test_anything_goes(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(STORED))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=5))
    values = data.draw(arrays(dtype, shape))
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1)))) if shape else ()
    keepdims, noop = data.draw(st.booleans()), data.draw(st.booleans())
    written = tuple(axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes)
    expected = reference.reduce_max(values, axes, keepdims=keepdims, identity=noop and not axes)
    out = data.draw(arrays(dtype, expected.shape))
    before = out.copy()

    def check() -> None:
        assert_same_bits(mo.reduce_max(values, written, keepdims, noop), expected)
        if out.flags.writeable:
            out[...] = before
            mo.reduce_max(values, written, keepdims, noop, out=out)
            assert_same_bits(out, expected)

    on_each_isa(check)


@by_itself
@given(data=st.data())
def test_any_strides(data: st.DataObject) -> None:
    """Test data whose elements overlap in any way."""
    dtype = data.draw(st.sampled_from((INT8, UINT16, FLOAT32, INT64)))
    buffer = mixed(dtype, 4000, data.draw(st.integers(0, 9)), nans=1e-3)
    shape = tuple(data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4)))
    strides = [data.draw(st.integers(-60, 60)) for _ in shape]
    back = -sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if stride < 0)
    size = dtype.numpy.itemsize
    values = as_strided(buffer[back:], shape, [stride * size for stride in strides])
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1))))
    expected = fast_reduce_max(values, axes)
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(values, axes), expected))


@pytest.mark.parametrize("rows", [15, 16, 17, 63, 64, 65, 200])
@each_width
def test_short_rows_that_are_turned(dtype: DType, rows: int) -> None:
    """Test sixteen or more short rows, which are transposed in tiles of 64 rows, aligned or not."""
    wide = mixed(dtype, (rows, 40), 21, nans=0.01)
    for length in range(1, 37):
        for data in (wide[:, :length], np.ascontiguousarray(wide[:, :length]), wide[::-1, 3 : 3 + length]):
            assert_same_bits(mo.reduce_max(data, (1,)), fast_reduce_max(data, (1,)))
