"""Locates the maxima for gradients: a mask of all elements that equal a maximum, or the index of the first one.

An element equals a maximum if their bits are equal, or if both are NaN. All functions use operators of torch or maxops,
so their results support gradients, vmap and compiled graphs.

Only inputs are saved, and the maxima are recomputed. So users may change results in place before the backward pass.
Each call reads the saved tensors only once, because `torch.utils.checkpoint` supports only one read.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from maxops.engines.torch.ids import ids_of_rows, or_else, sums, widened
from maxops.engines.torch.memory import DTYPES
from maxops.engines.torch.schemas import arguments, is_identity, reduce_call, segment_call

_WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def save(ctx: Any, *tensors: Tensor | None) -> None:
    """Save tensors for backward and forward-mode gradients."""
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)


def holds(elements: Tensor, maxima: Tensor) -> Tensor:
    """Return a mask of the elements that equal their maximum: equal bits, or both NaN."""
    elements, maxima = elements.detach().resolve_neg(), maxima.detach().resolve_neg()
    word = _WORDS[elements.dtype.itemsize]
    return (elements.view(word) == maxima.view(word)) | (elements.isnan() & maxima.isnan())


def wide(tensor: Tensor) -> Tensor:
    """Convert a half-precision gradient to float32, because sums and divisions need more precision."""
    return tensor.to(torch.float32) if DTYPES[tensor.dtype].bits == 16 else tensor


def share(total: Tensor, count: Tensor) -> Tensor:
    """Divide a total of `wide` gradients by the number of elements that equal the maximum."""
    return total / count.clamp(min=1).to(total.dtype)


def put(values: Tensor, indices: Tensor, length: Any, axis: int) -> Tensor:
    """Scatter values into zeros by index along an axis of the given length. Drop values with the index -1."""
    shape = [length + 1 if at == axis else size for at, size in enumerate(values.shape)]
    spread = values.new_zeros(shape)  # the last index is for dropped values
    return spread.scatter(axis, or_else(indices >= 0, indices, length), values).narrow(axis, 0, length)


def take(values: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Gather the value at each index along an axis. The index -1 yields zero."""
    length = values.shape[axis]
    return padded(values, axis).gather(axis, or_else(indices >= 0, indices, length))


def padded(values: Tensor, axis: int) -> Tensor:
    """Append a zero along an axis."""
    # torch.cat fails under vmap if the axis is the only one and is empty.
    return torch.nn.functional.pad(values, [0, 0] * (values.ndim - 1 - axis) + [0, 1])


# ------------------------------------------------------------------------------------------------------ Max


def save_maximum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Save the inputs of Max."""
    tensors, ctx.ties, ctx.nan = inputs
    save(ctx, *tensors)


def in_inputs(ctx: Any, tensors: Sequence[Tensor], needed: Sequence[bool]) -> tuple[list[Tensor | None], Tensor | None]:
    """Return a mask of the elements of each needed input that receive the gradient.

    With the ties "even", also return the number of inputs that equal each maximum, and otherwise None.
    """
    tensors = [tensor.detach() for tensor in tensors]
    maxima = torch.ops.maxops.maximum(tensors, ctx.ties, ctx.nan)
    held = (holds(tensor.expand(maxima.shape), maxima) for tensor in tensors)
    masks: list[Tensor | None] = []
    if ctx.ties == "even":
        count: Any = 0
        for mask, need in zip(held, needed, strict=True):
            count = count + mask.to(torch.int64)
            masks.append(mask if need else None)
        return masks, count
    before = None
    last = max(at for at, need in enumerate(needed) if need)
    for mask, need in zip(itertools.islice(held, last + 1), needed, strict=False):
        masks.append((mask if before is None else mask & ~before) if need else None)
        before = mask if before is None else before | mask
    return masks + [None] * (len(tensors) - len(masks)), None


# ------------------------------------------------------------------------------------------------ ReduceMax


def describe_reduce_max(ctx: Any, inputs: tuple[Any, ...]) -> None:
    """Save the non-tensor state for the gradients of ReduceMax."""
    call = reduce_call(*inputs)
    data, rank = call.data, call.data.ndim
    ctx.identity, ctx.shape, ctx.arguments = is_identity(call), data.shape, len(inputs)
    ctx.axes = () if ctx.identity else tuple(axis % rank for axis in call.axes or range(rank))
    ctx.call = call._replace(data=None, axes=ctx.axes, noop_with_empty_axes=False, initial=None)


def save_reduce_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Save the inputs of ReduceMax."""
    describe_reduce_max(ctx, inputs)
    call = reduce_call(*inputs)
    ctx.mark_non_differentiable(output[1])
    if ctx.identity:
        save(ctx)
    else:
        save(ctx, call.data, call.initial)


def in_axes(ctx: Any) -> Any:
    """Return the index of the first element that equals each maximum, as if the reduced axes were one axis."""
    data, initial = ctx.saved_tensors
    again = ctx.call._replace(data=data.detach(), initial=initial, return_indices=True)
    return torch.ops.maxops.reduce_max(*arguments(again))[1]


def reduced_last(ctx: Any) -> tuple[list[int], list[Any], Any]:
    """Return all axes with the reduced axes last, the sizes of the kept axes, and the product of the reduced sizes."""
    taken = sorted(ctx.axes)
    kept = [axis for axis in range(len(ctx.shape)) if axis not in taken]
    return [*kept, *taken], [ctx.shape[axis] for axis in kept], prod(ctx.shape[axis] for axis in taken)


def mask_in_axes(ctx: Any) -> tuple[Tensor, Tensor]:
    """Return a mask of the elements that equal the maximum, and their count with the reduced axes kept."""
    data, initial = ctx.saved_tensors
    again = ctx.call._replace(data=data.detach(), initial=initial, keepdims=True, return_indices=False)
    maxima, _ = torch.ops.maxops.reduce_max(*arguments(again))
    held = holds(data, maxima.expand(ctx.shape))
    return held, held.sum(ctx.axes, keepdim=True) if ctx.axes else held.to(torch.int64)


# ----------------------------------------------------------------------------------------------- SegmentMax


def describe_segment_max(ctx: Any, inputs: tuple[Any, ...], segments: int) -> None:
    """Save the non-tensor state for the gradients of SegmentMax."""
    call = segment_call(*inputs)
    ctx.rows, ctx.segments, ctx.arguments = call.data.shape[0], segments, len(inputs)
    ctx.call = call._replace(
        data=None,
        segment_ids=None,
        offsets=None,
        initial=None,
        num_segments=segments,
        fill_mode="ZERO" if call.initial is None else None,  # any mode, because empty segments have no index
        fill_value=None,
        check_ids=False,  # already checked if requested
    )


def save_segment_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    """Save the inputs of SegmentMax."""
    call = segment_call(*inputs)
    values, indices, empty = output
    describe_segment_max(ctx, inputs, values.shape[0])
    ctx.mark_non_differentiable(indices, empty)
    save(ctx, call.data, call.segment_ids, call.offsets, call.initial)


def _again_in_segments(ctx: Any, inputs: Sequence[Any], *, return_indices: bool) -> Any:
    data, ids, offsets, initial = inputs
    again = ctx.call._replace(
        data=data.detach(),
        segment_ids=ids,
        offsets=offsets,
        initial=initial,
        return_indices=return_indices,
        return_empty=False,
    )
    return torch.ops.maxops.segment_max(*arguments(again))


def in_segments(ctx: Any) -> Any:
    """Return the index of the first row with each maximum."""
    return _again_in_segments(ctx, ctx.saved_tensors, return_indices=True)[1]


def mask_in_segments(ctx: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return a mask of the elements that equal the maximum of their segment and column, and two more tensors.

    These are the segment of each row, and the number of masked elements in each segment and column. Rows without a
    segment are in one additional segment at the end.
    """
    data, ids, offsets, _ = inputs = ctx.saved_tensors
    segments, row = ctx.segments, list(data.shape[1:])
    values = _again_in_segments(ctx, inputs, return_indices=False)[0]
    if ids is None:
        ids = ids_of_rows(offsets, ctx.rows)
    ids = widened(ids)
    inside = (ids >= 0) & (ids < segments)
    ids = or_else(inside, ids, segments).to(torch.int64)
    maxima = padded(values, 0).index_select(0, ids)
    held = holds(data, maxima) & inside.reshape([inside.shape[0], *(1 for _ in row)])
    return held, ids, sums(held.to(torch.int64), ids, segments + 1)
