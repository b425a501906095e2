"""Tests SegmentMax with all lists of up to five ids from -1 to 4 and six ids from -1 to 3: unsorted or invalid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

import maxops as mo
from maxops.errors import SegmentIdsError

from . import recipes
from .states import Array, check_place, counted, fail, threads

MOST_ROWS, WIDTHS = 6, (1, 2, 3, 4)
COUNTS = (None, 0, 2, 3, 6)
GUARD = 64


def all_ids(most_rows: int = MOST_ROWS) -> Iterator[tuple[int, ...]]:
    """Yield every sequence of ids. Those of six rows have one segment fewer, so that their number stays small."""
    for rows in range(most_rows + 1):
        yield from itertools.product(range(-1, 4 if rows == 6 else 5), repeat=rows)


def first_wrong(ids: tuple[int, ...]) -> int | None:
    """Return the position in the error for sorted ids: the first negative id or, without one, the first decrease."""
    if -1 in ids:
        return ids.index(-1)
    before = 0
    for place, segment in enumerate(ids):
        if segment < before:
            return place
        before = segment
    return None


def by_definition(every: Array, ids: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the maxima of six segments, with zeros for empty ones, and the first rows that contain the maxima."""
    best = np.zeros((6, every.shape[1]), every.dtype)
    index = np.full(best.shape, -1, np.int64)
    for segment in {*ids} - {-1}:
        rows = np.flatnonzero(np.equal(ids, segment))
        best[segment] = every[rows].max(0)
        index[segment] = rows[every[rows].argmax(0)]
    return best, index


def unsorted(
    dtype: Any = np.float32,
    counts: tuple[int, ...] = (1,),
    widths: tuple[int, ...] = WIDTHS,
    most_rows: int = MOST_ROWS,
) -> None:
    """Test unsorted ids, dropping ids out of range, with several numbers of segments and threads."""
    for count in counts:
        with threads(count):
            for ids in all_ids(most_rows):
                _unsorted(ids, dtype, COUNTS if count == 1 else (None, 5), widths)


def _unsorted(ids: tuple[int, ...], dtype: Any, counts: tuple[int | None, ...], widths: tuple[int, ...]) -> None:
    wide = np.array(ids, np.int64)
    last = max(ids, default=-1) + 1
    every = recipes.matrix(ids, dtype)
    alike = recipes.tied(every)
    for width in widths:
        made = list(recipes.pieces(width, every, by_definition(every, ids)[0], alike, *by_definition(alike, ids)))
        for number, (data, best, *_) in enumerate(made):
            for segments in counts:
                size = last if segments is None else segments
                if min(ids, default=0) >= 0 and last <= size:
                    got = mo.segment_max(data, wide, segments, fill_mode="ZERO", sorted=False)
                elif number == 0 or len(ids) < 5:  # `out_of_range` goes through the planner, which is slow
                    got = mo.segment_max(data, wide, segments, fill_mode="ZERO", sorted=False, out_of_range="drop")
                else:
                    continue
                if got.tobytes() != best[:size].tobytes():
                    fail("segment_max, sorted=False", best[:size], got, data=data, ids=ids, count=segments)
                counted["ids in any order"] += 1
        # A segment that contains only the lowest value must not count as empty.
        kind = np.dtype(dtype).kind
        lowest = np.full_like(made[-1][0], -np.inf if kind == "f" else np.iinfo(dtype).min)
        expected = np.where(made[-1][4] < 0, 0, lowest.dtype.type(lowest.flat[0]) if lowest.size else 0).astype(dtype)[
            :last
        ]
        given = wide if width > 1 else wide.astype(np.int32)
        got = mo.segment_max(lowest, given, None, fill_mode="ZERO", sorted=False, out_of_range="drop")
        if got.tobytes() != expected.tobytes():
            fail("segment_max, sorted=False, the lowest", expected, got, data=lowest, ids=ids)
        counted["ids in any order, the lowest value"] += 1
        if width > 2 and len(ids) > 5:
            continue
        _, _, data, best, index = made[-1]
        got, rows = mo.segment_max(
            data, wide, None, fill_mode="ZERO", sorted=False, out_of_range="drop", return_indices=True
        )
        if got.tobytes() != best[:last].tobytes() or rows.tobytes() != index[:last].tobytes():
            fail("segment_max, sorted=False, indices", (best[:last], index[:last]), (got, rows), data=data, ids=ids)
        counted["ids in any order, indices"] += 1


def wrong(most_rows: int = MOST_ROWS) -> None:
    """Test invalid sorted ids: errors name the position and leave `out` unchanged. Unchecked ids write only `out`."""
    for ids in all_ids(most_rows):
        place = first_wrong(ids)
        if place is None:
            continue
        wide = np.array(ids, np.int64)
        every = recipes.matrix(ids, np.float32)
        for width in WIDTHS:
            (data,) = next(recipes.pieces(width, every))
            shape = (5, *data.shape[1:])
            buffer = np.full(int(np.prod(shape)) + 2 * GUARD, 7, np.float32)
            out = buffer[GUARD:-GUARD].reshape(shape)
            for given in {1: (None, out), 2: (None,)}.get(width, (out,)):
                _refuses(ids, place, data, wide, 5, given)
            # Faults past the last segment, whose rows are dropped, and faults at boundaries of gathered ids.
            for segments in (1, 2):
                _refuses(ids, place, data, wide, segments, None)
                if width == WIDTHS[0]:
                    _refuses(ids, place, data.astype(np.int8), np.repeat(wide.astype(np.int32), 2)[::2], segments, None)
            if (buffer != 7).any():
                fail("segment_max, wrong ids with out=", "an output as it was", out, ids=ids, width=width)
            for segments in (1, 3, 5):
                mo.segment_max(data, wide, segments, fill_mode="ZERO", check_ids=False, out=out[:segments])
                if (buffer[:GUARD] != 7).any() or (buffer[GUARD + out[:segments].size :] != 7).any():
                    fail(
                        "segment_max, unchecked wrong ids",
                        "nothing written beside the output",
                        buffer,
                        ids=ids,
                        count=segments,
                    )
                buffer[:] = 7
                counted["wrong ids, unchecked"] += 1


def _refuses(ids: tuple[int, ...], place: int, data: Array, given: Array, segments: int, out: Array | None) -> None:
    try:
        mo.segment_max(data, given, segments, fill_mode="ZERO", out=out)
    except SegmentIdsError as error:
        check_place(error, place, ids)
    else:
        fail("segment_max of wrong ids", "an error", "none", ids=ids, data=data, count=segments)
    counted["wrong ids, checked"] += 1


def refused(most_rows: int = MOST_ROWS) -> None:
    """Test that unsorted ids out of range are errors by default."""
    data = np.zeros(MOST_ROWS, np.float32)
    for ids in all_ids(most_rows):
        for segments in (None, 3):
            bad = [segment for segment in ids if segment < 0 or (segments is not None and segment >= segments)]
            try:
                mo.segment_max(data[: len(ids)], np.array(ids, np.int64), segments, fill_mode="ZERO", sorted=False)
            except SegmentIdsError:
                if not bad:
                    fail("segment_max, ids in range", "a result", "an error", ids=ids, count=segments)
            else:
                if bad:
                    fail("segment_max, ids out of range", "an error", "a result", ids=ids, count=segments)
            counted["ids out of range"] += 1
