"""Arrays whose blocks are tuples, one for each result of a call, and how each result is taken out of them.

No user sees such an array. Dask makes one result from a graph, and a call may have three.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from maxops.engines.dask.chunks import Chunks, first_block, first_of_other_axes


def pick(
    tuples: Any,
    number: int,
    dtype: np.dtype[Any],
    sizes: Chunks | None = None,
    *,
    token: str,
    first_axis_alone: bool = False,
) -> Any:
    """The array of each block's result of this number, in blocks of these sizes along the first axis.

    A result may have only that axis: all columns share it.
    """
    axes = tuple(range(tuples.ndim))
    return da.blockwise(
        picked_inside if first_axis_alone else picked,
        (0,) if first_axis_alone else axes,
        first_of_other_axes(tuples) if first_axis_alone else tuples,
        axes,
        number=number,
        dtype=dtype,
        adjust_chunks=None if sizes is None else {0: sizes},
        token=token,
    )


def picked(block: Any, *, number: int) -> Any:
    """The result of this number; what is no tuple is an array that shows Dask its kind."""
    return block[number] if isinstance(block, tuple) else block


def picked_inside(block: Any, *, number: int) -> Any:
    """The result of this number of the first tuple in the lists."""
    block = first_block(block)
    return block[number] if isinstance(block, tuple) else np.empty_like(block, shape=(0,))
