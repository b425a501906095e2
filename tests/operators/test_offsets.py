"""SegmentMax by offsets: segments of every length, many rows in few segments, threads, layouts, and hostile offsets."""

from __future__ import annotations

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
    fast_segment_max,
    mixed,
    of_words,
)
from helpers.instruction_sets import by_itself, on_each_isa
from maxops import dtypes
from maxops.dtypes import FLOAT32, DType
from maxops.errors import OffsetsError

pytestmark = pytest.mark.usefixtures("isa")

each_offset_type = pytest.mark.parametrize("offsets_as", [np.int32, np.int64], ids=["int32", "int64"])
LONG, BLOCK = 48, 1024  # in rows: kLong, and kBlockBytes for int32, in native/drivers/segment_rows.cpp


def _of(lengths: Any) -> Array:
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])


def _assert_right(
    data: Array, offsets: Array, count: int | None = None, given: Array | None = None, named: Array | None = None
) -> None:
    """Check values, first rows and empty segments, checked and unchecked. `given` and `named` have other layouts."""
    lengths = np.diff(offsets)
    ids = np.repeat(np.arange(len(lengths)), lengths)
    segments = len(lengths) if count is None else count
    given_data, given_offsets = data if given is None else given, offsets if named is None else named
    without = ~np.isin(np.arange(segments), ids)
    indices = None
    for mode in ("ZERO", "LOWEST"):
        expected = fast_segment_max(data, ids, segments, mode)
        indices = fast_first_in_segments(data, ids, expected) if indices is None else indices
        assert_same_bits(mo.segment_max(given_data, None, count, fill_mode=mode, offsets=given_offsets), expected)
        values, rows, empty = mo.segment_max(
            given_data,
            num_segments=count,
            fill_mode=mode,
            offsets=given_offsets,
            check_ids=mode == "ZERO",
            return_indices=True,
            return_empty=True,
        )
        assert_same_bits(values, expected)
        assert_same_bits(rows, indices)
        assert_same_bits(empty, without)


@each_offset_type
@each_type
def test_segments_of_every_length(dtype: DType, offsets_as: type[np.signedinteger]) -> None:
    """Test short segments, whose ids are written to blocks, and long ones, which are used in place."""
    random = np.random.default_rng(1)
    for lengths in (
        random.integers(0, 4, 300), random.integers(0, 30, 120), random.choice([0, 1, LONG - 1, LONG, LONG + 1], 60),
        [3, BLOCK - 4, 1, 1, 0, 0, BLOCK + LONG, 2, BLOCK, 0], [0] * 200 + [5] + [0] * 200, [1] * 200, [2000],
    ):  # fmt: skip
        offsets = _of(lengths).astype(offsets_as)
        _assert_right(mixed(dtype, int(offsets[-1]), 2, nans=0.01), offsets)
        _assert_right(mixed(dtype, (int(offsets[-1]), 3), 2, nans=0.01), offsets)


@each_width
def test_fewer_and_more_segments(dtype: DType) -> None:
    offsets = _of([3, 0, 60, 2, 0, 0, 7])
    data = mixed(dtype, (72, 2), 3)
    for count in range(12):
        _assert_right(data, offsets, count)
    _assert_right(data[:0], np.zeros(5, np.int64))
    _assert_right(data[:0], np.zeros(1, np.int64), 3)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@each_width
def test_layouts(dtype: DType, layout: Any) -> None:
    offsets = _of(np.random.default_rng(2).choice([0, 1, 5, 70], 60))
    for row in ((), (3,), (2, 5)):
        data = mixed(dtype, (int(offsets[-1]), *row), 3)
        _assert_right(data, offsets, given=layout(data), named=layout(offsets))


@pytest.mark.parametrize("dtype", [FLOAT32], ids=str)
def test_threads_share_one_huge_segment_among_small_ones(dtype: DType, threads: int) -> None:
    for lengths in ([1] * 500 + [300_000] + [2] * 500, [0] * 9 + [150_000, 150_000], np.arange(700)):
        offsets = _of(lengths)
        rows = int(offsets[-1])
        _assert_right(mixed(dtype, rows, threads, nans=0.0), offsets)
    offsets = _of([1] * 50 + [60_000, 3])
    data = mixed(dtype, (int(offsets[-1]), 5), threads)
    _assert_right(data, offsets, given=LAYOUTS["swapped"](data))
    offsets = _of([3, 0, 40, 2])
    _assert_right(mixed(dtype, (45, 40_000), threads), offsets)


def test_many_empty_segments(threads: int) -> None:
    """Test mostly empty outputs, which are filled first, in shares."""
    lengths = np.zeros(400_000, np.int64)
    lengths[[5, 70_000, 399_999]] = [3, 100, 1]
    _assert_right(mixed(FLOAT32, 104, 5), _of(lengths))


@each_width
def test_initial(dtype: DType) -> None:
    offsets = _of([4, 0, 90, 0, 3])
    data = mixed(dtype, (97, 2), 6)
    ids = np.repeat(np.arange(5), np.diff(offsets))
    for word in (dtype.lowest_bits, 0, 0x31, *([dtype.infinity_bits + 1] if dtype.kind == "float" else [])):
        initial = of_words(dtype, [word])[0]
        rest = fast_segment_max(data, ids, 5, "LOWEST")
        rest[[1, 3]] = initial
        expected = mo.maximum(rest, initial)
        values, rows = mo.segment_max(data, offsets=offsets, initial=initial, return_indices=True)
        assert_same_bits(values, expected)
        assert_same_bits(rows, fast_first_in_segments(data, ids, expected))


def test_initial_that_lies_in_the_output() -> None:
    out = np.array([5, 0, 0], np.int64)
    mo.segment_max(np.array([1, 9]), offsets=np.array([0, 1, 2, 2]), initial=out[:1].reshape(()), out=out)
    assert out.tolist() == [5, 9, 5]
    out = np.array([5, 0], np.int64)
    mo.reduce_max(np.array([[1], [9]]), 1, keepdims=False, initial=out[:1].reshape(()), out=out)
    assert out.tolist() == [5, 9]


def test_wrong_offsets_are_found(threads: int) -> None:
    data = np.zeros(400_000, np.float32)
    good = np.linspace(0, 400_000, 200_001).astype(np.int64)
    for place, bad, words in (
        (0, 1, "start with 0, got 1 at position 0"),
        (100_000, 7, "got 7 after 199998 at position 100000"),
        (200_000, 399_999, "got 399999 at position 200000"),
    ):
        wrong = good.copy()
        wrong[place] = bad
        choices: list[dict[str, Any]] = [{}, {"return_indices": True}]
        for asked in choices:
            with pytest.raises(OffsetsError, match=words):
                mo.segment_max(data, fill_mode="ZERO", offsets=wrong, **asked)


@by_itself
@given(st.data())
def test_any_call(draw: st.DataObject) -> None:
    dtype = draw.draw(st.sampled_from([d for d in STORED if d is not dtypes.BOOL]))
    lengths = draw.draw(st.lists(st.integers(0, 9) | st.just(LONG), max_size=8))
    row = tuple(draw.draw(st.lists(st.integers(1, 5), max_size=2)))
    data = draw.draw(arrays(dtype, (sum(lengths), *row)))
    count = draw.draw(st.none() | st.integers(0, 10))
    on_each_isa(lambda: _assert_right(np.array(data), _of(lengths), count, given=data))
