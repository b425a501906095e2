"""The partial results that SegmentMax tasks communicate, and the functions that create and merge them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from dask.sizeof import sizeof

from maxops import spec
from maxops.calls import SegmentCall
from maxops.engines.dask.blocks import run
from maxops.engines.dask.chunks import first_block
from maxops.errors import SegmentIdsError, ShapeError
from maxops.plan import (
    Array,
    abstract,
    are_offsets,
    array_of,
    check_offsets,
    check_segment_ids,
    default_num_segments,
    plan_segment_max,
    widened,
)
from maxops.plan.faults import IdFault, first_id_faults, raise_first_id_fault
from maxops.plan.values import index_dtype

ROW = spec.SEGMENT_MAX

# Unsorted ids are looked up in a table of all segments in their range if the table has at most this many segments per
# row. Beyond this limit, sorting the ids is faster. At the limit, the table (up to nine bytes per segment) needs about
# as much memory as sorting.
MOST_SEGMENTS_PER_ROW = 8


@dataclass(frozen=True)
class Part:
    """The maxima of the segments in a range of consecutive rows.

    `ids` contains the unique segment ids, as a range if they have no gaps. `values` and `indices` have one row per
    segment. Indices count from the first of the consecutive rows, so a part does not depend on its position. `rows` and
    `named` are the numbers of rows and ids, and `edges` contains the first and the last id.

    An invalid id does not raise an error yet, because earlier rows may contain another invalid id. `faults` contains
    the first fault of each kind, with its position in these rows. If only the tasks
    that receive offsets know the number of segments, it is `count`. If not, `count` is 0.
    """

    ids: Any
    values: Any
    indices: Any
    rows: int
    named: int
    edges: tuple[int, int] | None
    faults: tuple[IdFault, ...] = ()
    count: int = 0
    mismatch: bool = False  # a block has different numbers of ids and rows

    def __sizeof__(self) -> int:
        """Return the total size of the arrays in bytes. Dask uses it for scheduling and spilling."""
        return sum(map(sizeof, (self.ids, self.values, self.indices)))


# -------------------------------------------------------------------------------------------- blocks of data


def rows_of_block(block: Any) -> Array:
    """Return the number of rows of a block."""
    return np.array([first_block(block).shape[0]], np.int64)


def places(sizes: Array, firsts: Sequence[int] | None = None) -> Array:
    """For each block, return the segment of its first offset, the number of rows before it, and the total of rows."""
    stops = np.cumsum(sizes)
    firsts = [0] * len(sizes) if firsts is None else firsts
    return np.column_stack([firsts, stops - sizes, [stops[-1]] * len(sizes)]).astype(np.int64)


def of_ids(block: Any, ids: Any, *, call: SegmentCall, computing_meta: bool = False) -> Any:
    """Return the part for a block of rows and their ids."""
    if computing_meta:
        return block
    _check_kind("segment_ids", ids)
    return _part(block, ids, call)


def cut_offsets(offsets: Array, starts: Sequence[int], stops: Sequence[int]) -> tuple[list[Array], list[int]]:
    """Return the offsets that each block of rows needs, and the first segment of each block."""
    lows = np.maximum(np.searchsorted(offsets, starts, "right") - 1, 0).tolist()
    highs = np.searchsorted(offsets, stops, "left").tolist()
    return [offsets[low : max(high, low) + 1] for low, high in zip(lows, highs, strict=True)], lows


def without_rows_if_wrong(offsets: Array, rows: int) -> Array:
    """Return valid offsets unchanged. Replace invalid offsets with zeros, which make every segment empty."""
    return offsets if are_offsets(offsets, rows) else np.zeros_like(offsets)


def of_offsets(
    block: Any, offsets: Any, place: Any, *, call: SegmentCall, are_whole: bool, computing_meta: bool = False
) -> Any:
    """Return the part for a block of rows. `place` is a row of `places`. With `are_whole`, all offsets are passed."""
    if computing_meta:
        return block
    _check_kind("offsets", offsets)
    first, begin, total = place[0].tolist()
    if call.num_segments is None:  # the number of offsets was unknown until now
        rows = abstract((total, *block.shape[1:]), np.dtype("f4"))
        bounds = abstract(offsets.shape, offsets.dtype)
        plan_segment_max(SegmentCall(rows, offsets=bounds, fill_mode="ZERO"), values_known=False)
    if call.check_ids:
        check_offsets(ROW, offsets, total)
    offsets = widened(offsets)
    if are_whole and not call.check_ids:
        offsets = without_rows_if_wrong(offsets, total)
    count = len(offsets) - 1
    (offsets,), (low,) = cut_offsets(offsets, [begin], [begin + len(block)])  # necessary if all offsets are passed
    lengths = np.diff(np.clip(offsets, begin, begin + len(block)))
    named = np.repeat(np.arange(len(lengths), dtype=np.int64) + (first + low), lengths)
    ids = np.full(len(block), -1, np.int64)  # rows without a segment are possible if offsets are not checked
    ids[: len(named)] = named
    part = _part(block, ids, call._replace(check_ids=False))
    return part if call.num_segments is not None else replace(part, count=count)


def _part(block: Any, ids: Any, call: SegmentCall) -> Part:
    rows = len(block)
    edges = (int(ids[0]), int(ids[-1])) if len(ids) else None
    # an empty copy, because a view would keep the whole block in memory
    nothing = Part(range(0), block[:0].copy(), None, rows, len(ids), edges)
    if len(ids) != rows:  # possible if both sizes were unknown; `finished` knows the totals, and raises the error
        return replace(nothing, mismatch=True)
    if call.check_ids:
        rules: Any = {"sorted": call.sorted, "out_of_range": call.out_of_range, "num_segments": call.num_segments}
        try:
            check_segment_ids(ROW, ids, **rules)
        except SegmentIdsError:
            return replace(nothing, faults=tuple(first_id_faults(ids, **rules)))
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
    """Raise an error for NumPy subclasses, because a mask would be lost silently, and for blocks of another dtype.

    Dask does not verify that blocks have the dtype of their array.
    """
    if isinstance(names, np.ndarray):
        index_dtype(ROW, name, array_of(ROW, name, names))


def _touched(ids: Any, is_sorted: bool) -> tuple[Any, Any]:
    """Return the unique ids, and each row's index among them (`inverse`, as in numpy.unique)."""
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
    """Return the result of `_touched` for unsorted ids.

    Uses a table of all segments between the lowest and the highest id, unless it would be much larger than the ids.
    """
    low = int(ids.min())
    span = int(ids.max()) - low + 1
    if span > MOST_SEGMENTS_PER_ROW * len(ids):
        found, inverse = np.unique(ids, return_inverse=True)
        return _as_range(found), inverse
    inverse = ids - low
    no_columns = np.empty_like(ids, shape=(len(ids), 0))  # because only the mask of empty segments is needed
    asked = SegmentCall(no_columns, inverse, span, "ZERO", check_ids=False, sorted=False, return_empty=True)
    _, empty = run(asked)
    found = np.flatnonzero(~empty)
    if len(found) == span:
        return range(low, low + span), inverse
    index_of = np.empty_like(inverse, shape=(span,))
    index_of[found] = np.arange(len(found), dtype=index_of.dtype)
    return found.astype(np.int64) + low, index_of[inverse]


def _as_range(ids: Any) -> Any:
    """Convert ascending ids without gaps to a range. With narrow rows, tasks would otherwise communicate mostly ids."""
    first, last = int(ids[0]), int(ids[-1])
    return range(first, last + 1) if last - first + 1 == len(ids) else ids.astype(np.int64)


def _maxima(rows: Any, inverse: Any, count: int, call: SegmentCall) -> tuple[Any, Any]:
    """Return the maxima of nonempty segments, and their indices if requested."""
    # the fill mode has no effect, because no segment is empty
    asked = SegmentCall(rows, inverse, count, "ZERO", check_ids=False, sorted=call.sorted, nan=call.nan)
    result = run(asked._replace(return_indices=call.return_indices))
    return result if call.return_indices else (result, None)


# ------------------------------------------------------------------------------- between blocks and the result


def whole(part: Any, *, axis: Any, keepdims: bool, computing_meta: bool = False) -> Any:
    """Return the part unchanged, as the first step of Dask's tree reduction."""
    return part


def cut(
    part: Any,
    *,
    rows: int,
    among: int,
    chosen: int,
    axis: Any = None,
    keepdims: Any = None,
    computing_meta: bool = False,
) -> Any:
    """Return one class of a part's segments, renumbered from 0 without gaps.

    Segments are assigned to `among` classes round-robin, `rows` at a time, like the blocks of the result. After
    renumbering, a range of segments is still a range.
    """
    if computing_meta:
        return part

    def below(segment: Any) -> Any:
        """Return the number of segments of the class that come before the given segment."""
        rounds, rest = np.divmod(segment, rows * among)
        return rounds * rows + np.clip(rest - chosen * rows, 0, rows)

    if isinstance(part.ids, range):
        low, high = part.ids.start, part.ids.stop
        ids: Any = range(int(below(low)), int(below(high)))
        begins = range((low // (rows * among) * among + chosen) * rows, high, rows * among)
        taken: Any = [slice(max(begin - low, 0), max(begin + rows - low, 0)) for begin in begins]
    else:
        mine = np.flatnonzero(part.ids // rows % among == chosen)
        ids, taken = below(part.ids[mine]), [mine]
        if len(ids):
            ids = _as_range(ids)

    def pick(array: Any) -> Any:
        """Return a copy, because a view would keep the whole part in memory."""
        if array is None or len(ids) == len(part.ids):
            return array
        return np.concatenate([array[one] for one in taken]) if taken else array[:0].copy()

    return replace(part, ids=ids, values=pick(part.values), indices=pick(part.indices))


def merged(
    nested: Any, *, call: SegmentCall, axis: Any = None, keepdims: Any = None, computing_meta: bool = False
) -> Any:
    """Merge consecutive parts into one part."""
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
        return replace(part, ids=_as_range(ids), values=values, indices=indices)  # no segment is in two parts
    touched, inverse = _touched(ids, call.sorted)
    values, argmax = _maxima(values, inverse, len(touched), call)
    if argmax is not None:
        indices = np.take_along_axis(indices, argmax, 0)
    return replace(part, ids=touched, values=values, indices=indices)


def finished(
    nested: Any,
    *,
    call: SegmentCall,
    count: int | None,
    before: int = 0,
    axis: Any = None,
    keepdims: Any = None,
    computing_meta: bool = False,
) -> Any:
    """Return the results for `count` segments from their parts. `before` rows of the data precede these parts."""
    if computing_meta:
        return nested
    part, full = _joint(list(_flat(nested)), call)
    if part.mismatch:
        _refuse_lengths(part)
    raise_first_id_fault(ROW, part.faults, call.num_segments)
    ids, values, indices = _rows(full or [part])
    if count is None:
        count = max(part.count, default_num_segments(ids, is_sorted=False))
    asked = call._replace(data=values, segment_ids=ids, num_segments=count, check_ids=False, out_of_range=None)
    result = run(asked)
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
    """Return the concatenated ids, values and indices of consecutive parts."""
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
    """Return one part with the metadata of all parts, and the nonempty parts with indices that count from row 0."""
    rows, edges = 0, None
    faults: dict[str, IdFault] = {}
    full = []
    for part in parts:
        if part.edges is not None:
            first, last = part.edges
            if call.check_ids and call.sorted and edges is not None and first < edges[1]:
                faults.setdefault("ids_decrease", IdFault("ids_decrease", rows, first, edges[1]))
            edges = (edges[0] if edges else first, last)
        for fault in part.faults:
            faults.setdefault(fault.kind, fault._replace(position=rows + fault.position))
        if len(part.ids):
            moved = part.indices + rows if rows and part.indices is not None else part.indices
            full.append(replace(part, indices=moved))
        rows += part.rows
    joint = replace(
        parts[0],
        rows=rows,
        named=sum(part.named for part in parts),
        edges=edges,
        faults=tuple(faults.values()),
        mismatch=any(part.mismatch for part in parts),
    )
    return joint, full


def _refuse_lengths(part: Part) -> None:
    """Raise an error: the NumPy engine's if the totals of ids and rows differ, or one about the blocks."""
    data = abstract((part.rows, *part.values.shape[1:]), np.dtype("f4"))
    ids = abstract((part.named,), np.dtype("i8"))
    plan_segment_max(SegmentCall(data, ids, 0, "ZERO"), values_known=False)
    raise ShapeError(
        f"{ROW.name} data and segment_ids have blocks of unknown size, and some corresponding blocks differ in length; "
        "call compute_chunk_sizes() on the arrays first",
        ROW.clause("ids.shape"),
    )
