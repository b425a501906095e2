"""The engine for PyTorch's tensors on a CUDA device: Triton kernels on integer keys, the same bits as everywhere.

    order, walk                     inside kernels: bits <-> keys; offsets through axes
    fold_, reduce_, segment_, ids_kernels   what runs on the device
    fold, reduce, segment, ids      launches: how many programs, of which tiles
    axes, device, tensors           axes merged; the device's size; the checks of tensors

It has no gradients and no `torch.compile`: those are the business of who calls it. Nothing comes to the host but
what the functions below say, and kernels go to PyTorch's current stream.

With TRITON_INTERPRET=1, set before Triton is imported, the kernels run in Triton's interpreter on tensors in the
CPU's memory: that is for tests.
"""

from __future__ import annotations

from typing import Any

import torch

from maxops import spec
from maxops.engines.gpu import fold, reduce, segment, tensors
from maxops.engines.gpu.order import Order
from maxops.engines.numpy import check_no_dim, check_ties
from maxops.engines.torch.memory import widened
from maxops.plan import plan_max, plan_reduce_max, plan_segment_max


def maximum(*arrays: Any, out: Any = None, ties: str = "first") -> Any:
    """See `maxops.maximum`. Python and NumPy scalars beside the tensors go into the kernel; nothing is waited for."""
    row = spec.MAXIMUM
    check_ties(row, ties)
    named = [(f"input {number}", value) for number, value in enumerate(arrays)]
    where = tensors.check(row, [*named, ("out", out)])
    plan = plan_max(row, [tensors.planned(row, name, value) for name, value in named], in_memory=False)
    order = Order(plan.dtype)
    given = [value for value in arrays if isinstance(value, torch.Tensor)]
    constants = [
        order.constant_of(array).key
        for array, value in zip(plan.inputs, arrays, strict=True)
        if not isinstance(value, torch.Tensor)
    ]
    tensors.check_out(row, out, given[0].dtype, plan.shape, where)
    alike = all(value.shape == given[0].shape and value.stride() == given[0].stride() for value in given)
    if alike and tuple(given[0].shape) == plan.shape:
        result = torch.empty_like(given[0], requires_grad=False)  # its layout too: then all is one line
    else:
        result = tensors.new(row, plan.shape, given[0].dtype, where)
    inputs = [tensors.bits(value, order.storage).expand(plan.shape) for value in given]
    fold.maximum(inputs, max(constants, default=None), tensors.bits(result, order.storage), order)
    return tensors.give(result, out)


def reduce_max(
    data: Any,
    axes: Any = None,
    keepdims: bool = True,
    noop_with_empty_axes: bool = False,
    out: Any = None,
    *,
    dim: Any = None,
    initial: Any = None,
    return_indices: bool = False,
    ties: str = "first",
) -> Any:
    """See `maxops.reduce_max`. Nothing is waited for, but for an `initial` on the device, which comes to the host."""
    row = spec.REDUCE_MAX
    check_ties(row, ties)
    check_no_dim(row, dim)
    where = tensors.check(row, [("data", data), ("out", out)])
    plan = plan_reduce_max(
        row,
        tensors.planned(row, "data", data),
        axes,
        keepdims,
        noop_with_empty_axes,
        initial=tensors.scalar(initial),
        return_indices=return_indices,
        in_memory=False,
    )
    order = Order(plan.dtype)
    tensors.check_out(row, out, data.dtype, plan.shape, where)
    if plan.identity:
        zeros = tensors.new(row, plan.shape, torch.int64, where).zero_() if plan.return_indices else None
        result = tensors.give(data.detach().clone(), out)
        return result if zeros is None else (result, zeros)
    result = tensors.new(row, plan.shape, data.dtype, where)
    places = tensors.new(row, plan.shape, torch.int64, where) if plan.return_indices else None
    first = None if plan.initial is None else order.constant_of(plan.initial)
    source, target = tensors.bits(data, order.storage), tensors.bits(result, order.storage)
    reduce.reduce_max(source, plan.axes, first, target, places, order)
    result = tensors.give(result, out)
    return result if places is None else (result, places)


def segment_max(
    data: Any,
    segment_ids: Any = None,
    num_segments: Any = None,
    *,
    fill_mode: str | None = None,
    out: Any = None,
    check_ids: bool = True,
    offsets: Any = None,
    sorted: bool = True,
    out_of_range: str | None = None,
    dim: Any = None,
    initial: Any = None,
    return_indices: bool = False,
    return_empty: bool = False,
    ties: str = "first",
) -> Any:
    """See `maxops.segment_max`.

    What comes to the host, and is waited for: of a check, the first position that is wrong, one number; without
    `num_segments`, the highest id, one number. With `check_ids=False` and `num_segments`, or offsets, nothing. The
    ids of an error come too, to be told.
    """
    row = spec.SEGMENT_MAX
    check_ties(row, ties)
    check_no_dim(row, dim)
    given = [("data", data), ("segment_ids", segment_ids), ("offsets", offsets), ("out", out)]
    where = tensors.check(row, given)
    plan = plan_segment_max(
        row,
        tensors.planned(row, "data", data),
        tensors.planned(row, "segment_ids", segment_ids),
        tensors.scalar(num_segments),
        fill_mode,
        None,
        check_ids,
        offsets=tensors.planned(row, "offsets", offsets),
        sorted=sorted,
        out_of_range=out_of_range,
        initial=tensors.scalar(initial),
        return_indices=return_indices,
        return_empty=return_empty,
        in_memory=False,
        values_known=False,
    )
    segment_ids, offsets = (None if names is None else widened(names) for names in (segment_ids, offsets))
    order = Order(plan.dtype)
    count = None if num_segments is None and offsets is None else plan.num_segments
    bounds = segment.named(plan, segment_ids, offsets, count, out_of_range)
    shape = (bounds.count, *plan.shape[1:])
    tensors.check_out(row, out, data.dtype, shape, where)
    result = tensors.new(row, shape, data.dtype, where)
    places = tensors.new(row, shape, torch.int64, where) if plan.return_indices else None
    empty = tensors.new(row, (bounds.count,), torch.bool, where)
    source, target = tensors.bits(data, order.storage), tensors.bits(result, order.storage)
    constant = segment.fill(plan, order)
    segment.segment_max(source, bounds, constant, plan.initial is not None, target, places, empty, order)
    results = [tensors.give(result, out)]
    if places is not None:
        results.append(places)
    if plan.return_empty:
        results.append(empty)
    return tuple(results) if len(results) > 1 else results[0]
