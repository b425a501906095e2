"""Runs calls under torch's compilers. The registered operators check the arguments during tracing and at run time.

`torch.compile` traces this module, but cannot trace the planner. Options are constants in a graph, so this module
checks them during tracing. The operators check everything else. `torch.export` and `torch.jit.trace` run this module.
Only traced calls import it, because its imports are slow.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, wraps
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maxops import errors
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines.base import Run, by_operator, segments_along
from maxops.engines.torch import eager, functions, memory, outputs
from maxops.engines.torch.dispatch import transforming
from maxops.engines.torch.memory import DTYPES
from maxops.engines.torch.operators import ROWS
from maxops.engines.torch.schemas import REDUCE_MAX, SEGMENT_MAX, arguments, reduce_call, segment_call
from maxops.errors import AxesError, MaxopsError
from maxops.plan import abstract, array_of, axis_of, plan_reduce_max, plan_segment_max
from maxops.plan.values import is_python_scalar, nan_rule, scalar_as
from maxops.spec import Spec

# Under transforms of torch.func, only the module `functions` supports all gradients. Dynamo does not trace its
# functions, but adds calls to them to its graph.
_allow: Any = torch.compiler.allow_in_graph
_allow([functions.maximum, functions.reduce_max, functions.segment_max])

# After a graph break, Dynamo would trace the eager functions and warn about the native core. Some versions of torch do
# not have `skip`.
_skip: Any = getattr(torch._dynamo.decorators, "skip", lambda function: function)
for _function in (eager.maximum, eager.reduce_max, eager.segment_max):
    _skip(_function)


@cache
def _scripted() -> Any:
    """Return a scripted SegmentMax with num_segments as a tensor, because sizes are tensors in `torch.jit.trace`."""
    types = {"SymInt?": "Tensor", "Tensor?": "Optional[Tensor]", "str?": "Optional[str]"}
    listed = ", ".join(f"{name}: {types.get(kind, kind)}" for name, kind in SEGMENT_MAX.items())
    handed = ", ".join("int(num_segments)" if name == "num_segments" else name for name in SEGMENT_MAX)
    source = f"def segment_max({listed}) -> Tuple[Tensor, Tensor, Tensor]: return ops.segment_max({handed})\n"
    # TorchScript reads the source of a function; linecache provides it for code without a file.
    file = "<maxops.engines.torch.traced>"
    linecache.cache[file] = (len(source), None, [source], file)
    names: dict[str, Any] = {"__name__": __name__, "ops": torch.ops.maxops}
    exec(compile(source, file, "exec"), names)
    return torch.jit.script(names["segment_max"])


Refusal = tuple[str, str, str]


def _refusal_of(check: Callable[..., object]) -> Callable[..., Refusal | None]:
    """Wrap a check so that Dynamo runs it during tracing, with constant arguments and a constant result."""

    @wraps(check)
    def checked(*args: Any) -> Refusal | None:
        try:
            check(*args)
        except MaxopsError as error:
            return type(error).__name__, error.message, error.clause
        return None

    marked: Any = torch.compiler.assume_constant_result(checked)
    return marked  # type: ignore[no-any-return]


def _raise(refusal: Refusal | None) -> None:
    if refusal is not None:
        name, text, clause = refusal
        raise getattr(errors, name)(text, clause)


_FLOAT, _INT = np.dtype(np.float32), np.dtype(np.int64)
# Valid data, ids and offsets for option checks: one row in one segment.
_ROWS = {"data": abstract((1,), _FLOAT), "segment_ids": abstract((1,), _INT), "offsets": abstract((2,), _INT)}


def _some_scalar(*_: Any) -> Any:
    return np.float32(0)


@_refusal_of
def _check_reduce_options(rank: int, *options: Any) -> None:
    """Check the options of ReduceMax with valid data."""
    call = reduce_call(rank, *options)
    plan_reduce_max(call.map(lambda *_: abstract((1,) * rank, _FLOAT), _some_scalar))


@_refusal_of
def _check_segment_options(*options: Any) -> None:
    """Check the options of SegmentMax with one row in one segment."""
    call = segment_call(*options).map(lambda name, _: _ROWS[name], _some_scalar)
    plan_segment_max(call, in_memory=False, values_known=False)


@_refusal_of
def _check_number_of_segments(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    value = np.zeros(shape, DTYPES[dtype].numpy) if dtype in DTYPES else dtype
    call = SegmentCall(_ROWS["data"], _ROWS["segment_ids"], value, "ZERO")
    plan_segment_max(call, values_known=False)


# The axes of ReduceMax are checked with data of the highest rank. `_check_reduce_options` checks the actual rank.
_check_axes = _refusal_of(lambda axes: plan_reduce_max(ReduceCall(abstract((1,) * 64, _FLOAT), axes)))
_check_axis = _refusal_of(lambda axis, rank: axis_of(ROWS["segment_max"], axis, rank))
_check_nan = _refusal_of(lambda row, value: nan_rule(ROWS[row], value))
_is_array = _refusal_of(lambda row, name, value: array_of(ROWS[row], name, value))
_is_held = _refusal_of(lambda row, name, value, dtype, like: scalar_as(ROWS[row], name, value, DTYPES[dtype], like))


def maximum(call: MaxCall) -> Any:
    """Run a Max call."""
    row, out = call.row, call.out
    _raise(_check_nan(row.name, call.nan))
    device = memory.device_of(row, call.arrays)
    outputs.check(row, out, device, *call.inputs)
    tensors = [(name, _beside(row, name, array, device)) for name, array in call.arrays]
    like, beside = next((tensor, name) for name, tensor in tensors if isinstance(tensor, Tensor))
    inputs = [_scalar(row, name, tensor, like, beside) for name, tensor in tensors]
    if transforming():
        result = functions.maximum(call.ties, call.nan, *inputs)
    else:
        result = torch.ops.maxops.maximum(inputs, call.ties, call.nan)
    return outputs.copy(row, out, result)


def reduce_max(call: ReduceCall) -> Any:
    """Run a ReduceMax call."""
    row, data, axes = call.row, call.data, call.axes
    if isinstance(axes, np.ndarray):
        axes = _listed(row, axes)
    several = isinstance(axes, Sequence) and not isinstance(axes, (str, bytes, bytearray, memoryview))
    axes = [_constant(axis) for axis in axes] if several else _constant(axes)
    _raise(_check_reduce_options(data.ndim, *_options(call._replace(axes=axes), REDUCE_MAX)[1:]))
    device = memory.device_of(row, [*call.arrays, *call.scalars])
    outputs.check(row, call.out, device, data)
    call = call.map(
        None,
        lambda name, value: _as_tensor(row, name, value, data, device),
        axes=axes if axes is None or isinstance(axes, list) else [axes],
        **_flags(call),
    )
    run = functions.reduce_max if transforming() else torch.ops.maxops.reduce_max
    values, indices = run(*arguments(call))
    values = outputs.copy(row, call.out, values)
    return (values, indices) if call.return_indices else values


def segment_max(call: SegmentCall) -> Any:
    """Run a SegmentMax call."""
    axis, rank = _constant(call.axis), call.data.ndim
    if rank:
        _raise(_check_axis(axis, rank))
        if axis := int(axis) % rank:
            move: Any = torch.movedim if isinstance(call.data, Tensor) else np.moveaxis
            call = call._replace(data=move(call.data, axis, 0))
    row, num_segments = call.row, call.num_segments
    counted = isinstance(num_segments, Tensor)
    if counted:
        _raise(_check_number_of_segments(tuple(num_segments.shape), num_segments.dtype))
    # An integer may be symbolic, so the operator checks it at run time.
    known = counted or (isinstance(num_segments, (int, torch.SymInt)) and not isinstance(num_segments, bool))
    _raise(_check_segment_options(*_options(call._replace(num_segments=None) if known else call, SEGMENT_MAX)))
    device = memory.device_of(row, [*call.arrays, *call.scalars])
    outputs.check(row, call.out, device, call.data)
    run: Any = functions.segment_max if transforming() else torch.ops.maxops.segment_max
    if counted and torch.compiler.is_compiling():
        num_segments = num_segments.item()
    elif counted:  # under torch.jit.trace
        run = _scripted()
    call = call.map(lambda name, value: _beside(row, name, value, device))
    call = call.map(
        None,
        lambda name, value: _as_tensor(row, name, value, call.data, device),
        num_segments=num_segments,
        **_flags(call),
    )
    values, indices, empty = segments_along(axis if rank else 0, memory.move, run(*arguments(call)))
    values = outputs.copy(row, call.out, values)
    if call.return_indices:
        return (values, indices, empty) if call.return_empty else (values, indices)
    return (values, empty) if call.return_empty else values


run: Run = by_operator(maximum, reduce_max, segment_max)


def _flags(call: ReduceCall | SegmentCall) -> dict[str, bool]:
    """Return the checked flags of a call as bools."""
    fields = REDUCE_MAX if isinstance(call, ReduceCall) else SEGMENT_MAX
    return {name: bool(getattr(call, name)) for name, kind in fields.items() if kind == "bool"}


def _options(call: ReduceCall | SegmentCall, fields: dict[str, str]) -> list[Any]:
    """Return the options of a call as constants, and True for each tensor that is passed."""
    return [
        (None if getattr(call, name) is None else True) if kind.startswith("Tensor") else _constant(getattr(call, name))
        for name, kind in fields.items()
    ]


def _constant(value: Any) -> Any:
    """Convert an option to a constant. A symbolic number becomes its value, and Dynamo adds a guard for it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, torch.SymInt)):
        return index(value)
    return float.fromhex(value.hex()) if isinstance(value, float) else value


def _listed(row: Spec, axes: Any) -> Any:
    """Convert an array of axes to a list. Raise an error under Dynamo, which does not know values while it traces."""
    if torch.compiler.is_dynamo_compiling():
        raise AxesError(
            f"{row.name} axes must be integers under torch.compile, got an array; pass a list or tuple of integers"
        )
    _raise(_check_axes(axes))
    return axes.tolist()


def _beside(row: Spec, name: str, value: Any, device: torch.device) -> Any:
    """Convert a NumPy array that was passed together with tensors. Return tensors and Python scalars unchanged."""
    if isinstance(value, Tensor) or is_python_scalar(value):
        return value
    if not isinstance(value, (np.ndarray, np.generic)):
        _raise(_is_array(row.name, name, value))
    if torch.compiler.is_dynamo_compiling():  # Dynamo already treats it as a tensor
        return torch.as_tensor(value, device=device)
    return memory.beside(row, name, value, device)


def _scalar(row: Spec, name: str, value: Any, like: Tensor, beside: str) -> Any:
    """Convert a Python scalar to a tensor with the dtype of `like`. Return tensors unchanged."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Fraction) or (isinstance(value, int) and not -(2**63) <= value < 2**64):
        _raise(_is_held(row.name, name, value, like.dtype, beside))
        value = float(value)  # torch's graphs represent integers out of range as floats
    return torch.ops.maxops.scalar(like.detach(), value, row.name, name, beside)


def _as_tensor(row: Spec, name: str, value: Any, data: Tensor, device: torch.device) -> Tensor:
    """Convert a scalar to a tensor with the dtype of the data, without a gradient."""
    tensor: Tensor = _scalar(row, name, _beside(row, name, value, device), data, "data")
    return tensor.detach()
