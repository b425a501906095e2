"""Arrays whose blocks are tuples, one for each result of a call, and how each result is taken out of them.

Such an array is seen by no user. Dask makes results of one kind from a graph, and a call may have three.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np


def pick(tuples: Any, number: int, dtype: np.dtype[Any]) -> Any:
    """The array of each block's result of this number."""
    return da.map_blocks(picked, tuples, number=number, dtype=dtype, token="maxops-result")


def picked(block: Any, *, number: int) -> Any:
    """The result of this number; what is no tuple is an array that shows Dask its kind."""
    return block[number] if isinstance(block, tuple) else block


def pick_first_axis(tuples: Any, number: int, dtype: np.dtype[Any]) -> Any:
    """The array of each block's result of this number, where that has the first axis alone: once for all columns."""
    first = tuples.blocks[(slice(None), *[0] * (tuples.ndim - 1))]
    return da.blockwise(
        picked_inside, (0,), first, tuple(range(first.ndim)), number=number, dtype=dtype, token="maxops-result"
    )


def picked_inside(block: Any, *, number: int) -> Any:
    """The result of this number of the tuple that lists of one element are around."""
    while isinstance(block, list):
        (block,) = block
    return block[number] if isinstance(block, tuple) else np.empty_like(block, shape=(0,))
