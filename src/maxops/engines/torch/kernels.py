"""What the operators run on: the NumPy engine on tensors of the CPU, the GPU's kernels on those of a GPU.

A result that was not asked for is an empty tensor, since an operator of torch has a fixed number of results.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from maxops import _native, spec
from maxops.engines import numpy as engine
from maxops.engines.torch.memory import elementwise, laid_out, view
from maxops.engines.torch.memory import result as contiguous
from maxops.plan import plan_max


def nothing(like: Tensor, dtype: torch.dtype = torch.int64) -> Tensor:
    """In place of a result that was not asked for."""
    return like.new_empty((0,), dtype=dtype)


def maximum(tensors: Sequence[Tensor], ties: str) -> Tensor:
    """Max on the CPU."""
    engine.check_ties(spec.MAXIMUM, ties)
    views = [view(tensor) for tensor in tensors]
    done = _native.maximum(*views)
    return elementwise(engine.run_max(plan_max(spec.MAXIMUM, views)) if done is None else done, *tensors)


def reduce_max(
    data: Tensor,
    axes: Sequence[int] | None,
    keepdims: bool,
    noop_with_empty_axes: bool,
    initial: Tensor | None,
    return_indices: bool,
    ties: str,
) -> tuple[Tensor, Tensor]:
    """ReduceMax on the CPU."""
    result = engine.reduce_max(
        view(data),
        None if axes is None else list(axes),
        keepdims,
        noop_with_empty_axes,
        initial=None if initial is None else view(initial),
        return_indices=return_indices,
        ties=ties,
    )
    values, indices = result if isinstance(result, tuple) else (result, None)
    is_identity = noop_with_empty_axes and not axes
    return (
        elementwise(values, data) if is_identity else contiguous(values),
        nothing(data) if indices is None else contiguous(indices),
    )


def segment_max(
    data: Tensor,
    segment_ids: Tensor | None,
    offsets: Tensor | None,
    num_segments: int | None,
    fill_mode: str | None,
    check_ids: bool,
    sorted: bool,
    out_of_range: str | None,
    initial: Tensor | None,
    return_indices: bool,
    return_empty: bool,
    ties: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """SegmentMax on the CPU."""
    result = engine.segment_max(
        view(data),
        None if segment_ids is None else view(segment_ids),
        num_segments,
        fill_mode=fill_mode,
        check_ids=check_ids,
        offsets=None if offsets is None else view(offsets),
        sorted=sorted,
        out_of_range=out_of_range,
        initial=None if initial is None else view(initial),
        return_indices=return_indices,
        return_empty=return_empty,
        ties=ties,
    )
    parts = iter(map(contiguous, result if isinstance(result, tuple) else (result,)))
    return (
        next(parts),
        next(parts) if return_indices else nothing(data),
        next(parts) if return_empty else nothing(data, torch.bool),
    )


def _gpu() -> Any:
    return importlib.import_module("maxops.engines.gpu")


def maximum_on_gpu(tensors: Sequence[Tensor], ties: str) -> Tensor:
    """Max on a GPU."""
    del ties
    result: Tensor = _gpu().maximum(*tensors)
    return laid_out(result, tensors)


def reduce_max_on_gpu(
    data: Tensor,
    axes: Sequence[int] | None,
    keepdims: bool,
    noop_with_empty_axes: bool,
    initial: Tensor | None,
    return_indices: bool,
    ties: str,
) -> tuple[Tensor, Tensor]:
    """ReduceMax on a GPU."""
    del ties
    result = _gpu().reduce_max(
        data,
        None if axes is None else list(axes),
        keepdims,
        noop_with_empty_axes,
        initial=initial,
        return_indices=return_indices,
    )
    values, indices = result if return_indices else (result, nothing(data))
    return laid_out(values, [data]) if noop_with_empty_axes and not axes else values.contiguous(), indices


def segment_max_on_gpu(
    data: Tensor,
    segment_ids: Tensor | None,
    offsets: Tensor | None,
    num_segments: int | None,
    fill_mode: str | None,
    check_ids: bool,
    sorted: bool,
    out_of_range: str | None,
    initial: Tensor | None,
    return_indices: bool,
    return_empty: bool,
    ties: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """SegmentMax on a GPU."""
    del ties
    result = _gpu().segment_max(
        data,
        segment_ids,
        num_segments,
        fill_mode=fill_mode,
        check_ids=check_ids,
        offsets=offsets,
        sorted=sorted,
        out_of_range=out_of_range,
        initial=initial,
        return_indices=return_indices,
        return_empty=return_empty,
    )
    parts = iter(result if isinstance(result, tuple) else (result,))
    return (
        next(parts),
        next(parts) if return_indices else nothing(data),
        next(parts) if return_empty else nothing(data, torch.bool),
    )
