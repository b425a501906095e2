"""Runs calls on plain CPU tensors with the NumPy engine, and sends calls that torch must record to its dispatcher.

All shape and dtype checks run before torch's dispatcher, so the errors are the same as for NumPy arrays.
"""

from __future__ import annotations

from contextlib import suppress
from types import NoneType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maxops import _native
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines import numpy as engine
from maxops.engines.base import alone_if_one, as_tuple, segments_along
from maxops.engines.torch import functions, memory, outputs, plain
from maxops.engines.torch.dispatch import core_is_off, modes_are_active, needs_dispatch
from maxops.engines.torch.schemas import arguments
from maxops.errors import EngineError, MaxopsError, NumSegmentsError
from maxops.plan import Array, plan_max, plan_reduce_max, plan_segment_max
from maxops.spec import Spec


def maximum(call: MaxCall) -> Any:
    """Run a Max call."""
    row, arrays, out = call.row, call.inputs, call.out
    if out is None and plain.has_gradients_alone(*arrays) and (tensors := plain.tensors_of(arrays)) is not None:
        return plain.maximum(maximum, call, *tensors)
    if out is None and (views := plain.at_once(arrays)) is not None:
        done = _native.maximum(*views, nan=call.nan)
        if done is not None:
            return memory.elementwise(done, *arrays)
    device = memory.device_of(row, call.arrays)
    outputs.check(row, out, device, *arrays)
    if not needs_dispatch(*arrays, out):
        views = [_view(name, array) for name, array in call.arrays]
        with outputs.memory(out) as memory_of_out:
            written = engine.run(call._replace(inputs=views, out=memory_of_out))
        return memory.elementwise(written, *arrays) if out is None else out
    if out is None and not modes_are_active() and all(isinstance(array, Tensor) for array in arrays):
        return functions.maximum(call.ties, call.nan, *arrays)  # plans the call if necessary
    planned = plan_max(call.map(memory.abstracted, out=None), in_memory=False).call
    with memory.fake_mode(arrays):
        tensors = [
            array if isinstance(array, Tensor) else memory.beside(row, name, known, device)
            for (name, array), known in zip(call.arrays, planned.inputs, strict=True)
        ]
    if out is None and plain.has_gradients_alone(*tensors):
        return plain.maximum(maximum, call._replace(inputs=tensors), *tensors)
    return outputs.copy(row, out, functions.maximum(call.ties, planned.nan, *tensors))


def reduce_max(call: ReduceCall) -> Any:
    """Run a ReduceMax call."""
    row, data, out = call.row, call.data, call.out
    if _has_only(call, _PLAIN_REDUCE) and plain.takes_scalars(call.initial) and plain.has_gradients_alone(data):
        axes = call.axes
        if axes is not None:  # copied, because the caller may change a list before the backward pass
            axes = (axes,) if type(axes) is int else tuple(axes) if type(axes) is list else axes
        if plain.takes_axes(axes):
            return plain.reduce_max(reduce_max, call._replace(axes=axes), data)
    if _has_only(call, _SHORT_REDUCE) and (views := plain.at_once((data,))) is not None:
        done = _native.reduce_max(*views, call.axes, call.keepdims, nan=call.nan)
        if done is not None:
            return memory.result(done)
    device = memory.device_of(row, [*call.arrays, *call.scalars])
    outputs.check(row, out, device, data)
    if not needs_dispatch(data, *(value for _, value in call.scalars), out):
        with outputs.memory(out) as memory_of_out:
            result = engine.run(call.map(_view, _scalar, out=memory_of_out))
        if out is None and call.noop_with_empty_axes and (call.axes is None or np.size(call.axes) == 0):
            same, *indices = as_tuple(result)  # a copy of the data
            return alone_if_one([memory.elementwise(same, data), *map(memory.result, indices)])
        return _tensors(out, result)
    planned = plan_reduce_max(call.map(memory.abstracted, _scalar, out=None), in_memory=False).call
    with memory.fake_mode([data, call.initial]):
        tensors = planned.map(
            lambda *_: data, lambda name, known: _as_tensor(row, name, getattr(call, name), known, device)
        )
    values, indices = functions.reduce_max(*arguments(tensors))
    values = outputs.copy(row, out, values)
    return (values, indices) if planned.return_indices else values


def segment_max(call: SegmentCall) -> Any:
    """Run a SegmentMax call."""
    row, out = call.row, call.out
    if (
        _has_only(call, _PLAIN_SEGMENT)
        and type(call.num_segments) in (int, NoneType)
        and plain.takes_scalars(call.fill_value, call.initial)
    ):
        ids = call.segment_ids if call.offsets is None else call.offsets
        if plain.has_gradients_alone(call.data, ids):
            axis, rank = call.axis, call.data.ndim
            if type(axis) is int and axis == 0:
                return plain.segment_max(segment_max, call, call.data, ids)
            if type(axis) is int and -rank <= axis < rank and (moved := _moved(call.data, axis)) is not None:
                with suppress(MaxopsError):  # the planner below raises the error, with the shape before the move
                    results = plain.segment_max(segment_max, call._replace(data=moved, axis=0), moved, ids)
                    return alone_if_one(segments_along(axis % rank, memory.move, results))
    if _has_only(call, _SHORT_SEGMENT):
        views = plain.at_once((call.data, call.segment_ids))
        if views is not None:
            rows, ids = views
            done = _native.segment_max(
                rows,
                ids,
                call.num_segments,
                fill_mode=call.fill_mode or "",
                check_ids=call.check_ids,
                axis=call.axis,
                nan=call.nan,
            )
            if done is not None:
                return memory.result(done)
    device = memory.device_of(row, [*call.arrays, *call.scalars])
    outputs.check(row, out, device, call.data)
    symbol = call.num_segments if isinstance(call.num_segments, torch.SymInt) else None
    if symbol is not None:
        call = call._replace(num_segments=memory.example(symbol))
    elif isinstance(call.num_segments, Tensor):
        call = call._replace(num_segments=_number(row, call.num_segments))
    if not needs_dispatch(*(value for _, value in [*call.arrays, *call.scalars]), out):
        with outputs.memory(out) as memory_of_out:
            result = engine.run(call.map(_view, _scalar, out=memory_of_out))
        return _tensors(out, result)
    is_counted = call.num_segments is not None
    planned = plan_segment_max(
        call.map(memory.abstracted, _scalar, out=None),
        in_memory=device.type == "cpu" and is_counted and not (modes_are_active() or core_is_off()),
        values_known=False,
    ).call
    if device.type == "meta" and not is_counted and call.offsets is None:
        raise EngineError(f"{row.name} requires num_segments for meta tensors, because their ids have no values")
    tensors = planned._replace(**dict([*call.arrays, ("fill_value", call.fill_value), ("initial", call.initial)]))
    with memory.fake_mode(value for _, value in [*call.arrays, *call.scalars]):
        tensors = tensors.map(
            lambda name, array: array if isinstance(array, Tensor) else memory.beside(row, name, array, device),
            lambda name, value: _as_tensor(row, name, value, getattr(planned, name), device),
            num_segments=symbol if symbol is not None else planned.num_segments if is_counted else None,
        )
    if planned.axis:
        if (moved := _moved(tensors.data, planned.axis)) is None:
            raise memory.without_memory(tensors.data, "data")  # other tensors that torch cannot permute were rejected
        tensors = tensors._replace(data=moved)
    values, indices, empty = segments_along(planned.axis, memory.move, functions.segment_max(*arguments(tensors)))
    results = [outputs.copy(row, out, values)]
    results += [indices] * planned.return_indices + [empty] * planned.return_empty
    return alone_if_one(results)


def _moved(data: Tensor, axis: int) -> Tensor | None:
    """Move an axis to the front, or return None for tensors that torch cannot permute, which the caller rejects."""
    try:
        return torch.movedim(data, axis, 0)
    except RuntimeError:  # a sparse or nested tensor, or a tensor without memory
        return None


def _unless_default(request: Any, *taken: str) -> tuple[tuple[int, Any], ...]:
    """Return the positions and defaults of the fields of a call that are not in `taken`."""
    return tuple((request._fields.index(name), default) for name, default in request._field_defaults.items()
                 if name not in taken)  # fmt: skip


# If all fields except these have their defaults, a call is passed to the core without a plan. The core does not receive
# `ties` and `dim`, which the table of engines has checked.
_SHORT_REDUCE = _unless_default(ReduceCall, "axes", "keepdims", "ties", "nan", "dim", "row")
_SHORT_SEGMENT = _unless_default(
    SegmentCall, "segment_ids", "num_segments", "fill_mode", "check_ids", "axis", "ties", "nan", "dim", "row"
)


# If all fields except these have their defaults, the module `plain` supports a call.
_PLAIN_REDUCE = _unless_default(
    ReduceCall, "axes", "keepdims", "initial", "return_indices", "ties", "nan", "dim", "row"
)
_PLAIN_SEGMENT = _unless_default(SegmentCall, *(name for name in SegmentCall._field_defaults if name != "out"))


def _has_only(call: Any, others: tuple[tuple[int, Any], ...]) -> bool:
    """Return whether all fields of a call that are in `others` have their defaults."""
    for place, default in others:  # noqa: SIM110 - 0.20 us for segments; `all` takes 0.35
        if call[place] is not default:
            return False
    return True


def _number(row: Spec, num_segments: Tensor) -> Any:
    """Read the value of num_segments, which determines the shape of the result."""
    try:
        return num_segments.detach().cpu().resolve_neg().numpy()
    except RuntimeError as error:  # under vmap, on the meta device, or in a mode without data
        raise NumSegmentsError(
            f"{row.name} num_segments must be a Python integer, because the tensor's value cannot be read: {error}",
            row.clause("num_segments"),
        ) from error


def _view(name: str, value: Any) -> Any:
    return memory.view(value, name) if isinstance(value, Tensor) else value


def _scalar(name: str, value: Any) -> Any:
    """Return a view of a scalar's memory, or an abstract array if the value cannot be read."""
    if not isinstance(value, Tensor):
        return value
    return memory.abstracted(name, value) if needs_dispatch(value.detach()) else _view(name, value)


def _as_tensor(row: Spec, name: str, given: Any, planned: Array, device: torch.device) -> Tensor:
    """Return a scalar as a tensor without a gradient."""
    return given.detach() if isinstance(given, Tensor) else memory.beside(row, name, planned, device)


def _tensors(out: Tensor | None, result: Array | tuple[Array, ...]) -> Any:
    """Return tensors that share the memory of the NumPy engine's results. If `out` is passed, it replaces the first."""
    values, *others = as_tuple(result)
    return alone_if_one([memory.result(values) if out is None else out, *map(memory.result, others)])
