"""The functions as torch's compilers follow them: straight to torch's operators, which check without data and with it.

`torch.compile` reads this as Python, and a planner it cannot read: the options, of which a graph knows nothing, are
planned while it reads, and the operators plan the rest. `torch.export` and `torch.jit.trace` run it.
Imported by such calls alone, since what it needs is slow to import.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache, wraps
from operator import index
from typing import Any, Optional, Tuple  # noqa: UP035 - TorchScript reads these

import numpy as np
import torch
from torch import Tensor

from maxops import errors, spec
from maxops.engines.numpy import check_no_dim, check_ties
from maxops.engines.torch import eager, functions, memory, outputs
from maxops.engines.torch.memory import DTYPES
from maxops.engines.torch.operators import ROWS
from maxops.engines.torch.watching import is_tracing, transforming
from maxops.errors import AxesError, MaxopsError
from maxops.plan import array_of, plan_reduce_max, plan_segment_max, stand_in
from maxops.plan.values import scalar_as
from maxops.spec import Spec


# Under torch.func's transforms the operators lack what `functions` has; Dynamo puts these into its graph unread.
def _in_graph_maximum(tensors: list[Tensor], ties: str) -> Any:
    return functions.maximum(ties, *tensors)


def _in_graph_reduce_max(*inputs: Any) -> Any:
    return functions.reduce_max(*inputs)


def _in_graph_segment_max(*inputs: Any) -> Any:
    return functions.segment_max(*inputs)


_allow: Any = torch.compiler.allow_in_graph
_allow([_in_graph_maximum, _in_graph_reduce_max, _in_graph_segment_max])

# Where a graph breaks, Dynamo reads on in what runs then, and warns of our core. Torch does not promise to keep `skip`.
_skip: Any = getattr(torch._dynamo.decorators, "skip", lambda function: function)
for _function in (eager.maximum, eager.reduce_max, eager.segment_max):
    _skip(_function)


@cache
def _scripted() -> Any:
    """SegmentMax of a tensor of num_segments, as `torch.jit.trace` has sizes: a trace keeps what a script computes."""

    def segment_max(
        data: torch.Tensor,
        segment_ids: Optional[torch.Tensor],  # noqa: UP045 - TorchScript reads this
        offsets: Optional[torch.Tensor],  # noqa: UP045
        num_segments: torch.Tensor,
        fill_mode: Optional[str],  # noqa: UP045
        check_ids: bool,
        sorted: bool,
        out_of_range: Optional[str],  # noqa: UP045
        initial: Optional[torch.Tensor],  # noqa: UP045
        return_indices: bool,
        return_empty: bool,
        ties: str,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # noqa: UP006
        return torch.ops.maxops.segment_max(  # type: ignore[no-any-return]
            data,
            segment_ids,
            offsets,
            int(num_segments),
            fill_mode,
            check_ids,
            sorted,
            out_of_range,
            initial,
            return_indices,
            return_empty,
            ties,
        )

    return torch.jit.script(segment_max)


Refusal = tuple[str, str, str]


def _refusal_of(check: Callable[..., object]) -> Callable[..., Refusal | None]:
    """A check as Dynamo takes it: called while it reads, with constants, and what it gives is a constant too."""

    @wraps(check)
    def checked(*args: Any) -> Refusal | None:
        try:
            check(*args)
        except MaxopsError as error:
            text = str(error)
            return type(error).__name__, text.removesuffix(f" [{error.clause}]") if error.clause else text, error.clause
        return None

    marked: Any = torch.compiler.assume_constant_result(checked)
    return marked  # type: ignore[no-any-return]


def _raise(refusal: Refusal | None) -> None:
    if refusal is not None:
        name, text, clause = refusal
        raise getattr(errors, name)(text, clause)


_FLOAT, _INT = np.dtype(np.float32), np.dtype(np.int64)


@_refusal_of
def _max_options(ties: Any) -> None:
    check_ties(spec.MAXIMUM, ties)


@_refusal_of
def _reduce_options(
    rank: int, axes: Any, keepdims: Any, noop: Any, return_indices: Any, dim: Any, has_initial: bool, ties: Any
) -> None:
    """ReduceMax's, with data that nothing is wrong with."""
    row = spec.REDUCE_MAX
    check_ties(row, ties)
    check_no_dim(row, dim)
    initial = np.float32(0) if has_initial else None
    data = stand_in((1,) * rank, _FLOAT)
    plan_reduce_max(row, data, axes, keepdims, noop, initial=initial, return_indices=return_indices)


@_refusal_of
def _are_axes(axes: Any) -> None:
    """ReduceMax's, with data of more axes than are given."""
    plan_reduce_max(spec.REDUCE_MAX, stand_in((1,) * 64, _FLOAT), axes)


@_refusal_of
def _segment_options(
    has_data: bool,
    by_ids: bool,
    by_offsets: bool,
    has_initial: bool,
    num_segments: Any,
    fill_mode: Any,
    check_ids: Any,
    sorted: Any,
    return_indices: Any,
    return_empty: Any,
    out_of_range: Any,
    dim: Any,
    ties: Any,
) -> None:
    """SegmentMax's, with one row in one segment."""
    row = spec.SEGMENT_MAX
    check_ties(row, ties)
    check_no_dim(row, dim)
    plan_segment_max(
        row,
        stand_in((1,), _FLOAT) if has_data else None,
        stand_in((1,), _INT) if by_ids else None,
        num_segments,
        fill_mode,
        None,
        check_ids,
        offsets=stand_in((2,), _INT) if by_offsets else None,
        sorted=sorted,
        out_of_range=out_of_range,
        initial=np.float32(0) if has_initial else None,
        return_indices=return_indices,
        return_empty=return_empty,
        in_memory=False,
        values_known=False,
    )


@_refusal_of
def _is_number_of_segments(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    row = spec.SEGMENT_MAX
    value = stand_in(shape, DTYPES[dtype].numpy) if dtype in DTYPES else dtype
    plan_segment_max(row, stand_in((1,), _FLOAT), stand_in((1,), _INT), value, "ZERO", values_known=False)


@_refusal_of
def _is_array(row: str, name: str, value: Any) -> None:
    array_of(ROWS[row], name, value)


@_refusal_of
def _is_held(row: str, name: str, value: Any, dtype: torch.dtype, beside: str) -> None:
    scalar_as(ROWS[row], name, value, DTYPES[dtype], beside)


def maximum(arrays: tuple[Any, ...], out: Any, ties: Any) -> Any:
    """Max."""
    row = spec.MAXIMUM
    _raise(_max_options(ties))
    named = [(f"input {number}", array) for number, array in enumerate(arrays)]
    device = memory.device_of(row, named)
    outputs.check(row, out, device, *arrays)
    tensors = [(name, _beside(row, name, array, device)) for name, array in named]
    like, beside = next((tensor, name) for name, tensor in tensors if isinstance(tensor, Tensor))
    run = _in_graph_maximum if transforming() else torch.ops.maxops.maximum
    return outputs.copy(row, out, run([_scalar(row, name, tensor, like, beside) for name, tensor in tensors], ties))


def reduce_max(
    data: Tensor,
    axes: Any,
    keepdims: Any,
    noop_with_empty_axes: Any,
    out: Any,
    dim: Any,
    initial: Any,
    return_indices: Any,
    ties: Any,
) -> Any:
    """ReduceMax."""
    row = spec.REDUCE_MAX
    if isinstance(axes, np.ndarray):
        axes = _listed(row, axes)
    axes = [_constant(axis) for axis in axes] if isinstance(axes, (list, tuple)) else _constant(axes)
    flags = [_constant(keepdims), _constant(noop_with_empty_axes), _constant(return_indices)]
    _raise(_reduce_options(data.ndim, axes, *flags, dim, initial is not None, ties))
    device = memory.device_of(row, [("data", data), ("initial", initial)])
    outputs.check(row, out, device, data)
    run = _in_graph_reduce_max if transforming() else torch.ops.maxops.reduce_max
    values, indices = run(
        data,
        axes if axes is None or isinstance(axes, list) else [axes],
        bool(keepdims),
        bool(noop_with_empty_axes),
        _initial(row, initial, data, device),
        bool(return_indices),
        ties,
    )
    values = outputs.copy(row, out, values)
    return (values, indices) if return_indices else values


def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    fill_mode: Any,
    out: Any,
    check_ids: Any,
    offsets: Any,
    sorted: Any,
    out_of_range: Any,
    dim: Any,
    initial: Any,
    return_indices: Any,
    return_empty: Any,
    ties: Any,
) -> Any:
    """SegmentMax."""
    row = spec.SEGMENT_MAX
    counted = isinstance(num_segments, Tensor)
    if counted:
        _raise(_is_number_of_segments(tuple(num_segments.shape), num_segments.dtype))
    # An integer may stay a symbol; it is planned by the operator.
    known = counted or (isinstance(num_segments, (int, torch.SymInt)) and not isinstance(num_segments, bool))
    number = None if known else _constant(num_segments)
    arrays = [data is not None, segment_ids is not None, offsets is not None, initial is not None]
    flags = [_constant(check_ids), _constant(sorted), _constant(return_indices), _constant(return_empty)]
    _raise(_segment_options(*arrays, number, _constant(fill_mode), *flags, _constant(out_of_range), dim, ties))
    named = [("data", data), ("segment_ids", segment_ids), ("offsets", offsets)]
    device = memory.device_of(row, [*named, ("initial", initial)])
    outputs.check(row, out, device, data)
    rows: Any
    rows, ids, bounds = [None if array is None else _beside(row, name, array, device) for name, array in named]
    run: Any = _in_graph_segment_max if transforming() else torch.ops.maxops.segment_max
    if counted and is_tracing():
        run = _scripted()
    elif counted:
        num_segments = num_segments.item()
    values, indices, empty = run(
        rows,
        ids,
        bounds,
        num_segments,
        fill_mode,
        bool(check_ids),
        bool(sorted),
        out_of_range,
        _initial(row, initial, rows, device),
        bool(return_indices),
        bool(return_empty),
        ties,
    )
    values = outputs.copy(row, out, values)
    if return_indices:
        return (values, indices, empty) if return_empty else (values, indices)
    return (values, empty) if return_empty else values


def _constant(value: Any) -> Any:
    """An option as a constant: numbers that Dynamo keeps as symbols it replaces by their values here, and guards."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, torch.SymInt)):
        return index(value)
    return float.fromhex(value.hex()) if isinstance(value, float) else value


def _listed(row: Spec, axes: Any) -> Any:
    """An array of axes as the planner takes it; Dynamo has its values only when the graph runs."""
    if torch.compiler.is_dynamo_compiling():
        raise AxesError(f"{row.name} axes is an array; torch.compile takes integers there, which its graphs hold")
    _raise(_are_axes(axes))
    return axes.tolist()


def _beside(row: Spec, name: str, value: Any, device: torch.device) -> Any:
    """A NumPy array beside tensors as a tensor; tensors and Python scalars as they are."""
    if isinstance(value, Tensor) or (
        isinstance(value, (bool, int, float, Fraction)) and not isinstance(value, np.generic)
    ):
        return value
    if not isinstance(value, (np.ndarray, np.generic)):
        _raise(_is_array(row.name, name, value))
    if torch.compiler.is_dynamo_compiling():  # to which it is a tensor already
        return torch.as_tensor(value, device=device)
    return memory.beside(row, name, value, device)


def _scalar(row: Spec, name: str, value: Any, like: Tensor, beside: str) -> Any:
    """A Python scalar as a tensor of the type of another; tensors as they are."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Fraction):
        _raise(_is_held(row.name, name, value, like.dtype, beside))
    return torch.ops.maxops.scalar(like.detach(), value, row.name, name, beside)


def _initial(row: Spec, initial: Any, data: Tensor, device: torch.device) -> Tensor | None:
    """`initial` as a tensor; no gradient goes to it."""
    if initial is None:
        return None
    tensor: Tensor = _scalar(row, "initial", _beside(row, "initial", initial, device), data, "data")
    return tensor.detach()
