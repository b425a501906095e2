"""Where maxima stand, as gradients need it: masks of the elements that hold them, or the places of the first ones.

An element holds a maximum if the order has both equal: bits alike, or both NaN. All is made of torch's own operators,
so that what is computed from it has gradients, batches and graphs in its turn. What `keep` keeps, the others use.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from maxops.engines.torch.memory import DTYPES

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def keep(ctx: Any, *tensors: Tensor | None) -> None:
    """Keep tensors for gradients of both directions."""
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)


def holds(elements: Tensor, maxima: Tensor) -> Tensor:
    """Whether the order has each element equal to its maximum."""
    elements, maxima = elements.detach(), maxima.detach()
    word = _WORDS[elements.dtype.itemsize]
    return (elements.view(word) == maxima.view(word)) | (elements.isnan() & maxima.isnan())


def share(total: Tensor, count: Tensor) -> Tensor:
    """An equal part for each of those that hold a maximum; half types do not count far."""
    wide = torch.float32 if DTYPES[total.dtype].bits == 16 else total.dtype
    return (total.to(wide) / count.clamp(min=1).to(wide)).to(total.dtype)


def put(values: Tensor, places: Tensor, length: Any, axis: int) -> Tensor:
    """Zeros of a length along an axis, but for each value at its place there; those at -1 go nowhere."""
    shape = [length + 1 if at == axis else size for at, size in enumerate(values.shape)]
    spread = torch.zeros(shape, dtype=values.dtype, device=values.device)  # the last place takes what goes nowhere
    return spread.scatter(axis, torch.where(places < 0, length, places), values).narrow(axis, 0, length)


def take(values: Tensor, places: Tensor, axis: int) -> Tensor:
    """The value at each place along an axis, and zero for those at -1."""
    length = values.shape[axis]
    shape = [1 if at == axis else size for at, size in enumerate(values.shape)]
    return torch.cat([values, values.new_zeros(shape)], axis).gather(axis, torch.where(places < 0, length, places))


# ------------------------------------------------------------------------------------------------------ Max


def keep_maximum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """For Max: the inputs and the output."""
    tensors, ctx.ties = inputs
    keep(ctx, *tensors, output)


def in_inputs(ctx: Any) -> tuple[list[Tensor], Tensor | None]:
    """Which input gets how much: a mask for each, and how many share, or None if one has all."""
    *tensors, output = ctx.saved_tensors
    held = [holds(tensor.expand(output.shape), output) for tensor in tensors]
    if ctx.ties == "even":
        count = held[0].to(torch.int64)
        for mask in held[1:]:
            count = count + mask
        return held, count
    first, before = [held[0]], held[0]
    for mask in held[1:]:
        first.append(mask & ~before)
        before = before | mask
    return first, None


# ------------------------------------------------------------------------------------------------ ReduceMax


def keep_reduce_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """For ReduceMax: the places of the maxima if they are there, or the data to look for them."""
    data, axes, ctx.keepdims, noop, initial, return_indices, ctx.ties = inputs
    ctx.axes = tuple(axis % data.ndim for axis in axes) if axes else () if noop else tuple(range(data.ndim))
    ctx.identity, ctx.placed = bool(noop and not axes), bool(return_indices and ctx.ties == "first")
    ctx.shape, ctx.arguments = data.shape, len(inputs)
    ctx.mark_non_differentiable(output[1])
    if ctx.identity:
        keep(ctx)
    elif ctx.placed:
        keep(ctx, output[1])
    else:
        keep(ctx, data, output[0], initial)


def in_axes(ctx: Any) -> Any:
    """The places of the first winners along the reduced axes, counted as one axis."""
    if ctx.placed:
        return ctx.saved_tensors[0]
    data, _, initial = ctx.saved_tensors
    found = torch.ops.maxops.reduce_max(data.detach(), ctx.axes, ctx.keepdims, False, initial, True, ctx.ties)
    return found[1]


def mask_in_axes(ctx: Any) -> tuple[Tensor, Tensor]:
    """Which elements hold the maximum, and how many, with the reduced axes kept."""
    data, maxima, _ = ctx.saved_tensors
    shape = [1 if axis in ctx.axes else size for axis, size in enumerate(ctx.shape)]
    held = holds(data, maxima.reshape(shape).expand(ctx.shape))
    return held, held.sum(ctx.axes, keepdim=True) if ctx.axes else held.to(torch.int64)


# ----------------------------------------------------------------------------------------------- SegmentMax


def keep_segment_max(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    """For SegmentMax: the places of the maxima if they are there, or the data to look for them."""
    data, ids, offsets, _, ctx.fill_mode, _, ctx.sorted, ctx.out_of_range, initial, return_indices, _, ctx.ties = inputs
    values, indices, empty = output
    ctx.placed = bool(return_indices and ctx.ties == "first")
    ctx.rows, ctx.arguments = data.shape[0], len(inputs)
    ctx.mark_non_differentiable(indices, empty)
    if ctx.placed:
        keep(ctx, indices)
    else:
        keep(ctx, data, ids, offsets, values, initial)


def in_segments(ctx: Any) -> Any:
    """The first row that holds each maximum."""
    if ctx.placed:
        return ctx.saved_tensors[0]
    data, ids, offsets, values, initial = ctx.saved_tensors
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
    return indices


def mask_in_segments(ctx: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Which elements hold the maximum; the segment of each row; how many hold it in each segment and column.

    One segment past the others has the rows that are left out.
    """
    data, ids, offsets, values, _ = ctx.saved_tensors
    segments, row = values.shape[0], list(data.shape[1:])
    if ids is None:
        # A row's segment is the last that begins at it or before it.
        places = torch.arange(ctx.rows, device=offsets.device, dtype=offsets.dtype)
        ids = torch.searchsorted(offsets, places, right=True) - 1
    inside = (ids >= 0) & (ids < segments)
    ids = torch.where(inside, ids, segments).to(torch.int64)
    maxima = torch.cat([values.detach(), values.new_zeros([1, *row])]).index_select(0, ids)
    held = holds(data, maxima) & inside.reshape([-1, *(1 for _ in row)])
    count = torch.zeros([segments + 1, *row], dtype=torch.int64, device=data.device)
    return held, ids, count.index_add(0, ids, held.to(torch.int64))
