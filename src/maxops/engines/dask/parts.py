"""What blocks of rows hand on for SegmentMax, and how parts become one: functions that run in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxops import spec
from maxops.engines import table
from maxops.errors import SegmentIdsError, ShapeError
from maxops.plan import Array, check_offsets, check_segment_ids, plan_segment_max, stand_in

ROW = spec.SEGMENT_MAX


@dataclass(frozen=True)
class Call:
    """What was asked for. `count` is the number of segments, if it is known; `check`: ids are to be looked at."""

    count: int | None
    fill_mode: str | None
    initial: Array | None
    sorted: bool
    out_of_range: Any
    check: bool
    indices: bool
    empty: bool


@dataclass(frozen=True)
class Part:
    """The maxima of the segments that some consecutive rows touch.

    `ids` are those segments, each once: a range where there is no gap. `values` and `indices` have a row for each;
    an index counts from the first of these rows. `rows` and `named` are how many rows and ids there were, `edges`
    the first and last id. `start` is the first row's position among all, if blocks have known sizes.

    A wrong id is an error at once where `start` is known. Where it is not, it waits for the rows before to be
    counted: `fault` is the position among these rows, and the ids from there that are to be looked at again.
    `count` is a number of segments that only the task with the offsets knew.
    """

    ids: Any
    values: Any
    indices: Any
    rows: int
    named: int
    edges: tuple[int, int] | None
    start: int | None
    fault: tuple[int, Any] | None = None
    count: int = 0


def _engine(values: Any, ids: Any) -> table.Engine:
    return table.find(ROW, [("data", values), ("segment_ids", ids)])


def rows_of_block(block: Any) -> Array:
    """How many rows a block has, of the lists of one that Dask puts around it."""
    while isinstance(block, list):
        (block,) = block
    return np.array([block.shape[0]], np.int64)


# ------------------------------------------------------------------------------------------ of blocks of data


def of_ids(block: Any, ids: Any, start: Any, *, call: Call, computing_meta: bool = False) -> Any:
    """The part of a block of rows and their ids."""
    if computing_meta:
        return block
    return _part(block, ids, None if start is None else int(start[0]), call)


def cut_offsets(offsets: Array, starts: Sequence[int], stops: Sequence[int]) -> tuple[list[Array], list[int]]:
    """The offsets that each block of rows needs, and the number of the first segment in each."""
    lows = np.maximum(np.searchsorted(offsets, starts, "right") - 1, 0).tolist()
    highs = np.searchsorted(offsets, stops, "left").tolist()
    return [offsets[low : max(high, low) + 1] for low, high in zip(lows, highs, strict=True)], lows


def of_offsets(
    block: Any, offsets: Any, first: Any, start: Any, total: Any, *, call: Call, computing_meta: bool = False
) -> Any:
    """The part of a block of rows, from offsets of which the first begins the segment `first`."""
    if computing_meta:
        return block
    if call.check:
        check_offsets(ROW, offsets, int(total[0]))
    begin = int(start[0])
    bounds = np.clip(offsets, begin, begin + len(block))
    lengths = np.maximum(np.diff(bounds), 0)  # unchecked, they may decrease
    named = np.repeat(np.arange(len(lengths), dtype=np.int64) + int(first[0]), lengths)[: len(block)]
    ids = np.full(len(block), -1, np.int64)  # rows of no segment, unchecked
    ids[: len(named)] = named
    part = _part(block, ids, begin, replace(call, check=False))
    return part if call.count is not None else replace(part, count=len(offsets) - 1)


def _part(block: Any, ids: Any, start: int | None, call: Call) -> Part:
    rows = len(block)
    edges = (int(ids[0]), int(ids[-1])) if len(ids) else None
    nothing = Part(range(0), block[:0], _no_indices(block[:0], call), rows, len(ids), edges, start)
    if len(ids) != rows:  # of unknown size both: a matter for the end, where their sums are known
        return nothing
    if call.check:
        try:
            _check(call, ids, start or 0)
        except SegmentIdsError:
            if start is not None:
                raise
            return replace(nothing, fault=(0, ids))
    if call.sorted:
        low = int(np.searchsorted(ids, 0))
        high = rows if call.count is None else int(np.searchsorted(ids, call.count))
        taken: Any = slice(low, max(low, high))
    else:
        inside = ids >= 0 if call.count is None else (ids >= 0) & (ids < call.count)
        taken = slice(None) if inside.all() else np.flatnonzero(inside)
    kept = ids[taken]
    if len(kept) == 0:
        return nothing
    touched, places = _touched(kept, call.sorted)
    values, indices = _maxima(block[taken], places, len(touched), call)
    if indices is not None:
        indices = indices + (taken.start or 0) if isinstance(taken, slice) else taken[indices]
    return replace(nothing, ids=touched, values=values, indices=indices)


def _no_indices(rows: Any, call: Call) -> Any:
    return (
        rows.astype(np.int64)
        if call.indices and rows.dtype != object
        else (np.empty_like(rows, dtype=np.int64) if call.indices else None)
    )


def _check(call: Call, ids: Any, start: int) -> None:
    check_segment_ids(
        ROW, ids, sorted=call.sorted, out_of_range=call.out_of_range, num_segments=call.count, start=start
    )


def _touched(ids: Any, is_sorted: bool) -> tuple[Any, Any]:
    """The ids without repetition, and each row's place among them."""
    if not is_sorted:
        return np.unique(ids, return_inverse=True)
    change = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    first, last, count = int(ids[0]), int(ids[-1]), len(change) + 1
    if last - first + 1 == count:  # no gap
        return range(first, last + 1), ids - ids[0]
    step = np.zeros_like(ids, dtype=np.int64)
    step[change] = 1
    return np.concatenate([ids[:1], ids[change]]).astype(np.int64), np.cumsum(step)


def _maxima(rows: Any, places: Any, count: int, call: Call) -> tuple[Any, Any]:
    """The maxima of segments that all have rows, and where they stand, if asked for."""
    result = _engine(rows, places).segment_max(
        rows,
        places,
        count,
        fill_mode="ZERO",  # nothing is empty
        check_ids=False,
        sorted=call.sorted,
        return_indices=call.indices,
    )
    return result if call.indices else (result, None)


# ---------------------------------------------------------------------------------------------- in the tree


def whole(part: Any, *, axis: Any, keepdims: bool, computing_meta: bool = False) -> Any:
    """The part as it is."""
    del axis, keepdims, computing_meta
    return part


def cut(part: Any, *, axis: Any, keepdims: bool, low: int, high: int, computing_meta: bool = False) -> Any:
    """What a part has in a range of segments."""
    del axis, keepdims
    if computing_meta:
        return part
    if isinstance(part.ids, range):
        begin, end = (min(max(bound - part.ids.start, 0), len(part.ids)) for bound in (low, high))
    else:
        begin, end = (int(place) for place in np.searchsorted(part.ids, [low, high]))
    end = max(begin, end)
    return replace(
        part,
        ids=part.ids[begin:end],
        values=part.values[begin:end],
        indices=None if part.indices is None else part.indices[begin:end],
    )


def merged(nested: Any, *, axis: Any, keepdims: bool, call: Call, computing_meta: bool = False) -> Any:
    """One part of several that follow each other."""
    del axis, keepdims
    if computing_meta:
        return nested
    parts = list(_flat(nested))
    part, shifts = _facts(parts, call)
    full = [(one, shift) for one, shift in zip(parts, shifts, strict=True) if len(one.ids)]
    if not full:
        return replace(part, values=parts[0].values, indices=parts[0].indices)
    ids, values, indices = _rows(full)
    if len(full) == 1:
        return replace(part, ids=full[0][0].ids, values=values, indices=indices)
    touched, places = _touched(ids, call.sorted)
    values, winners = _maxima(values, places, len(touched), call)
    return replace(
        part,
        ids=touched,
        values=values,
        indices=None if winners is None else np.take_along_axis(indices, winners, 0),
    )


def finished(
    nested: Any, *, axis: Any, keepdims: bool, call: Call, low: int, high: int | None, computing_meta: bool = False
) -> Any:
    """The results for a range of segments, from the parts of all rows."""
    del axis, keepdims
    if computing_meta:
        return nested
    parts = list(_flat(nested))
    part, shifts = _facts(parts, call)
    if part.rows != part.named:
        _refuse_lengths(part)
    if part.fault is not None:
        _check(call, part.fault[1], part.fault[0])
    if any(one.rows != one.named for one in parts):
        raise AssertionError
    full = [(one, shift) for one, shift in zip(parts, shifts, strict=True) if len(one.ids)]
    ids, values, indices = _rows(full or [(parts[0], 0)])
    count = max(part.count, int(ids.max(initial=-1)) + 1) if high is None else high - low
    options = {"return_indices": call.indices, "return_empty": call.empty}
    result = _engine(values, ids).segment_max(
        values,
        ids - low,
        count,
        fill_mode=call.fill_mode,
        check_ids=False,
        sorted=call.sorted,
        initial=call.initial,
        **options,
    )
    if not call.indices or not full:
        return result
    own = result[1]
    winners = np.where(own < 0, own, np.take_along_axis(indices, np.maximum(own, 0), 0))
    return (result[0], winners, *result[2:])


def _flat(nested: Any) -> Iterator[Part]:
    if isinstance(nested, list):
        for inner in nested:
            yield from _flat(inner)
    else:
        yield nested


def _rows(full: list[tuple[Part, int]]) -> tuple[Any, Any, Any]:
    """The ids, values and indices of parts that follow each other, the indices moved by each part's shift."""
    ids = [
        np.arange(one.ids.start, one.ids.stop, dtype=np.int64) if isinstance(one.ids, range) else one.ids
        for one, _ in full
    ]
    values = [one.values for one, _ in full]
    moved = [one.indices if not shift or one.indices is None else one.indices + shift for one, shift in full]
    if len(full) == 1:
        return ids[0], values[0], moved[0]
    return np.concatenate(ids), np.concatenate(values), None if moved[0] is None else np.concatenate(moved)


def _facts(parts: list[Part], call: Call) -> tuple[Part, list[int]]:
    """All of a joint part but its segments, and how many rows come before each; an error for ids across a border."""
    shifts, rows, edges, fault = [], 0, None, None
    for part in parts:
        shifts.append(rows)
        if part.edges is not None:
            if call.check and edges is not None and part.edges[0] < edges[1]:
                pair = np.array([edges[1], part.edges[0]])
                if part.start is not None:
                    _check(call, pair, part.start - 1)
                fault = fault or (rows - 1, pair)
            edges = (edges[0] if edges else part.edges[0], part.edges[1])
        if part.fault is not None:
            fault = fault or (rows + part.fault[0], part.fault[1])
        rows += part.rows
    count = max(part.count for part in parts)
    named = sum(part.named for part in parts)
    first = parts[0]
    return Part(range(0), None, None, rows, named, edges, first.start, fault, count), shifts


def _refuse_lengths(part: Part) -> None:
    """Raise what a call in memory would."""
    data, ids = stand_in((part.rows, *part.values.shape[1:]), np.dtype("f4")), stand_in((part.named,), np.dtype("i8"))
    plan_segment_max(ROW, data, ids, 0, "ZERO", values_known=False)
    raise ShapeError("")
