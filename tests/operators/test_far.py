"""Indices, strides, ids, offsets and sizes beyond 32 bits, in small arrays on lazily mapped memory."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops
from helpers.bits import Array, assert_same_bits, fast_first_in_axes, fast_maximum, fast_reduce_max
from maxops.calls import ScatterCall
from maxops.engines import scatter
from maxops.errors import AxesError, OffsetsError, OutputTooLargeError, SegmentIdsError

mo: Any = maxops
GIB = 1 << 30
SPACE = 40 * GIB
# Distances whose low 32 bits are negative, zero, or the distance of a near element.
FAR = [2 * GIB, 2 * GIB + 64, 4 * GIB, 4 * GIB + 8, 6 * GIB - 16]


@pytest.fixture(scope="module")
def space() -> Array:
    """Return an array of bytes that the system maps on the first write."""
    if sys.platform != "linux" or sys.maxsize < 2**32:
        pytest.skip("takes 40 GiB of addresses, which Linux gives without memory")
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE, which Python 3.13 added
    whole: Array = np.frombuffer(mmap.mmap(-1, SPACE, flags), np.uint8)
    return whole


def far(space: Array, values: Array, strides: tuple[int, ...]) -> Array:
    """Return the values with these strides in bytes, from the middle of the space on."""
    steps = [stride * (size - 1) for stride, size in zip(strides, values.shape, strict=True)]
    start = sum(-step for step in steps if step < 0)
    assert sum(map(abs, steps)) + 8 <= SPACE, "it is too large"
    flat = space[start : start + values.dtype.itemsize].view(values.dtype)
    made: Array = np.lib.stride_tricks.as_strided(flat, values.shape, strides)
    made[...] = values
    return made


def small(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return distinct numbers in random order."""
    count = int(np.prod(shape))
    return np.random.default_rng(seed).permutation(count).reshape(shape).astype(dtype)


def layouts(rank: int, itemsize: int) -> Iterator[tuple[int, ...]]:
    """Yield strides in which each axis in turn is far, forwards and backwards, and the others are near."""
    for axis, distance, sign in product(range(rank), FAR, (1, -1)):
        near = [itemsize * 7 ** (rank - other) for other in range(rank)]
        near[axis] = sign * distance
        yield tuple(near)
        near[-1 if axis != rank - 1 else 0] = itemsize
        yield tuple(near)


SHAPES: list[tuple[int, ...]] = [(3,), (2, 3), (3, 2), (2, 2, 3)]
TYPES = (np.float32, np.int8, np.float64)
each_type = pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.__name__)


@each_type
def test_max_of_far_inputs_and_outputs(space: Array, dtype: Any) -> None:
    for shape in SHAPES:
        values, other = small(dtype, shape), small(dtype, shape, 1)
        expected = fast_maximum(values, other)
        for strides in layouts(len(shape), np.dtype(dtype).itemsize):
            given = far(space, values, strides)
            assert_same_bits(mo.maximum(given, other), expected)
            assert_same_bits(mo.maximum(other, given, given, other, given), expected)
            out = far(space, np.zeros(shape, dtype), strides)
            assert mo.maximum(values, other, out=out) is out
            assert_same_bits(out.copy(), expected)


@each_type
def test_reductions_of_far_data(space: Array, dtype: Any) -> None:
    for shape in SHAPES:
        values = small(dtype, shape)
        for strides in layouts(len(shape), np.dtype(dtype).itemsize):
            given = far(space, values, strides)
            for axes in [tuple(range(len(shape))), *((axis,) for axis in range(len(shape)))]:
                got, places = mo.reduce_max(given, axes, return_indices=True)
                assert_same_bits(got, fast_reduce_max(values, axes))
                assert_same_bits(places, fast_first_in_axes(values, axes))
                assert_same_bits(mo.reduce_max(given, axes, initial=0), fast_reduce_max(values, axes))


@pytest.mark.parametrize("threads", [1, 2])
def test_many_far_rows(space: Array, threads: int) -> None:
    """Test enough elements for several tasks, with rows that are far apart."""
    with mo.num_threads(threads):
        values = small(np.float32, (5, 120_000))
        for distance in (2 * GIB + 64, -4 * GIB):
            for strides in ((distance, 4), (distance, 8)):
                given = far(space, values, strides)
                for axes in ((0,), (1,), (0, 1)):
                    got, places = mo.reduce_max(given, axes, return_indices=True)
                    assert_same_bits(got, fast_reduce_max(values, axes))
                    assert_same_bits(places, fast_first_in_axes(values, axes))
                assert_same_bits(mo.maximum(given, values[:, ::-1]), fast_maximum(values, values[:, ::-1]))
                transposed = mo.maximum(given[:, :640].T, np.ascontiguousarray(values[:, :640].T))
                assert_same_bits(transposed, values[:, :640].T)
                ids = np.array([0, 0, 1, 1, 1])
                for options in ({"segment_ids": ids}, {"segment_ids": ids[[0, 2, 1, 3, 4]], "sorted": False}):
                    got, places = mo.segment_max(given, **options, fill_mode="ZERO", return_indices=True)
                    again, also = mo.segment_max(values, **options, fill_mode="ZERO", return_indices=True)
                    assert_same_bits(got, again)
                    assert_same_bits(places, also)


ROUTES: dict[str, Callable[[Array, bool], dict[str, Any]]] = {
    "sorted": lambda ids, checks: {"segment_ids": ids, "check_ids": checks},
    "unsorted": lambda ids, checks: {"segment_ids": ids, "check_ids": checks, "sorted": False},
    "offsets": lambda ids, checks: {"offsets": ids, "check_ids": checks},
}
EVERYTHING = {"fill_mode": "LOWEST", "return_indices": True, "return_empty": True}


@pytest.mark.parametrize("route", ROUTES)
def test_segments_of_far_rows_ids_and_offsets(space: Array, route: str) -> None:
    names = np.array(
        [0, 2, 4, 4, 5] if route == "offsets" else [0, 2, 2, 3, 5] if route == "sorted" else [5, 2, 0, 2, 3]
    )
    for shape in ((5,), (5, 3)):
        values = small(np.float32, shape)
        expected = mo.segment_max(values, **ROUTES[route](names, True), **EVERYTHING)
        for strides in layouts(len(shape), 4):
            given = far(space, values, strides)
            result = mo.segment_max(given, **ROUTES[route](names, True), **EVERYTHING)
            for got, whole in zip(result, expected, strict=True):
                assert_same_bits(got, whole)
        for index, distance, sign in product((np.int64, np.int32, np.int8, np.uint64), FAR, (1, -1)):
            ids = far(space, names.astype(index), (sign * distance,))
            for checks in (True, False):
                result = mo.segment_max(values, **ROUTES[route](ids, checks), **EVERYTHING)
                for got, whole in zip(result, expected, strict=True):
                    assert_same_bits(got, whole)


# ----------------------------------------------------------------------------------------------------- numbers

PAST = [2**31, 2**32, 2**32 + 1, 2**33 + 2, -(2**31), -(2**32), 2**32 - 1, -(2**32) + 1, 2**62]


@pytest.mark.parametrize("index", [np.int64, np.uint64, np.uint32], ids=lambda index: index.__name__)
def test_ids_past_32_bits(index: Any) -> None:
    """Test that ids beyond 32 bits are dropped or named in an error, on each code path, with all their bits."""
    for past, rows, given in product(PAST, (3, 3000, 300_000), (4, 5000)):
        if not 0 <= past <= np.iinfo(index).max:
            continue
        data = np.arange(rows, dtype=np.float32)
        ids = np.zeros(rows, index)
        ids[-1] = past
        expected = np.full(given, np.float32(0))
        expected[0] = rows - 2
        for options in ({}, {"check_ids": False}, {"sorted": False, "out_of_range": "drop"}, {"out_of_range": "drop"}):
            values, places, empty = mo.segment_max(
                data, ids, given, fill_mode="ZERO", return_indices=True, return_empty=True, **options
            )
            assert_same_bits(values, expected)
            assert places.tolist() == [rows - 2] + [-1] * (given - 1)
            assert empty.tolist() == [False] + [True] * (given - 1)
        for options in ({"sorted": False}, {"out_of_range": "error"}):
            with pytest.raises(SegmentIdsError, match=f"got {past} at position {rows - 1}"):
                mo.segment_max(data, ids, given, fill_mode="ZERO", **options)
        if past < 2**62:  # without columns, an output may have any number of rows
            wide = np.zeros((rows, 0), np.float32)
            assert mo.segment_max(wide, ids, fill_mode="ZERO").shape == (past + 1, 0)


def test_negative_ids_past_32_bits() -> None:
    for past in PAST:
        for rows, options in product((3, 3000), ({}, {"sorted": False})):
            ids = np.zeros(rows, np.int64)
            ids[0] = -abs(past)
            with pytest.raises(SegmentIdsError, match=f"got {-abs(past)} at position 0"):
                mo.segment_max(np.zeros(rows), ids, 4, fill_mode="ZERO", **options)
            got = mo.segment_max(np.ones(rows), ids, 4, fill_mode="ZERO", out_of_range="drop", **options)
            assert got.tolist() == [1, 0, 0, 0]


def test_offsets_past_32_bits() -> None:
    """Test data without columns, which has any number of rows and uses no memory."""
    for rows in (2**31 + 1, 2**32, 2**32 + 3, 2**40):
        data = np.zeros((rows, 0), np.float32)
        for middle in (2**31, 2**31 + 1, rows - 1, rows):
            offsets = np.array([0, middle, middle, rows])
            values, empty = mo.segment_max(data, offsets=offsets, fill_mode="ZERO", return_empty=True)
            assert values.shape == (3, 0)
            assert empty.tolist() == [False, True, middle == rows]
        for wrong in ([0, 2**32 + rows], [2**32, rows], [0, rows, 2**32, rows], [0, rows % 2**32]):
            if wrong[-1] != rows or wrong != sorted(wrong) or wrong[0]:
                with pytest.raises(OffsetsError):
                    mo.segment_max(data, offsets=np.array(wrong), fill_mode="ZERO")
    for rows in (0, 3, 5):
        with pytest.raises(OffsetsError, match=f"got {2**32 + rows} at"):
            mo.segment_max(np.zeros(rows), offsets=np.array([0, 2**32 + rows]), fill_mode="ZERO")


NUMBERS: list[Callable[[int], Any]] = [int, np.int64, np.uint64, np.array]


def test_num_segments_past_32_bits() -> None:
    """Test an output without columns, which may have any number of rows, and an error for other outputs."""
    ids = np.array([0, 1])
    for past, number in product([past for past in PAST if 0 < past < 2**62], NUMBERS):
        for named in ({"segment_ids": ids}, {"segment_ids": ids, "sorted": False}, {"offsets": np.array([0, 2])}):
            shape = mo.segment_max(np.zeros((2, 0)), num_segments=number(past), fill_mode="ZERO", **named).shape
            assert shape == (past, 0)
        if past > 2**33:
            with pytest.raises(OutputTooLargeError):
                mo.segment_max(np.zeros((2, 1 << 20)), ids, number(past), fill_mode="ZERO")
    operator = mo.operator("OpenVINO", "SegmentMax")
    assert operator(np.zeros((2, 0)), ids, np.array(2**32 + 1), fill_mode="ZERO").shape == (2**32 + 1, 0)


@pytest.mark.parametrize("row", [1, 11, 13, 18, 20, None])
def test_axes_past_32_bits(row: int | None) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    if row is None:
        calls: list[Any] = [mo.reduce_max, lambda data, axes: mo.reduce_max(data, axis=axes)]
    elif row < 18:
        calls = [lambda data, axes: mo.operator("ONNX", "ReduceMax", row)(data, axes=axes)]
    else:
        calls = [mo.operator("ONNX", "ReduceMax", row)]
    for call, base, near in product(calls, (2**31, 2**32, -(2**32), 2**33, 2**62), (-1, 0, 1)):
        for axes in ([base + near], np.array([base + near]), (1, base + near)):
            with pytest.raises(AxesError):
                call(data, axes)


def test_sizes_past_32_bits() -> None:
    """Test arrays without elements and broadcast arrays."""
    for size in (2**31 + 1, 2**32, 2**32 + 1):
        none = np.zeros((size, 0), np.int8)
        assert mo.maximum(none, none[:1]).shape == (size, 0)
        assert mo.maximum(none.T, np.zeros((), np.int8)).shape == (0, size)
        assert mo.reduce_max(none, 0, keepdims=False).shape == (0,)
        assert mo.reduce_max(none[None], 0, return_indices=True)[1].shape == (1, size, 0)
        repeated = np.broadcast_to(np.array([[3], [5]], np.int8), (2, size))
        assert mo.reduce_max(repeated, 1, keepdims=False).tolist() == [3, 5]
        with pytest.raises(OutputTooLargeError):
            mo.maximum(np.broadcast_to(np.float64(1), (size, 1 << 12)), np.ones(()))


@pytest.mark.parametrize("size", [2**31 + 5, 2**32 + 5])
def test_more_elements_than_32_bits_count(size: int) -> None:
    """Test a maximum near the end of zero pages that the system maps lazily, and of broadcast elements."""
    data = np.zeros(size, np.int8)
    place = size - 3
    data[place] = 7
    values, places = mo.reduce_max(data, return_indices=True)
    assert (values.item(), places.item()) == (7, place)
    values, places = mo.reduce_max(data[:, None], 0, keepdims=False, return_indices=True)
    assert (values.tolist(), places.tolist()) == ([7], [place])
    values, places = mo.segment_max(data, offsets=[0, place, size], fill_mode="ZERO", return_indices=True)
    assert (values.tolist(), places.tolist()) == ([0, 7], [0, place])
    for shape, axes in (((2, size), None), ((2, size // 2 + 1, 2), None), ((2, size), (0, 1))):
        column = np.array([3, 5], np.int8).reshape(2, *[1] * (len(shape) - 1))
        values, places = mo.reduce_max(np.broadcast_to(column, shape), axes, return_indices=True)
        assert (values.item(), places.item()) == (5, int(np.prod(shape[1:])))


def test_targets_of_updates() -> None:
    """Test ScatterND, and ScatterElements along each axis, in data of 32 GiB, which no call could copy."""
    data = np.broadcast_to(np.int8(0), (3, 2**31, 5))
    indices = np.array([[2, 2**31 - 1, 4], [0, 2**31 - 2, 1]])
    expected = np.ravel_multi_index(tuple(indices.T), data.shape)
    assert_same_bits(scatter._ids(ScatterCall(data, indices, None, axis=None)), expected)
    for axis in range(3):
        places = list(np.indices((2, 2, 2)))
        places[axis] = np.array(data.shape)[axis] - 1 - places[axis]
        expected = np.ravel_multi_index(tuple(places), data.shape).reshape(-1)
        assert_same_bits(scatter._ids(ScatterCall(data, places[axis], None, axis)), expected)
