"""Tests for each loop of SegmentMax over short segments: gaps, single rows, partial vectors, and invalid ids."""

from __future__ import annotations

import numpy as np
import pytest

import maxops as mo
from helpers.bits import Array, Guarded, assert_same_bits, at_offset, each_type, each_width, fast_segment_max, mixed
from maxops.dtypes import FLOAT32, UINT8, DType
from maxops.errors import SegmentIdsError

pytestmark = pytest.mark.usefixtures("isa")

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
    """Test ids near the maximum of their type, which are past the output. Incrementing them must not wrap around."""
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


@each_id_type
def test_an_id_out_of_order_at_every_place(ids_as: type[np.signedinteger]) -> None:
    """Test places in each lane, around blocks and at the end: the error names the id, or exactly `out` is written."""
    rows = 2 * BLOCK + 40
    data = np.ones(rows, np.float32)
    for good in (np.arange(rows), np.arange(rows) // 3, np.arange(rows) // 2 * 9, np.arange(rows) // 70 * 5):
        count = int(good[-1]) + 1
        for place in (*range(24), *range(BLOCK - 12, BLOCK + 12), *range(2 * BLOCK - 3, rows)):
            for bad in (-1, np.iinfo(ids_as).min, int(good[place]) - 1, count + 5, np.iinfo(ids_as).max):
                ids = good.astype(ids_as)
                ids[place] = bad
                wrong = np.flatnonzero((ids < 0) | (ids < np.roll(ids, 1)) & (np.arange(rows) > 0))
                for given in (count, count // 2) if len(wrong) else ():
                    with pytest.raises(
                        SegmentIdsError, match=rf"got {ids[wrong[0]]} (after \d+ )?at position {wrong[0]}\b"
                    ):
                        mo.segment_max(data, ids, given, fill_mode="ZERO")
                guarded = Guarded(FLOAT32, (count,))
                guarded.array[...] = 7
                mo.segment_max(data, ids, count, fill_mode="ZERO", check_ids=False, out=guarded.array)
                guarded.check()
                assert set(guarded.array.tolist()) <= {0.0, 1.0}


def test_ids_past_the_output_are_checked_too() -> None:
    """Test that a decrease among ids past the output is found, even in a block or share that has only such ids."""
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
