"""What `torch.vmap` makes of the operators: one call for a batch wherever one call can do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from maxops import spec
from maxops.errors import EngineError


def maximum(info: Any, in_dims: Any, tensors: Sequence[Tensor], ties: str) -> tuple[Tensor, int]:
    """Max: the batch comes first, before the axes that the shapes have in common."""
    batched = in_dims[0]
    rank = max(tensor.ndim - (dim is not None) for tensor, dim in zip(tensors, batched, strict=True))
    aligned = []
    for tensor, dim in zip(tensors, batched, strict=True):
        if dim is None:
            aligned.append(tensor)
            continue
        first = tensor.movedim(dim, 0)
        aligned.append(first.reshape([first.shape[0], *[1] * (rank + 1 - first.ndim), *first.shape[1:]]))
    return torch.ops.maxops.maximum(aligned, ties), 0


def reduce_max(
    info: Any,
    in_dims: Any,
    data: Tensor,
    axes: Sequence[int] | None,
    keepdims: bool,
    noop_with_empty_axes: bool,
    initial: Tensor | None,
    return_indices: bool,
    ties: str,
) -> tuple[Any, Any]:
    """ReduceMax: the batch comes first and is not reduced."""
    op = torch.ops.maxops.reduce_max
    out_dims = (0, 0 if return_indices else None)
    if in_dims[4] is not None:  # another initial for each
        return _one_by_one(
            info,
            data.device,
            lambda at: op(
                at(data, in_dims[0]),
                axes,
                keepdims,
                noop_with_empty_axes,
                at(initial, in_dims[4]),
                return_indices,
                ties,
            ),
            out_dims,
        )
    first = data.movedim(in_dims[0], 0)
    rank = first.ndim - 1
    if noop_with_empty_axes and not axes:
        return op(first, [], keepdims, True, initial, return_indices, ties), out_dims
    if rank == 0:  # an axis to reduce, since no axes would mean all
        return op(first.unsqueeze(1), [1], False, False, initial, return_indices, ties), out_dims
    taken = [axis % rank + 1 for axis in (axes or range(rank))]
    return op(first, taken, keepdims, False, initial, return_indices, ties), out_dims


def segment_max(
    info: Any,
    in_dims: Any,
    data: Tensor,
    segment_ids: Tensor | None,
    offsets: Tensor | None,
    num_segments: int | None,
    *options: Any,
) -> tuple[Any, Any]:
    """SegmentMax: the batch is an axis of the rows, unless the segments differ too: then one call for each."""
    op = torch.ops.maxops.segment_max
    *before, initial, return_indices, return_empty, ties = options
    data_dim, ids_dim, offsets_dim, initial_dim = in_dims[0], in_dims[1], in_dims[2], in_dims[8]
    if ids_dim is None and offsets_dim is None and initial_dim is None:
        out_dims = (1, 1 if return_indices else None, None)
        return op(data.movedim(data_dim, 1), segment_ids, offsets, num_segments, *options), out_dims
    if num_segments is None and ids_dim is not None:
        row = spec.SEGMENT_MAX
        raise EngineError(
            f"{row.name} got segment_ids that differ within a batch of vmap, and no num_segments; all results of a "
            "batch have one shape, which ids do not tell: give num_segments"
        )
    return _one_by_one(
        info,
        data.device,
        lambda at: op(
            at(data, data_dim),
            at(segment_ids, ids_dim),
            at(offsets, offsets_dim),
            num_segments,
            *before,
            at(initial, initial_dim),
            return_indices,
            return_empty,
            ties,
        ),
        (0, 0 if return_indices else None, 0 if return_empty else None),
    )


def _at(place: int, tensor: Tensor | None, dim: int | None) -> Tensor | None:
    return tensor if tensor is None or dim is None else tensor.select(dim, place)


def _of_none(tensor: Tensor | None, dim: int | None) -> Tensor | None:
    """What a member of a batch without members would be: a shape."""
    if tensor is None:
        return None
    shape = [size for axis, size in enumerate(tensor.shape) if axis != dim]
    return tensor.new_empty(shape, device="meta")


def _one_by_one(
    info: Any, device: torch.device, call: Callable[[Any], tuple[Tensor, ...]], out_dims: tuple[int | None, ...]
) -> tuple[tuple[Tensor, ...], tuple[int | None, ...]]:
    """A call for each member of a batch; `call` gets what takes a member of an argument."""
    if info.batch_size == 0:
        none = [
            torch.empty(part.shape if dim is None else [0, *part.shape], dtype=part.dtype, device=device)
            for part, dim in zip(call(_of_none), out_dims, strict=True)
        ]
        return tuple(none), out_dims
    results = [call(partial(_at, place)) for place in range(info.batch_size)]
    parts = zip(*results, strict=True)
    return tuple(
        torch.stack(part) if dim is not None else part[0] for part, dim in zip(parts, out_dims, strict=True)
    ), out_dims
