"""The functions as `torch.compile` follows them: straight to torch's operators, which check without data and with it.

Nothing here may look at data, or use what Dynamo does not follow; most errors are raised by the operators themselves.
Imported by compiled calls alone, since what it needs is slow to import.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from maxops.engines.torch import functions
from maxops.engines.torch.watching import transforming
from maxops.errors import AttributeValueError, AxesError, DTypeError, OutputError


# Under torch.func's transforms the operators lack what `functions` has; Dynamo puts these into its graph unread.
def _in_graph_maximum(tensors: list[Tensor], ties: str) -> Any:
    return functions.maximum(ties, *tensors)


def _in_graph_reduce_max(*inputs: Any) -> Any:
    return functions.reduce_max(*inputs)


def _in_graph_segment_max(*inputs: Any) -> Any:
    return functions.segment_max(*inputs)


_allow: Any = torch.compiler.allow_in_graph
_allow([_in_graph_maximum, _in_graph_reduce_max, _in_graph_segment_max])


def maximum(arrays: tuple[Any, ...], out: Any, ties: str) -> Any:
    """Max."""
    like, beside = None, ""
    for number, array in enumerate(arrays):
        if like is None and not isinstance(array, (bool, int, float)):
            like, beside = torch.as_tensor(array), f"input {number}"
    tensors = [_tensor(like, array, "Max-13", f"input {number}", beside) for number, array in enumerate(arrays)]
    run = _in_graph_maximum if transforming() else torch.ops.maxops.maximum
    return _into("Max-13", out, run(tensors, ties))


def reduce_max(
    data: Tensor,
    axes: Any,
    keepdims: Any,
    noop_with_empty_axes: Any,
    out: Any,
    dim: Any,
    initial: Any,
    return_indices: Any,
    ties: str,
) -> Any:
    """ReduceMax."""
    name = "ReduceMax-20"
    _no_dim(name, dim)
    listed = None if axes is None else list(axes) if isinstance(axes, (list, tuple)) else [axes]
    for axis in listed or ():
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise AxesError(f"{name} axes holds something else than integers, which is all that a graph has there")
    run = _in_graph_reduce_max if transforming() else torch.ops.maxops.reduce_max
    values, indices = run(
        data,
        listed,
        bool(keepdims),
        bool(noop_with_empty_axes),
        _tensor(data, initial, name, "initial", "data"),
        bool(return_indices),
        ties,
    )
    values = _into(name, out, values)
    return (values, indices) if return_indices else values


def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    fill_mode: str | None,
    out: Any,
    check_ids: Any,
    offsets: Any,
    sorted: Any,
    out_of_range: str | None,
    dim: Any,
    initial: Any,
    return_indices: Any,
    return_empty: Any,
    ties: str,
) -> Any:
    """SegmentMax."""
    name = "SegmentMax-16"
    _no_dim(name, dim)
    rows = torch.as_tensor(data)
    run = _in_graph_segment_max if transforming() else torch.ops.maxops.segment_max
    values, indices, empty = run(
        rows,
        None if segment_ids is None else torch.as_tensor(segment_ids),
        None if offsets is None else torch.as_tensor(offsets),
        num_segments.item() if isinstance(num_segments, Tensor) else num_segments,
        fill_mode,
        bool(check_ids),
        bool(sorted),
        out_of_range,
        _tensor(rows, initial, name, "initial", "data"),
        bool(return_indices),
        bool(return_empty),
        ties,
    )
    values = _into(name, out, values)
    if return_indices:
        return (values, indices, empty) if return_empty else (values, indices)
    return (values, empty) if return_empty else values


def _tensor(like: Tensor | None, value: Any, operator: str, name: str, beside: str) -> Any:
    if value is None or isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float)):
        if like is None:
            raise DTypeError(f"{operator} got only Python scalars, which have no type of their own")
        return torch.ops.maxops.scalar(like.detach(), value, operator, name, beside)
    return torch.as_tensor(value)


def _no_dim(operator: str, dim: Any) -> None:
    if dim is not None:
        raise AttributeValueError(f"{operator} dim is {dim!r}; only the axes of xarray's arrays have names")


def _into(operator: str, out: Any, result: Tensor) -> Any:
    if out is None:
        return result
    if out.shape != result.shape or out.dtype != result.dtype:
        raise OutputError(
            f"{operator} out has shape {tuple(out.shape)} of {out.dtype}, but the result has shape "
            f"{tuple(result.shape)} of {result.dtype}"
        )
    if out.requires_grad or result.requires_grad:
        raise OutputError(f"{operator} out is given, but gradients flow only into results that are new")
    out.copy_(result)
    return out
