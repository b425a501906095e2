# ruff: noqa: E402 - what needs torch comes after the look for it
"""The GPU's kernels where tiles, shares and chunks end: the ways through them that small arrays do not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import held
from bits import assert_same_bits, fast_maximum, fast_reduce_max, fast_segment_max, mixed, words
from held import DEVICE, array_of, tensor_of
from maxops import dtypes, errors, reference
from maxops.engines.gpu import device, ids, segment
from maxops.engines.gpu.axes import collapse
from maxops.plan import Array

F32 = dtypes.FLOAT32
ALL: dict[str, Any] = {"return_indices": True, "return_empty": True}


@pytest.mark.parametrize("size", [1, 2047, 2048, 2049, 5000])
def test_maximum_of_lines(size: int) -> None:
    for dtype in (F32, dtypes.FLOAT16, dtypes.INT8):
        a, b = mixed(dtype, (size,), 1), mixed(dtype, (size,), 2)
        assert_same_bits(array_of(held.maximum(tensor_of(a), tensor_of(b))), fast_maximum(a, b))


@pytest.mark.parametrize("shape", [(70, 50), (3, 1000), (1000, 3)])
def test_maximum_of_tiles(shape: tuple[int, int]) -> None:
    a, b, row = mixed(F32, shape, 1), mixed(F32, shape[::-1], 2), mixed(F32, shape[1:], 3)
    got = held.maximum(tensor_of(a), tensor_of(b).t(), tensor_of(row))
    assert_same_bits(array_of(got), fast_maximum(a, np.ascontiguousarray(b.T), np.broadcast_to(row, shape).copy()))


@pytest.mark.parametrize("shape", [(20_001,), (2, 5000), (5000, 3), (2, 600, 5), (70, 140)])
def test_reductions_in_shares(shape: tuple[int, ...]) -> None:
    data = mixed(dtypes.INT16, shape, 1)  # few values: many ties between shares
    x = tensor_of(data)
    for axes in {tuple(range(len(shape))), (0,), (len(shape) - 1,)}:
        values, places = held.reduce_max(x, axes, return_indices=True)
        assert_same_bits(array_of(values), fast_reduce_max(data, axes))
        assert_same_bits(array_of(places), first(data, axes))
        assert_same_bits(array_of(held.reduce_max(x, axes)), fast_reduce_max(data, axes))
    values, places = held.reduce_max(x, initial=32767, keepdims=False, return_indices=True)
    assert values.item() == 32767
    assert places.item() == (-1 if data.max() < 32767 else int(data.argmax()))


def first(data: Array, axes: tuple[int, ...]) -> Array:
    """Where the maxima of integers stand first."""
    kept = tuple(axis for axis in range(data.ndim) if axis not in axes)
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(data.shape))
    lines = data.transpose(*kept, *sorted(axes)).reshape(*(data.shape[axis] for axis in kept), -1)
    return np.asarray(lines.argmax(-1), np.int64).reshape(shape)


@pytest.mark.parametrize("width", [None, 3, 20])
def test_long_segments_are_cut(width: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "CHUNK", 64 * device.at_least(width or 1))
    monkeypatch.setattr(segment, "TILE", 256)
    lengths = [1, 0, 330, 3, 0, 0, 129, 128, 64, 5, 0]
    by = np.repeat(np.arange(len(lengths)), lengths)
    shape = (len(by),) if width is None else (len(by), width)
    data = mixed(F32, shape, 4, nans=0.0)
    x, count = tensor_of(data), len(lengths)
    values, places, empty = held.segment_max(x, tensor_of(by), count, fill_mode="LOWEST", **ALL)
    want = fast_segment_max(data, by, count, "LOWEST")
    assert_same_bits(array_of(values), want)
    assert_same_bits(array_of(empty), np.array(lengths) == 0)
    assert_same_bits(array_of(places), first_rows(data, by, want))
    offsets = tensor_of(np.cumsum([0, *lengths]))
    again = held.segment_max(x, offsets=offsets, fill_mode="LOWEST", **ALL)
    for one, other in zip(again, (values, places, empty), strict=True):
        assert_same_bits(array_of(one), array_of(other))
    mixed_up = np.random.default_rng(1).permutation(len(by))
    y = tensor_of(data[mixed_up])
    got = held.segment_max(y, tensor_of(by[mixed_up]), count, fill_mode="LOWEST", sorted=False)
    assert_same_bits(array_of(got), want)


def first_rows(data: Array, by: Array, values: Array) -> Array:
    """Where the maxima of segments stand first; the reference says the same, and is slow."""
    places = np.full(values.shape, -1, np.int64)
    for row in reversed(range(len(by))):
        holds = words(data[row : row + 1])[0] == words(values[by[row] : by[row] + 1])[0]
        places[by[row]] = np.where(holds, row, places[by[row]])
    return places


@pytest.mark.parametrize("gaps", [(40, 3000, 1, 17), (2000, 2000, 2000, 0), (16, 15, 18, 5000)])
def test_gaps_between_ids(gaps: tuple[int, ...]) -> None:
    by = np.cumsum(gaps)
    data = mixed(F32, (len(by),), 5)
    count = int(by[-1]) + 2500
    got = held.segment_max(tensor_of(data), tensor_of(by), count, fill_mode="ZERO")
    assert_same_bits(array_of(got), fast_segment_max(data, by, count, "ZERO"))


@pytest.mark.parametrize("place", [1, 1023, 1024, 2500])
def test_the_first_wrong_id_is_told(place: int) -> None:
    by = np.repeat(np.arange(1300), 2)
    x = torch.zeros(len(by), device=DEVICE)
    fall = by.copy()
    fall[place] = 0 if fall[place - 1] else -1
    fall[place + 50] = 0
    words = "must not decrease: position" if fall[place] == 0 else "must not be negative: position"
    with pytest.raises(errors.SegmentIdsError, match=f"{words} {place} holds"):
        held.segment_max(x, tensor_of(fall), fill_mode="ZERO")
    past = by.copy()
    past[place], past[place + 9] = 5000, 6000
    with pytest.raises(errors.SegmentIdsError, match=f"position {place} holds 5000"):
        held.segment_max(x, tensor_of(past), 1300, fill_mode="ZERO", sorted=False)


def test_a_wrong_last_id_takes_no_memory() -> None:
    by = tensor_of(np.array([3, 2, 2**62]))
    with pytest.raises(errors.SegmentIdsError, match="position 1 holds 2 after 3"):
        held.segment_max(torch.zeros(3, device=DEVICE), by, fill_mode="ZERO")


def test_the_second_look_at_the_ids_sees_what_the_first_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_TOGETHER", 64)
    by = np.repeat(np.arange(100), 3)
    for place in (63, 64, 65, 128, 299):
        wrong = by.copy()
        wrong[place] = 0
        with pytest.raises(errors.SegmentIdsError, match=f"position {place} holds 0 after"):
            held.segment_max(torch.zeros(300, device=DEVICE), tensor_of(wrong), fill_mode="ZERO")


@pytest.mark.parametrize("wrong", [[9, -5, 3, 2**40, 0], [0, 0, 4, 1, 1], [-1, -1, -1, -1, -1]])
def test_unchecked_wrong_ids_stay_within_bounds(wrong: list[int]) -> None:
    """Whatever comes, it is of the right shape, and the guards around the data and the result are whole."""
    x = torch.zeros(5, device=DEVICE)
    for sorted_ in (True, False):
        by = torch.tensor(wrong, device=DEVICE)
        got = held.segment_max(x, by, 4, fill_mode="ZERO", check_ids=False, sorted=sorted_)
        assert got.shape == (4,)
        assert not got.any()
    offsets = torch.tensor(wrong, device=DEVICE)
    got = held.segment_max(x, offsets=offsets, fill_mode="ZERO", check_ids=False)
    assert got.tolist() == [0] * 4


def test_wide_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels for more than 2^31 elements give the same, as far as few elements can tell."""
    monkeypatch.setattr(device, "NARROW", 0)
    data, by = mixed(dtypes.FLOAT16, (200, 3), 3), np.repeat(np.arange(20), 10)
    x = tensor_of(data)
    assert_same_bits(array_of(held.maximum(x, x[0])), fast_maximum(data, np.broadcast_to(data[0], data.shape).copy()))
    assert_same_bits(array_of(held.reduce_max(x, 0)), fast_reduce_max(data, (0,)))
    want = fast_segment_max(data, by, 20, "ZERO")
    for is_sorted in (True, False):
        values, places = held.segment_max(x, tensor_of(by), fill_mode="ZERO", sorted=is_sorted, return_indices=True)
        assert_same_bits(array_of(values), want)
        assert_same_bits(array_of(places), reference.first_in_segments(data, by, want))


def test_axes_collapse() -> None:
    assert collapse((2, 3, 4), [(12, 4, 1)]).sizes == (24,)
    assert collapse((4, 3, 2), [(1, 4, 12)]).sizes == (24,)  # the order is in the steps
    assert collapse((4, 3, 2), [(1, 4, 12)], keep_order=True).sizes == (2, 3, 4)
    assert collapse((2, 1, 3), [(3, 7, 1), (0, 0, 1)]).strides == ((1, 3), (1, 0))
    assert collapse((), [(), ()]).sizes == (1,)
