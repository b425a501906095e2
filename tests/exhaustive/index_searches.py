"""Tests indices of results that no element equals, and with rare layouts, runs of ids and orders of axes.

With an `initial` above all elements, the search finds nothing and must stop at the last element.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import maxops as mo

from .states import Array, counted, fail, threads

ABSENT = 120  # above all data of these tests


def _ranks(count: int, step: int, dtype: Any) -> Array:
    """Return `count` negative values, up to 100 of them distinct, in an order that `step` rotates."""
    return (-1 - (np.arange(count) * 7 + step) % max(count, 1) % 100).astype(dtype)


# ---------------------------------------------------------------------- ReduceMax


def _in_axes(data: Array, axes: tuple[int, ...], initial: int | None) -> None:
    kept = [axis for axis in range(data.ndim) if axis not in axes]
    rows = data.transpose(*kept, *axes).reshape(*(data.shape[axis] for axis in kept), -1)
    best, index = rows.max(-1), rows.argmax(-1)
    if initial is not None:
        index = np.where(best < initial, -1, index)
        best = np.maximum(best, data.dtype.type(initial))
    given = None if initial is None else data.dtype.type(initial)
    values, places = mo.reduce_max(data, axes, keepdims=False, initial=given, return_indices=True)
    if values.tobytes() != best.astype(data.dtype.newbyteorder("=")).tobytes() or places.tobytes() != index.tobytes():
        fail("reduce_max, initial, indices", (best, index), (values, places), data=data, axes=axes, initial=initial)
    counted["reduce_max: indices of what may be absent"] += 1


def absent(dtype: Any = np.float32) -> None:
    """Test indices in every layout, with an `initial` above the data or among the data, and without `initial`."""
    shapes = [
        (1,),
        (2,),
        (3,),
        (8,),
        (9,),
        (24,),
        (33,),
        (3, 1),
        (1, 3),
        (2, 2),
        (3, 4),
        (2, 9),
        (9, 2),
        (5, 8),
        (3, 16),
    ]
    shapes += [(2, 3, 2), (3, 1, 3), (2, 4, 9)]
    for shape in shapes:
        for step in (0, 3):
            data = _ranks(int(np.prod(shape)), step, dtype).reshape(shape)
            apart = np.repeat(data, 2, axis=-1)[..., ::2]
            for given in (data, np.asfortranarray(data), apart, data.astype(data.dtype.newbyteorder("S"))):
                for count in range(1, len(shape) + 1):
                    for axes in itertools.combinations(range(len(shape)), count):
                        for initial in (ABSENT, int(np.median(data)), None):
                            _in_axes(given, axes, initial)


def orders(dtype: Any = np.int8) -> None:
    """Test reduced axes in any order in memory, and rows that are one element apart or repeated."""
    for shape in ((2, 2, 2), (2, 3, 4), (3, 2, 2)):
        count = int(np.prod(shape))
        for order in itertools.permutations(range(3)):
            inside = [shape[axis] for axis in order]
            for step in range(count):
                data = _ranks(count, step, dtype).reshape(inside).transpose(*np.argsort(order))
                for size in (1, 2, 3):
                    for axes in itertools.combinations(range(3), size):
                        _in_axes(data, axes, None)
    for rows, width in itertools.product((2, 3, 4), (2, 3, 4)):
        for step in range(rows * (width + 1)):
            data = _ranks(rows * (width + 1), step, dtype).reshape(rows, width + 1)
            for part in (data[:, :-1], data[:, 1:], np.broadcast_to(data[:, 0], (2, rows)).T):
                _in_axes(part, (0, 1), None)
                _in_axes(part, (0,), None)


# ---------------------------------------------------------------------- SegmentMax


def _in_segments(data: Array, ids: Array, count: int, initial: int | None, **how: Any) -> None:
    rows = data.reshape(len(data), int(np.prod(data.shape[1:])))
    fill = 0 if initial is None else initial
    best = np.full((count, rows.shape[1]), fill, data.dtype.newbyteorder("="))
    index = np.full(best.shape, -1, np.int64)
    for segment in {*ids.tolist()} & {*range(count)}:
        own = np.flatnonzero(ids == segment)
        best[segment] = rows[own].max(0)
        index[segment] = own[rows[own].argmax(0)]
    if initial is not None:
        index = np.where(best < initial, -1, index)
        best = np.maximum(best, data.dtype.type(initial))
    filled = {"fill_mode": "ZERO"} if initial is None else {"initial": data.dtype.type(initial)}
    values, places = mo.segment_max(data, num_segments=count, return_indices=True, **filled, **how)
    if values.tobytes() != best.tobytes() or places.tobytes() != index.tobytes():
        fail("segment_max, indices", (best, index), (values, places), data=data, ids=ids, initial=initial, how=how)
    counted["segment_max: indices"] += 1


LENGTHS = ((9,), (1, 8), (2, 9), (3, 3, 3), (4, 6), (0, 5, 0, 7), (1, 1, 12), (26,), (13, 13), (2, 28), (0, 17, 1, 12))


def runs() -> None:
    """Test offsets of long runs, which threads split into shares, and rows that overlap."""
    for lengths in LENGTHS:
        ids = np.repeat(np.arange(len(lengths)), lengths)
        offsets = np.cumsum((0, *lengths)).astype(np.int32)
        # If all rows are equal, a later block must keep the index that an earlier block found.
        _in_segments(np.full(len(ids), -1, np.int8), ids, len(lengths), None, offsets=offsets)
        for dtype, width in ((np.int8, 1), (np.int8, 2), (np.int8, 9), (np.float32, 1), (np.float32, 2), (np.int8, 13)):
            for step, alike in itertools.product(range(0, len(ids), 7), (1, 3)):
                every = _ranks(len(ids) + width, step, dtype) // dtype(alike)
                windows = np.lib.stride_tricks.sliding_window_view(every, width)[: len(ids)]
                rows = np.ascontiguousarray(windows[::-1])
                for data in (rows[:, 0].copy() if width == 1 else rows, windows):
                    _in_segments(data, ids, len(lengths), None, offsets=offsets)
                    _in_segments(data, ids, len(lengths) + 1, None, offsets=offsets[[*range(len(offsets)), -1]])
                    _in_segments(data, ids, len(lengths), ABSENT, offsets=offsets)
                    _in_segments(data, ids, len(lengths), int(np.median(data)), offsets=offsets)


def ordered() -> None:
    """Test sorted ids: narrow rows that threads share, wide rows that are gathered, and no rows."""
    for lengths in ((9,), (2, 9), (4, 6), (0, 5, 0, 7), (13, 13)):
        ids = np.repeat(np.arange(len(lengths)), lengths)
        for dtype, width in (
            (np.int8, 1),
            (np.int8, 9),
            (np.int8, 11),
            (np.float32, 5),
            (np.float32, 9),
            (np.int16, 9),
        ):
            for step in (0, 3, 7):
                data = _ranks(len(ids) * width, step, dtype).reshape(len(ids), width)
                for given in (data, np.repeat(data, 2, axis=1)[:, ::2]):
                    _in_segments(given, ids, len(lengths), None, segment_ids=ids)
                    _in_segments(given, ids, len(lengths), ABSENT, segment_ids=ids.astype(np.int32))
    for width in (1, 2, 9, 10):
        data, ids = _ranks(2 * width, 0, np.int8).reshape(2, width), np.zeros(2, np.int64)
        _in_segments(data, ids, 1, None, segment_ids=ids)
        none = np.ndarray((0,), ids.dtype, ids, ids.nbytes)  # begins at the end of the ids
        _in_segments(data[2:], none, 2, None, segment_ids=none)
        _in_segments(data[2:], none, 2, None, segment_ids=none, sorted=False)


def shuffled() -> None:
    """Test unsorted ids of many rows, so that a share has several rows of a segment with other rows between them."""
    for count, limit in itertools.product((8, 9, 12, 26), (2, 3)):
        for step in range(12):
            ids = (np.arange(count) * 5 + step) // 3 % 7 % limit
            ids[count // 2 - 1 : count // 2 + 1] = 0
            for dtype, width in ((np.int8, 1), (np.int8, 3), (np.int8, 9), (np.float32, 1)):
                data = _ranks(count * width, step, dtype).reshape(count, width)
                _in_segments(data, ids, limit, None, segment_ids=ids.astype(np.int32), sorted=False)
                _in_segments(data // 3, ids, limit, ABSENT, segment_ids=ids, sorted=False)


def unchecked() -> None:
    """Test unchecked invalid ids with indices: calls write no other memory. The indices are unspecified."""
    for count, width in itertools.product((8, 12, 24), (1, 2, 9)):
        data = np.full((count, width), -1, np.int8)
        for step in range(24):
            ids = ((np.arange(count) * 5 + step) // 3 % 7 % 3 * (1 + step % 2) - step % 3).astype(np.int32)
            ids[step % count :] = np.minimum(ids[step % count :], 1)
            for segments in (1, 2, 3):
                buffer = np.full((segments + 4, width), 7, np.int8)
                mo.segment_max(
                    data, ids, segments, fill_mode="ZERO", check_ids=False, return_indices=True, out=buffer[2:-2]
                )
                if (buffer[[0, 1, -2, -1]] != 7).any():
                    fail(
                        "segment_max, wrong ids, indices",
                        "nothing written beside the output",
                        buffer,
                        ids=ids,
                        count=segments,
                    )
                counted["wrong ids, unchecked, indices"] += 1


def _lowest(dtype: Any) -> Any:
    return dtype(-np.inf) if np.dtype(dtype).kind == "f" else dtype(np.iinfo(dtype).min)


FAR = 1 << 40  # an id whose row is beyond any memory
GUARD = -110  # below all data except the lowest value, so that any write into a guard is visible


def dropped() -> None:
    """Test unsorted ids, some of them far out of range, with guarded outputs, and the lowest value as data and fill."""
    for count in (1, 3):
        with threads(count):
            for rows, segments in itertools.product((1, 3, 8, 26), (1, 8)):
                for step in range(2):
                    ids = (np.arange(rows) * 5 + step) // 3 * 7 % (segments + 2) - step % 2
                    for dtype, width in ((np.int8, 1), (np.int8, 3), (np.int8, 10), (np.float32, 2), (np.int16, 1)):
                        data = _ranks(rows * width, step, dtype).reshape(rows, width)
                        _dropped(data, ids, segments, 0)
                        low = data.copy()
                        low[step % 2 :: 3, step % 2 % width] = _lowest(dtype)
                        for fill in (0, _lowest(dtype)):
                            _dropped(low, np.where(ids == segments + 1, FAR, ids), segments, fill)
                            _dropped(low, ids, segments, fill)


def _dropped(data: Array, ids: Array, count: int, fill: Any) -> None:
    best = np.full((count, data.shape[1]), fill, data.dtype)
    for segment in {*ids.tolist()} & {*range(count)}:
        best[segment] = data[ids == segment].max(0)
    how = {"fill_value": data.dtype.type(fill), "sorted": False, "out_of_range": "drop"}
    gone = [segment not in ids for segment in range(count)]
    swapped, apart = data.astype(data.dtype.newbyteorder("S")), np.repeat(ids, 2)[::2]
    narrow = ids if abs(ids).max() >= FAR else ids.astype(np.int32)
    for given, names in ((data, ids), (swapped, narrow), (np.asfortranarray(data), apart)):
        guarded = np.full((count + 16, data.shape[1]), GUARD, data.dtype)
        mo.segment_max(given, names, count, out=guarded[8:-8], **how)
        if guarded[8:-8].tobytes() != best.tobytes() or (np.delete(guarded, range(8, 8 + count), 0) != GUARD).any():
            fail("segment_max, sorted=False, dropped, out=", best, guarded, data=given, ids=names, how=how)
        values, empty = mo.segment_max(given, names, count, return_empty=True, **how)
        if values.tobytes() != best.tobytes() or empty.tolist() != gone:
            fail("segment_max, sorted=False, dropped", (best, gone), (values, empty), data=given, ids=names, how=how)
        counted["ids in any order, dropped"] += 2


def empty() -> None:
    """Test the mask of empty segments for strided offsets of both types, with several numbers of segments."""
    for lengths in ((), (0,), (1,), (0, 1), (2, 0, 3), (1, 0, 0, 2, 0), (3, 4, 5), (0,) * 12, (1, 0, 2) * 8):
        starts = np.cumsum((0, *lengths))
        data = _ranks(int(starts[-1]), 0, np.int8)
        for dtype, step in itertools.product((np.int32, np.int64), (1, 2, 3, -1, -2)):
            offsets = np.repeat(starts.astype(dtype), abs(step))[::step]
            offsets = offsets if step > 0 else np.repeat(starts[::-1].astype(dtype), -step)[::step]
            for count in {1, len(lengths), len(lengths) + 1, len(lengths) + 9} - {0}:
                of = [*lengths, *(0,) * 9][:count]
                best = np.array(
                    [
                        data[start : start + n].max(initial=0 if n == 0 else -128)
                        for start, n in zip([*starts, *(0,) * 9], of, strict=False)
                    ],
                    np.int8,
                )
                values, gone = mo.segment_max(
                    data, num_segments=count, offsets=offsets, fill_mode="ZERO", return_empty=True
                )
                if values.tobytes() != best.tobytes() or gone.tolist() != [n == 0 for n in of]:
                    fail(
                        "segment_max, offsets, return_empty",
                        (best, of),
                        (values, gone),
                        data=data,
                        offsets=offsets,
                        count=count,
                    )
                counted["offsets, empty segments"] += 1


def pages() -> None:
    """Test outputs, indices and masks that fill whole pages, with rows of ids below and past the segments."""
    segments = 4096
    data = _ranks(12_000, 1, np.int8)[:, np.newaxis]
    below, past = np.maximum(np.arange(12_000) - 7000, -1), np.minimum(np.arange(12_000), segments)
    turned_ids = (np.arange(6000) * 7 % 6000).astype(np.int32)
    drops: dict[str, Any] = {"out_of_range": "drop"}
    offsets = np.minimum(np.arange(segments + 1) // 2, 2000).astype(np.int32)
    for count in (1, 2, 3):
        with threads(count):
            _in_segments(data[:6000], turned_ids, segments, None, segment_ids=turned_ids, sorted=False, **drops)
            for ids in (below.astype(np.int32), past.astype(np.int32)):
                _in_segments(data, ids, segments, None, segment_ids=ids, **drops)
            _, gone = mo.segment_max(data[:2000], offsets=offsets, fill_mode="ZERO", return_empty=True)
            if gone.tobytes() != (offsets[1:] == offsets[:-1]).tobytes():
                fail("segment_max, offsets, return_empty", offsets[1:] == offsets[:-1], gone, offsets=offsets)
            counted["whole pages"] += 1


def many() -> None:
    """Test more segments than there is scratch memory for."""
    ids = np.arange(60_000, dtype=np.int32) // 30
    _in_segments(_ranks(60_000, 1, np.int8)[:, np.newaxis], ids, 2_000, None, segment_ids=ids)


def shared() -> None:
    """Test so many rows of unsorted ids that each thread usually has its own copy of the output."""
    rows, segments = 16_000, 900
    turn = np.arange(rows) * 7919 % rows
    data, ids = (turn - rows).astype(np.int16), (turn * 31 // 7 % segments).astype(np.int32)
    for start, count in itertools.product(range(0, 30, 5), (2, 3)):
        with threads(count):
            for step in range(start, start + 5):
                turned_data = np.roll(data, step * 509)[:, np.newaxis]
                _in_segments(turned_data, ids, segments, None, segment_ids=ids, sorted=False)


# ---------------------------------------------------------------------- copies


def steps() -> None:
    """Test elements with all small strides in bytes: adjacent, overlapping and backwards, in both byte orders."""
    memory = ((np.arange(1024) * 89 + 7) % 251).astype(np.uint8)
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        for swaps, step in itertools.product((False, True), range(-17, 18)):
            for count in (1, 2, 5, 9, 14):
                view = np.ndarray((count,), np.dtype(dtype).newbyteorder("S" if swaps else "="), memory, 512, (step,))
                _in_axes(view, (0,), None)
                rows = np.ndarray((3, min(count, 5)), view.dtype, memory, 512, (step * 5 + 2, step))
                _in_axes(rows, (0,), None)


def transposed() -> None:
    """Test Max of matrices with transposed ones, whose sizes are multiples of the transposed squares or not."""
    for dtype in (np.int8, np.int16, np.int32, np.float64):
        for rows, columns in itertools.product((2, 3, 5, 7, 8, 9, 17, 25), (2, 3, 4, 7, 8, 9, 10, 17, 19)):
            for step in (0, 3):
                plain = _ranks(rows * columns, step, dtype).reshape(rows, columns)
                across = _ranks(rows * columns, step + 1, dtype).reshape(columns, rows).T
                expected = np.maximum(plain, across)
                for given in ((plain, across), (across, plain, across), (plain[:, ::-1][:, ::-1], across)):
                    got = mo.maximum(*given)
                    if (got != expected).any():
                        fail("maximum, transposed", expected, got, inputs=given)
                    counted["maximum: transposed"] += 1


def streamed() -> None:
    """Test Max into a part of a larger array at any position in a cache line: the rest of the array is unchanged."""
    for dtype, sizes in ((np.int8, (64, 65, 127, 128, 129, 192, 200)), (np.float32, (16, 17, 32, 33, 48, 50))):
        for size, start in itertools.product(sizes, range(0, 68, 3)):
            data = _ranks(size, start, dtype)
            memory = np.full(size + 200, 99, dtype)
            out = memory[64 + start :][:size]
            mo.maximum(data, data[::-1].copy(), out=out)
            expected = np.maximum(data, data[::-1])
            if (out != expected).any() or (np.delete(memory, range(64 + start, 64 + start + size)) != 99).any():
                fail("maximum, out= within an array", expected, memory, data=data, start=start)
            counted["maximum: out= within an array"] += 1
