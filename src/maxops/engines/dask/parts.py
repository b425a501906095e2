"""What tasks communicate for SegmentMax, and how parts become one: functions that run in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from dask.sizeof import sizeof

from maxops import spec
from maxops.calls import SegmentCall
from maxops.engines.base import as_tuple
from maxops.engines.dask.blocks import run
from maxops.engines.dask.chunks import first_block
from maxops.errors import SegmentIdsError, ShapeError
from maxops.plan import (
    Array,
    abstract,
    array_of,
    check_offsets,
    check_segment_ids,
    default_num_segments,
    plan_segment_max,
    widened,
)

ROW = spec.SEGMENT_MAX

# Ids in any order are looked up in a table of the segments between them if it has at most this many for each row: past
# that, sorting the ids takes less time. The table's nine bytes for each are then about what sorting takes too.
MOST_SEGMENTS_PER_ROW = 8


@dataclass(frozen=True)
class Part:
    """The maxima of the segments that some consecutive rows touch.

    `ids` are those segments, each once: a range where there is no gap. `values` and `indices` have a row for each;
    an index counts from the first of these rows, so that no block needs to know where it lies. `rows` and `named`
    are how many rows and ids there were, `edges` the first and the last id of all.

    A wrong id is no error yet, since the first of them is the one to name: `fault` is its position among these rows,
    about, and the ids from there that are to be looked at again. `count` is a number of segments that only the
    tasks with the offsets know.
    """

    ids: Any
    values: Any
    indices: Any
    rows: int
    named: int
    edges: tuple[int, int] | None
    fault: tuple[int, Any] | None = None
    count: int = 0
    mismatch: bool = False  # a block had another number of ids than of rows

    def __sizeof__(self) -> int:
        """With the arrays: by this Dask decides which worker does what, and what is written to disk."""
        return sum(map(sizeof, (self.ids, self.values, self.indices, self.fault)))


# ------------------------------------------------------------------------------------------ of blocks of data


def rows_of_block(block: Any) -> Array:
    """How many rows a block has."""
    return np.array([first_block(block).shape[0]], np.int64)


def of_ids(block: Any, ids: Any, *, call: SegmentCall, computing_meta: bool = False) -> Any:
    """The part of a block of rows and their ids."""
    if computing_meta:
        return block
    _check_kind("segment_ids", ids)
    return _part(block, ids, call)


def cut_offsets(offsets: Array, starts: Sequence[int], stops: Sequence[int]) -> tuple[list[Array], list[int]]:
    """The offsets that each block of rows needs, and the number of the first segment in each."""
    lows = np.maximum(np.searchsorted(offsets, starts, "right") - 1, 0).tolist()
    highs = np.searchsorted(offsets, stops, "left").tolist()
    return [offsets[low : max(high, low) + 1] for low, high in zip(lows, highs, strict=True)], lows


def of_offsets(
    block: Any, offsets: Any, first: Any, start: Any, total: Any, *, call: SegmentCall, computing_meta: bool = False
) -> Any:
    """The part of a block of rows, from offsets of which the first begins the segment `first`."""
    if computing_meta:
        return block
    _check_kind("offsets", offsets)
    if call.num_segments is None:  # their length was not known either
        rows = abstract((int(total[0]), *block.shape[1:]), np.dtype("f4"))
        bounds = abstract(offsets.shape, offsets.dtype)
        plan_segment_max(SegmentCall(rows, offsets=bounds, fill_mode="ZERO"), values_known=False)
    if call.check_ids:
        check_offsets(ROW, offsets, int(total[0]))
    offsets = widened(offsets)
    begin, count = int(start[0]), len(offsets) - 1
    (offsets,), (low,) = cut_offsets(offsets, [begin], [begin + len(block)])  # if all of them are here
    lengths = np.maximum(np.diff(np.clip(offsets, begin, begin + len(block))), 0)  # unchecked, they may decrease
    named = np.repeat(np.arange(len(lengths), dtype=np.int64) + (int(first[0]) + low), lengths)[: len(block)]
    ids = np.full(len(block), -1, np.int64)  # rows of no segment, unchecked
    ids[: len(named)] = named
    part = _part(block, ids, call._replace(check_ids=False))
    return part if call.num_segments is not None else replace(part, count=count)


def _part(block: Any, ids: Any, call: SegmentCall) -> Part:
    rows = len(block)
    edges = (int(ids[0]), int(ids[-1])) if len(ids) else None
    no_indices = np.empty_like(block[:0], dtype=np.int64) if call.return_indices else None
    # a copy of nothing: a view of it would keep the whole block in memory
    nothing = Part(range(0), block[:0].copy(), no_indices, rows, len(ids), edges)
    if len(ids) != rows:  # both of unknown size: an error at the end, where their sums are known
        return replace(nothing, mismatch=True)
    if call.check_ids:
        try:
            _check(call, ids, 0)
        except SegmentIdsError:
            return replace(nothing, fault=(0, ids))
    ids = widened(ids)
    if call.sorted:
        low = int(np.searchsorted(ids, 0))
        high = rows if call.num_segments is None else int(np.searchsorted(ids, call.num_segments))
        taken: Any = slice(low, max(low, high))
    elif rows and int(ids.min()) >= 0 and (call.num_segments is None or int(ids.max()) < call.num_segments):
        taken = slice(0, rows)
    else:
        taken = np.flatnonzero(ids >= 0 if call.num_segments is None else (ids >= 0) & (ids < call.num_segments))
    kept = ids[taken]
    if len(kept) == 0:
        return nothing
    touched, inverse = _touched(kept, call.sorted)
    values, indices = _maxima(block[taken], inverse, len(touched), call)
    if indices is not None:
        indices = indices + taken.start if isinstance(taken, slice) else taken[indices]
    return replace(nothing, ids=touched, values=values, indices=indices)


def _check_kind(name: str, names: Any) -> None:
    """Raise for NumPy's subclasses, as a call in memory does: a mask would be lost here silently."""
    if isinstance(names, np.ndarray):
        array_of(ROW, name, names)


def _check(call: SegmentCall, ids: Any, start: int) -> None:
    rules = {"sorted": call.sorted, "out_of_range": call.out_of_range, "num_segments": call.num_segments}
    check_segment_ids(ROW, ids, start=start, **rules)


def _touched(ids: Any, is_sorted: bool) -> tuple[Any, Any]:
    """The ids without repetition, and each row's index among them (`inverse`, as numpy.unique has it)."""
    if not is_sorted:
        return _touched_in_any_order(ids)
    change = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    found = _as_range(np.concatenate([ids[:1], ids[change]]))
    if isinstance(found, range):
        return found, ids - ids[0]
    step = np.zeros_like(ids, dtype=np.int64)
    step[change] = 1
    return found, np.cumsum(step)


def _touched_in_any_order(ids: Any) -> tuple[Any, Any]:
    """The same of ids that are not sorted: by a table of all segments between the lowest and the highest id, unless
    that is much larger than the ids themselves.
    """
    low = int(ids.min())
    span = int(ids.max()) - low + 1
    if span > MOST_SEGMENTS_PER_ROW * len(ids):
        found, inverse = np.unique(ids, return_inverse=True)
        return _as_range(found), inverse
    inverse = ids - low
    no_columns = np.empty_like(ids, shape=(len(ids), 0))  # only which segments are empty is asked
    asked = SegmentCall(no_columns, inverse, span, "ZERO", check_ids=False, sorted=False, return_empty=True)
    _, empty = run(asked)
    found = np.flatnonzero(~empty)
    if len(found) == span:
        return range(low, low + span), inverse
    index_of = np.empty_like(inverse, shape=(span,))
    index_of[found] = np.arange(len(found), dtype=index_of.dtype)
    return found.astype(np.int64) + low, index_of[inverse]


def _as_range(ids: Any) -> Any:
    """Ascending ids as a range if there is no gap: for narrow rows, ids would be most of what tasks communicate."""
    first, last = int(ids[0]), int(ids[-1])
    return range(first, last + 1) if last - first + 1 == len(ids) else ids.astype(np.int64)


def _maxima(rows: Any, inverse: Any, count: int, call: SegmentCall) -> tuple[Any, Any]:
    """The maxima of segments that all have rows, and their indices, if asked for."""
    asked = SegmentCall(rows, inverse, count, "ZERO", check_ids=False, sorted=call.sorted)  # nothing is empty
    result = run(asked._replace(return_indices=call.return_indices))
    return result if call.return_indices else (result, None)


# ---------------------------------------------------------------------------------------------- in the tree


def whole(part: Any, *, axis: Any, keepdims: bool, computing_meta: bool = False) -> Any:
    """The part as it is."""
    return part


def cut(part: Any, *, axis: Any, keepdims: bool, low: int, high: int, computing_meta: bool = False) -> Any:
    """What a part has in a range of segments."""
    if computing_meta:
        return part
    if isinstance(part.ids, range):
        begin, end = (min(max(bound - part.ids.start, 0), len(part.ids)) for bound in (low, high))
    else:
        begin, end = (int(index) for index in np.searchsorted(part.ids, [low, high]))
    end = max(begin, end)
    return replace(
        part,
        ids=part.ids[begin:end],
        values=part.values[begin:end],
        indices=None if part.indices is None else part.indices[begin:end],
    )


def merged(nested: Any, *, axis: Any, keepdims: bool, call: SegmentCall, computing_meta: bool = False) -> Any:
    """One part of several that follow each other."""
    if computing_meta:
        return nested
    parts = list(_flat(nested))
    part, full = _joint(parts, call)
    if not full:
        return part
    if len(full) == 1:
        return replace(part, ids=full[0].ids, values=full[0].values, indices=full[0].indices)
    ids, values, indices = _rows(full)
    if call.sorted and all(one.ids[-1] < other.ids[0] for one, other in pairwise(full)):
        return replace(part, ids=_as_range(ids), values=values, indices=indices)  # no segment is in two of them
    touched, inverse = _touched(ids, call.sorted)
    values, argmax = _maxima(values, inverse, len(touched), call)
    if argmax is not None:
        indices = np.take_along_axis(indices, argmax, 0)
    return replace(part, ids=touched, values=values, indices=indices)


def finished(
    nested: Any,
    *,
    axis: Any,
    keepdims: bool,
    call: SegmentCall,
    low: int,
    high: int | None,
    before: int,
    computing_meta: bool = False,
) -> Any:
    """The results for a range of segments, a tuple, from the parts of all rows."""
    if computing_meta:
        return nested
    part, full = _joint(list(_flat(nested)), call)
    if part.mismatch:
        _refuse_lengths(part)
    if part.fault is not None:
        position, wrong = part.fault
        _check(call, wrong, position)
    ids, values, indices = _rows(full or [part])
    count = max(part.count, default_num_segments(ids, is_sorted=False)) if high is None else high - low
    asked = call._replace(data=values, segment_ids=ids - low, num_segments=count, check_ids=False, out_of_range=None)
    result = as_tuple(run(asked))
    if not call.return_indices or not full:
        return result
    own = result[1]
    argmax = np.where(own < 0, own, np.take_along_axis(indices, np.maximum(own, 0), 0) + before)
    return (result[0], argmax, *result[2:])


def _flat(nested: Any) -> Iterator[Part]:
    if isinstance(nested, list):
        for inner in nested:
            yield from _flat(inner)
    else:
        yield nested


def _rows(parts: list[Part]) -> tuple[Any, Any, Any]:
    """The ids, values and indices of parts that follow each other."""
    ids = [
        np.arange(part.ids.start, part.ids.stop, dtype=np.int64) if isinstance(part.ids, range) else part.ids
        for part in parts
    ]
    if len(parts) == 1:
        return ids[0], parts[0].values, parts[0].indices
    values = np.concatenate([part.values for part in parts])
    indices = None if parts[0].indices is None else np.concatenate([part.indices for part in parts])
    return np.concatenate(ids), values, indices


def _joint(parts: list[Part], call: SegmentCall) -> tuple[Part, list[Part]]:
    """All of a joint part but its segments, and the parts that have some, with indices that count from its start."""
    rows, edges, fault = 0, None, None
    full = []
    for part in parts:
        if part.edges is not None:
            if call.check_ids and edges is not None:
                pair = np.array([edges[1], part.edges[0]])
                if call.sorted and pair[1] < pair[0]:
                    fault = fault or (rows - 1, pair)
            edges = (edges[0] if edges else part.edges[0], part.edges[1])
        if part.fault is not None:
            fault = fault or (rows + part.fault[0], part.fault[1])
        if len(part.ids):
            moved = part.indices + rows if rows and part.indices is not None else part.indices
            full.append(replace(part, indices=moved))
        rows += part.rows
    return (
        replace(
            parts[0],
            ids=range(0),
            values=parts[0].values[:0],
            indices=None if parts[0].indices is None else parts[0].indices[:0],
            rows=rows,
            named=sum(part.named for part in parts),
            edges=edges,
            fault=fault,
            count=max(part.count for part in parts),
            mismatch=any(part.mismatch for part in parts),
        ),
        full,
    )


def _refuse_lengths(part: Part) -> None:
    """Raise for ids that are not as many as the rows, as a call in memory would, or not so in each block."""
    data = abstract((part.rows, *part.values.shape[1:]), np.dtype("f4"))
    ids = abstract((part.named,), np.dtype("i8"))
    plan_segment_max(SegmentCall(data, ids, 0, "ZERO"), values_known=False)
    raise ShapeError(
        f"{ROW.name} data and segment_ids have blocks of unknown size, which go together one by one; some differ in "
        "length",
        ROW.clause("ids.shape"),
    )
