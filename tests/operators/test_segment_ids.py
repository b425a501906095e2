"""Validation of ids: in the pass over the data, before this pass if the caller supplies `out`, or not at all."""

from __future__ import annotations

import numpy as np
import pytest

import maxops as mo
from helpers.bits import Array, assert_same_bits, fast_segment_max, mixed
from maxops.dtypes import FLOAT16, FLOAT32, INT64, UINT8, DType
from maxops.errors import SegmentIdsError

pytestmark = pytest.mark.usefixtures("isa")

ROWS = 300_000  # int64 ids and float32 data above 1 MiB; a checked block has 2048 rows
PLACES = (0, 1, 15, 16, 17, 2047, 2048, 2049, 4096, 150_000)


def _ids(kind: str) -> Array:
    runs = {"short": 3, "long": 5_000, "one": ROWS}[kind]
    return np.arange(ROWS) // runs + 1


@pytest.mark.parametrize("kind", ["short", "long", "one"])
@pytest.mark.parametrize("width", [1, 3])
def test_one_bad_id_anywhere_is_found(kind: str, width: int) -> None:
    """Test validation in the pass over the data, for all kinds of rows and of ids."""
    rows = ROWS // width
    data = np.ones((rows, width) if width > 1 else rows, np.float32)
    good = _ids(kind)[:rows]
    for place in (*PLACES, rows - 2, rows - 1):
        if place >= rows:
            continue
        for bad in (-1, -(2**63), int(good[place]) - 2) if place else (-1, -(2**40)):
            ids = good.copy()
            ids[place] = bad
            with pytest.raises(SegmentIdsError, match=rf"got {bad} (after \d+ )?at position {place}\b"):
                mo.segment_max(data, ids, fill_mode="ZERO")
    ids = good.copy()
    ids[rows // 2] += 5
    at = rows // 2 + 1
    for form in (ids, ids.astype(">i8"), np.repeat(ids, 2)[::2], ids.astype(np.int32)):
        with pytest.raises(SegmentIdsError, match=f"got {ids[at]} after {ids[at - 1]} at position {at}"):
            mo.segment_max(data, form, fill_mode="ZERO")
        with pytest.raises(SegmentIdsError, match=f"at position {at}"):
            mo.segment_max(data, form, 7, fill_mode="ZERO")


@pytest.mark.parametrize("num_segments", [None, 0, 5, 10**6])
def test_the_callers_output_is_not_touched(num_segments: int | None) -> None:
    """Test that ids are validated before the output is written, even if it is empty."""
    ids = _ids("short")
    ids[-1] = 0
    data = np.ones(ROWS, np.float32)
    out = np.full(int(ids[-1]) + 1 if num_segments is None else num_segments, 7, np.float32)
    with pytest.raises(SegmentIdsError, match=rf"got 0 after \d+ at position {ROWS - 1}"):
        mo.segment_max(data, ids, num_segments, fill_mode="ZERO", out=out)
    assert (out == 7).all()
    with pytest.raises(SegmentIdsError, match=rf"got 0 after \d+ at position {ROWS - 1}"):
        mo.segment_max(data, ids, num_segments, fill_mode="ZERO")
    with pytest.raises(SegmentIdsError, match=rf"got 0 after \d+ at position {ROWS - 1}"):
        mo.segment_max(np.ones((ROWS, 0)), ids, num_segments, fill_mode="ZERO")


@pytest.mark.parametrize("dtype", [UINT8, FLOAT16, FLOAT32, INT64], ids=str)
def test_long_runs_are_galloped_over(dtype: DType) -> None:
    """Test runs that end around the end of each stretch that is skipped. Stretches double from 64 rows on."""
    lengths = [
        length + step
        for length in (1, 63, 64, 65, 1024, 4_096, 4_160, 4_224, 4_288, 4_544, 6_016, 9_000)
        for step in (-1, 0, 1, 2)
    ]
    ids = np.repeat(np.arange(len(lengths)) * 2, lengths)
    data = mixed(dtype, (len(ids),), 1, nans=1e-3)
    for form in (ids, ids.astype(np.int32)):
        got = mo.segment_max(data, form, fill_mode="LOWEST", check_ids=False)
        assert_same_bits(got, fast_segment_max(data, ids, int(ids[-1]) + 1, "LOWEST"))
    rows = np.stack([data, data[::-1]], axis=1)
    got = mo.segment_max(rows, ids, fill_mode="ZERO", check_ids=False)
    assert_same_bits(got, fast_segment_max(rows, ids, int(ids[-1]) + 1, "ZERO"))
