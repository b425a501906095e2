"""The `torch.vmap` rules of the operators, which make one call for a batch if possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from maxops.calls import ReduceCall, SegmentCall
from maxops.engines.torch.schemas import arguments, reduce_call, segment_call
from maxops.errors import EngineError


def maximum(info: Any, in_dims: Any, tensors: Sequence[Tensor], *options: Any) -> tuple[Tensor, int]:
    """Compute Max of a batch. The batch axis of the result is its first axis."""
    batched = in_dims[0]
    rank = max(tensor.ndim - (dim is not None) for tensor, dim in zip(tensors, batched, strict=True))
    aligned = []
    for tensor, dim in zip(tensors, batched, strict=True):
        if dim is None:
            aligned.append(tensor)
            continue
        first = tensor.movedim(dim, 0)
        aligned.append(first.reshape([first.shape[0], *[1] * (rank + 1 - first.ndim), *first.shape[1:]]))
    return torch.ops.maxops.maximum(aligned, *options), 0


def reduce_max(info: Any, in_dims: Any, *inputs: Any) -> tuple[Any, Any]:
    """Compute ReduceMax of a batch. The batch axis is moved to the front and is not reduced."""
    call, dims = reduce_call(*inputs), reduce_call(*in_dims)
    op = torch.ops.maxops.reduce_max
    if dims.scalars:  # a different initial value for each member
        return _one_by_one(info, call, dims, op)
    first = call.data.movedim(dims.data, 0)
    rank = first.ndim - 1
    if call.noop_with_empty_axes and not call.axes:
        whole = call._replace(data=first)
    elif rank == 0:  # add an axis to reduce, because an empty list would reduce all axes
        whole = call._replace(data=first.unsqueeze(1), axes=[1], keepdims=False)
    else:
        whole = call._replace(data=first, axes=[axis % rank + 1 for axis in (call.axes or range(rank))])
    return op(*arguments(whole)), (0, 0 if call.return_indices else None)


def segment_max(info: Any, in_dims: Any, *inputs: Any) -> tuple[Any, Any]:
    """Compute SegmentMax of a batch. If only data is batched, make one call. If not, make one call per member."""
    call, dims = segment_call(*inputs), segment_call(*in_dims)
    op = torch.ops.maxops.segment_max
    if [name for name, _ in [*dims.arrays, *dims.scalars]] == ["data"]:
        out_dims = (1, 1 if call.return_indices else None, None)
        return op(*arguments(call._replace(data=call.data.movedim(dims.data, 1)))), out_dims
    if call.num_segments is None and dims.segment_ids is not None:
        raise EngineError(
            f"{call.row.name} requires num_segments if vmap batches segment_ids, because all results of a batch must "
            "have the same shape; pass num_segments="
        )
    return _one_by_one(info, call, dims, op)


def scalar(info: Any, in_dims: Any, like: Tensor, *others: Any) -> tuple[Tensor, None]:
    """Convert a scalar, which all members of the batch share, to the dtype and the device of `like`."""
    return torch.ops.maxops.scalar(like, *others), None


def _shape_alone(tensor: Tensor, dim: int | None) -> Tensor:
    """Return a meta tensor with the shape of a batch member, for an empty batch."""
    shape = [size for axis, size in enumerate(tensor.shape) if axis != dim]
    return tensor.new_empty(shape, device="meta")


def _one_by_one(
    info: Any, call: ReduceCall | SegmentCall, dims: ReduceCall | SegmentCall, op: Callable[..., tuple[Tensor, ...]]
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Call the operator for each member of a batch. `dims` contains the batch dimension of each tensor."""

    def run(take: Callable[[Tensor, int | None], Tensor]) -> tuple[Tensor, ...]:
        def member(name: str, tensor: Tensor) -> Tensor:
            return take(tensor, getattr(dims, name))

        return op(*arguments(call.map(member, member)))

    if info.batch_size == 0:
        device = call.data.device
        parts = [torch.empty([0, *part.shape], dtype=part.dtype, device=device) for part in run(_shape_alone)]
    else:
        results = [
            run(lambda tensor, dim, at=index: tensor if dim is None else tensor.select(dim, at))  # type: ignore[misc]
            for index in range(info.batch_size)
        ]
        parts = [torch.stack(part) for part in zip(*results, strict=True)]
    return tuple(parts), (0,) * len(parts)
