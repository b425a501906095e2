"""SegmentMax compared with the reference, bit for bit, for every dtype on every instruction set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import maxops as mo
from helpers.bits import (
    LAYOUTS,
    STORED,
    Array,
    Guarded,
    arrays,
    assert_new,
    assert_same_bits,
    each_float,
    each_type,
    each_width,
    fast_segment_max,
    mixed,
    of_words,
    swapped,
    words,
)
from helpers.instruction_sets import by_itself, on_each_isa
from maxops import reference
from maxops.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8, DType
from maxops.typing import FillMode

pytestmark = pytest.mark.usefixtures("isa")

each_mode = pytest.mark.parametrize("mode", ["ZERO", "LOWEST"])
ID_TYPES = ("int32", "int64", ">i4", ">i8")


def some_ids(rows: int, segments: int, seed: int = 0) -> Array:
    """Return sorted ids from 0 to segments-1, with empty and long segments."""
    random = np.random.default_rng(seed)
    return np.sort(random.choice(random.integers(0, max(segments, 1), max(segments // 2, 1)), rows))


@each_float
def test_nan_at_every_place(dtype: DType) -> None:
    ids = np.repeat([0, 1, 3], [50, 1, 80])
    row = mixed(dtype, 131, 4, nans=0)
    nan = of_words(dtype, [dtype.lowest_bits | 1])[0]
    plain = words(fast_segment_max(row, ids, 4, "ZERO"))
    for place in range(131):
        poisoned = row.copy()
        poisoned[place] = nan
        bits = plain.copy()
        bits[ids[place]] = dtype.nan_bits
        expected = of_words(dtype, bits)
        assert_same_bits(mo.segment_max(poisoned, ids, fill_mode="ZERO"), expected)
        wide = np.stack([row, poisoned, row], 1)
        assert_same_bits(mo.segment_max(wide, ids, fill_mode="ZERO")[:, 1], expected)


@each_float
@each_mode
def test_only_empty_segments_are_filled(dtype: DType, mode: FillMode) -> None:
    """Test maxima such as -3, -Inf, -0 and NaN, which must not be replaced. LOWEST is finite."""
    data = np.array([-3, -np.inf, -0.0, np.nan]).astype(dtype.numpy)
    result = mo.segment_max(data, np.array([0, 1, 3, 5]), 7, fill_mode=mode)
    fill = 0 if mode == "ZERO" else dtype.lowest_finite_bits
    expected = [*words(data[:2]).tolist(), fill, 1 << dtype.bits - 1, fill, dtype.nan_bits, fill]
    assert_same_bits(result, of_words(dtype, expected))


@each_type
def test_fill_mode_in_any_case(dtype: DType) -> None:
    data, ids = mixed(dtype, (4, 2), 5), np.array([0, 0, 2, 2])
    spellings: list[tuple[Any, str]] = [("zero", "ZERO"), ("Zero", "ZERO"), ("lowest", "LOWEST"), ("LoWeSt", "LOWEST")]
    for written, mode in spellings:
        assert_same_bits(mo.segment_max(data, ids, fill_mode=written), fast_segment_max(data, ids, 3, mode))


@cache
def _layouts(dtype: DType) -> list[tuple[Array, Array, int | None, Array]]:
    """Return (data, ids, num_segments, result)."""
    cases = []
    for shape in [(67,), (9, 7), (9, 1), (5, 3, 4), (9, 131), (131, 3), (3, 2, 1, 2)]:
        values, ids = mixed(dtype, shape, 6), some_ids(shape[0], 12, 6)
        for count in (None, 5, 15):
            expected = fast_segment_max(values, ids, int(ids[-1]) + 1 if count is None else count, "LOWEST")
            cases.append((values, ids, count, expected))
    return cases


@pytest.mark.parametrize("layout", LAYOUTS)
@each_type
def test_layouts(dtype: DType, layout: str) -> None:
    for values, ids, count, expected in _layouts(dtype):
        moved = LAYOUTS[layout](values)
        for ids_as in ID_TYPES:
            given_ids = LAYOUTS[layout](ids.astype(ids_as))
            result = mo.segment_max(moved, given_ids, count, fill_mode="LOWEST")
            assert_same_bits(result, expected)
            assert_new(result)
            assert_same_bits(moved, values)  # inputs are not written
            assert_same_bits(given_ids, ids.astype(given_ids.dtype.newbyteorder("=")))
            if layout != "read_only":
                out = LAYOUTS[layout](np.ones(expected.shape, dtype.numpy))
                assert mo.segment_max(values, given_ids, count, fill_mode="LOWEST", out=out) is out
                assert_same_bits(out, expected)


def test_no_ids() -> None:
    for row in [(), (3,), (0,), (2, 0)]:
        data, ids = np.zeros((0, *row), np.float32), np.zeros(0, np.int64)
        assert_same_bits(mo.segment_max(data, ids, fill_mode="ZERO"), np.zeros((0, *row), np.float32))
        lowest = np.full((4, *row), np.finfo(np.float32).min)
        assert_same_bits(mo.segment_max(data, ids, 4, fill_mode="LOWEST"), lowest)


def test_ids_past_num_segments_are_dropped_however_high() -> None:
    data = np.arange(6, dtype=np.int8)
    for high in (2, 3, 2**31, 2**32, 2**32 + 1, 2**62, 2**63 - 1):
        ids = np.array([0, 0, 1, high, high, 2**63 - 1])
        assert_same_bits(mo.segment_max(data, ids, 2, fill_mode="ZERO"), np.array([1, 2], np.int8))
        assert_same_bits(mo.segment_max(data, ids, 0, fill_mode="ZERO"), np.zeros(0, np.int8))


def test_num_segments_as_every_kind_of_scalar() -> None:
    data, ids = np.arange(3, dtype=np.int8), np.array([0, 1, 1])
    expected = np.array([0, 2, 0], np.int8)
    for count in (3, np.int32(3), np.int64(3), np.array(3), np.array(3, np.int32), np.array(3, ">i8")):
        assert_same_bits(mo.segment_max(data, ids, count, fill_mode="ZERO"), expected)


def test_rank() -> None:
    for rank in range(1, 65):
        shape = (4, *(3 if axis in (1, rank // 2, rank - 1) else 1 for axis in range(1, rank)))
        values, ids = mixed(INT32, shape, 8), np.array([0, 2, 2, 3])
        expected = fast_segment_max(values, ids, 5, "LOWEST")
        assert_same_bits(mo.segment_max(values, ids, 5, fill_mode="LOWEST"), expected)
        assert_same_bits(mo.segment_max(values.T.copy().T, ids, 5, fill_mode="LOWEST"), expected)


def test_many_axes_that_do_not_merge() -> None:
    values = mixed(FLOAT16, (2,) * 13, 9).transpose(np.random.default_rng(9).permutation(13))
    for ids in ([0, 0], [1, 3]):
        expected = fast_segment_max(values, np.array(ids), 4, "ZERO")
        assert_same_bits(mo.segment_max(values, np.array(ids), 4, fill_mode="ZERO"), expected)


# ------------------------------------------------------------------------------------------- blocks and shares


@pytest.mark.parametrize("step", [-1, 0, 1], ids="{:+}".format)
@pytest.mark.parametrize("row_bytes", [8192, 16384, 32768, 65536])
@each_width
def test_widths_about_the_blocks(dtype: DType, row_bytes: int, step: int) -> None:
    """Test columns in blocks of 8192 bytes, strided rows above 16384 bytes, and rows above 32768 bytes."""
    width = row_bytes // dtype.numpy.itemsize + step
    values = mixed(dtype, (5, width), 12, nans=1e-4)
    for ids in (np.array([0, 0, 0, 0, 0]), np.array([0, 0, 2, 3, 3]), np.array([1, 2, 4, 5, 6])):
        for count in (int(ids[-1]) + 1, 3, 9):
            expected = fast_segment_max(values, ids, count, "ZERO")
            for layout in ("contiguous", "pitched", "negative", "fortran", "swapped"):
                result = mo.segment_max(LAYOUTS[layout](values), ids, count, fill_mode="ZERO")
                assert_same_bits(result, expected)


@cache
def _long(dtype: DType) -> Array:
    return mixed(dtype, (2 << 20) // dtype.numpy.itemsize, 13, nans=1e-5)


def _uneven(rows: int) -> Array:
    ids = np.sort(np.random.default_rng(rows).integers(0, 1000, rows) ** 2 // 500)
    ids[rows // 3 : rows // 3 * 2] = ids[rows // 3]
    return np.maximum.accumulate(ids)


IDS: dict[str, Callable[[int], Array]] = {
    "spanning": lambda rows: np.arange(rows) * 5 // rows * 3,  # across many shares, with empty segments between them
    "short": lambda rows: np.arange(rows) // 3,
    "uneven": _uneven,
}


@cache
def _expected_of_long(dtype: DType, ids: str, width: int) -> Array:
    data = _long(dtype)[: _long(dtype).size // width * width].reshape(-1, width)
    given_ids = IDS[ids](len(data))
    return fast_segment_max(data, given_ids, int(given_ids[-1]) + 3, "LOWEST")


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("width", [1, 9])
@pytest.mark.parametrize("dtype", [UINT8, FLOAT32], ids=str)
def test_long_data_in_shares(dtype: DType, width: int, ids: str, threads: int) -> None:
    """Test data above 1 MiB: threads share the rows, and a segment may span several shares."""
    data = _long(dtype)[: _long(dtype).size // width * width].reshape(-1, width)
    given_ids = IDS[ids](len(data)).astype(np.int32 if (width + threads) % 2 else np.int64)
    expected = _expected_of_long(dtype, ids, width)
    assert_same_bits(mo.segment_max(data, given_ids, len(expected), fill_mode="LOWEST"), expected)
    if threads == 2:
        fewer = len(expected) // 2
        assert_same_bits(mo.segment_max(data, given_ids, fewer, fill_mode="LOWEST"), expected[:fewer])
        result = mo.segment_max(swapped(data), given_ids.astype(">i8"), len(expected), fill_mode="LOWEST")
        assert_same_bits(result, expected)
        result = mo.segment_max(data[:, 0], given_ids, len(expected), fill_mode="LOWEST")
        assert_same_bits(result, np.ascontiguousarray(expected[:, 0]))


@cache
def _wide(dtype: DType) -> tuple[Array, Array, Array]:
    data, ids = mixed(dtype, (24, 100_003 // dtype.numpy.itemsize), 14, nans=1e-5), some_ids(24, 20, 14)
    return data, ids, fast_segment_max(data, ids, 22, "LOWEST")


def test_wide_rows_in_shares(threads: int) -> None:
    for dtype in (UINT8, FLOAT64):
        data, ids, expected = _wide(dtype)
        for layout in ("contiguous", "pitched", "negative", "swapped"):
            assert_same_bits(mo.segment_max(LAYOUTS[layout](data), ids, 22, fill_mode="LOWEST"), expected)
    del threads


def test_many_empty_segments() -> None:
    data, ids = np.array([-1.0, -2.0, -3.0], np.float32), np.array([5, 2_000_000, 2_000_000])
    result = mo.segment_max(data, ids, 3_000_000, fill_mode="ZERO")
    assert np.flatnonzero(result).tolist() == [5, 2_000_000]
    assert result[[5, 2_000_000]].tolist() == [-1.0, -2.0]
    assert not np.signbit(np.delete(result, [5, 2_000_000])).any()


# ------------------------------------------------------------------------------------------- repeats, overlap


# ------------------------------------------------------------------------------------------------- unchecked ids


def _initialised(dtype: DType, data: Array, ids: Array, count: int) -> None:
    """Check that a call with any ids writes only `out`, and each element as a value of its column or the fill value."""
    results = []
    for background in (0x11, 0xEE):
        guarded = Guarded(dtype, (count, *data.shape[1:]))
        guarded.array.view(np.uint8)[...] = background
        mo.segment_max(data, ids, count, fill_mode="LOWEST", check_ids=False, out=guarded.array)
        guarded.check()
        results.append(words(guarded.array))
    assert (results[0] == results[1]).all(), "an element of out was not written"
    fill = dtype.lowest_finite_bits
    row = int(np.prod(data.shape[1:]))
    flat, columns = results[0].reshape(count, row), words(data).reshape(len(data), row)
    for column in range(row):
        assert set(flat[:, column].tolist()) <= {fill, *columns[:, column].tolist()}


WRONG_IDS = {
    "all_negative": [-1, -1, -5, -(2**31), -1, -2, -3, -4],
    "decreasing": [7, 6, 5, 4, 3, 2, 1, 0],
    "back_and_forth": [0, 5, 1, 6, 0, 7, 3, 3],
    "negative_between": [0, 1, -1, 2, -7, 2, 5, -1],
    "out_and_back": [0, 100, 1, 2**31 - 1, 2, -(2**31), 2, 3],
    "past_the_end_twice": [100, 50, 100, 7, 100, 8, 9, 8],
    "same_after_a_gap": [2, 2, 9, 2, 2, -1, 2, 2],
}


@pytest.mark.parametrize("ids_as", [np.int32, np.int64])
@pytest.mark.parametrize("wrong", WRONG_IDS)
@pytest.mark.parametrize("dtype", [INT8, BFLOAT16, FLOAT32, INT64], ids=str)
def test_unchecked_wrong_ids_do_no_harm(dtype: DType, wrong: str, ids_as: type[np.signedinteger]) -> None:
    ids = np.array(WRONG_IDS[wrong], ids_as)
    for row in [(), (1,), (3,), (2, 5)]:
        data = mixed(dtype, (8, *row), 18, nans=0)
        for count in (0, 1, 3, 8, 9, 40):
            _initialised(dtype, data, ids, count)
            _initialised(dtype, LAYOUTS["strided"](data), LAYOUTS["negative"](ids), count)


def test_unchecked_wrong_ids_do_no_harm_in_shares(threads: int) -> None:
    random = np.random.default_rng(20)
    rows = (5 << 20) // 8
    data = mixed(INT32, (rows,), 20)
    for ids in (random.integers(-10, 1000, rows), np.arange(rows)[::-1] // 600, np.full(rows, 2**40)):
        for background in (1, -1):
            guarded = Guarded(INT32, (900,))
            guarded.array[...] = background
            mo.segment_max(data, ids, 900, fill_mode="ZERO", check_ids=False, out=guarded.array)
            guarded.check()
    del threads


def test_unchecked_right_ids_give_the_right_result() -> None:
    data, ids = mixed(FLOAT32, (300, 4), 21), some_ids(300, 50, 21)
    for given_ids in (ids, ids.astype(np.int32), ids.astype(">i8")):
        expected = fast_segment_max(data, ids, 51, "ZERO")
        assert_same_bits(mo.segment_max(data, given_ids, 51, fill_mode="ZERO", check_ids=False), expected)


# ------------------------------------------------------------------------------------------------- hypothesis


@by_itself
@given(data=st.data())
def test_anything_goes(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(STORED))
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6))
    values = data.draw(arrays(dtype, shape))
    ids = np.array(sorted(data.draw(st.lists(st.integers(0, 9), min_size=shape[0], max_size=shape[0]))), np.int64)
    count = data.draw(st.none() | st.integers(0, 12))
    mode: FillMode = data.draw(st.sampled_from(("ZERO", "LOWEST")))
    ids_as = data.draw(st.sampled_from(("int32", "int64", ">i4", ">i8")))
    given_ids = LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))](ids.astype(ids_as))
    segments = (int(ids[-1]) + 1 if len(ids) else 0) if count is None else count
    expected = reference.segment_max(values, ids, segments, mode)
    check = data.draw(st.booleans())
    out = data.draw(arrays(dtype, expected.shape))
    before = out.copy()

    def right() -> None:
        assert_same_bits(mo.segment_max(values, given_ids, count, fill_mode=mode, check_ids=check), expected)
        if out.flags.writeable:
            out[...] = before
            assert mo.segment_max(values, given_ids, count, fill_mode=mode, check_ids=check, out=out) is out
            assert_same_bits(out, expected)

    on_each_isa(right)
