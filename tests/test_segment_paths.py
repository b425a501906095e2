"""SegmentMax's loops over short segments, each reached on purpose: gaps, single rows, parts of vectors, wrong ids."""

from __future__ import annotations

import numpy as np
import pytest

import maxops as mo
from bits import STORED, Array, Guarded, assert_same_bits, at_offset, fast_segment_max, mixed, of_words
from maxops.dtypes import FLOAT16, FLOAT32, INT64, UINT8, DType
from maxops.errors import SegmentIdsError

pytestmark = pytest.mark.usefixtures("isa")

each_type = pytest.mark.parametrize("dtype", STORED, ids=str)
each_width = pytest.mark.parametrize("dtype", [UINT8, FLOAT16, FLOAT32, INT64], ids=str)
each_id_type = pytest.mark.parametrize("ids_as", [np.int32, np.int64], ids=["int32", "int64"])


def _assert_right(data: Array, ids: Array, count: int | None = None) -> None:
    """In both modes, checked and not, as a new output and as the caller's."""
    segments = int(ids[-1]) + 1 if count is None else count
    for mode in ("ZERO", "LOWEST"):
        want = fast_segment_max(data, ids, segments, mode)
        assert_same_bits(mo.segment_max(data, ids, count, fill_mode=mode), want)
        assert_same_bits(mo.segment_max(data, ids, count, fill_mode=mode, check_ids=False), want)
    out = np.ones_like(want)
    mo.segment_max(data, ids, count, fill_mode=mode, out=out)
    assert_same_bits(out, want)


@each_id_type
@each_type
def test_gaps_of_every_length(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """A vector's segments span from a few rows of the output to more than are stored at once, which is 64."""
    data = mixed(dtype, 131, 1, nans=0.05)
    for span in (*range(1, 5), 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 70, 200):
        for rows in (9, 17, 33):  # the last of the first vector, of eight or sixteen lanes, is `span` on
            ids = np.sort(np.random.default_rng(span + rows).integers(0, span, rows))
            ids[0], ids[rows - 2 :] = 0, span - 1
            ids += np.arange(rows) // 8 * span % 131
            ids = np.maximum.accumulate(ids)
            _assert_right(data[:rows], ids.astype(ids_as))
            _assert_right(data[:rows], (ids + span).astype(ids_as))


@each_id_type
@each_type
def test_every_tail(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Whole vectors, and a part of one; a vector goes on with a segment, or begins one, or lies within one."""
    data = mixed(dtype, 131, 2, nans=0.05)
    for seed, steps in enumerate(([0, 1], [1], [0, 0, 0, 0, 1], [0, 0, 1, 7], [0] * 20 + [3])):
        ids = np.cumsum(np.random.default_rng(seed).choice(steps, 131)).astype(ids_as)
        for rows in range(1, 131, 1 if seed < 2 else 5):
            mode = ("ZERO", "LOWEST")[rows % 2]
            want = fast_segment_max(data[:rows], ids[:rows], int(ids[rows - 1]) + 2, mode)
            got = mo.segment_max(data[:rows], ids[:rows], len(want), fill_mode=mode, check_ids=bool(rows % 3))
            assert_same_bits(got, want)


@each_id_type
@each_type
def test_mostly_empty_outputs(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """They are filled first, and the gaps not again: between rows close together and far apart."""
    data = mixed(dtype, 100, 3)
    for steps in ([0, 1], [0, 1, 3], [1, 5, 100]):
        ids = np.cumsum(np.random.default_rng(3).choice(steps, 100)).astype(ids_as)
        for count in (100 * 16 - 1, 100 * 17, 50_000):
            _assert_right(data, ids, count)


@each_id_type
@each_type
def test_single_rows_up_to_any_place(dtype: DType, ids_as: type[np.signedinteger]) -> None:
    """Ids that go up by one are copied in blocks of 32; at any place one may come twice, or be left out."""
    data = mixed(dtype, 150, 4, nans=0.1)
    for start in (0, 3):
        _assert_right(data, np.arange(start, 150 + start, dtype=ids_as))
    for place in range(1, 140, 3):
        ids = np.arange(150, dtype=ids_as)
        ids[place:] += (-1, 1, 100)[place % 3]
        mode = ("ZERO", "LOWEST")[place % 2]
        want = fast_segment_max(data, ids, 260, mode)
        assert_same_bits(mo.segment_max(data, ids, 260, fill_mode=mode), want)
        rows = np.stack([data, data[::-1], data], axis=1)
        assert_same_bits(mo.segment_max(rows, ids, 260, fill_mode=mode), fast_segment_max(rows, ids, 260, mode))
        fewer = 150 - place
        assert_same_bits(mo.segment_max(data, ids, fewer, fill_mode=mode), want[:fewer])


@pytest.mark.parametrize("rows", [1, 2, 30, 31, 32, 33])
@each_type
def test_few_rows_of_every_width(dtype: DType, rows: int) -> None:
    """Up to 31 rows of a segment keep a line's columns in registers, then a quarter's; the rest are a block's."""
    data = mixed(dtype, (3 * rows, 150), 8)
    for width in (*range(1, 20), *range(60, 70), 80, 127, 128, 129, 150):
        for layout in (np.ascontiguousarray(data[:, :width]), data[:, :width]):
            _assert_right(layout, np.arange(3 * rows) // rows * 2)


@each_width
def test_single_rows_at_the_ends_of_an_id_type(dtype: DType) -> None:
    """Ids near the highest have no row, and counting on from them must not make one."""
    data = mixed(dtype, 64, 5)
    for ids_as in (np.int32, np.int64):
        ids = (np.iinfo(ids_as).max - 63 + np.arange(64)).astype(ids_as)
        assert_same_bits(mo.segment_max(data, ids, 70, fill_mode="ZERO"), np.zeros(70, dtype.numpy))


@each_width
def test_every_alignment(dtype: DType) -> None:
    values, ids = mixed(dtype, 100, 6), np.cumsum(np.tile([0, 1, 0, 0, 2], 20))
    for given_ids in (ids.astype(np.int32), ids, np.arange(100), np.arange(100) // 40):
        want = fast_segment_max(values, given_ids, int(given_ids[-1]) + 4, "LOWEST")
        for offset in range(64):
            out = at_offset(np.zeros_like(want), 63 - offset)
            moved = at_offset(given_ids, offset * 3 % 64)
            mo.segment_max(at_offset(values, offset), moved, fill_mode="LOWEST", num_segments=len(want), out=out)
            assert_same_bits(out, want)


@pytest.mark.parametrize("run", [62, 63, 64, 65, 66, 127, 128, 129])
@each_type
def test_runs_between_short_segments(dtype: DType, run: int) -> None:
    """From 64 rows on a run has a loop of its own, wherever it begins."""
    data = mixed(dtype, 300, 7, nans=0.01)
    for before in (0, 1, 15, 16, 17, 33):
        ids = np.concatenate([np.arange(before), np.full(run, before), before + 1 + np.arange(300) // 3])[:300]
        _assert_right(data, ids)


@each_id_type
def test_an_id_out_of_order_at_every_place(ids_as: type[np.signedinteger]) -> None:
    """Checked, the error names it; unchecked, every row is written and none beyond."""
    data = np.ones(140, np.float32)
    for good in (np.arange(140), np.arange(140) // 3, np.arange(140) * 9, np.arange(140) // 70 * 5):
        for place in range(140):
            for bad in (-1, int(good[place]) + 1_000, int(good[place]) - 1):
                ids = good.astype(ids_as)
                ids[place] = bad
                wrong = np.flatnonzero((ids < 0) | (np.diff(ids, prepend=0) < 0))
                if not len(wrong):
                    continue
                with pytest.raises(SegmentIdsError, match=rf"position {wrong[0]} holds {ids[wrong[0]]}\b"):
                    mo.segment_max(data, ids, 1_300, fill_mode="ZERO")
                count = int(good[-1]) + 1
                with pytest.raises(SegmentIdsError, match=rf"position {wrong[0]} holds"):
                    mo.segment_max(data, ids, max(count // 2, 1), fill_mode="ZERO")
                guarded = Guarded(FLOAT32, (count,))
                guarded.array[...] = 7
                mo.segment_max(data, ids, count, fill_mode="ZERO", check_ids=False, out=guarded.array)
                guarded.check()
                assert set(guarded.array.tolist()) <= {0.0, 1.0}


def test_ids_past_the_output_are_checked_too() -> None:
    """Also where they are beyond it from the first row on, and in a block or a share of their own."""
    for rows in (40, 5_000, 400_000):
        for count in (1, rows // 3):
            ids = np.arange(rows)
            ids[rows - 2] = rows - 4
            with pytest.raises(SegmentIdsError, match=f"position {rows - 2} holds {rows - 4} after {rows - 3}"):
                mo.segment_max(np.ones(rows, np.float32), ids, count, fill_mode="ZERO")
            twice = np.repeat(ids, 2)[::2]  # not in place: taken in blocks
            with pytest.raises(SegmentIdsError, match=f"position {rows - 2} holds"):
                mo.segment_max(np.ones((rows, 2), np.int8), twice, count, fill_mode="ZERO")


def test_ids_whose_lower_halves_are_equal() -> None:
    """64-bit ids are compared as such."""
    data = np.arange(40, dtype=np.float32)
    ids = np.repeat([3, 3 + 2**32], [20, 20])
    want = np.array([0, 0, 0, 19], np.float32)
    assert_same_bits(mo.segment_max(data, ids, 4, fill_mode="ZERO"), want)
    ids[10] = 3 + 2**33
    with pytest.raises(SegmentIdsError, match="position 11 holds 3 after"):
        mo.segment_max(data, ids, 4, fill_mode="ZERO")


@pytest.mark.parametrize("width", [1, 3])
def test_ids_up_and_down_fill_no_row_twice(width: int) -> None:
    """What is written stays: otherwise each step up would cost as much as the output is long."""
    rows = 4_000
    ids = np.arange(rows) % 14 // 2  # no two 64 apart are equal: nothing to gallop over
    ids[1::2] = np.arange(1, rows // 2 + 1) * 20
    data = np.ones((rows, width) if width > 1 else rows, np.float32)
    got = mo.segment_max(data, ids, int(ids[-1]) + 1, fill_mode="ZERO", check_ids=False)
    assert np.flatnonzero(got.reshape(-1, width)[:, 0]).tolist() == [*range(7), *ids[1::2].tolist()]


@each_type
def test_values_that_break_things_in_every_lane(dtype: DType) -> None:
    """The lowest, the zeros and NaNs, alone in a segment and beside one another."""
    telling = [0, 1, dtype.lowest_bits, dtype.lowest_finite_bits]
    if dtype.kind == "float":
        telling += [1 << dtype.bits - 1, dtype.nan_bits, dtype.lowest_bits | 1, dtype.infinity_bits]
    if dtype.kind == "bool":
        telling = [0, 1]
    data = of_words(dtype, np.resize(telling, 150))
    for length in (1, 2, 3, 5, 11):
        _assert_right(data, np.arange(150) // length)
        _assert_right(data, np.arange(150) // length * 3)
