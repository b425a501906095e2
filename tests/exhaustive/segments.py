"""Tests SegmentMax with all sorted lists of up to eight ids below six, short rows, and all num_segments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

import maxops as mo

from . import recipes
from .states import Array, counted, fail, threads

MOST_ROWS, MOST_IDS, WIDTHS = 8, 6, (1, 2, 3, 4)
MOST_COUNT = MOST_IDS + 1
COUNTS = (None, *range(MOST_COUNT + 1))
MODES = {"ZERO": 0.0, "LOWEST": float(np.finfo(np.float32).min)}


def sorted_ids(most_rows: int = MOST_ROWS, most_ids: int = MOST_IDS) -> Iterator[tuple[int, ...]]:
    """Yield every non-decreasing sequence of ids."""
    for rows in range(most_rows + 1):
        yield from itertools.combinations_with_replacement(range(most_ids), rows)


def by_definition(every: Array, ids: tuple[int, ...], fill: Any) -> tuple[Array, Array]:
    """Return the maxima of MOST_COUNT segments, and the first rows that contain them."""
    best = np.full((MOST_COUNT, every.shape[1]), fill, every.dtype)
    index = np.full(best.shape, -1, np.int64)
    for segment in set(ids):
        first, count = ids.index(segment), ids.count(segment)
        rows = every[first : first + count]
        best[segment] = rows.max(0)
        index[segment] = first + rows.argmax(0)
    return best, index


def plain(dtype: Any = np.float32, most_rows: int = MOST_ROWS, widths: tuple[int, ...] = WIDTHS) -> None:
    """Test new and given outputs, checked and unchecked ids, both types of ids and both fill modes."""
    fills = {"ZERO": 0, "LOWEST": np.finfo(dtype).min if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min}
    for ids in sorted_ids(most_rows):
        narrow, wide = np.array(ids, np.int32), np.array(ids, np.int64)
        last = ids[-1] + 1 if ids else 0
        every = recipes.matrix(ids, dtype)
        best = {mode: by_definition(every, ids, fill)[0] for mode, fill in fills.items()}
        for width in widths:
            for data, zeros, lows in recipes.pieces(width, every, best["ZERO"], best["LOWEST"]):
                all_zero, all_lowest, row = zeros.tobytes(), lows.tobytes(), zeros[:1].nbytes
                for count in COUNTS:
                    size = (last if count is None else count) * row
                    zero, lowest = all_zero[:size], all_lowest[:size]
                    got = mo.segment_max(data, narrow, count, fill_mode="ZERO")
                    if got.tobytes() != zero:
                        fail(
                            "segment_max(data, ids, count, fill_mode='ZERO')",
                            zero,
                            got,
                            data=data,
                            ids=ids,
                            count=count,
                        )
                    got = mo.segment_max(data, wide, count, fill_mode="LOWEST", check_ids=False)
                    if got.tobytes() != lowest:
                        fail("segment_max, check_ids=False", lowest, got, data=data, ids=ids, count=count)
                    out = np.full((last if count is None else count, *data.shape[1:]), 99, dtype)
                    mo.segment_max(data, wide, count, fill_mode="LOWEST", out=out)
                    if out.tobytes() != lowest:
                        fail("segment_max, out=out", lowest, out, data=data, ids=ids, count=count)
                    counted["sorted ids: new output, unchecked, out="] += 3


def blocks(dtype: Any = np.int8, most_rows: int = 6) -> None:
    """Test strided ids, which are gathered in blocks: each block must resume the last segment of the one before.

    Rows are so small that a task has several blocks.
    """
    for ids in sorted_ids(most_rows):
        apart = np.repeat(np.array(ids, np.int32), 2)[::2]
        every = recipes.matrix(ids, dtype)
        for width in (1, 2):
            for data, best in recipes.pieces(width, every, by_definition(every, ids, 0)[0]):
                for count in (None, 0, 1, 3, MOST_COUNT):
                    expected = best[: (ids[-1] + 1 if ids else 0) if count is None else count]
                    for checks in (True, False):
                        got = mo.segment_max(data, apart, count, fill_mode="ZERO", check_ids=checks)
                        if got.tobytes() != expected.tobytes():
                            fail("segment_max, blocks of ids", expected, got, data=data, ids=ids, count=count)
                        counted["sorted ids: blocks of ids"] += 1


def threaded(dtype: Any = np.float32, most_rows: int = MOST_ROWS) -> None:
    """Test rows and columns that threads share, and the merge of their results."""
    for count in (2, 3):
        with threads(count):
            for ids in sorted_ids(most_rows):
                wide = np.array(ids, np.int64)
                last = ids[-1] + 1 if ids else 0
                every = recipes.matrix(ids, dtype)
                all_best = by_definition(every, ids, 0)[0]
                for width in WIDTHS:
                    for data, best in recipes.pieces(width, every, all_best):
                        for segments in (None, 0, 1, 3, MOST_COUNT):
                            expected = best[: last if segments is None else segments]
                            got = mo.segment_max(data, wide, segments, fill_mode="ZERO")
                            if got.tobytes() != expected.tobytes():
                                fail(f"segment_max, {count} threads", expected, got, data=data, ids=ids, count=segments)
                            guarded = np.full((len(expected) + 2, *data.shape[1:]), 99, dtype)
                            mo.segment_max(data, wide, segments, fill_mode="ZERO", out=guarded[1:-1])
                            if guarded[1:-1].tobytes() != expected.tobytes() or (guarded[[0, -1]] != 99).any():
                                fail(
                                    f"segment_max, out=, {count} threads",
                                    expected,
                                    guarded,
                                    data=data,
                                    ids=ids,
                                    count=segments,
                                )
                            counted["sorted ids: 2 and 3 threads"] += 1


def options(dtype: Any = np.float32, most_rows: int = MOST_ROWS) -> None:
    """Test offsets, indices, initial, the mask of empty segments, and noncontiguous or byte-swapped data and ids."""
    for count, widths in ((1, WIDTHS), (3, (1, 3))):
        with threads(count):
            for ids in sorted_ids(most_rows if count == 1 else min(most_rows, 6)):
                _options(ids, dtype, widths)


def _options(ids: tuple[int, ...], dtype: Any, widths: tuple[int, ...]) -> None:
    wide = np.array(ids, np.int64)
    last = ids[-1] + 1 if ids else 0
    apart = np.repeat(wide, 2)[::2]
    offsets = np.searchsorted(wide, np.arange(MOST_COUNT + 1)).astype(np.int64)
    every = recipes.matrix(ids, dtype)
    alike = recipes.tied(every)
    of_every, of_alike = by_definition(every, ids, 0), by_definition(alike, ids, 0)
    for width in widths:
        for data, best, index, tied, tied_best, first in recipes.pieces(width, every, *of_every, alike, *of_alike):
            middle = data.dtype.type(np.sort(data, axis=None)[data.size // 2]) if data.size else data.dtype.type(-5)
            least = np.where(index < 0, middle, best.clip(middle))
            message = np.where(best < middle, -1, index)
            strided = np.repeat(data, 2, axis=0)[::2] if width == 1 else np.repeat(data, 2, axis=1)[:, ::2]
            swapped = data.astype(data.dtype.newbyteorder("S"))
            for segments in (None, 2) if width != 2 else (None, MOST_COUNT):
                size = last if segments is None else segments
                expected = best[:size]
                for call, got in (
                    ("strided data", mo.segment_max(strided, wide, segments, fill_mode="ZERO")),
                    ("strided ids", mo.segment_max(data, apart, segments, fill_mode="ZERO")),
                    ("swapped data, strided ids", mo.segment_max(swapped, apart, segments, fill_mode="ZERO")),
                ):
                    if got.tobytes() != expected.tobytes():
                        fail(f"segment_max, {call}", expected, got, data=data, ids=ids, count=segments)
                if width == 4:  # rows of two axes, which are gathered axis by axis
                    for cube in (np.asfortranarray(data.reshape(-1, 2, 2)), data.reshape(-1, 2, 2)[:, :, ::-1]):
                        got = mo.segment_max(cube, wide, segments, fill_mode="ZERO")
                        lines = expected.reshape(-1, 2, 2)
                        lines = lines if cube.strides[-1] > 0 else lines[:, :, ::-1]
                        if got.tobytes() != lines.tobytes():
                            fail("segment_max, rows of two axes", lines, got, data=cube, ids=ids, count=segments)
                filled = np.where(index < 0, middle, best)[:size]
                got = mo.segment_max(data, wide, segments, fill_value=middle)
                if got.tobytes() != filled.tobytes():
                    fail("segment_max, fill_value", filled, got, data=data, ids=ids, count=segments)
                values, rows, empty = mo.segment_max(
                    tied, wide, segments, fill_mode="ZERO", return_indices=True, return_empty=True
                )
                expected, places = tied_best[:size], first[:size]
                if values.tobytes() != expected.tobytes() or rows.tobytes() != places.tobytes():
                    fail(
                        "segment_max, return_indices",
                        (expected, places),
                        (values, rows),
                        data=tied,
                        ids=ids,
                        count=segments,
                    )
                if empty.tolist() != [segment not in ids for segment in range(size)]:
                    fail(
                        "segment_max, return_empty",
                        "the segments that ids lack",
                        empty,
                        data=data,
                        ids=ids,
                        count=segments,
                    )
                values, rows = mo.segment_max(data, wide, segments, initial=middle, return_indices=True)
                if values.tobytes() != least[:size].tobytes() or rows.tobytes() != message[:size].tobytes():
                    fail(
                        "segment_max, initial, indices",
                        (least[:size], message[:size]),
                        (values, rows),
                        data=data,
                        ids=ids,
                        initial=middle,
                    )
                counted["sorted ids: layouts, indices, initial, fill_value, empty"] += 6
            for end in {last, MOST_COUNT}:
                values, rows = mo.segment_max(tied, offsets=offsets[: end + 1], fill_mode="ZERO", return_indices=True)
                if values.tobytes() != tied_best[:end].tobytes() or rows.tobytes() != first[:end].tobytes():
                    fail(
                        "segment_max, offsets",
                        (tied_best[:end], first[:end]),
                        (values, rows),
                        data=tied,
                        offsets=offsets[: end + 1],
                    )
                got = mo.segment_max(data, offsets=np.repeat(offsets[: end + 1], 2)[::2], fill_mode="ZERO")
                if got.tobytes() != best[:end].tobytes():
                    fail("segment_max, strided offsets", best[:end], got, data=data, offsets=offsets[: end + 1])
                got = mo.segment_max(strided, offsets=offsets[: end + 1], num_segments=2, fill_mode="ZERO")
                if got.tobytes() != best[:2].tobytes():
                    fail("segment_max, offsets, two segments", best[:2], got, data=data, offsets=offsets[: end + 1])
                counted["offsets"] += 2
