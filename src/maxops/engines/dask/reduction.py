"""Runs ReduceMax on Dask arrays: each task computes the maxima of a block, and a tree of tasks merges them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import dask.array as da
import numpy as np
from dask.sizeof import sizeof

from maxops.calls import MaxCall, ReduceCall
from maxops.engines.dask.blocks import run
from maxops.engines.dask.chunks import planned
from maxops.engines.dask.results import pick
from maxops.plan import Array, plan_reduce_max

TOKEN = "maxops-reduce-max"


def reduce_max(call: ReduceCall) -> Any:
    """Run a ReduceMax call."""
    data = call.data
    plan = plan_reduce_max(call.map(partial(planned, call.row)), in_memory=False)
    dtype, checked = plan.dtype.numpy, plan.call
    indices = checked.return_indices
    if checked.noop_with_empty_axes:
        axes_of_data = tuple(range(data.ndim))
        pairs = da.blockwise(same, axes_of_data, data, axes_of_data, indices=indices, dtype=dtype, token=TOKEN)
    else:
        pairs = da.reduction(
            data,
            chunk=partial(part_of_block, indices=indices, nan=checked.nan),
            combine=partial(merged, nan=checked.nan),
            aggregate=partial(finished, initial=checked.initial, indices=indices, nan=checked.nan),
            axis=tuple(sorted(checked.axes)),
            keepdims=checked.keepdims,
            dtype=dtype,
            concatenate=False,
            name=TOKEN,
        )
    if not indices:
        return pairs
    return pick(pairs, 0, dtype, token=TOKEN), pick(pairs, 1, np.dtype(np.int64), token=TOKEN)


@dataclass(frozen=True)
class Part:
    """The partial result that a task communicates, for one block or for adjacent blocks.

    `values` contains the maxima, with size 1 along the reduced axes. For an empty block, `values` is the block itself.
    `indices` contains the index of the first element that equals each maximum, counted only within these blocks.
    `extent` contains the sizes of the reduced axes. A part does not record its position, so the sizes of blocks may be
    unknown in advance.
    """

    values: Any
    indices: Any
    extent: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """True if a reduced axis has size 0."""
        return 0 in self.extent

    def __sizeof__(self) -> int:
        """Return the total size of both arrays in bytes. Dask uses it for scheduling and spilling."""
        return int(sizeof(self.values) + sizeof(self.indices))


def same(block: Any, *, indices: bool, computing_meta: bool = False) -> Any:
    """Return a copy of the block and, if requested, zeros as indices."""
    return run(ReduceCall(block, noop_with_empty_axes=True, return_indices=indices and not computing_meta))


def part_of_block(
    block: Any, *, axis: Any, keepdims: bool, indices: bool, nan: str, computing_meta: bool = False
) -> Any:
    """Return the maxima of a block. With `computing_meta`, Dask passes empty data to determine the array type."""
    if computing_meta:
        return block
    extent = tuple(block.shape[number] for number in axis)
    if 0 in extent:  # keep the empty block, because not every dtype has a lowest value
        return Part(block, None, extent)
    result = run(ReduceCall(block, axis, return_indices=indices, nan=nan))
    values, own = result if indices else (result, None)
    return Part(values, own, extent)


def merged(nested: Any, *, axis: Any, keepdims: bool, nan: str, computing_meta: bool = False) -> Any:
    """Merge a grid of parts into one part. The grid consists of nested lists, with one level for each reduced axis."""
    return nested if computing_meta else _merged(nested, 0, nan)


def _merged(nested: Any, depth: int, nan: str) -> Part:
    if isinstance(nested, Part):
        return nested
    return _side_by_side([_merged(inner, depth + 1, nan) for inner in nested], depth, nan)


def _side_by_side(parts: list[Part], number: int, nan: str) -> Part:
    """Merge parts that are adjacent along one of the reduced axes."""
    length = sum(part.extent[number] for part in parts)
    extent = (*parts[0].extent[:number], length, *parts[0].extent[number + 1 :])
    full = [part for part in parts if not part.empty]
    if len(parts) == 1:
        return parts[0]
    if not full:
        return Part(parts[0].values, None, extent)
    values = run(MaxCall([part.values for part in full], nan=nan))
    if full[0].indices is None:
        return Part(values, None, extent)
    inner = prod(extent[number + 1 :])
    none = np.uint64(np.iinfo(np.uint64).max)  # -1 as an unsigned number, which is greater than every index
    best: Any = None
    start = 0
    for part in parts:
        if not part.empty:
            # An index is outer * (size * inner) + middle * inner + rest. The merge changes only the middle and the
            # size.
            own = part.extent[number] * inner
            moved = part.indices + part.indices // own * (length * inner - own) + start * inner
            indices = np.where(_holds(part.values, values, nan), moved.astype(np.uint64), none)
            best = indices if best is None else np.minimum(best, indices)
        start += part.extent[number]
    return Part(values, best.astype(np.int64), extent)


def _holds(values: Any, highest: Any, nan: str) -> Any:
    """Return a mask of the values that equal the maxima in the total order."""
    both = np.stack([values, highest])
    indices = run(ReduceCall(both, 0, False, return_indices=True, nan=nan))[1]
    return indices == 0


def finished(
    nested: Any,
    *,
    axis: Any,
    keepdims: bool,
    initial: Array | None,
    indices: bool,
    nan: str,
    computing_meta: bool = False,
) -> Any:
    """Return the maxima of a grid of parts, and their indices if requested."""
    if computing_meta:
        return nested if keepdims else np.empty_like(nested, shape=(0,) * (nested.ndim - len(axis)))
    part = _merged(nested, 0, nan)
    result = run(ReduceCall(part.values, axis, keepdims, initial=initial, return_indices=indices, nan=nan))
    if not indices or part.empty:
        return result
    values, own = result  # `own` is 0 if the part's maximum is the result, and -1 if only the initial value is
    return values, np.where(own == 0, part.indices.reshape(own.shape), np.int64(-1))
