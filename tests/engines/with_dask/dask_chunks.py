"""Arrays with random chunks, including empty and unknown ones, and checks of the metadata of Dask arrays."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import numpy as np
from hypothesis import strategies as st

from maxops.plan import Array

Chunks = tuple[tuple[int, ...], ...]


@st.composite
def chunkings(draw: st.DrawFn, shape: tuple[int, ...]) -> Chunks:
    """Draw chunks of each axis, including empty chunks."""
    chunks = []
    for size in shape:
        cuts = sorted(draw(st.lists(st.integers(0, size), max_size=4)))
        chunks.append(tuple(np.diff([0, *cuts, size]).tolist()))
    return tuple(chunks)


def lazy(array: Array, chunks: Any = -1, *, unknown: bool = False) -> Any:
    """Return the array in these chunks. If `unknown`, their sizes along the first axis are unknown."""
    import dask.array as da  # noqa: PLC0415  (not everywhere)

    result = da.from_array(array, chunks=chunks)
    if not unknown:
        return result
    chunks = ((nan,) * result.numblocks[0], *result.chunks[1:])
    return da.map_blocks(_same, result, chunks=chunks, dtype=array.dtype, meta=array[:0])


def _same(block: Array) -> Array:
    return block


def computed(result: Any) -> Array:
    """Compute a Dask array, and check that its blocks have the declared sizes and types."""
    import dask.base  # noqa: PLC0415

    blocks = result.to_delayed(optimize_graph=False)
    whole, *found = dask.base.compute(result, *blocks.ravel().tolist(), scheduler="sync")
    array = np.asarray(whole)
    assert array.dtype == result.dtype == result._meta.dtype
    assert result._meta.ndim == array.ndim
    for place, block in zip(np.ndindex(blocks.shape), found, strict=True):
        said = tuple(sizes[number] for sizes, number in zip(result.chunks, place, strict=True))
        assert all(isnan(size) or size == real for size, real in zip(said, block.shape, strict=True)), (said, block)
    return array
