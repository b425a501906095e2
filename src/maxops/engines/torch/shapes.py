"""What the operators give without data: new tensors of the right shape, for torch's compilers and `meta` tensors.

A plan makes every check that shapes and types allow; where sizes are symbols, with those of the example that is traced.
The same checks are made when data comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from maxops import spec
from maxops.engines.numpy import check_ties
from maxops.engines.torch.kernels import nothing
from maxops.engines.torch.memory import check, example, like, planned, symbolic
from maxops.plan import plan_max, plan_reduce_max, plan_segment_max, stand_in


def maximum(tensors: Sequence[Tensor], ties: str) -> Tensor:
    """Max."""
    row = spec.MAXIMUM
    check_ties(row, ties)
    for number, tensor in enumerate(tensors):
        check(row, f"input {number}", tensor)
    plan = plan_max(row, list(map(planned, tensors)), in_memory=False)
    broadcast: Any = torch.broadcast_shapes
    shape = broadcast(*(tensor.shape for tensor in tensors)) if symbolic(*tensors) else plan.shape
    return like(tensors, shape)


def reduce_max(
    data: Tensor,
    axes: Sequence[int] | None,
    keepdims: bool,
    noop_with_empty_axes: bool,
    initial: Tensor | None,
    return_indices: bool,
    ties: str,
) -> tuple[Tensor, Tensor]:
    """ReduceMax."""
    row = spec.REDUCE_MAX
    check_ties(row, ties)
    check(row, "data", data)
    plan = plan_reduce_max(
        row,
        planned(data),
        None if axes is None else list(axes),
        keepdims,
        noop_with_empty_axes,
        initial=None if initial is None else planned(initial),
        return_indices=return_indices,
        in_memory=False,
    )
    if plan.identity:
        shape = list(data.shape)
    else:
        sizes = [(1 if axis in plan.axes else size, axis) for axis, size in enumerate(data.shape)]
        shape = [size for size, axis in sizes if keepdims or axis not in plan.axes]
    indices = data.new_empty(shape, dtype=torch.int64) if return_indices else nothing(data)
    return like([data], data.shape) if plan.identity else data.new_empty(shape), indices


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
    """SegmentMax. Without num_segments and offsets the number of rows is a new symbol, which data will settle."""
    row = spec.SEGMENT_MAX
    check_ties(row, ties)
    arrays: dict[str, Any] = {"data": data, "segment_ids": segment_ids, "offsets": offsets}
    for name, tensor in arrays.items():
        if tensor is not None:
            check(row, name, tensor)
            arrays[name] = planned(tensor)
    if (
        segment_ids is not None
        and data.ndim
        and segment_ids.ndim
        and example(data.shape[0] - segment_ids.shape[0]) is None
    ):
        # Whether they are of one length, data will tell.
        arrays["segment_ids"] = stand_in((arrays["data"].shape[0], *segment_ids.shape[1:]), arrays["segment_ids"].dtype)
    plan_segment_max(
        row,
        arrays["data"],
        arrays["segment_ids"],
        None if num_segments is None else example(num_segments),
        fill_mode,
        None,
        check_ids,
        offsets=arrays["offsets"],
        sorted=sorted,
        out_of_range=out_of_range,
        initial=None if initial is None else planned(initial),
        return_indices=return_indices,
        return_empty=return_empty,
        in_memory=False,
        values_known=False,
    )
    count: Any
    if num_segments is not None:
        count = num_segments
    elif offsets is not None:
        count = offsets.shape[0] - 1
    else:
        count = torch.library.get_ctx().new_dynamic_size()
    shape = [count, *data.shape[1:]]
    return (
        data.new_empty(shape),
        data.new_empty(shape, dtype=torch.int64) if return_indices else nothing(data),
        data.new_empty([count], dtype=torch.bool) if return_empty else nothing(data, torch.bool),
    )
