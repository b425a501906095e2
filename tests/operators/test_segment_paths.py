"""Tests for each loop of SegmentMax over short segments: gaps, single rows, partial vectors, and invalid ids."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import maxops as mo
from helpers.bits import STORED, Array, Guarded, assert_same_bits, at_offset, fast_segment_max, mixed, of_words
from maxops.dtypes import FLOAT16, FLOAT32, INT64, UINT8, DType
from maxops.errors import SegmentIdsError
from maxops.typing import FillMode

pytestmark = pytest.mark.usefixtures("isa")

each_type = pytest.mark.parametrize("dtype", STORED, ids=str)
each_width = pytest.mark.parametrize("dtype", [UINT8, FLOAT16, FLOAT32, INT64], ids=str)
BLOCK = 1024  # rows, or four blocks of 256: kBlockRows and PlainScan::kRows in native/kernels/segment_blocks.h

each_id_type = pytest.mark.parametrize("ids_as", [np.int32, np.int64], ids=["int32", "int64"])


def _assert_right(data: Array, ids: Array, count: int | None = None) -> None:
    """Check both fill modes, checked and unchecked, with new and given outputs."""
    segments = int(ids[-1]) + 1 if count is None else count
    for mode in ("ZERO", "LOWEST"):
        expected = fast_segment_max(data, ids, segments, mode)
        assert_same_bits(mo.segment_max(data, ids, count, fill_mode=mode), expected)
        assert_same_bits(mo.segment_max(data, ids, count, fill_mode=mode, check_ids=False), expected)
    out = np.ones_like(expected)
    mo.segment_max(data, ids, count, fill_mode=mode, out=out)
    assert_same_bits(out, expected)


@each_id_type
@each_type
def test_gaps_of_every_length(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Test segments of a vector that span from a few output rows to more than the 64 that are stored at a time."""
    data = mixed(dtype, 131, 1, nans=0.05)
    for span in (*range(1, 5), 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 70, 200):
        for rows in (9, 17, 33):  # the last row of the first vector, of eight or sixteen lanes, is `span` rows on
            ids = np.sort(np.random.default_rng(span + rows).integers(0, span, rows))
            ids[0], ids[rows - 2 :] = 0, span - 1
            ids += np.arange(rows) // 8 * span % 131
            ids = np.maximum.accumulate(ids)
            _assert_right(data[:rows], ids.astype(ids_as))
            _assert_right(data[:rows], (ids + span).astype(ids_as))


@each_id_type
@each_type
def test_every_tail(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Test whole and partial vectors that continue, begin or are inside a segment."""
    data = mixed(dtype, 131, 2, nans=0.05)
    for seed, steps in enumerate(([0, 1], [1], [0, 0, 0, 0, 1], [0, 0, 1, 7], [0] * 20 + [3])):
        ids = np.cumsum(np.random.default_rng(seed).choice(steps, 131)).astype(ids_as)
        for rows in range(1, 131, 1 if seed < 2 else 5):
            mode: FillMode = "LOWEST" if rows % 2 else "ZERO"
            expected = fast_segment_max(data[:rows], ids[:rows], int(ids[rows - 1]) + 2, mode)
            got = mo.segment_max(data[:rows], ids[:rows], len(expected), fill_mode=mode, check_ids=bool(rows % 3))
            assert_same_bits(got, expected)


@each_id_type
@each_type
def test_mostly_empty_outputs(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Test outputs that are filled first, whose gaps are not filled again, with rows close together and far apart."""
    data = mixed(dtype, 100, 3, nans=0.3)
    for steps in ([0, 1], [0, 1, 3], [1, 5, 100]):
        ids = np.cumsum(np.random.default_rng(3).choice(steps, 100)).astype(ids_as)
        for count in (100 * 16 - 1, 100 * 17, 50_000):
            _assert_right(data, ids, count)


@each_id_type
@each_width
def test_single_rows_up_to_any_place(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Test consecutive ids, which are copied in blocks of 32, with one id repeated or missing at any position."""
    data = mixed(dtype, 150, 4, nans=0.1)
    for start in (0, 3):
        _assert_right(data, np.arange(start, 150 + start, dtype=ids_as))
    for place, step in product(range(1, 140), (-1, 1, 100)):  # one id is repeated, one is missing, or many are
        ids = np.arange(150, dtype=ids_as)
        ids[place:] += step
        mode: FillMode = "LOWEST" if place % 2 else "ZERO"
        expected = fast_segment_max(data, ids, 260, mode)
        assert_same_bits(mo.segment_max(data, ids, 260, fill_mode=mode), expected)
        rows = np.stack([data, data[::-1], data], axis=1)
        assert_same_bits(mo.segment_max(rows, ids, 260, fill_mode=mode), fast_segment_max(rows, ids, 260, mode))
        fewer = 150 - place
        assert_same_bits(mo.segment_max(data, ids, fewer, fill_mode=mode), expected[:fewer])


@pytest.mark.parametrize("rows", [1, 2, 30, 31, 32, 33])
@each_type
def test_few_rows_of_every_width(dtype: DType, rows: int) -> None:
    """Test up to 31 rows, which keep a cache line of columns or a quarter of one in registers, and more rows."""
    data = mixed(dtype, (3 * rows, 150), 8)
    for width in (*range(1, 20), *range(60, 70), 80, 127, 128, 129, 150):
        for layout in (np.ascontiguousarray(data[:, :width]), data[:, :width]):
            _assert_right(layout, np.arange(3 * rows) // rows * 2)


@each_width
def test_single_rows_at_the_ends_of_an_id_type(dtype: DType) -> None:
    """Test ids near the maximum, which have no row; incrementing them must not create one."""
    data = mixed(dtype, 64, 5)
    for ids_as in (np.int32, np.int64):
        ids = (np.iinfo(ids_as).max - 63 + np.arange(64)).astype(ids_as)
        assert_same_bits(mo.segment_max(data, ids, 70, fill_mode="ZERO"), np.zeros(70, dtype.numpy))


@each_width
def test_every_alignment(dtype: DType) -> None:
    values, ids = mixed(dtype, 100, 6), np.cumsum(np.tile([0, 1, 0, 0, 2], 20))
    for given_ids in (ids.astype(np.int32), ids, np.arange(100), np.arange(100) // 40):
        expected = fast_segment_max(values, given_ids, int(given_ids[-1]) + 4, "LOWEST")
        for offset in range(64):
            out = at_offset(np.zeros_like(expected), 63 - offset)
            moved = at_offset(given_ids, offset * 3 % 64)
            mo.segment_max(at_offset(values, offset), moved, fill_mode="LOWEST", num_segments=len(expected), out=out)
            assert_same_bits(out, expected)


@pytest.mark.parametrize("run", [62, 63, 64, 65, 66, 127, 128, 129])
@each_type
def test_runs_between_short_segments(dtype: DType, run: int) -> None:
    """Test runs of 64 or more rows, which have their own loop, at any position."""
    data = mixed(dtype, 300, 7, nans=0.01)
    for before in (0, 1, 15, 16, 17, 33):
        ids = np.concatenate([np.arange(before), np.full(run, before), before + 1 + np.arange(300) // 3])[:300]
        _assert_right(data, ids)


@each_id_type
def test_an_id_out_of_order_at_every_place(ids_as: type[np.signedinteger]) -> None:
    """Test that the error names the id; unchecked, all rows of the output and no others are written."""
    data = np.ones(140, np.float32)
    for good in (np.arange(140), np.arange(140) // 3, np.arange(140) * 9, np.arange(140) // 70 * 5):
        for place in range(140):
            for bad in (-1, int(good[place]) + 1_000, int(good[place]) - 1):
                ids = good.astype(ids_as)
                ids[place] = bad
                wrong = np.flatnonzero((ids < 0) | (np.diff(ids, prepend=0) < 0))
                if not len(wrong):
                    continue
                with pytest.raises(
                    SegmentIdsError, match=rf"got {ids[wrong[0]]} (after \d+ )?at position {wrong[0]}\b"
                ):
                    mo.segment_max(data, ids, 1_300, fill_mode="ZERO")
                count = int(good[-1]) + 1
                with pytest.raises(SegmentIdsError, match=rf"at position {wrong[0]}\b"):
                    mo.segment_max(data, ids, max(count // 2, 1), fill_mode="ZERO")
                guarded = Guarded(FLOAT32, (count,))
                guarded.array[...] = 7
                mo.segment_max(data, ids, count, fill_mode="ZERO", check_ids=False, out=guarded.array)
                guarded.check()
                assert set(guarded.array.tolist()) <= {0.0, 1.0}


def test_ids_past_the_output_are_checked_too() -> None:
    """Test ids that are all past the output, also in their own block or share."""
    for rows in (40, 5_000, 400_000):
        for count in (1, rows // 3):
            ids = np.arange(rows)
            ids[rows - 2] = rows - 4
            with pytest.raises(SegmentIdsError, match=f"got {rows - 4} after {rows - 3} at position {rows - 2}"):
                mo.segment_max(np.ones(rows, np.float32), ids, count, fill_mode="ZERO")
            twice = np.repeat(ids, 2)[::2]  # strided, so that they are gathered in blocks
            with pytest.raises(SegmentIdsError, match=f"at position {rows - 2}"):
                mo.segment_max(np.ones((rows, 2), np.int8), twice, count, fill_mode="ZERO")


def test_ids_whose_lower_halves_are_equal() -> None:
    """Test that 64-bit ids are compared with all their bits."""
    data = np.arange(40, dtype=np.float32)
    ids = np.repeat([3, 3 + 2**32], [20, 20])
    expected = np.array([0, 0, 0, 19], np.float32)
    assert_same_bits(mo.segment_max(data, ids, 4, fill_mode="ZERO"), expected)
    ids[10] = 3 + 2**33
    with pytest.raises(SegmentIdsError, match=r"got 3 after \d+ at position 11"):
        mo.segment_max(data, ids, 4, fill_mode="ZERO")


@pytest.mark.parametrize("width", [1, 3])
def test_ids_up_and_down_fill_no_row_twice(width: int) -> None:
    """Test that no row is filled twice; otherwise, the time would grow with the length of the output."""
    rows = 4_000
    ids = np.arange(rows) % 14 // 2  # ids 64 rows apart always differ, so no run is skipped
    ids[1::2] = np.arange(1, rows // 2 + 1) * 20
    data = np.ones((rows, width) if width > 1 else rows, np.float32)
    got = mo.segment_max(data, ids, int(ids[-1]) + 1, fill_mode="ZERO", check_ids=False)
    assert np.flatnonzero(got.reshape(-1, width)[:, 0]).tolist() == [*range(7), *ids[1::2].tolist()]


@each_type
def test_values_that_break_things_in_every_lane(dtype: DType) -> None:
    """Test the lowest value, zeros and NaNs, alone in a segment and next to each other."""
    telling = [0, 1, dtype.lowest_bits, dtype.lowest_finite_bits]
    if dtype.kind == "float":
        telling += [1 << dtype.bits - 1, dtype.nan_bits, dtype.lowest_bits | 1, dtype.infinity_bits]
    if dtype.kind == "bool":
        telling = [0, 1]
    data = of_words(dtype, np.resize(telling, 150))
    for length in (1, 2, 3, 5, 11):
        _assert_right(data, np.arange(150) // length)
        _assert_right(data, np.arange(150) // length * 3)


@each_id_type
@each_type
def test_blocks_of_rows(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Test segments that continue in the next block or end with a block, and gaps in any block."""
    data = mixed(dtype, 2 * BLOCK + 70, 10, nans=0.01)
    for seed, steps in enumerate(([0, 0, 0, 1], [0, 0, 1, 9], [0] * 60 + [1, 3], [1] * 60 + [0, 2])):
        ids = np.cumsum(np.random.default_rng(seed).choice(steps, len(data))).astype(ids_as)
        for rows in (BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 9, len(data) - seed):
            _assert_right(data[:rows], ids[:rows])
        late = ids.copy()
        late[:-100] = np.arange(len(data) - 100) // 3
        late[-100:] += late[-101]
        _assert_right(data, late)
    for border in range(BLOCK - 9, BLOCK + 10):  # a new run begins at the border, or continues the last segment
        runs = np.arange(len(data)) // 5
        runs[border : border + 70] = runs[border]
        runs[border + 70 :] += runs[border] - runs[border + 70] + border % 3
        _assert_right(data, runs.astype(ids_as))


@each_id_type
@each_width
def test_the_first_gap_at_every_place(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Test that a block switches to the scan for gaps at any position."""
    data = mixed(dtype, BLOCK + 20, 11, nans=0.01)
    for length in (1, 3):
        good = np.arange(len(data)) // length
        for place in (*range(0, 70), *range(BLOCK - 20, BLOCK + 20)):
            for gap in (1, 40):
                ids = good.copy()
                ids[place:] += gap
                expected = fast_segment_max(data, ids, int(ids[-1]) + 1, "LOWEST")
                assert_same_bits(mo.segment_max(data, ids.astype(ids_as), fill_mode="LOWEST"), expected)


@each_id_type
@each_width
def test_outputs_that_end_at_every_place(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Test rows past the output, which are dropped at any position of a vector or a block."""
    data = mixed(dtype, BLOCK + 150, 12, nans=0.01)
    for steps in ([0, 0, 1], [0, 1, 5]):
        ids = np.cumsum(np.random.default_rng(5).choice(steps, len(data))).astype(ids_as)
        whole = fast_segment_max(data, ids, int(ids[-1]) + 1, "LOWEST")
        for count in (*range(1, 50), *range(len(whole) - 90, len(whole))):
            guarded = Guarded(dtype, (count,))
            mo.segment_max(data, ids, count, fill_mode="LOWEST", out=guarded.array, check_ids=bool(count % 3))
            guarded.check()
            assert_same_bits(guarded.array, whole[:count])


@each_id_type
@each_width
def test_mostly_empty_outputs_of_more_than_a_block(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    data = mixed(dtype, BLOCK + 99, 13)
    for steps in ([0, 1], [0, 0, 1, 3], [1, 5, 60]):
        ids = np.cumsum(np.random.default_rng(6).choice(steps, len(data))).astype(ids_as)
        for count in (int(ids[-1]) // 2, len(data) * 16 - 1, len(data) * 17, 80_000):
            _assert_right(data, ids, count)


@pytest.mark.parametrize("rows", [100, 150_000])
@each_id_type
def test_ids_far_apart(rows: int, ids_as: type[np.signedinteger]) -> None:
    """Test steps of 2 ** 21 and more, which are too large for a block, in outputs that are filled first or not."""
    data = mixed(UINT8, rows, 14)
    for step in (2**21 - 1, 2**21, 2**21 + 1):
        for place in (3, 8, 50, rows - 1):
            ids = np.arange(rows) // 3
            ids[place:] += step
            _assert_right(data, ids.astype(ids_as))


@each_id_type
def test_an_id_out_of_order_in_any_block(ids_as: type[np.signedinteger]) -> None:
    """Test an id that is negative, too low or too high, before or after a boundary between blocks."""
    rows = 2 * BLOCK + 40
    data = np.ones(rows, np.float32)
    for good in (np.arange(rows) // 3, np.arange(rows) // 2 * 9):
        count = int(good[-1]) + 1
        for place in (*range(BLOCK - 12, BLOCK + 12), *range(2 * BLOCK - 3, rows)):
            for bad in (-1, np.iinfo(ids_as).min, int(good[place]) - 2, count + 5, np.iinfo(ids_as).max):
                ids = good.astype(ids_as)
                ids[place] = bad
                wrong = np.flatnonzero((ids < 0) | (ids < np.roll(ids, 1)) & (np.arange(rows) > 0))
                if len(wrong):
                    with pytest.raises(
                        SegmentIdsError, match=rf"got {ids[wrong[0]]} (after \d+ )?at position {wrong[0]}\b"
                    ):
                        mo.segment_max(data, ids, count, fill_mode="ZERO")
                guarded = Guarded(FLOAT32, (count,))
                guarded.array[...] = 7
                mo.segment_max(data, ids, count, fill_mode="ZERO", check_ids=False, out=guarded.array)
                guarded.check()
                assert set(guarded.array.tolist()) <= {0.0, 1.0}


@each_id_type
@each_width
def test_shares_that_begin_anywhere(dtype: DType, ids_as: type[np.signedinteger], threads: int) -> None:
    """Test shares that begin inside and between segments, and before and after gaps."""
    rows = 300_001
    data = np.resize(mixed(dtype, 4_099, 15, nans=0.001), rows)
    for steps in ([0] * 9 + [1], [0, 1], [0] * 9 + [19], [0] * 90 + [1, 2]):
        ids = np.cumsum(np.random.default_rng(7).choice(steps, rows)).astype(ids_as)
        expected = fast_segment_max(data, ids, int(ids[-1]) + 3, "LOWEST")
        got = mo.segment_max(data, ids, len(expected), fill_mode="LOWEST")
        assert_same_bits(got, expected)
