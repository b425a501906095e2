"""Computes forward-mode gradients (JVP), for `torch.func.jvp` and similar functions.

The tangent of a maximum is the tangent of the first element that equals it, or the mean tangent of all elements that
equal it. The option `ties` selects the rule, as for backward gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from torch import Tensor
from torch.autograd import forward_ad

from maxops.engines.torch import argmax
from maxops.engines.torch.ids import or_else, sums
from maxops.shapes import reduced


def _with_outer_gradients(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Enable outer forward-mode gradients in a rule. Torch disables them there, so that they would be zero."""

    @wraps(rule)
    def run(*args: Any) -> Any:
        with forward_ad._set_fwd_grad_enabled(True):
            return rule(*args)

    return run


@_with_outer_gradients
def maximum(ctx: Any, tangents: Sequence[Tensor]) -> Tensor:
    """Return the forward-mode gradient of Max."""
    held, count = argmax.in_inputs(ctx, ctx.saved_tensors, [True] * len(tangents))
    moved: Any = 0
    for mask, tangent in zip(held, tangents, strict=True):
        moved = moved + or_else(mask, argmax.wide(tangent), 0)  # type: ignore[arg-type]
    return (moved if count is None else argmax.share(moved, count)).to(tangents[0].dtype)


@_with_outer_gradients
def reduce_max(ctx: Any, tangent: Tensor, *_: Any) -> tuple[Tensor, None]:
    """Return the forward-mode gradient of ReduceMax."""
    return _reduce_max(ctx, tangent), None


def _reduce_max(ctx: Any, tangent: Tensor) -> Tensor:
    if ctx.identity:
        return tangent.clone()
    shape = reduced(ctx.shape, ctx.axes, keepdims=ctx.call.keepdims)
    if ctx.call.ties == "even":
        held, count = argmax.mask_in_axes(ctx)
        moved = or_else(held, argmax.wide(tangent), 0)
        total = moved.sum(ctx.axes, keepdim=True) if ctx.axes else moved
        return argmax.share(total, count).reshape(shape).to(tangent.dtype)
    order, rows, length = argmax.reduced_last(ctx)
    flat = tangent.permute(order).reshape([*rows, length])
    return argmax.take(flat, argmax.in_axes(ctx).reshape([*rows, 1]), len(rows)).reshape(shape)


@_with_outer_gradients
def segment_max(ctx: Any, tangent: Tensor, *_: Any) -> tuple[Tensor, None, None]:
    """Return the forward-mode gradient of SegmentMax."""
    return _segment_max(ctx, tangent), None, None


def _segment_max(ctx: Any, tangent: Tensor) -> Tensor:
    if ctx.call.ties == "first":
        return argmax.take(tangent, argmax.in_segments(ctx), 0)
    held, ids, count = argmax.mask_in_segments(ctx)
    moved = or_else(held, argmax.wide(tangent), 0)
    return argmax.share(sums(moved, ids, ctx.segments + 1), count)[:-1].to(tangent.dtype)
