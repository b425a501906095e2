"""SegmentMax of Dask arrays: chunks of rows, columns, ids or offsets do not change any bit."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxops as mo
from dask_chunks import chunkings, computed, lazy
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes, errors

da = pytest.importorskip("dask.array")
parts = pytest.importorskip("maxops.engines.dask.parts")
segments = pytest.importorskip("maxops.engines.dask.segments")
shuffle = pytest.importorskip("maxops.engines.dask.shuffle")

EVERYTHING: dict[str, Any] = {"return_indices": True, "return_empty": True}


def assert_same(got: Any, expected: Any) -> None:
    for result, correct in zip(got, expected, strict=True):
        assert_same_bits(computed(result), correct)


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """Draw fill modes or an initial value, and other options that are independent of the ids."""
    chosen: dict[str, Any] = draw(st.sampled_from([{"fill_mode": "ZERO"}, {"fill_mode": "LOWEST"}, {"initial": 1}]))
    return {**chosen, **EVERYTHING, "check_ids": draw(st.booleans())}


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_ids_however_they_are_cut(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([dtypes.FLOAT32, dtypes.BFLOAT16, dtypes.UINT8]))
    shape = (data.draw(st.integers(0, 12)), *data.draw(st.sampled_from([(), (3,), (2, 2), (0,)])))
    array = data.draw(st.sampled_from([mixed(dtype, shape, 8, nans=0.1), np.ones(shape, dtype.numpy)]))
    ids = np.array(data.draw(st.lists(st.integers(-1, 9), min_size=shape[0], max_size=shape[0])), np.int32)
    given = data.draw(options()) | {"num_segments": data.draw(st.sampled_from([None, 0, 3, 10, 15]))}
    if data.draw(st.booleans()):
        ids = np.sort(ids)
        given["out_of_range"] = "drop"
    else:
        given |= {"sorted": False, "out_of_range": "drop"}
    kind = data.draw(st.sampled_from(["known", "unknown ids", "unknown", "ids in memory", "data in memory"]))
    chunks = data.draw(chunkings(shape))
    rows = chunks[0] if kind.startswith("unknown") else data.draw(chunkings(shape[:1]))[0]
    source = array if kind == "data in memory" else lazy(array, chunks, unknown=kind == "unknown")
    named = ids if kind == "ids in memory" else lazy(ids, (rows,), unknown=kind.startswith("unknown"))
    with patch.object(segments, "LEAST_BYTES", data.draw(st.sampled_from([32, 1 << 20]))):
        got = mo.segment_max(source, named, **given)
    assert_same(got, mo.segment_max(array, ids, **given))


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_offsets_however_they_are_cut(data: st.DataObject) -> None:
    shape = (data.draw(st.integers(0, 12)), *data.draw(st.sampled_from([(), (3,), (0,)])))
    array = mixed(dtypes.FLOAT32, shape, 9, nans=0.1)
    inner = sorted(data.draw(st.lists(st.integers(0, shape[0]), max_size=6)))
    offsets = np.array([0, *inner, shape[0]], data.draw(st.sampled_from([np.int32, np.int64])))
    given = data.draw(options()) | {"num_segments": data.draw(st.sampled_from([None, 0, 2, 9]))}
    source = lazy(array, data.draw(chunkings(shape)), unknown=data.draw(st.booleans()))
    bounds = data.draw(st.sampled_from(["in memory", "known", "unknown"]))
    named = offsets
    if bounds != "in memory":
        named = lazy(offsets, data.draw(chunkings(offsets.shape)), unknown=bounds == "unknown")
    with patch.object(segments, "LEAST_BYTES", data.draw(st.sampled_from([32, 1 << 20]))):
        got = mo.segment_max(source, offsets=named, **given)
    assert_same(got, mo.segment_max(array, offsets=offsets, **given))


@pytest.mark.parametrize(
    ("gaps", "in_a_table"),
    [("none", True), ("one", True), ("as many as a table takes", True), ("one more", False), ("huge", False)],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_ids_in_any_order_are_sorted_only_where_they_are_sparse(
    monkeypatch: pytest.MonkeyPatch, dtype: type[np.generic], gaps: str, in_a_table: bool
) -> None:
    """Test that only sparse ids are sorted: sorting takes long, and the core finds empty segments faster."""
    rows, low = 40, 5
    widest = parts.MOST_SEGMENTS_PER_ROW * rows
    top = {"none": 20, "one": 20, "as many as a table takes": widest, "one more": widest + 1, "huge": 1 << 30}[gaps]
    random = np.random.default_rng(11)
    ids = (random.permutation(rows) % 19 + low + (np.arange(rows) % 2 if gaps == "none" else 0)).astype(dtype)
    ids[7], ids[23] = low + top - 1, low
    sorted_, unique = [], np.unique

    def unique_of(*args: Any, **options: Any) -> Any:
        sorted_.append(args)
        return unique(*args, **options)

    monkeypatch.setattr(np, "unique", unique_of)
    array = mixed(dtypes.FLOAT32, (rows, 3), 12)
    touched, places = parts._touched(ids, False)
    assert bool(sorted_) is not in_a_table
    expected, expected_places = unique(ids, return_inverse=True)
    assert (list(touched), places.tolist()) == (expected.tolist(), expected_places.tolist())
    assert isinstance(touched, range) is (len(expected) == top)
    given = {"fill_mode": "LOWEST", "sorted": False, "out_of_range": "drop", "num_segments": 200, **EVERYTHING}
    assert_same(mo.segment_max(lazy(array), lazy(ids), **given), mo.segment_max(array, ids, **given))


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_a_result_in_several_blocks(monkeypatch: pytest.MonkeyPatch, is_sorted: bool, in_memory: bool) -> None:
    monkeypatch.setattr(segments, "LEAST_BYTES", 8)
    monkeypatch.setattr(segments, "AT_ONCE", 3)
    monkeypatch.setattr(shuffle, "AT_ONCE", 3)
    random = np.random.default_rng(6)
    array, ids = mixed(dtypes.FLOAT32, (90, 4), 10), random.integers(0, 40, 90)
    ids = np.sort(ids) if is_sorted else ids
    given = EVERYTHING | {"fill_mode": "ZERO", "num_segments": 45, "sorted": is_sorted}
    got = mo.segment_max(lazy(array, (4, 2)), ids if in_memory else lazy(ids, 7), **given)
    assert len(got[0].chunks[0]) > 10
    assert got[0].chunks[0] == got[1].chunks[0] == got[2].chunks[0]
    assert_same(got, mo.segment_max(array, ids, **given))


def test_blocks_of_the_result_are_about_as_large_as_those_of_the_data() -> None:
    data = da.zeros((1 << 22, 4), chunks=(1 << 18, 4), dtype=np.float32)
    ids = da.arange(1 << 22, chunks=1 << 18)
    assert mo.segment_max(data, ids, 1 << 22, fill_mode="ZERO").chunks[0] == (1 << 18,) * 16
    assert mo.segment_max(data, ids, 1 << 10, fill_mode="ZERO").chunks[0] == (1 << 10,)
    assert np.isnan(mo.segment_max(data, ids, fill_mode="ZERO").shape[0])


@pytest.mark.parametrize("block", [1, 3, 7, 100])
def test_wrong_ids_across_borders(block: int) -> None:
    ids = np.repeat(np.arange(20), 5)
    ids[[44, 60]] = 3
    data = lazy(np.zeros(100, np.float32), 30)
    with pytest.raises(errors.SegmentIdsError, match="must be non-decreasing, got 3 after 8 at position 44"):
        mo.segment_max(data, lazy(ids, block), fill_mode="ZERO").compute(scheduler="sync")
    assert (
        mo.segment_max(data, lazy(ids, block), fill_mode="ZERO", check_ids=False).compute(scheduler="sync").any() == 0
    )
    with pytest.raises(errors.SegmentIdsError, match="must be non-decreasing, got 3 after 8 at position 44"):
        mo.segment_max(data, ids, fill_mode="ZERO")  # for arrays in memory, the call itself raises the error


def test_lengths_that_differ() -> None:
    data, ids = np.zeros((6, 2), np.float32), np.zeros(6, np.int64)
    with pytest.raises(errors.SegmentIdsError, match=re.escape(", got (5,)")):
        mo.segment_max(lazy(data, 2), lazy(ids[:5], 2), fill_mode="ZERO")
    unequal = mo.segment_max(
        lazy(data, ((2, 4), 2), unknown=True), lazy(ids, ((3, 3),), unknown=True), fill_mode="ZERO"
    )
    with pytest.raises(errors.ShapeError, match="some corresponding blocks differ in length"):
        unequal.compute(scheduler="sync")
    with pytest.raises(errors.ShapeError, match="data has 3 blocks along axis 0, but segment_ids has 2"):
        mo.segment_max(lazy(data, 2, unknown=True), lazy(ids, 3, unknown=True), fill_mode="ZERO")
    with pytest.raises(errors.ShapeError, match=re.escape("call data.compute_chunk_sizes() first")):
        mo.segment_max(lazy(data, 2, unknown=True), ids, fill_mode="ZERO")


def test_a_huge_id_is_an_error_before_any_work_on_it() -> None:
    result = mo.segment_max(lazy(np.zeros(2, np.float32)), lazy(np.array([0, 1 << 60])), fill_mode="ZERO")
    with pytest.raises(errors.OutputTooLargeError, match="memory"):
        result.compute(scheduler="sync")


@pytest.mark.parametrize("bounds", ["offsets", "ids"])
@pytest.mark.parametrize("unknown", [False, True])
def test_whether_a_result_fits_goes_by_its_own_rows_and_columns(bounds: str, unknown: bool) -> None:
    """Test that the limit applies to the result's own size. A block's rows times segments would be terabytes."""
    rows = 1 << 20
    data, names = lazy(np.zeros(rows, np.int8), rows, unknown=unknown), np.arange(rows + (bounds == "offsets"))
    named = lazy(names, len(names), unknown=True)
    given: Any = {"offsets": named} if bounds == "offsets" else {"segment_ids": named}
    assert mo.segment_max(data, fill_mode="ZERO", **given).compute(scheduler="sync").shape == (rows,)


@pytest.mark.parametrize("shape", [(0,), (0, 0), (0, 2)])
@pytest.mark.parametrize(
    ("rows", "own", "unknown"),
    [
        ((0, 0), (0, 0, 0), "neither"),
        ((0, 0, 0), (0,), "neither"),
        ((0,), (0, 0), "neither"),
        ((0,), (0, 0), "data"),
        ((0, 0), (0,), "ids"),
    ],
)
def test_no_rows_in_several_blocks(
    shape: tuple[int, ...], rows: tuple[int, ...], own: tuple[int, ...], unknown: str
) -> None:
    data, ids = np.zeros(shape, np.float32), np.zeros(0, np.int64)
    lazy_data = lazy(data, (rows, *shape[1:]), unknown=unknown == "data")
    lazy_ids = lazy(ids, (own,), unknown=unknown == "ids")
    got = mo.segment_max(lazy_data, lazy_ids, 3, fill_mode="ZERO", **EVERYTHING)
    assert_same(got, mo.segment_max(data, ids, 3, fill_mode="ZERO", **EVERYTHING))


@pytest.mark.parametrize("is_sorted", [False, True])
def test_masks_that_dask_does_not_know_of_are_not_lost(is_sorted: bool) -> None:
    """Test that masked arrays raise an error, even if Dask does not know that its blocks are masked."""

    def masked(block: Any) -> Any:
        return np.ma.masked_array(block, False)

    def hidden(values: Any) -> Any:
        array = np.array(values)
        return da.map_blocks(masked, da.from_array(array), dtype=array.dtype, meta=array[:0])

    data = lazy(np.zeros(4, np.float32))
    with pytest.raises(errors.DTypeError, match="segment_ids must be a NumPy array, got MaskedArray"):
        mo.segment_max(data, hidden([0, 1, 1, 2]), fill_mode="ZERO", sorted=is_sorted).compute(scheduler="sync")
    with pytest.raises(errors.DTypeError, match="offsets must be a NumPy array, got MaskedArray"):
        mo.segment_max(data, offsets=hidden([0, 2, 2, 4]), fill_mode="ZERO").compute(scheduler="sync")
    with pytest.raises(errors.DTypeError, match="data must be a NumPy array, got MaskedArray"):
        mo.segment_max(hidden([0, 1, 1, 2]), data.astype(int), fill_mode="ZERO").compute(scheduler="sync")


@pytest.mark.parametrize("number", [1 << 45, 1 << 60, None])
@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_result_of_too_many_blocks_is_an_error_of_the_call(
    number: int | None, is_sorted: bool, in_memory: bool
) -> None:
    """Test that the call raises, because the graph would take all memory."""
    ids = np.array([0, 1, 1 << 60])
    data, named = lazy(np.zeros(3, np.float32), 1), ids if in_memory else lazy(ids, 1)

    def call() -> Any:
        return mo.segment_max(data, named, number, fill_mode="ZERO", sorted=is_sorted, out_of_range="drop")

    if number is None and not in_memory:  # only the task has the ids
        call = call().compute
    with pytest.raises(errors.OutputTooLargeError):
        call()
