"""Runs SegmentMax on Dask arrays: each task computes the maxima of a block of rows, and a tree of tasks merges them.

With sorted ids, the segments of a block are a range, and ranges overlap only at their ends. Therefore, the amount of
data that tasks communicate is proportional to the size of the result, for any number of blocks and segments.
"""

from __future__ import annotations

from functools import partial
from math import ceil, isnan, nan, prod
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.utils import parse_bytes

from maxops import spec
from maxops.calls import SegmentCall
from maxops.engines.base import alone_if_one, segments_along
from maxops.engines.dask import parts
from maxops.engines.dask.chunks import BLOCKS_CAN_BE_CHOSEN, Chunks, first_of_other_axes, planned, rechunked, unknown
from maxops.engines.dask.results import pick
from maxops.engines.dask.shuffle import AT_ONCE, Span, shuffled
from maxops.errors import EngineError, OutputTooLargeError, ShapeError
from maxops.plan import Array, axis_of, plan_segment_max

ROW = spec.SEGMENT_MAX
TOKEN = "maxops-segment-max"

# A block of the result is about as large as the largest block of data, because such a block fits in a worker's memory.
# This is the minimum for the size of a block, because the overhead of a task is too high for smaller blocks.
LEAST_BYTES = 1 << 20
# A graph with more blocks does not fit into memory.
MOST_BLOCKS = 1 << 20


def segment_max(call: SegmentCall) -> Any:
    """Run a SegmentMax call."""
    data, ids, offsets = call.data, call.segment_ids, call.offsets
    named = ids if offsets is None else offsets
    axis = axis_of(ROW, call.axis, data.ndim) if getattr(data, "ndim", 0) else 0
    rows_known = not isinstance(data, da.Array) or data.ndim == 0 or not isnan(data.shape[axis])
    # The values of ids and offsets in memory are checked now, except offsets if the number of rows is unknown.
    values_known = named is not None and not isinstance(named, da.Array) and (offsets is None or rows_known)
    rows = {"data": _length(ids), "segment_ids": _length(data, axis)}
    plan = plan_segment_max(
        call.map(
            lambda name, value: planned(ROW, name, value, rows=rows.get(name), axis=axis if name == "data" else 0)
        ),
        in_memory=False,
        values_known=values_known,
    )
    checked = plan.call
    count: int | None = checked.num_segments
    if call.num_segments is None and not values_known and (offsets is None or _length(offsets) is None):
        count = None
    if values_known:  # the plan has the checked arrays
        ids, offsets = checked.segment_ids, checked.offsets
        if offsets is not None and not call.check_ids:
            offsets = parts.without_rows_if_wrong(offsets, checked.data.shape[axis])
        named = ids if offsets is None else offsets
    # The tasks receive the planned call without its arrays.
    call = checked._replace(
        data=None,
        segment_ids=None,
        offsets=None,
        num_segments=count,
        fill_value=checked.fill_value if checked.fill_mode is None else None,  # LOWEST may still fail for rationals
        axis=0,
    )
    data = _moved(data, axis, 0)
    if not isinstance(data, da.Array):
        data = _in_blocks_of(named if offsets is None else None, data)
    found = _of_ids(data, ids, call, axis) if offsets is None else _of_offsets(data, offsets, call)
    span = None
    if checked.sorted and values_known and rows_known:
        span = partial(_blocks_of, named, offsets is not None, found.chunks[0])
    return alone_if_one(segments_along(axis, _moved, _results(found, call, plan.dtype.numpy, span)))


def _moved(array: Any, source: int, destination: int) -> Any:
    """Move an axis to another position. dask.array.moveaxis does not accept arrays under query planning."""
    order = [axis for axis in range(array.ndim) if axis != source]
    order.insert(destination, source)
    return array if source == destination else array.transpose(order)


def _blocks_of(named: Array, bounds: bool, sizes: Chunks, low: int, high: int) -> tuple[int, int, int]:
    """Return the range of blocks with the rows of segments `low` to `high` - 1, and the number of rows before them."""
    if bounds:
        first, last = (int(named[min(segment, len(named) - 1)]) for segment in (low, high))
    else:
        first, last = (int(index) for index in np.searchsorted(named, [low, high]))
    starts = _starts(sizes)
    begin = max(int(np.searchsorted(starts, first, "right")) - 1, 0)
    end = max(int(np.searchsorted(starts, last, "left")), begin + 1)
    return begin, end, starts[begin]


def _length(value: Any, axis: int = 0) -> int | None:
    """Return the number of rows along an axis, or None if it is unknown."""
    if value is None or not getattr(value, "ndim", 0) or isnan(value.shape[axis]):
        return None
    return int(value.shape[axis])


def _in_blocks_of(other: Any, array: Array) -> Any:
    """Convert a NumPy array to a Dask array with the row chunks of another array, if their sizes are known."""
    rows: Any = -1 if other is None or unknown(other.chunks[0]) else other.chunks[0]
    return da.from_array(np.asarray(array), chunks=(rows, *[-1] * (array.ndim - 1)))


def _of_ids(data: Any, ids: Any, call: SegmentCall, axis: int) -> Any:
    """Return the parts of all blocks, given the ids of their rows. `axis` is the row axis in the caller's data."""
    if not isinstance(ids, da.Array):
        if unknown(data.chunks[0]) and data.numblocks[0] > 1:
            raise ShapeError(
                f"{ROW.name} data has blocks of unknown size along axis {axis}, so segment_ids in memory cannot be "
                "split into blocks; call data.compute_chunk_sizes() first",
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
                    f"{ROW.name} data has {data.numblocks[0]} blocks along axis {axis}, but segment_ids has "
                    f"{ids.numblocks[0]}, and some block sizes are unknown; call compute_chunk_sizes() on the arrays "
                    "first",
                    ROW.clause("ids.shape"),
                )
    else:
        ids = rechunked(ids, [rows])
    axes = tuple(range(data.ndim))
    return da.blockwise(
        parts.of_ids,
        axes,
        data,
        axes,
        ids,
        (0,),
        call=call,
        dtype=data.dtype,
        align_arrays=False,
        token=f"{TOKEN}-part",
    )


def _of_offsets(data: Any, offsets: Any, call: SegmentCall) -> Any:
    """Return the parts of all blocks, given the offsets of the segments."""
    rows = data.chunks[0]
    axes = tuple(range(data.ndim))
    wide = data.ndim + 1
    # Each task receives all offsets, unless they are in memory and the sizes of the blocks are known.
    bounds, index, firsts = offsets, (wide,), None
    if isinstance(offsets, da.Array):
        if offsets.numblocks[0] > 1 and not unknown(offsets.chunks[0]):
            bounds = offsets.rechunk(-1)
    elif unknown(rows):
        bounds = da.from_array(np.asarray(offsets), chunks=-1)
    else:
        begins = _starts(rows)
        pieces, firsts = parts.cut_offsets(np.asarray(offsets), begins, [*begins[1:], sum(rows)])
        bounds, index = da.from_array(np.concatenate(pieces), chunks=(tuple(map(len, pieces)),)), (0,)
    if unknown(rows):
        sizes = da.blockwise(
            parts.rows_of_block,
            (0,),
            first_of_other_axes(data),
            axes,
            dtype=np.int64,
            adjust_chunks={0: 1},
            token="maxops-rows",
        )
        places = da.map_blocks(
            parts.places, sizes.rechunk(-1), new_axis=1, chunks=((len(rows),), (3,)), meta=np.empty((0, 0), np.int64)
        ).rechunk((1, 3))
    else:
        places = da.from_array(parts.places(np.array(rows), firsts), chunks=(1, 3))
    return da.blockwise(
        parts.of_offsets,
        axes,
        data,
        axes,
        bounds,
        index,
        places,
        (0, wide + 1),
        call=call,
        are_whole=firsts is None,
        dtype=data.dtype,
        align_arrays=False,
        concatenate=True,
        token=f"{TOKEN}-part",
    )


def _starts(sizes: Chunks) -> list[int]:
    return [0, *np.cumsum(sizes)[:-1].tolist()]


def _results(found: Any, call: SegmentCall, dtype: np.dtype[Any], span: Span | None) -> Any:
    """Return the results, in chunks, from the parts of all blocks. `span` returns the blocks of a range of segments."""
    sizes: Chunks
    if call.num_segments is None:
        if not BLOCKS_CAN_BE_CHOSEN and found.ndim > 1:
            raise EngineError(
                f"{ROW.name} requires num_segments for data of rank {found.ndim}, because Dask's array.query-planning "
                "does not support unknown sizes for rank 2 or more; pass num_segments="
            )
        whole, sizes = _tree(found, call, parts.whole, None), (nan,)
    else:
        rows = _rows_at_once(found, call.num_segments)
        counts = tuple(min(rows, call.num_segments - low) for low in range(0, call.num_segments, rows)) or (0,)
        sizes = counts
        if len(counts) == 1:
            whole = _tree(found, call, parts.whole, call.num_segments)
        elif BLOCKS_CAN_BE_CHOSEN:
            whole = shuffled(found, call, counts, dtype, span, TOKEN)
            if not (call.return_indices or call.return_empty):
                return whole
        else:
            cuts = [partial(parts.cut, rows=rows, among=len(counts), chosen=block) for block in range(len(counts))]
            whole = da.concatenate([_tree(found, call, cut, size) for cut, size in zip(cuts, counts, strict=True)])
    results = [pick(whole, 0, dtype, sizes, token=TOKEN)]
    if call.return_indices:
        results.append(pick(whole, 1, np.dtype(np.int64), sizes, token=TOKEN))
    if call.return_empty:
        results.append(pick(whole, len(results), np.dtype(np.bool), sizes, token=TOKEN, first_axis_alone=True))
    return alone_if_one(results)


def _rows_at_once(found: Any, count: int) -> int:
    """Return the number of segments per block of the result."""
    width = prod(max(1 if isnan(size) else size for size in sizes) for sizes in found.chunks[1:]) * found.dtype.itemsize
    if width == 0:  # there is no data, and dask.array.concatenate would drop the empty arrays
        return max(1, count)
    tallest = max(found.chunks[0])
    most = parse_bytes(dask.config.get("array.chunk-size")) if isnan(tallest) else tallest * width
    blocks = ceil(count / max(1, max(most, LEAST_BYTES) // width))
    if blocks > MOST_BLOCKS:
        raise OutputTooLargeError(
            f"{ROW.name} output would have {count} segments in {blocks} blocks, but at most {MOST_BLOCKS} blocks are "
            "supported; make the blocks larger with data.rechunk(...), or pass a smaller num_segments",
            ROW.clause("shape"),
        )
    return int(max(1, ceil(count / max(blocks, 1))))


def _tree(found: Any, call: SegmentCall, chunk: Any, count: int | None) -> Any:
    """Merge all blocks into one block, declared with one row: `array.query-planning` supports no other size."""
    return da.reduction(
        found,
        chunk=chunk,
        combine=partial(parts.merged, call=call),
        aggregate=partial(parts.finished, call=call, count=count),
        axis=0,
        keepdims=True,
        dtype=found.dtype,
        split_every={0: AT_ONCE},
        concatenate=False,
        name=TOKEN,
    )
