"""Runs Max on Dask arrays: aligns the chunks of the arrays, and calls maxops on matching blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from maxops.calls import MaxCall
from maxops.engines.dask.blocks import run
from maxops.engines.dask.chunks import Chunks, common, in_chunks, planned, rechunked
from maxops.errors import ShapeError
from maxops.plan import plan_max
from maxops.plan.values import is_python_scalar


def maximum(call: MaxCall) -> Any:
    """Run a Max call."""
    row, arrays = call.row, call.inputs
    plan = plan_max(call.map(partial(planned, row)), in_memory=False)
    lazy = [array for array in arrays if isinstance(array, da.Array)]
    given = [  # the plan has checked the types
        array if isinstance(array, da.Array) or is_python_scalar(array) or np.ndim(array) == 0
        else in_chunks(array, lazy)
        for array in arrays
    ]  # fmt: skip
    named = [(number, array) for number, array in enumerate(given) if isinstance(array, da.Array)]

    chunks: dict[int, list[Chunks]] = {number: [] for number, _ in named}
    whole: list[Chunks] = []
    equal: list[tuple[int, tuple[int, ...]]] = []
    for axis in range(-len(plan.shape), 0):
        present = [(number, array) for number, array in named if array.ndim >= -axis]
        mine, target, looked_at = common(row, axis, [(f"input {number}", array) for number, array in present])
        for (number, _), sizes in zip(present, mine, strict=True):
            chunks[number].append(sizes)
        whole.append(target)
        if looked_at:
            several = [number for (number, _), sizes in zip(present, mine, strict=True) if len(sizes) > 1]
            equal.append((axis, tuple(several)))

    axes = tuple(range(len(plan.shape)))
    arguments: list[Any] = []
    for number, array in enumerate(given):
        if isinstance(array, da.Array):
            arguments += [rechunked(array, chunks[number]), axes[len(axes) - array.ndim :]]
        else:
            arguments += [array, None]
    return da.blockwise(
        maximum_of_blocks,
        axes,
        *arguments,
        call=call._replace(inputs=()),
        equal=tuple(equal),
        dtype=plan.dtype.numpy,
        token="maxops-maximum",
        align_arrays=False,
        adjust_chunks=dict(enumerate(whole)),
    )


def maximum_of_blocks(*blocks: Any, call: MaxCall, equal: tuple[tuple[int, tuple[int, ...]], ...]) -> Any:
    """Return the maximum of one block per input. Along an axis in `equal`, the listed inputs must have equal sizes."""
    for axis, (first, *others) in equal:
        expected = blocks[first].shape[axis]
        for number in others:
            if (size := blocks[number].shape[axis]) != expected:
                raise ShapeError(
                    f"{call.row.name} input {number} has a block of size {size} along axis {axis}, but the matching "
                    f"block of input {first} has size {expected}; call compute_chunk_sizes() on the arrays first",
                    call.row.clause("shape"),
                )
    return run(call._replace(inputs=blocks))
