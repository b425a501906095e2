"""Functions that all operators of the Dask engine use, for abstract arrays and for chunks."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import dask.array as da
import numpy as np

from maxops.engines import table
from maxops.errors import ShapeError
from maxops.plan import Array, abstract, array_of
from maxops.spec import Spec

Chunks = tuple[float, ...]  # the sizes along one axis: all integers or all NaN


# With the option `array.query-planning`, blocks of Dask arrays cannot be selected yet, and arrays of rank 2 or more
# cannot be computed if a size is unknown.
BLOCKS_CAN_BE_CHOSEN = hasattr(da.Array, "blocks")


def unknown(chunks: Chunks) -> bool:
    """Return whether the sizes along an axis are unknown until the data is computed."""
    return any(isnan(size) for size in chunks)


def planned(row: Spec, name: str, value: Any, *, rows: int | None = None, axis: int = 0) -> Any:
    """Return an abstract array with the shape and dtype of a Dask array. Return other values unchanged.

    An axis of unknown size gets size 1, which broadcasts to every other size, but `axis` gets size `rows` if `rows` is
    passed. Raises an error for blocks that no engine accepts, such as masked arrays, if Dask knows their type.
    """
    if not isinstance(value, da.Array):
        return value
    if isinstance(kind := value._meta, np.ndarray):
        array_of(row, name, kind)
    else:
        table.find(row, (type(kind),), [(name, kind)])
    shape = [1 if isnan(size) else int(size) for size in value.shape]
    if rows is not None and value.ndim and isnan(value.shape[axis]):
        shape[axis] = rows
    return abstract(tuple(shape), value.dtype)


def in_chunks(array: Array, others: Sequence[Any]) -> Any:
    """Convert a NumPy array to a Dask array with the chunks of the other Dask arrays, on axes of the same size."""
    chunks: list[Any] = [-1] * array.ndim
    for other in others:
        for axis in range(1, min(array.ndim, other.ndim) + 1):
            if other.shape[-axis] == array.shape[-axis] and not unknown(other.chunks[-axis]):
                chunks[-axis] = other.chunks[-axis]
    return da.from_array(np.asarray(array), chunks=tuple(chunks))


def first_of_other_axes(array: Any) -> Any:
    """Return only the first block along every axis except axis 0, or all blocks if blocks cannot be selected."""
    if array.ndim == 1 or not BLOCKS_CAN_BE_CHOSEN:
        return array
    return array.blocks[(slice(None), *[0] * (array.ndim - 1))]


def first_block(nested: Any) -> Any:
    """Return the first block in nested lists, which Dask creates for the axes of an input that the output lacks."""
    while isinstance(nested, list):
        nested = nested[0]
    return nested


def common(row: Spec, axis: int, arrays: Sequence[tuple[str, Any]]) -> tuple[list[Chunks], Chunks, bool]:
    """Align the chunks of arrays along an axis, counted from the last, so that the arrays broadcast block by block.

    Returns the new chunks of each array, the chunks of the result, and whether tasks must check the sizes of blocks.
    Along an axis with several blocks of unknown size, matching blocks must have equal sizes, because a block of size 1
    must not broadcast to another block.
    """
    chunks: list[Chunks] = [array.chunks[axis] for _, array in arrays]
    open_ended = [sizes for sizes in chunks if unknown(sizes)]
    known = [sizes for sizes in chunks if not unknown(sizes) and sum(sizes) != 1]
    if not open_ended:
        target = joint(known or chunks)
        single = sum(target) != 1
        return [(1,) if single and sum(sizes) == 1 else target for sizes in chunks], target, False
    blocks = len(open_ended[0])
    whole = joint(known) if known else None
    if whole is not None and len(whole) != blocks and blocks == 1:
        whole = (sum(whole),)
    if any(len(sizes) != blocks for sizes in (*open_ended, *([whole] if whole else []))):
        counts = ", ".join(f"{name} has {len(array.chunks[axis])}" for name, array in arrays)
        raise ShapeError(
            f"{row.name} inputs have blocks of unknown size along axis {axis}, and different numbers of blocks: "
            f"{counts}; call compute_chunk_sizes() on the arrays first",
            row.clause("shape"),
        )
    mine = [sizes if unknown(sizes) else (1,) if sum(sizes) == 1 or whole is None else whole for sizes in chunks]
    return mine, whole or open_ended[0], blocks > 1


def joint(chunkings: Sequence[Chunks]) -> Chunks:
    """Return the chunks that split an axis at every boundary of the given chunkings."""
    if len(set(chunkings)) == 1:
        return chunkings[0]
    cuts = sorted({0, *(int(cut) for sizes in chunkings for cut in np.cumsum(sizes))})
    return tuple(np.diff(cuts).tolist()) or (0,)


def rechunked(array: Any, chunks: Sequence[Chunks]) -> Any:
    """Rechunk an array along its first axes. Axes with the same or unknown new chunks are unchanged."""
    target = {axis: new for axis, new in enumerate(chunks) if not unknown(new) and array.chunks[axis] != new}
    if target and not any(array.shape):  # Dask does not rechunk an array if all sizes are 0
        return da.empty_like(array, chunks=tuple(target.get(axis, old) for axis, old in enumerate(array.chunks)))
    return array.rechunk(target) if target else array
