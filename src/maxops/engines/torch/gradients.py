"""Computes the gradients of the operators, in reverse mode and in forward mode (JVP).

Depending on `ties`, the gradient goes to the first element that equals the maximum, or is split evenly among all such
elements. In forward mode, the tangent of a maximum is the tangent of the first such element, or the mean of their
tangents. Tangents are summed, so a tangent of -0.0 may become +0.0. An element equals a maximum if their bits are
equal, or if both are NaN. `initial` has no gradient: if only `initial` equals the maximum, all gradients are zero.

All functions use operators of torch or maxops, so their results support gradients, vmap and compiled graphs. Only
inputs are saved, and the maxima are recomputed, so users may change results in place before the backward pass. Each
call reads the saved tensors only once, because `torch.utils.checkpoint` supports only one read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from maxops.calls import ReduceCall, SegmentCall
from maxops.engines.torch.ids import ids_of_rows, numbered, or_else, sums, widened
from maxops.engines.torch.memory import DTYPES
from maxops.engines.torch.schemas import arguments, is_identity, reduce_call, segment_call

_WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class Held(NamedTuple):
    """A mask of the elements that receive the gradient of each maximum, and their number, or None if it is always 1.

    `spread` copies a value for each maximum to all of its elements, and `total` sums the values of its elements.
    """

    mask: Tensor
    number: Tensor | None
    spread: Callable[[Tensor], Tensor]
    total: Callable[[Tensor], Tensor]

    def gradient(self, grad: Tensor) -> Tensor:
        """Return the gradient of the elements, given the gradient of the maxima."""
        return or_else(self.mask, self.spread(_share(grad, self.number)), 0).to(grad.dtype)

    def tangent(self, tangent: Tensor) -> Tensor:
        """Return the tangent of the maxima, given the tangent of the elements."""
        moved = or_else(self.mask, tangent if self.number is None else wide(tangent), 0)
        return _share(self.total(moved), self.number).to(tangent.dtype)


def wide(tensor: Tensor) -> Tensor:
    """Convert a half-precision gradient to float32, because sums and divisions need more precision."""
    return tensor.to(torch.float32) if DTYPES[tensor.dtype].bits == 16 else tensor


def _share(total: Tensor, count: Tensor | None) -> Tensor:
    """Divide a total by the number of elements that equal the maximum."""
    if count is None:
        return total
    total = wide(total)
    return total / count.clamp(min=1).to(total.dtype)


def _save(ctx: Any, *tensors: Tensor | None) -> None:
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)


def holds(elements: Tensor, maxima: Tensor) -> Tensor:
    """Return a mask of the elements that equal their maximum: equal bits, or both NaN."""
    elements, maxima = elements.detach().resolve_neg(), maxima.detach().resolve_neg()
    word = _WORDS[elements.dtype.itemsize]
    return (elements.view(word) == maxima.view(word)) | (elements.isnan() & maxima.isnan())


def _with_outer_gradients(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Enable outer forward-mode gradients in a rule.

    By default, torch disables them in rules, so they would be zero.
    """

    @wraps(rule)
    def run(*args: Any) -> Any:
        with forward_ad._set_fwd_grad_enabled(True):
            return rule(*args)

    return run


# ------------------------------------------------------------------------------------------------------ Max


def save_maximum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Save the inputs of Max."""
    tensors, ctx.ties, ctx.nan = inputs
    _save(ctx, *tensors)


def _in_inputs(
    ctx: Any, tensors: Sequence[Tensor], needed: Sequence[bool]
) -> tuple[list[Tensor | None], Tensor | None]:
    """Return a mask of the elements of each needed input that receive the gradient.

    If `ties` is "even", also return the number of inputs that equal each maximum. Otherwise, this number is None.
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


def maximum(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradient of each argument of Max, or None for an argument without a gradient."""
    tensors, *options = ctx.needs_input_grad  # torch omits arguments with default values
    return for_inputs(ctx, grad, tensors), *(None for _ in options)


def for_inputs(ctx: Any, grad: Tensor, needed: Sequence[bool]) -> list[Tensor | None]:
    """Return the gradient of Max for each needed input, in the shape of the input."""
    tensors = ctx.saved_tensors
    held, count = _in_inputs(ctx, tensors, needed)
    whole = _share(grad, count)
    return [
        None if mask is None else sum_to(or_else(mask, whole, 0), tensor).to(grad.dtype)
        for mask, tensor in zip(held, tensors, strict=True)
    ]


def sum_to(grad: Tensor, tensor: Tensor) -> Tensor:
    """Sum a gradient over the axes along which the tensor was broadcast, in float32 for half precision."""
    extra = grad.ndim - tensor.ndim
    repeated = [axis for axis in range(grad.ndim) if axis < extra or tensor.shape[axis - extra] != grad.shape[axis]]
    return wide(grad).sum(repeated).reshape(tensor.shape) if repeated else grad


@_with_outer_gradients
def maximum_jvp(ctx: Any, tangents: Sequence[Tensor]) -> Tensor:
    """Return the forward-mode gradient of Max."""
    held, count = _in_inputs(ctx, ctx.saved_tensors, [True] * len(tangents))
    moved: Any = 0
    for mask, tangent in zip(held, tangents, strict=True):
        moved = moved + or_else(mask, wide(tangent), 0)  # type: ignore[arg-type]
    return _share(moved, count).to(tangents[0].dtype)


# ------------------------------------------------------------------------------------------------ ReduceMax


def describe_reduce_max(ctx: Any, call: ReduceCall) -> None:
    """Save the non-tensor state for the gradients of ReduceMax."""
    rank = call.data.ndim
    ctx.identity, ctx.shape, ctx.keepdims = is_identity(call), call.data.shape, bool(call.keepdims)
    ctx.axes = () if ctx.identity else tuple(axis % rank for axis in call.axes or range(rank))
    ctx.call = call._replace(data=None, axes=ctx.axes, keepdims=True, noop_with_empty_axes=False, initial=None)


def save_reduce_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Save the inputs of ReduceMax."""
    call = reduce_call(*inputs)
    describe_reduce_max(ctx, call)
    ctx.arguments = len(inputs)
    ctx.mark_non_differentiable(output[1])
    _save(ctx, *(() if ctx.identity else (call.data, call.initial)))


def _in_axes(ctx: Any) -> Held:
    data, initial = ctx.saved_tensors
    axes, is_first = ctx.axes, ctx.call.ties == "first"
    again = ctx.call._replace(data=data.detach(), initial=initial, return_indices=is_first)
    maxima, indices = torch.ops.maxops.reduce_max(*arguments(again))
    if is_first:
        sizes = [size if axis in axes else 1 for axis, size in enumerate(ctx.shape)]
        mask = numbered(indices, prod(sizes)).reshape(sizes) == indices
    else:
        mask = holds(data, maxima.expand(ctx.shape))

    def total(elements: Tensor) -> Tensor:
        return elements.sum(axes, keepdim=ctx.keepdims) if axes else elements

    return Held(mask, None if is_first else total(mask).to(torch.int64), lambda grad: grad.reshape(maxima.shape), total)


def reduce_max(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    """Return the gradient of ReduceMax."""
    return (of_reduced(ctx, grad) if ctx.needs_input_grad[0] else None, *(None,) * (ctx.arguments - 1))


def of_reduced(ctx: Any, grad: Tensor) -> Tensor:
    """Return the gradient of ReduceMax with respect to the data."""
    return grad if ctx.identity else _in_axes(ctx).gradient(grad)


@_with_outer_gradients
def reduce_max_jvp(ctx: Any, tangent: Tensor, *_: Any) -> tuple[Tensor, None]:
    """Return the forward-mode gradient of ReduceMax."""
    return tangent.clone() if ctx.identity else _in_axes(ctx).tangent(tangent), None


# ----------------------------------------------------------------------------------------------- SegmentMax


def describe_segment_max(ctx: Any, call: SegmentCall, segments: int) -> None:
    """Save the non-tensor state for the gradients of SegmentMax."""
    ctx.call = call._replace(
        data=None,
        segment_ids=None,
        offsets=None,
        initial=None,
        num_segments=segments,
        fill_mode="ZERO" if call.initial is None else None,  # no effect, because no element is in an empty segment
        fill_value=None,
        check_ids=False,  # already checked if requested
        return_empty=False,
    )


def save_segment_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    """Save the inputs of SegmentMax."""
    call = segment_call(*inputs)
    values, indices, empty = output
    describe_segment_max(ctx, call, values.shape[0])
    ctx.arguments = len(inputs)
    ctx.mark_non_differentiable(indices, empty)
    _save(ctx, call.data, call.segment_ids, call.offsets, call.initial)


def _maxima_of_segments(ctx: Any, saved: Sequence[Any]) -> Any:
    data, ids, offsets, initial = saved
    again = ctx.call._replace(
        data=data.detach(),
        segment_ids=ids,
        offsets=offsets,
        initial=initial,
        return_indices=ctx.call.ties == "first",
    )
    return torch.ops.maxops.segment_max(*arguments(again))


def _in_segments(ctx: Any) -> Held:
    data, ids, offsets, _ = saved = ctx.saved_tensors
    is_first, segments = ctx.call.ties == "first", ctx.call.num_segments
    maxima, indices, _ = _maxima_of_segments(ctx, saved)
    ids = widened(ids_of_rows(offsets, data.shape[0]) if ids is None else ids)
    # Rows without a segment are assigned to an additional segment at the end, whose gradient is zero.
    ids = or_else((ids >= 0) & (ids < segments), ids, segments).to(torch.int64)

    def spread(values: Tensor) -> Tensor:
        # torch.cat fails under vmap if the axis is the only one and is empty.
        padded = torch.nn.functional.pad(values, [0, 0] * (values.ndim - 1) + [0, 1])
        return padded.index_select(0, ids)

    def total(rows: Tensor) -> Tensor:
        return sums(rows, ids, segments + 1)[:-1]

    if is_first:
        rows = numbered(ids, data.shape[0]).reshape([data.shape[0], *(1 for _ in data.shape[1:])])
        mask = spread(indices) == rows
    else:
        mask = holds(data, spread(maxima))
    return Held(mask, None if is_first else total(mask.to(torch.int64)), spread, total)


def segment_max(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    """Return the gradient of SegmentMax."""
    return (of_rows(ctx, grad) if ctx.needs_input_grad[0] else None, *(None,) * (ctx.arguments - 1))


def of_rows(ctx: Any, grad: Tensor) -> Tensor:
    """Return the gradient of SegmentMax with respect to the data."""
    if ctx.call.ties == "even":
        return _in_segments(ctx).gradient(grad)
    # A mask would take longer, because it requires the segment of each row.
    saved = ctx.saved_tensors
    rows, indices = saved[0].shape[0], _maxima_of_segments(ctx, saved)[1]
    spread = grad.new_zeros([rows + 1, *grad.shape[1:]])  # the last row is for segments without an index
    return spread.scatter(0, or_else(indices >= 0, indices, rows), grad).narrow(0, 0, rows)


@_with_outer_gradients
def segment_max_jvp(ctx: Any, tangent: Tensor, *_: Any) -> tuple[Tensor, None, None]:
    """Return the forward-mode gradient of SegmentMax."""
    return _in_segments(ctx).tangent(tangent), None, None
