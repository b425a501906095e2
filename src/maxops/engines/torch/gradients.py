"""Computes the gradients of the operators.

The first element that equals the maximum receives the gradient, or the gradient is split evenly among all such
elements. `initial` has no gradient: if only `initial` equals the maximum, all gradients are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from maxops.engines.torch import argmax
from maxops.engines.torch.ids import or_else


def maximum(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradient of each argument of Max, or None for an argument without a gradient."""
    tensors, *options = ctx.needs_input_grad  # torch omits arguments with default values
    return for_inputs(ctx, grad, tensors), *(None for _ in options)


def for_inputs(ctx: Any, grad: Tensor, needed: Sequence[bool]) -> list[Tensor | None]:
    """Return the gradient of Max for each needed input, in the shape of the input."""
    tensors = ctx.saved_tensors
    held, count = argmax.in_inputs(ctx, tensors, needed)
    whole = grad if count is None else argmax.share(argmax.wide(grad), count)
    return [
        None if mask is None else sum_to(or_else(mask, whole, 0), tensor).to(grad.dtype)
        for mask, tensor in zip(held, tensors, strict=True)
    ]


def sum_to(grad: Tensor, tensor: Tensor) -> Tensor:
    """Sum a gradient over the axes along which the tensor was broadcast, in float32 for half precision."""
    extra = grad.ndim - tensor.ndim
    repeated = [axis for axis in range(grad.ndim) if axis < extra or tensor.shape[axis - extra] != grad.shape[axis]]
    return argmax.wide(grad).sum(repeated).reshape(tensor.shape) if repeated else grad


def reduce_max(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    """Return the gradient of ReduceMax."""
    return (of_reduced(ctx, grad) if ctx.needs_input_grad[0] else None, *(None,) * (ctx.arguments - 1))


def of_reduced(ctx: Any, grad: Tensor) -> Tensor:
    """Return the gradient of ReduceMax with respect to the data."""
    if ctx.identity:
        return grad
    if ctx.call.ties == "even":
        held, count = argmax.mask_in_axes(ctx)
        return or_else(held, argmax.share(argmax.wide(grad.reshape(count.shape)), count), 0).to(grad.dtype)
    order, rows, length = argmax.reduced_last(ctx)
    spread = argmax.put(grad.reshape([*rows, 1]), argmax.in_axes(ctx).reshape([*rows, 1]), length, len(rows))
    return spread.reshape([ctx.shape[axis] for axis in order]).permute([order.index(at) for at in range(len(order))])


def segment_max(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    """Return the gradient of SegmentMax."""
    return (of_rows(ctx, grad) if ctx.needs_input_grad[0] else None, *(None,) * (ctx.arguments - 1))


def of_rows(ctx: Any, grad: Tensor) -> Tensor:
    """Return the gradient of SegmentMax with respect to the data."""
    if ctx.call.ties == "first":
        return argmax.put(grad, argmax.in_segments(ctx), ctx.rows, 0)
    held, ids, count = argmax.mask_in_segments(ctx)
    whole = argmax.wide(argmax.padded(grad, 0))
    return or_else(held, argmax.share(whole, count).index_select(0, ids), 0).to(grad.dtype)
