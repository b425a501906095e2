"""Implements the operators with torch's own operators, for every device except the CPU, which uses the native core.

Torch does not specify the bits of NaN or the sign of zero in float maxima, and its maxima depend on whether a device
flushes subnormals. Therefore, float operations are used only to detect NaN. All other operations use integers:

- For floats, `maximum` and `reduce_max` compute the highest and the lowest bit pattern as signed integers. If the
  highest is nonnegative, it belongs to the maximum. Otherwise, all sign bits are set, which reverses the order, so the
  lowest belongs to the maximum.
- Indices, segment maxima and maxima that ignore NaN are computed from the integer keys of `maxops.order`. Creating keys
  takes less time than a scatter operation.

These functions plan each call, because `torch.ops.maxops` and compiled graphs pass unchecked values to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from maxops import dtypes, order
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.dtypes import DType
from maxops.engines.torch.ids import ids_of_rows, offsets_are_valid, widened
from maxops.engines.torch.kernels import nothing
from maxops.engines.torch.memory import DTYPES, checked, laid_out
from maxops.engines.torch.schemas import reduce_call, segment_call
from maxops.errors import OutputTooLargeError
from maxops.plan import (
    Plan,
    bits_of,
    check_offsets,
    check_segment_ids,
    default_num_segments,
    plan_max,
    plan_reduce_max,
    plan_segment_max,
)
from maxops.plan.output import output_of
from maxops.shapes import Shape
from maxops.spec import SEGMENT_MAX

_keys = partial(order.keys_of, torch)
_values = partial(order.values_of, torch)
_Fold = Callable[[Sequence[Tensor]], Tensor]


def maximum(tensors: Sequence[Tensor], ties: str, nan: str = "propagate") -> Tensor:
    """Compute Max."""
    plan = plan_max(checked(MaxCall(tensors, ties=ties, nan=nan)), in_memory=False)
    result = _highest(plan.dtype, nan, tensors, partial(reduce, torch.maximum), partial(reduce, torch.minimum))
    return laid_out(result.clone() if len(tensors) == 1 else result, tensors)


def reduce_max(*inputs: Any) -> tuple[Tensor, Tensor]:
    """Compute ReduceMax."""
    call: ReduceCall = reduce_call(*inputs)
    plan = plan_reduce_max(checked(call), in_memory=False)
    data, dtype, planned, indices = call.data, plan.dtype, plan.call, nothing(call.data)
    keys_of, values_of = (partial(function, dtype=dtype, nan=planned.nan) for function in (_keys, _values))
    axes, keepdims, return_indices = planned.axes, planned.keepdims, planned.return_indices
    if planned.noop_with_empty_axes:
        if return_indices:
            indices = torch.zeros(data.shape, dtype=torch.int64, device=data.device)
        return laid_out(data.clone(), [data]), indices
    if data.numel() == 0:
        bits = dtype.lowest_bits if call.initial is None else order.identity_bits(dtype, planned.nan)
        values = order.filled(torch, plan.shape, bits, dtype, device=data.device)
        if return_indices:
            indices = torch.full(plan.shape, -1, device=data.device)
    elif return_indices:
        kept = [axis for axis in range(data.ndim) if axis not in axes]
        rows = keys_of(data).permute([*kept, *sorted(axes)]).reshape([*(data.shape[axis] for axis in kept), -1])
        keys, indices = rows.max(-1)
        values, indices = values_of(keys.reshape(plan.shape)), indices.reshape(plan.shape)
    else:
        values = _highest(
            dtype,
            planned.nan,
            [data],
            lambda whole: torch.amax(whole[0], axes, keepdims),
            lambda whole: torch.amin(whole[0], axes, keepdims),
        )
    if call.initial is not None:
        keys, first = keys_of(values), keys_of(call.initial)
        values = values_of(torch.maximum(keys, first))
        indices = torch.where(first > keys, -1, indices) if return_indices else indices
    return values, indices


def segment_max(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Compute SegmentMax.

    The host waits until the device has checked the ids or offsets. Without `num_segments`, it also waits for the
    highest id. If a check fails, all ids or offsets are copied to the host for the message.
    """
    call: SegmentCall = segment_call(*inputs)
    plan = plan_segment_max(checked(call), in_memory=False, values_known=False)
    data, dtype, planned = call.data, plan.dtype, plan.call
    keys_of, values_of = (partial(function, dtype=dtype, nan=planned.nan) for function in (_keys, _values))
    ids, count = _segments(call, plan)
    shape = (count + 1, *data.shape[1:])  # the last segment is for rows without a segment

    def column(flags: Tensor) -> Tensor:
        return flags.reshape([-1, *(1 for _ in shape[1:])])

    keys, index = keys_of(data), column(ids).expand(data.shape)
    top = _full(data, shape, torch.iinfo(keys.dtype).min, keys.dtype).scatter_reduce_(0, index, keys, "amax")
    has_rows = _full(data, shape[:1], 0, torch.bool).index_fill_(0, ids, True)
    if call.initial is not None:
        empty = keys_of(call.initial)
        top = torch.maximum(top, empty)
    elif call.fill_value is not None:
        empty = keys_of(call.fill_value)
    else:
        empty = keys_of(order.filled(torch, (), bits_of(planned.fill_value, dtype), dtype, device=data.device))
    values = values_of(torch.where(column(has_rows[:count]), top[:count], empty))
    indices = nothing(data)
    if planned.return_indices:
        rows = column(torch.arange(len(ids), device=data.device))
        held = torch.where(keys == top.index_select(0, ids), rows, len(ids))
        first = _full(data, shape, len(ids), torch.int64).scatter_reduce_(0, index, held, "amin")[:count]
        indices = torch.where(first == len(ids), -1, first)
    return values, indices, ~has_rows[:count] if planned.return_empty else nothing(data, torch.bool)


def _highest(dtype: DType, nan: str, tensors: Sequence[Tensor], top: _Fold, bottom: _Fold) -> Tensor:
    """Return the maxima, given functions that compute the highest (`top`) and the lowest (`bottom`) elements."""
    if dtype is dtypes.UINT8:  # the only unsigned dtype for which torch computes maxima
        return top(tensors)
    if dtype.kind != "float" or nan == "ignore":
        return _values(top([_keys(tensor, dtype, nan) for tensor in tensors]), dtype, nan)  # type: ignore[no-any-return]
    bits = [tensor.view(getattr(torch, f"int{dtype.bits}")) for tensor in tensors]
    high, low, is_nan = top(bits), bottom(bits), top(tensors).isnan()
    return torch.where(high < 0, low, high).masked_fill_(is_nan, dtype.nan_bits).view(tensors[0].dtype)


def _segments(call: SegmentCall, plan: Plan[SegmentCall]) -> tuple[Tensor, int]:
    """Return the segment of each row, and the number of segments. This number also marks rows without a segment."""
    planned = plan.call
    count = planned.num_segments
    if call.offsets is not None:
        if planned.check_ids and not offsets_are_valid(call.offsets, len(call.data)):
            check_offsets(call.row, call.offsets.cpu().numpy(), len(call.data))
        ids = ids_of_rows(call.offsets, len(call.data))
    else:
        ids = widened(call.segment_ids).to(torch.int64)
        if planned.check_ids:
            _check_ids(call, planned, ids)
        if call.num_segments is None:
            count = default_num_segments(ids, planned.sorted)
            output_of(call.row, None, plan.dtype, (count, *plan.shape[1:]), "shape", in_memory=False)
    return torch.where(ids < 0, count, ids).clamp_(max=count), count


def _check_ids(call: SegmentCall, planned: SegmentCall, ids: Tensor) -> None:
    """Raise the planner's error if an id is invalid."""
    limit = None if call.num_segments is None else planned.num_segments
    wrong = []
    if planned.sorted:
        keys = _keys(call.segment_ids, DTYPES[call.segment_ids.dtype])  # widening uint64 ids may not be exact
        wrong.append((keys[1:] < keys[:-1]).any())
    if planned.out_of_range != "drop":
        wrong.append((ids < 0).any())
    if planned.out_of_range == "error" and limit is not None:
        wrong.append((ids >= limit).any())
    if wrong and torch.stack(wrong).any():
        check_segment_ids(
            call.row,
            call.segment_ids.cpu().numpy(),
            sorted=planned.sorted,
            out_of_range=planned.out_of_range,
            num_segments=limit,
        )


def _full(data: Tensor, shape: Shape, value: int, dtype: torch.dtype) -> Tensor:
    """Return a new tensor filled with one value, on the data's device."""
    try:
        return torch.full(shape, value, dtype=dtype, device=data.device)
    except (RuntimeError, TypeError) as error:  # out of memory, or an axis size beyond int64
        raise OutputTooLargeError(
            f"{SEGMENT_MAX.name} cannot allocate a tensor of shape {shape} and dtype {dtype} on {data.device}: {error}",
            SEGMENT_MAX.clause("value"),
        ) from error
