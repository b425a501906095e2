"""Fake kernels, which return results without data, for torch's compilers and `meta` tensors.

They run every check that requires only shapes and dtypes. For these checks, symbolic sizes are replaced with the sizes
of the traced example. The real kernels repeat the checks when they receive data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from maxops.calls import MaxCall
from maxops.engines.torch.kernels import nothing
from maxops.engines.torch.memory import checked, example, like
from maxops.engines.torch.schemas import reduce_call, segment_call
from maxops.plan import abstract, plan_max, plan_reduce_max, plan_segment_max
from maxops.shapes import reduced


def maximum(tensors: Sequence[Tensor], ties: str, nan: str = "propagate") -> Tensor:
    """Compute the fake result of Max."""
    plan_max(checked(MaxCall(tensors, ties=ties, nan=nan)), in_memory=False)
    broadcast: Any = torch.broadcast_shapes  # also accepts symbols
    return like(tensors, broadcast(*(tensor.shape for tensor in tensors)))


def reduce_max(*inputs: Any) -> tuple[Tensor, Tensor]:
    """Compute the fake results of ReduceMax."""
    call = reduce_call(*inputs)
    data, planned = call.data, plan_reduce_max(checked(call), in_memory=False).call
    is_same = planned.noop_with_empty_axes
    shape = data.shape if is_same else reduced(data.shape, planned.axes, keepdims=planned.keepdims)
    indices = data.new_empty(shape, dtype=torch.int64) if planned.return_indices else nothing(data)
    return like([data], shape) if is_same else data.new_empty(shape), indices


def segment_max(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the fake results of SegmentMax. If the number of segments is unknown, it becomes a new symbol."""
    call = segment_call(*inputs)
    asked = checked(call)
    data, ids = call.data, call.segment_ids
    known = None if call.num_segments is None else example(call.num_segments)
    asked = asked._replace(num_segments=known)
    if ids is not None and data.ndim and ids.ndim and example(data.shape[0] - ids.shape[0]) is None:
        # Assume that the lengths are equal, because they are known only at run time.
        as_long = (asked.data.shape[0], *ids.shape[1:])
        asked = asked._replace(segment_ids=abstract(as_long, asked.segment_ids.dtype))
    plan_segment_max(asked, in_memory=False, values_known=False)
    count: Any
    if call.num_segments is not None:
        count = call.num_segments
    elif call.offsets is not None:
        count = call.offsets.shape[0] - 1
    else:
        count = torch.library.get_ctx().new_dynamic_size()
    shape = [count, *data.shape[1:]]
    return (
        data.new_empty(shape),
        data.new_empty(shape, dtype=torch.int64) if call.return_indices else nothing(data),
        data.new_empty([count], dtype=torch.bool) if call.return_empty else nothing(data, torch.bool),
    )
