"""SegmentMax of Dask arrays: each block of rows to the maxima of the segments that it touches, those to one in a tree.

With sorted ids a block touches a range of segments, and ranges overlap in their ends alone. So what tasks communicate
grows with the result, however many blocks and segments there are.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import ceil, isnan, nan, prod
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.utils import parse_bytes

from maxops import spec
from maxops.calls import SegmentCall
from maxops.engines.base import alone_if_one
from maxops.engines.dask import parts
from maxops.engines.dask.chunks import (
    BLOCKS_CAN_BE_CHOSEN,
    Chunks,
    first_of_other_axes,
    planned,
    rechunked,
    unknown,
)
from maxops.engines.dask.results import pick
from maxops.errors import EngineError, ShapeError
from maxops.plan import Array, plan_segment_max

ROW = spec.SEGMENT_MAX
TOKEN = "maxops-segment-max"

# A block of the result is about as large as the largest of the data, which is what the workers were given to hold;
# but below this a task costs more than what it holds.
LEAST_BYTES = 1 << 20
# Parts that one task puts together: a level of the tree communicates no more than the result, and few levels do.
AT_ONCE = 16


def segment_max(call: SegmentCall) -> Any:
    """Run a call of SegmentMax."""
    data, ids, offsets = call.data, call.segment_ids, call.offsets
    named = ids if offsets is None else offsets
    rows_known = not isinstance(data, da.Array) or data.ndim == 0 or not isnan(data.shape[0])
    # What is in memory is looked at now; offsets only against a known number of rows.
    values_known = named is not None and not isinstance(named, da.Array) and (offsets is None or rows_known)
    rows = {"data": _length(ids), "segment_ids": _length(data)}
    plan = plan_segment_max(
        call.map(lambda name, value: planned(ROW, name, value, rows=rows.get(name))),
        in_memory=False,
        values_known=values_known,
    )
    count: int | None = plan.num_segments
    if call.num_segments is None and not values_known and (offsets is None or _length(offsets) is None):
        count = None
    if values_known:  # the plan has them
        ids, offsets = plan.segment_ids, plan.offsets
        named = ids if offsets is None else offsets
    # What the tasks are given: the call without its arrays, planned.
    call = call._replace(
        data=None,
        segment_ids=None,
        offsets=None,
        num_segments=count,
        fill_mode=plan.fill_mode,
        fill_value=plan.fill_value,
        check_ids=plan.check_ids and not values_known,
        sorted=plan.sorted,
        out_of_range=plan.out_of_range,
        initial=plan.initial,
        return_indices=plan.return_indices,
        return_empty=plan.return_empty,
    )
    if not isinstance(data, da.Array):
        data = _in_blocks_of(named if offsets is None else None, data)
    found = _of_ids(data, ids, call) if offsets is None else _of_offsets(data, offsets, call)
    span = None
    if plan.sorted and values_known and rows_known:
        span = partial(_blocks_of, named, offsets is not None, found.chunks[0])
    return _results(found, call, plan.dtype.numpy, span)


def _blocks_of(named: Array, bounds: bool, sizes: Chunks, low: int, high: int) -> tuple[int, int, int]:
    """The blocks that have rows of a range of segments, by ids or bounds in memory, and how many rows are before."""
    if bounds:
        first, last = (int(named[min(segment, len(named) - 1)]) for segment in (low, high))
    else:
        first, last = (int(index) for index in np.searchsorted(named, [low, high]))
    starts = _starts(sizes)
    begin = min(int(np.searchsorted(starts, first, "right")) - 1, len(sizes) - 1)
    begin = max(begin, 0)
    end = max(int(np.searchsorted(starts, last, "left")), begin + 1)
    return begin, end, starts[begin]


def _length(value: Any) -> int | None:
    """How many rows something has, if it has rows and they are counted."""
    if value is None or not getattr(value, "ndim", 0) or isnan(value.shape[0]):
        return None
    return int(value.shape[0])


def _in_blocks_of(other: Any, array: Array) -> Any:
    """A NumPy array in blocks of as many rows as another array's, if those are known."""
    rows: Any = -1 if other is None or unknown(other.chunks[0]) else other.chunks[0]
    return da.from_array(np.asarray(array), chunks=(rows, *[-1] * (array.ndim - 1)))


def _of_ids(data: Any, ids: Any, call: SegmentCall) -> Any:
    """The parts of all blocks, by the ids of their rows."""
    if not isinstance(ids, da.Array):
        if unknown(data.chunks[0]) and data.numblocks[0] > 1:
            raise ShapeError(
                f"{ROW.name} data has blocks of unknown size along axis 0, so that it is not known which ids of an "
                "array in memory are a block's; dask.array.Array.compute_chunk_sizes() finds the sizes",
                ROW.clause("ids.shape"),
            )
        ids = _in_blocks_of(data, ids)
    rows, own = data.chunks[0], ids.chunks[0]
    if unknown(rows) or unknown(own):
        if data.numblocks[0] != ids.numblocks[0]:
            if data.numblocks[0] == 1 and not unknown(own):
                ids = rechunked(ids, [(sum(own),)])
            elif ids.numblocks[0] == 1 and not unknown(rows):
                data = rechunked(data, [(sum(rows),)])
            else:
                raise ShapeError(
                    f"{ROW.name} data has {data.numblocks[0]} blocks along axis 0 and segment_ids {ids.numblocks[0]}, "
                    "and not all sizes of blocks are known; dask.array.Array.compute_chunk_sizes() finds them",
                    ROW.clause("ids.shape"),
                )
    else:
        ids = rechunked(ids, [rows])
    return da.blockwise(
        parts.of_ids,
        tuple(range(data.ndim)),
        data,
        tuple(range(data.ndim)),
        ids,
        (0,),
        call=call,
        dtype=data.dtype,
        align_arrays=False,
        token=f"{TOKEN}-part",
    )


def _of_offsets(data: Any, offsets: Any, call: SegmentCall) -> Any:
    """The parts of all blocks, by the bounds of the segments."""
    rows = data.chunks[0]
    if unknown(rows):
        # Where a block begins is known once all are there.
        sizes = da.blockwise(
            parts.rows_of_block,
            (0,),
            first_of_other_axes(data),
            tuple(range(data.ndim)),
            dtype=np.int64,
            adjust_chunks={0: 1},
            token="maxops-rows",
        )
        stops = da.cumsum(sizes)
        starts, total = stops - sizes, stops[-1:].rechunk(-1)
    else:
        begin = _starts(rows)
        starts, total = _one_each(begin), da.from_array(np.array([sum(rows)]))
    if isinstance(offsets, da.Array):
        # All of them to each block's task: how many are a block's is known to none but them.
        bounds, index = (
            offsets.rechunk(-1) if offsets.numblocks[0] > 1 and not unknown(offsets.chunks[0]) else offsets,
            1,
        )
        first: Any = _one_each([0] * len(rows))
    elif unknown(rows):
        bounds, index, first = da.from_array(np.asarray(offsets), chunks=-1), 1, _one_each([0] * len(rows))
    else:
        pieces, firsts = parts.cut_offsets(np.asarray(offsets), begin, [*begin[1:], sum(rows)])
        bounds, index = da.from_array(np.concatenate(pieces), chunks=(tuple(map(len, pieces)),)), 0
        first = _one_each(firsts)
    axes = tuple(range(data.ndim))
    wide = data.ndim + 1
    return da.blockwise(
        parts.of_offsets,
        axes,
        data,
        axes,
        bounds,
        (wide,) if index else (0,),
        first,
        (0,),
        starts,
        (0,),
        total,
        (wide + 1,),
        call=call,
        dtype=data.dtype,
        align_arrays=False,
        concatenate=True,
        token=f"{TOKEN}-part",
    )


def _starts(sizes: Chunks) -> list[int]:
    return [0, *np.cumsum(sizes)[:-1].tolist()]


def _one_each(numbers: Any) -> Any:
    """Numbers for the blocks of an axis: one for each."""
    return da.from_array(np.array(numbers, np.int64), chunks=1)


def _results(found: Any, call: SegmentCall, dtype: np.dtype[Any], span: Any) -> Any:
    """The results in their chunks, from the parts of all blocks; `span` tells those of a segment's, if it is known."""
    sizes: Chunks
    if call.num_segments is None:
        if not BLOCKS_CAN_BE_CHOSEN and found.ndim > 1:
            raise EngineError(
                f"{ROW.name} num_segments is missing, and data has rank {found.ndim}; of more than rank 1, Dask "
                "computes no array of unknown size under its setting array.query-planning: give num_segments"
            )
        each, sizes = [_put_together(found, call, 0, None)], (nan,)
    else:
        rows = _rows_at_once(found, call.num_segments)
        bounds = [*range(0, call.num_segments, rows), call.num_segments] if call.num_segments else [0, 0]
        ranges = list(pairwise(bounds))
        sizes = tuple(high - low for low, high in ranges)
        if len(ranges) == 1:
            each = [_put_together(found, call, 0, call.num_segments)]
        elif span is not None and BLOCKS_CAN_BE_CHOSEN:
            each = []
            for low, high in ranges:
                begin, end, before = span(low, high)
                each.append(_put_together(found.blocks[begin:end], call, low, high, before))
        else:
            found = _in_groups(found, call, len(ranges))
            each = [_put_together(found, call, low, high) for low, high in ranges]
    whole = each[0] if len(each) == 1 else da.concatenate(each)
    results = [pick(whole, 0, dtype, sizes, token=TOKEN)]
    if call.return_indices:
        results.append(pick(whole, 1, np.dtype(np.int64), sizes, token=TOKEN))
    if call.return_empty:
        results.append(pick(whole, len(results), np.dtype(np.bool), sizes, token=TOKEN, first_axis_alone=True))
    return alone_if_one(results)


def _rows_at_once(found: Any, count: int) -> int:
    """How many segments a block of the result has."""
    width = prod(max(1 if isnan(size) else size for size in sizes) for sizes in found.chunks[1:]) * found.dtype.itemsize
    if width == 0:  # nothing to hold, and dask.array.concatenate leaves out what has no elements
        return max(1, count)
    tallest = max(found.chunks[0])
    most = parse_bytes(dask.config.get("array.chunk-size")) if isnan(tallest) else tallest * width
    blocks = ceil(count / max(1, max(most, LEAST_BYTES) // width))
    return int(max(1, ceil(count / max(blocks, 1))))


def _in_groups(found: Any, call: SegmentCall, groups: int) -> Any:
    """As many parts as the result has blocks, so that not every block of data is asked for each of them."""
    size = ceil(found.numblocks[0] / groups)
    if size < 2 or not BLOCKS_CAN_BE_CHOSEN:
        return found
    each = [
        _tree(found.blocks[begin : begin + size], call, parts.whole, parts.merged)
        for begin in range(0, found.numblocks[0], size)
    ]
    return each[0] if len(each) == 1 else da.concatenate(each)


def _put_together(found: Any, call: SegmentCall, low: int, high: int | None, before: int = 0) -> Any:
    """The results for a range of segments, in one block, from parts that have `before` rows before them."""
    if high is None or high - low == call.num_segments:
        cut: Any = parts.whole
    else:
        cut = partial(parts.cut, low=low, high=high)
    return _tree(found, call, cut, partial(parts.finished, low=low, high=high, before=before))


def _tree(found: Any, call: SegmentCall, chunk: Any, aggregate: Any) -> Any:
    """One block of all, which Dask takes for one row: `array.query-planning` knows no other size of a reduction."""
    return da.reduction(
        found,
        chunk=chunk,
        combine=partial(parts.merged, call=call),
        aggregate=partial(aggregate, call=call),
        axis=0,
        keepdims=True,
        dtype=found.dtype,
        split_every={0: AT_ONCE},
        concatenate=False,
        name=TOKEN,
    )
