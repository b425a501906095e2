"""SegmentMax of unsorted ids: every distribution of rows to threads, every layout, and hostile ids."""

from __future__ import annotations

from functools import cache
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
    each_type,
    each_width,
    fast_first_in_segments,
    fast_unsorted_max,
    mixed,
    of_words,
)
from helpers.instruction_sets import by_itself, on_each_isa
from maxops import dtypes
from maxops.dtypes import BOOL, FLOAT32, INT64, DType
from maxops.errors import AttributeValueError, SegmentIdsError
from maxops.typing import FillMode

pytestmark = pytest.mark.usefixtures("isa")

each_id_type = pytest.mark.parametrize("ids_as", [np.int32, np.int64], ids=["int32", "int64"])


def _all(data: Array, ids: Array, count: int, mode: FillMode = "ZERO") -> tuple[Array, Array, Array]:
    values, rows, empty = mo.segment_max(
        data, ids, count, fill_mode=mode, sorted=False, out_of_range="drop", return_indices=True, return_empty=True
    )
    return values, rows, empty


Expected = tuple[dict[str, Array], Array, Array]


def _expected(data: Array, ids: Array, count: int) -> Expected:
    """Return the values for each fill mode, their first rows, and the mask of empty segments."""
    values = {mode: fast_unsorted_max(data, ids, count, mode) for mode in ("ZERO", "LOWEST")}
    return values, fast_first_in_segments(data, ids, values["ZERO"]), ~np.isin(np.arange(count), ids)


def _assert_right(
    data: Array,
    ids: Array,
    count: int,
    given: Array | None = None,
    named: Array | None = None,
    expected: Expected | None = None,
) -> None:
    """Check values, first rows and empty segments. `given` and `named` are data and ids in other layouts."""
    given_data, given_ids = data if given is None else given, ids if named is None else named
    correct, indices, without = _expected(data, ids, count) if expected is None else expected
    for mode in ("ZERO", "LOWEST"):
        values, rows, empty = _all(given_data, given_ids, count, mode)
        assert_same_bits(values, correct[mode])
        assert_same_bits(rows, indices)
        assert_same_bits(empty, without)


def _ids(rows: int, count: int, seed: int = 0) -> Array:
    """Return unsorted ids, some of them out of range."""
    return np.random.default_rng(seed).integers(-count // 8 - 1, count + count // 8 + 1, rows)


@each_id_type
@each_type
def test_widths(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Test columns, which are reduced by cache lines, by quarters of a cache line, and one by one."""
    for width in (1, 3, 8, 17, 65):
        data = mixed(dtype, (90, width), width, nans=0.05)
        for count in (7, 300):
            _assert_right(data, _ids(90, count, width).astype(ids_as), count)


@each_type
def test_lowest_values_are_no_empty_segments(dtype: DType) -> None:
    """Test that segments of only -Inf, or the lowest integer, do not count as empty, although the keys are equal."""
    lowest = dtype.lowest_bits
    for width in (1, 3):
        for column in range(width):
            words = np.full((40, width), 0x21 if dtype is not BOOL else 1, dtype.word)
            words[5:30, column] = lowest
            _assert_right(of_words(dtype, words), np.arange(40)[::-1] % 17, 20)
        _assert_right(of_words(dtype, np.full((40, width), lowest)), np.arange(40)[::-1] % 17, 20)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@each_width
def test_layouts(dtype: DType, layout: Any) -> None:
    ids = _ids(700, 50)
    for row in ((), (3,), (2, 5)):
        data = mixed(dtype, (700, *row), 3)
        _assert_right(data, ids, 50, given=layout(data), named=layout(ids))


@cache
def _large() -> list[tuple[Array, Array, int, Expected]]:
    """Return (data, ids, num_segments, expected results)."""
    cases = []
    for rows, width, count in ((150_000, 1, 100), (150_000, 1, 140_000), (32_000, 9, 24_000), (32, 16_000, 20)):
        data, ids = mixed(FLOAT32, (rows, width), rows, nans=0.01), _ids(rows, count, rows)
        cases.append((data, ids, count, _expected(data, ids, count)))
    return cases


def test_every_way_to_share_out(threads: int) -> None:
    """Test copies of small outputs, segments of large outputs, columns of wide rows, and rows that are packed."""
    for data, ids, count, expected in _large():
        _assert_right(data, ids, count, expected=expected)
        if data.shape[1] <= 9:
            _assert_right(data, ids.astype(np.int32), count, given=LAYOUTS["swapped"](data), expected=expected)
    data = mixed(FLOAT32, (8, 20, 2000), 1)
    _assert_right(data, _ids(8, 3), 3, given=LAYOUTS["transposed"](data))


def test_the_first_row_among_equals(threads: int) -> None:
    """Test that the first row with the maximum is found, although threads process rows in any order."""
    for count in (1, 30, 90_000):
        data, ids = np.zeros(200_000, np.float32), np.random.default_rng(1).integers(0, count, 200_000)
        rows = _all(data, ids, count)[1]
        found, first = np.unique(ids, return_index=True)
        assert_same_bits(rows[found], first.astype(np.int64))


def test_ids_that_are_in_order_after_all(threads: int) -> None:
    data, ids = mixed(FLOAT32, 150_000, 2), np.sort(np.random.default_rng(2).integers(0, 9000, 150_000))
    _assert_right(data, ids, 9100)
    ids[:100] = -1
    _assert_right(data, ids, 8000)


@each_width
def test_initial(dtype: DType) -> None:
    """Test `initial` in its canonical bits. The index is -1 if no row equals the maximum."""
    data, ids = mixed(dtype, (500, 3), 4), _ids(500, 40)
    for word in (dtype.lowest_bits, 0, 0x31, *([dtype.infinity_bits + 1] if dtype.kind == "float" else [])):
        initial = of_words(dtype, [word])[0]
        values, rows = mo.segment_max(
            data, ids, 60, sorted=False, out_of_range="drop", initial=initial, return_indices=True
        )
        rest = fast_unsorted_max(data, ids, 60, "LOWEST")
        rest[~np.isin(np.arange(60), ids)] = initial
        expected = mo.maximum(rest, initial)
        assert_same_bits(values, expected)
        assert_same_bits(rows, fast_first_in_segments(data, ids, expected))


def test_an_output_that_shares_memory_with_the_input() -> None:
    data, ids = mixed(INT64, (50, 2), 5), np.arange(50)[::-1] % 7
    expected = fast_unsorted_max(data, ids, 7, "ZERO")
    rows = fast_first_in_segments(data, ids, expected)
    values, got = mo.segment_max(data, ids, 7, fill_mode="ZERO", sorted=False, out=data[3:10], return_indices=True)
    assert_same_bits(np.array(values), expected)
    assert_same_bits(np.array(data[3:10]), expected)
    assert_same_bits(got, rows)
    ids = np.array([4, 0, 2, 0, 1])
    mo.segment_max(np.array([7, 8, 9, 1, 2]), ids, 5, fill_mode="ZERO", sorted=False, out=ids)
    assert ids.tolist() == [8, 2, 9, 0, 7]


def test_the_checks_find_what_the_planner_finds() -> None:
    """Test that the core detects invalid ids, and that the planner names the first one."""
    data, ids = np.zeros(200_000, np.float32), np.random.default_rng(4).integers(0, 50, 200_000)
    assert len(mo.segment_max(data, ids, fill_mode="ZERO", sorted=False)) == int(ids.max()) + 1
    for place, bad, words in ((199_999, -5, "got -5 at position 199999"), (77_777, 50, "got 50 at position 77777")):
        wrong = ids.copy()
        wrong[place] = bad
        choices: list[dict[str, Any]] = [{}, {"return_indices": True}, {"return_empty": True}]
        for asked in choices:
            with pytest.raises(SegmentIdsError, match=words):
                mo.segment_max(data, wrong, 50, fill_mode="ZERO", sorted=False, **asked)
            with pytest.raises(SegmentIdsError, match=words):
                mo.segment_max(data, LAYOUTS["swapped"](wrong), 50, fill_mode="ZERO", sorted=False, **asked)
    assert len(mo.segment_max(data[:0], ids[:0], fill_mode="ZERO", sorted=False)) == 0


@by_itself
@given(st.data())
def test_any_call(draw: st.DataObject) -> None:
    dtype = draw.draw(st.sampled_from([d for d in STORED if d is not dtypes.BOOL]))
    rows, row = draw.draw(st.integers(0, 40)), tuple(draw.draw(st.lists(st.integers(1, 9), max_size=2)))
    count = draw.draw(st.integers(0, 12))
    data = draw.draw(arrays(dtype, (rows, *row)))
    ids = np.array(draw.draw(st.lists(st.integers(-2, 13), min_size=rows, max_size=rows)), np.int64)
    on_each_isa(lambda: _assert_right(np.array(data), ids, count, given=data))


@pytest.mark.parametrize("options", [{"sorted": np.array([1, 0])}, {"out_of_range": np.array(["drop", "error"])}])
def test_options_that_are_arrays(options: dict[str, Any]) -> None:
    with pytest.raises(AttributeValueError, match=f"segment_max {next(iter(options))} must be .*, got array"):
        mo.segment_max(np.ones(2), np.array([1, 0]), 2, fill_mode="ZERO", **options)
