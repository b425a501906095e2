"""Extracts the results of a call from a Dask array whose blocks are tuples, with one element per result.

A Dask graph has one result, but a call may have up to three. Users never see the array of tuples.
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
    """Return the array of result `number`, in blocks with the given sizes along the first axis.

    With `first_axis_alone`, the result has only the first axis, and is the same for all columns.
    """
    axes = tuple(range(tuples.ndim))
    return da.blockwise(
        picked,
        (0,) if first_axis_alone else axes,
        first_of_other_axes(tuples) if first_axis_alone else tuples,
        axes,
        number=number,
        first_axis_alone=first_axis_alone,
        dtype=dtype,
        # passed, because Dask would otherwise compute it, and convert the elements of a 0-D object array
        meta=np.empty_like(tuples._meta, dtype=dtype, shape=(0,) * (1 if first_axis_alone else tuples.ndim)),
        adjust_chunks=None if sizes is None else {0: sizes},
        token=token,
    )


def picked(block: Any, *, number: int, first_axis_alone: bool) -> Any:
    """Return result `number` of a block. To infer types, Dask passes empty data instead of a tuple."""
    block = first_block(block)
    if isinstance(block, tuple):
        return block[number]
    return np.empty_like(block, shape=(0,)) if first_axis_alone else block
