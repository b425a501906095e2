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

from functools import partial
from typing import Any

from maxops.extras import needed

with needed("maxops.engines.gpu", "gpu"):
    import torch
    import triton  # noqa: F401  (the modules below need it)

from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines.base import Run, alone_if_one, by_operator
from maxops.engines.gpu import fold, reduce, segment, tensors
from maxops.engines.gpu.order import Order
from maxops.engines.torch.memory import widened
from maxops.plan import plan_max, plan_reduce_max, plan_segment_max


def _maximum(call: MaxCall) -> Any:
    """Python and NumPy scalars beside the tensors go into the kernel; nothing is waited for."""
    row, arrays, out = call.row, call.inputs, call.out
    where = tensors.check(row, [*call.arrays, ("out", out)])
    plan = plan_max(call.map(partial(tensors.planned, row), out=None), in_memory=False)
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


def _reduce_max(call: ReduceCall) -> Any:
    """Nothing is waited for, but for an `initial` on the device, which comes to the host."""
    row, data, out = call.row, call.data, call.out
    where = tensors.check(row, [("data", data), ("out", out)])
    abstract = call.map(partial(tensors.planned, row), tensors.scalar, out=None)
    plan = plan_reduce_max(abstract, in_memory=False)
    order = Order(plan.dtype)
    tensors.check_out(row, out, data.dtype, plan.shape, where)
    if plan.identity:
        zeros = tensors.new(row, plan.shape, torch.int64, where).zero_() if plan.return_indices else None
        result = tensors.give(data.detach().clone(), out)
        return result if zeros is None else (result, zeros)
    result = tensors.new(row, plan.shape, data.dtype, where)
    indices = tensors.new(row, plan.shape, torch.int64, where) if plan.return_indices else None
    first = None if plan.initial is None else order.constant_of(plan.initial)
    source, target = tensors.bits(data, order.storage), tensors.bits(result, order.storage)
    reduce.reduce_max(source, plan.axes, first, target, indices, order)
    result = tensors.give(result, out)
    return result if indices is None else (result, indices)


def _segment_max(call: SegmentCall) -> Any:
    """Run a call of SegmentMax.

    What comes to the host, and is waited for: of a check, the first position that is wrong, one number; without
    `num_segments`, the highest id, one number. With `check_ids=False` and `num_segments`, or offsets, nothing. The
    ids of an error come too, for its message.
    """
    row, data, out = call.row, call.data, call.out
    where = tensors.check(row, [*call.arrays, ("out", out)])
    num_segments = tensors.scalar("num_segments", call.num_segments)
    abstract = call.map(partial(tensors.planned, row), tensors.scalar, out=None, num_segments=num_segments)
    plan = plan_segment_max(abstract, in_memory=False, values_known=False)
    segment_ids, offsets = (None if names is None else widened(names) for names in (call.segment_ids, call.offsets))
    order = Order(plan.dtype)
    count = None if num_segments is None and offsets is None else plan.num_segments
    bounds = segment.named(plan, segment_ids, offsets, count)
    shape = (bounds.count, *plan.shape[1:])
    tensors.check_out(row, out, data.dtype, shape, where)
    result = tensors.new(row, shape, data.dtype, where)
    indices = tensors.new(row, shape, torch.int64, where) if plan.return_indices else None
    empty = tensors.new(row, (bounds.count,), torch.bool, where)
    source, target = tensors.bits(data, order.storage), tensors.bits(result, order.storage)
    constant = order.constant(plan.fill_bits) if plan.initial is None else order.constant_of(plan.initial)
    segment.segment_max(source, bounds, constant, plan.initial is not None, target, indices, empty, order)
    results = [tensors.give(result, out)]
    if indices is not None:
        results.append(indices)
    if plan.return_empty:
        results.append(empty)
    return alone_if_one(results)


run: Run = by_operator(_maximum, _reduce_max, _segment_max)
