"""A fast path for calls on plain tensors that require gradients but no other feature of torch.

Valid calls are not planned, and the core computes their gradients. The module `gradients` computes higher-order
gradients, and all other gradients that the core does not support.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from maxops import _native
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines import numpy as engine
from maxops.engines.torch import gradients, memory
from maxops.engines.torch.dispatch import PLAIN, core_is_off, modes_are_active

_MOST = 8  # the maximum number of inputs for which the core computes gradients
_NUMBERS = (float, int, bool)
# Empty arrays. If `initial` is passed, it is their maximum.
_EMPTY = {dtype: np.empty(0, row.numpy) for dtype, row in memory.DTYPES.items()}


def _dense_order(tensor: Tensor) -> list[int]:
    """Return the axes of a tensor in order of decreasing stride."""
    return sorted(range(tensor.ndim), key=tensor.stride().__getitem__, reverse=True)


def _as_taken(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """Permute the axes of a tensor, and return it as a C-contiguous tensor."""
    return tensor.permute([*order]).contiguous()


def _as_given(found: Tensor, order: Sequence[int]) -> Tensor:
    """Undo `_as_taken`."""
    return found.permute([order.index(axis) for axis in range(len(order))])


def at_once(arrays: Iterable[Any]) -> list[Any] | None:
    """Return the memory of the arguments for a direct call of the core, or None if more checks are necessary.

    `Tensor.numpy` itself rejects other devices and layouts. Gradients are checked first, because a view with another
    dtype would hide them. Catching the error that `numpy` raises would also take longer than the rest of a small call.
    """
    if modes_are_active() or core_is_off():
        return None
    views = []
    try:
        for array in arrays:
            if type(array) not in PLAIN:
                views.append(array)
            elif (array.requires_grad and torch.is_grad_enabled()) or not memory.has_memory(array):
                return None
            else:
                is_plain = array.dtype in memory.NATIVE and not array.requires_grad
                views.append(array.numpy() if is_plain else memory.view(array))
    except (RuntimeError, TypeError, ValueError):
        return None
    return views


def _spread(
    ties: str, tensors: Sequence[Tensor], needed: int, maxima: Tensor, gradient: Tensor,
    length: int = 1, inner: int = 1, ids: Tensor | None = None, by_offsets: bool = False,
) -> tuple[Any, ...] | None:  # fmt: skip
    """Return the gradients of the tensors whose bits in `needed` are set, or None if the core does not support them.

    If the core does not accept the tensors (large calls, torch before 2.10), they are passed as arrays.
    """
    options, tensors = (ties == "first", needed, length, inner), (maxima, gradient.contiguous(), *tensors)
    found = _native.spread(*options, ids, by_offsets, *tensors)
    if found is None:
        if ids is not None:
            ids = ids.clone()  # other threads can change the ids during a large call
        arrays = at_once((ids, *tensors))
        found = None if arrays is None else _native.spread(*options, arrays[0], by_offsets, *arrays[1:])
        return found and tuple([each if each is None else memory.tensor_of(each) for each in found])
    return found


def _is_last() -> bool:
    """Return whether no higher-order gradients are required, and no mode or transform is active."""
    return not (torch.is_grad_enabled() or modes_are_active())


def has_gradients_alone(*values: Any) -> bool:
    """Return whether a call on plain CPU tensors and numbers requires gradients but no other feature of torch."""
    if not torch.is_grad_enabled():
        return False
    requires_grad = False
    for value in values:
        if type(value) in PLAIN and value.is_cpu:
            requires_grad = requires_grad or value.requires_grad
        elif type(value) not in _NUMBERS:
            return False
    return requires_grad and not (modes_are_active() or core_is_off())


def takes_axes(axes: Any) -> bool:
    """Return whether `ReduceMax` accepts these axes."""
    return axes is None or (type(axes) in (list, tuple) and all(type(axis) is int for axis in axes))


def takes_scalars(*values: Any) -> bool:
    """Return whether each of `initial` and `fill_value` is a number, or None."""
    return all(value is None or type(value) in _NUMBERS for value in values)


def tensors_of(values: Sequence[Any]) -> list[Tensor] | None:
    """Return the values, with each number converted to a tensor of rank 0, or None if the core rejects a number."""
    tensors = []
    for value in values:
        if type(value) in PLAIN:
            tensors.append(value)
            continue
        like = next(each for each in values if type(each) in PLAIN)
        number = _native.reduce_max(_EMPTY.get(like.dtype), keepdims=False, initial=value)
        if number is None:
            return None
        tensors.append(memory.tensor_of(number))
    return tensors


class Maximum(Function):
    """The autograd function of Max. Its arguments are a function that runs calls, the call, and the inputs."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[MaxCall], Tensor], call: MaxCall, *tensors: Tensor) -> Tensor:
        """Run the call."""
        ctx.run, ctx.ties, ctx.nan = run, call.ties, call.nan
        ctx.save_for_backward(*tensors)
        result = _native.maximum(*tensors, nan=call.nan)
        return run(call) if result is None else result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Return the gradients of the inputs."""
        needed, tensors = ctx.needs_input_grad[2:], ctx.saved_tensors
        if _is_last() and len(tensors) <= _MOST and (found := _of_inputs(ctx, tensors, needed, grad)) is not None:
            return None, None, *found
        kept = SimpleNamespace(saved_tensors=tensors, ties=ctx.ties, nan=ctx.nan)  # do not read them again
        return None, None, *gradients.for_inputs(kept, grad, needed)


def _of_inputs(ctx: Any, tensors: Sequence[Tensor], needed: Sequence[bool], grad: Tensor) -> Any:
    """Return the native gradients of Max, or None if the core does not support the tensors.

    The core itself broadcasts a tensor with one element if it needs no gradient. Other tensors that are broadcast or
    not in C order are copied.
    """
    taken, of_result, order = tensors, grad, None
    is_whole = [tensor.shape == grad.shape for tensor in tensors]
    is_repeated = [not need and tensor.numel() == 1 for need, tensor in zip(needed, tensors, strict=True)]
    if not all(
        repeated or (whole and tensor.is_contiguous())
        for repeated, whole, tensor in zip(is_repeated, is_whole, tensors, strict=True)
    ):
        order = _dense_order(next(itertools.compress(tensors, is_whole), grad))
        taken = [
            tensor if repeated else _as_taken(tensor.expand(grad.shape), order)
            for repeated, tensor in zip(is_repeated, tensors, strict=True)
        ]
        is_summed = ctx.ties == "even" and not all(itertools.compress(is_whole, needed))
        of_result = _as_taken(gradients.wide(grad) if is_summed else grad, order)
    bits = sum(1 << place for place, is_needed in enumerate(needed) if is_needed)
    maxima = _native.maximum(*taken, nan=ctx.nan)
    if maxima is None:
        maxima = ctx.run(MaxCall(taken, nan=ctx.nan))
    found = _spread(ctx.ties, taken, bits, maxima, of_result, inner=max(1, grad.numel()))
    if order is None or found is None:
        return found
    return [
        each if each is None else gradients.sum_to(_as_given(each, order), tensor).to(grad.dtype)
        for each, tensor in zip(found, tensors, strict=True)
    ]


class ReduceMax(Function):
    """The autograd function of ReduceMax. Its arguments are a function that runs calls, the call, and the data."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[ReduceCall], Any], call: ReduceCall, data: Tensor) -> Any:
        """Run the call."""
        ctx.run, ctx.request = run, call._replace(data=None)
        ctx.save_for_backward(data)
        result = _native.reduce_max(
            data, call.axes, call.keepdims, initial=call.initial, return_indices=call.return_indices, nan=call.nan
        )
        if result is None:
            result = run(call)
        if call.return_indices:
            ctx.mark_non_differentiable(result[1])
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        """Return the gradient of the data."""
        (data,) = ctx.saved_tensors
        call = ctx.request._replace(data=data)
        if _is_last() and (found := _of_reduction(ctx.run, call, grad)) is not None:
            return None, None, found
        kept = SimpleNamespace(saved_tensors=(data, _initial(call)))
        gradients.describe_reduce_max(kept, call)
        return None, None, gradients.of_reduced(kept, grad)


def _initial(call: ReduceCall | SegmentCall) -> Tensor | None:
    """Return the initial value of a call as a tensor, if passed."""
    if call.initial is None:
        return None
    # the NumPy engine also converts numbers that the core does not take, such as 2**70
    return memory.tensor_of(engine.run(ReduceCall(_EMPTY[call.data.dtype], keepdims=False, initial=call.initial)))


def _of_reduction(run: Callable[[ReduceCall], Any], call: ReduceCall, grad: Tensor) -> Tensor | None:
    """Return the native gradient of ReduceMax, or None if the core does not support it."""
    data, rank = call.data, call.data.ndim
    axes = sorted(axis % rank for axis in call.axes or range(rank))
    if not axes:
        return None
    order = None
    if not data.is_contiguous() or axes[-1] - axes[0] + 1 != len(axes):
        order = _dense_order(data)
        places = [order.index(axis) for axis in axes]
        is_in_order = places == sorted(places) or call.ties == "even"  # "first" means first in C order
        if not is_in_order or max(places) - min(places) + 1 != len(axes):
            order = [*(axis for axis in range(rank) if axis not in axes), *axes]
        grad = _as_taken(grad.reshape([1 if axis in axes else data.shape[axis] for axis in range(rank)]), order)
        data, axes = _as_taken(data, order), sorted(order.index(axis) for axis in axes)
        call = call._replace(data=data, axes=axes, keepdims=True)
    length, inner = prod(data.shape[axes[0] : axes[-1] + 1]), prod(data.shape[axes[-1] + 1 :])
    if not length or not inner:
        return None
    maxima = _native.reduce_max(data, call.axes, call.keepdims, initial=call.initial, nan=call.nan)
    if maxima is None:
        maxima = run(call._replace(return_indices=False))
    found = _spread(call.ties, [data], 1, maxima, grad, length, inner)
    if found is None:
        return None
    return found[0] if order is None else _as_given(found[0], order)


_OPTIONS = {
    name: default for name, default in SegmentCall._field_defaults.items() if name not in ("ties", "dim", "row", "out")
}


def _options(call: SegmentCall) -> dict[str, Any]:
    """Return the options of a call that differ from their defaults."""
    return {name: value for name, default in _OPTIONS.items() if (value := getattr(call, name)) is not default}


class SegmentMax(Function):
    """The autograd function of SegmentMax along axis 0. Its arguments include the call, and the ids or offsets."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[SegmentCall], Any], call: SegmentCall, data: Tensor, ids: Tensor) -> Any:
        """Run the call."""
        result = _native.segment_max(data, **_options(call))
        if result is None:
            result = run(call)
        values, *others = result if isinstance(result, tuple) else (result,)
        ctx.run = run
        ctx.request = call._replace(data=None, segment_ids=None, offsets=None, num_segments=values.shape[0])
        by_offsets = call.offsets is not None
        ctx.save_for_backward(data, None if by_offsets else ids, ids if by_offsets else None)
        ctx.mark_non_differentiable(*others)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        """Return the gradient of the data."""
        data, ids, offsets = ctx.saved_tensors
        call = ctx.request._replace(data=data, segment_ids=ids, offsets=offsets)
        if _is_last() and (found := _of_segments(ctx.run, call, grad)) is not None:
            return None, None, found, None
        kept = SimpleNamespace(saved_tensors=(data, ids, offsets, _initial(call)))
        gradients.describe_segment_max(kept, call, call.num_segments)
        return None, None, gradients.of_rows(kept, grad), None


def _of_segments(run: Callable[[SegmentCall], Any], call: SegmentCall, grad: Tensor) -> Tensor | None:
    """Return the native gradient of SegmentMax, or None if the core does not support it."""
    call = call._replace(data=call.data.contiguous())
    fill_mode = "ZERO" if call.initial is None else None
    again = call._replace(
        fill_mode=fill_mode, fill_value=None, check_ids=False, return_indices=False, return_empty=False
    )
    maxima = _native.segment_max(call.data, **_options(again))
    if maxima is None:
        maxima = run(again)
    ids, by_offsets = (call.segment_ids, False) if call.offsets is None else (call.offsets, True)
    inner = max(1, prod(call.data.shape[1:]))
    found = _spread(call.ties, [call.data], 1, maxima, grad, inner=inner, ids=ids, by_offsets=by_offsets)
    return None if found is None else found[0]


maximum: Any = Maximum.apply
reduce_max: Any = ReduceMax.apply
segment_max: Any = SegmentMax.apply
