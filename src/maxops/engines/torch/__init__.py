"""The engine for PyTorch's tensors: eager calls, `torch.compile`, gradients and `torch.vmap`.

>>> import torch
>>> import maxops as mo
>>> mo.maximum(torch.tensor([1.0, -0.0, torch.nan]), torch.tensor([3.0, 0.0, 1.0]))
tensor([3., 0., nan])

The threads are maxops's own (`maxops.set_num_threads`), not torch's.
"""

from __future__ import annotations

from typing import Any

import torch

from maxops.engines.torch import eager, operators
from maxops.engines.torch.watching import is_tracing

__all__ = ["maximum", "operators", "reduce_max", "segment_max"]


def maximum(*arrays: Any, out: Any = None, ties: str = "even") -> Any:
    """See `maxops.maximum`."""
    if torch.compiler.is_compiling() or is_tracing():
        from maxops.engines.torch import traced  # noqa: PLC0415 - see there

        return traced.maximum(arrays, out, ties)
    return eager.maximum(arrays, out, ties)


def reduce_max(
    data: Any,
    axes: Any = None,
    keepdims: bool = True,
    noop_with_empty_axes: bool = False,
    out: Any = None,
    *,
    dim: Any = None,
    initial: Any = None,
    return_indices: bool = False,
    ties: str = "even",
) -> Any:
    """See `maxops.reduce_max`."""
    run = eager.reduce_max
    if torch.compiler.is_compiling() or is_tracing():
        from maxops.engines.torch import traced  # noqa: PLC0415 - see there

        run = traced.reduce_max
    return run(data, axes, keepdims, noop_with_empty_axes, out, dim, initial, return_indices, ties)


def segment_max(
    data: Any,
    segment_ids: Any = None,
    num_segments: Any = None,
    *,
    fill_mode: str | None = None,
    out: Any = None,
    check_ids: bool = True,
    offsets: Any = None,
    sorted: bool = True,
    out_of_range: str | None = None,
    dim: Any = None,
    initial: Any = None,
    return_indices: bool = False,
    return_empty: bool = False,
    ties: str = "even",
) -> Any:
    """See `maxops.segment_max`."""
    run = eager.segment_max
    if torch.compiler.is_compiling() or is_tracing():
        from maxops.engines.torch import traced  # noqa: PLC0415 - see there

        run = traced.segment_max
    return run(
        data,
        segment_ids,
        num_segments,
        fill_mode,
        out,
        check_ids,
        offsets,
        sorted,
        out_of_range,
        dim,
        initial,
        return_indices,
        return_empty,
        ties,
    )
