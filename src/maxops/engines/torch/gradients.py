"""Gradients: to the first element that holds the maximum, or split evenly among all that hold it.

An element holds a maximum if the order has both equal: bits alike, or both NaN. `initial` is no argument to take
gradients for: where it alone is the maximum, there is none. All is made of torch's own operators, so that these
gradients have gradients, batches and graphs in their turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from maxops.engines.torch.memory import DTYPES

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _holds(elements: Tensor, maxima: Tensor) -> Tensor:
    """Whether the order has each element equal to its maximum."""
    elements, maxima = elements.detach(), maxima.detach()
    word = _WORDS[elements.dtype.itemsize]
    return (elements.view(word) == maxima.view(word)) | (elements.isnan() & maxima.isnan())


def _share(grad: Tensor, count: Tensor) -> Tensor:
    """An equal part of a gradient for each of those that hold a maximum; half types do not count far."""
    wide = torch.float32 if DTYPES[grad.dtype].bits == 16 else grad.dtype
    return (grad.to(wide) / count.clamp(min=1).to(wide)).to(grad.dtype)


# ------------------------------------------------------------------------------------------------------ Max


def save_maximum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what the gradient of Max needs."""
    tensors, ctx.ties = inputs
    ctx.save_for_backward(*tensors, output)


def maximum(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """The gradient of Max, for each input in its own shape."""
    *tensors, output = ctx.saved_tensors
    held = [_holds(tensor.expand(output.shape), output) for tensor in tensors]
    if ctx.ties == "first":
        for number in range(len(held) - 1, 0, -1):
            before = held[0]
            for other in held[1:number]:
                before = before | other
            held[number] = held[number] & ~before
        parts = [torch.where(mask, grad, 0) for mask in held]
    else:
        count = held[0].to(torch.int64)
        for mask in held[1:]:
            count = count + mask
        share = _share(grad, count)
        parts = [torch.where(mask, share, 0) for mask in held]
    return [_sum_to(part, tensor) for part, tensor in zip(parts, tensors, strict=True)], None  # type: ignore[return-value]


def _sum_to(grad: Tensor, tensor: Tensor) -> Tensor:
    """Sum over the axes along which a tensor was repeated."""
    extra = grad.ndim - tensor.ndim
    repeated = [axis for axis in range(grad.ndim) if axis < extra or tensor.shape[axis - extra] != grad.shape[axis]]
    return grad.sum(repeated).reshape(tensor.shape) if repeated else grad


# ------------------------------------------------------------------------------------------------ ReduceMax


def save_reduce_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Keep what the gradient of ReduceMax needs: where the maxima stand, or the data to look for them."""
    data, axes, ctx.keepdims, noop, initial, return_indices, ctx.ties = inputs
    ctx.axes = tuple(axis % data.ndim for axis in axes) if axes else () if noop else tuple(range(data.ndim))
    ctx.identity, ctx.indices = bool(noop and not axes), return_indices and ctx.ties == "first"
    ctx.options = len(inputs)
    ctx.mark_non_differentiable(output[1])
    ctx.shape = data.shape
    if ctx.identity:
        ctx.save_for_backward()
    elif ctx.indices:
        ctx.save_for_backward(output[1])
    else:
        ctx.save_for_backward(data, output[0], initial)


def reduce_max(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    """The gradient of ReduceMax."""
    return (_reduce_max(ctx, grad), *(None,) * (ctx.options - 1))


def _reduce_max(ctx: Any, grad: Tensor) -> Tensor:
    if ctx.identity:
        return grad
    kept_shape = [1 if axis in ctx.axes else size for axis, size in enumerate(ctx.shape)]
    if ctx.ties == "even":
        data, maxima, _ = ctx.saved_tensors
        held = _holds(data, maxima.reshape(kept_shape).expand(ctx.shape))
        count = held.sum(ctx.axes, keepdim=True) if ctx.axes else held.to(torch.int64)
        return torch.where(held, _share(grad.reshape(kept_shape), count), 0)
    if ctx.indices:
        (indices,) = ctx.saved_tensors
    else:
        data, _, initial = ctx.saved_tensors
        _, indices = torch.ops.maxops.reduce_max(data.detach(), ctx.axes, ctx.keepdims, False, initial, True, ctx.ties)
    taken = sorted(ctx.axes)
    kept = [axis for axis in range(len(ctx.shape)) if axis not in taken]
    rows = [ctx.shape[axis] for axis in kept]
    # The winners' places count along the reduced axes as one, which here is last; one place more takes what none wins.
    length = prod(ctx.shape[axis] for axis in taken)
    places = indices.reshape([*rows, 1])
    spread = _place(grad.reshape([*rows, 1]), places, length, len(rows))
    apart = spread.reshape([*rows, *(ctx.shape[axis] for axis in taken)])
    order = [*kept, *taken]
    return apart.permute([order.index(axis) for axis in range(len(order))])


def _place(grad: Tensor, places: Tensor, length: Any, axis: int) -> Tensor:
    """Zeros of a length along an axis, but for each gradient at its place there; those at -1 go nowhere."""
    shape = [length + 1 if at == axis else size for at, size in enumerate(grad.shape)]
    spread = torch.zeros(shape, dtype=grad.dtype, device=grad.device)
    return spread.scatter(axis, torch.where(places < 0, length, places), grad).narrow(axis, 0, length)


# ----------------------------------------------------------------------------------------------- SegmentMax


def save_segment_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    """Keep what the gradient of SegmentMax needs: where the maxima stand, or the data to look for them."""
    data, ids, offsets, _, ctx.fill_mode, _, ctx.sorted, ctx.out_of_range, initial, return_indices, _, ctx.ties = inputs
    values, indices, empty = output
    ctx.indices = return_indices and ctx.ties == "first"
    ctx.options = len(inputs)
    ctx.rows = data.shape[0]
    ctx.mark_non_differentiable(indices, empty)
    if ctx.indices:
        ctx.save_for_backward(indices)
    else:
        ctx.save_for_backward(data, ids, offsets, values, initial)


def segment_max(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    """The gradient of SegmentMax."""
    return (_segment_max(ctx, grad), *(None,) * (ctx.options - 1))


def _segment_max(ctx: Any, grad: Tensor) -> Tensor:
    if ctx.indices:
        (indices,) = ctx.saved_tensors
        return _place(grad, indices, ctx.rows, 0)
    data, ids, offsets, values, initial = ctx.saved_tensors
    if ctx.ties == "even":
        return _segment_max_even(data.detach(), _ids(ids, offsets, ctx.rows), values.detach(), grad)
    _, indices, _ = torch.ops.maxops.segment_max(
        data.detach(),
        ids,
        offsets,
        values.shape[0],
        ctx.fill_mode,
        False,  # the ids were checked if they were to be
        ctx.sorted,
        ctx.out_of_range,
        initial,
        True,
        False,
        ctx.ties,
    )
    return _place(grad, indices, ctx.rows, 0)


def _ids(ids: Tensor | None, offsets: Tensor | None, rows: Any) -> Tensor:
    if ids is not None:
        return ids.to(torch.int64)
    assert offsets is not None
    # A row's segment is the last that begins at it or before it.
    places = torch.arange(rows, device=offsets.device, dtype=offsets.dtype)
    return torch.searchsorted(offsets, places, right=True) - 1


def _segment_max_even(data: Tensor, ids: Tensor, values: Tensor, grad: Tensor) -> Tensor:
    segments = values.shape[0]
    inside = (ids >= 0) & (ids < segments)
    # One segment more, past the others, has the rows that are left out.
    safe = torch.where(inside, ids, segments)
    more: Sequence[Any] = [1, *data.shape[1:]]
    maxima = torch.cat([values, values.new_zeros(more)]).index_select(0, safe)
    held = _holds(data, maxima) & inside.reshape([-1, *(1 for _ in data.shape[1:])])
    count = torch.zeros([segments + 1, *data.shape[1:]], dtype=torch.int64, device=data.device)
    count = count.index_add(0, safe, held.to(torch.int64))
    share = _share(torch.cat([grad, grad.new_zeros(more)]), count)
    return torch.where(held, share.index_select(0, safe), 0)
