"""Calls that run now. Plain tensors on the CPU go to the NumPy engine; what torch has to know of goes through torch.

Before its dispatcher, every check that shapes and types allow is made here, so that the errors are NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maxops import _native, spec
from maxops.engines import numpy as engine
from maxops.engines.torch import functions, memory, outputs
from maxops.engines.torch.memory import NATIVE
from maxops.engines.torch.watching import at_work, watched
from maxops.errors import EngineError, NumSegmentsError
from maxops.plan import Array, plan_max, plan_reduce_max, plan_segment_max
from maxops.spec import Spec

TIES = ("even", "first")  # which no values depend on


def maximum(arrays: tuple[Any, ...], out: Any, ties: str) -> Any:
    """Max."""
    if out is None and ties in TIES and (views := _at_once(arrays)) is not None:
        done = _native.maximum(*views)
        if done is not None:
            return memory.elementwise(done, *arrays)
    row = spec.MAXIMUM
    engine.check_ties(row, ties)
    device = memory.device_of(row, ((f"input {number}", array) for number, array in enumerate(arrays)))
    outputs.check(row, out, device, *arrays)
    if not watched(*arrays, out):
        written = engine.maximum(*map(_look, arrays), out=outputs.memory(out))
        return memory.elementwise(written, *arrays) if out is None else out
    if out is None and device.type == "cpu" and not at_work() and all(isinstance(array, Tensor) for array in arrays):
        return functions.maximum(ties, *arrays)  # which plans, if need be
    plan = plan_max(row, list(map(_planned, arrays)), in_memory=False)
    tensors = [
        array if isinstance(array, Tensor) else memory.beside(row, f"input {number}", known, device)
        for number, (array, known) in enumerate(zip(arrays, plan.inputs, strict=True))
    ]
    return outputs.copy(row, out, functions.maximum(ties, *tensors))


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
    plain = out is dim is initial is None and noop_with_empty_axes is return_indices is False and ties in TIES
    if plain and (views := _at_once((data,))) is not None:
        done = _native.reduce_max(views[0], axes, keepdims, noop_with_empty_axes)
        if done is not None:
            return memory.result(done)
    row = spec.REDUCE_MAX
    engine.check_ties(row, ties)
    engine.check_no_dim(row, dim)
    device = memory.device_of(row, [("data", data), ("initial", initial)])
    outputs.check(row, out, device, data)
    options = {"initial": _known_scalar(initial), "return_indices": return_indices}
    if not watched(data, initial, out):
        result = engine.reduce_max(
            _look(data), axes, keepdims, noop_with_empty_axes, outputs.memory(out), **options, ties=ties
        )
        if out is None and noop_with_empty_axes and (axes is None or np.size(axes) == 0):  # the data itself
            same, *indices = result if isinstance(result, tuple) else (result,)
            kept = memory.elementwise(same, data)
            return (kept, *map(memory.result, indices)) if indices else kept
        return _tensors(out, result)
    plan = plan_reduce_max(row, _planned(data), axes, keepdims, noop_with_empty_axes, in_memory=False, **options)
    values, indices = functions.reduce_max(
        data,
        plan.axes,
        plan.keepdims,
        plan.identity,
        _initial(row, initial, plan.initial, device),
        plan.return_indices,
        ties,
    )
    values = outputs.copy(row, out, values)
    return (values, indices) if plan.return_indices else values


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
    plain = out is offsets is out_of_range is dim is initial is None and sorted is True and ties in TIES
    if plain and return_indices is return_empty is False and (views := _at_once((data, segment_ids))) is not None:
        rows, ids = views
        done = _native.segment_max(rows, ids, num_segments, fill_mode=fill_mode or "", check_ids=check_ids)
        if done is not None:
            return memory.result(done)
    row = spec.SEGMENT_MAX
    engine.check_ties(row, ties)
    engine.check_no_dim(row, dim)
    arrays = {"data": data, "segment_ids": segment_ids, "offsets": offsets}
    device = memory.device_of(row, [*arrays.items(), ("initial", initial)])
    outputs.check(row, out, device, data)
    symbol = num_segments if isinstance(num_segments, torch.SymInt) else None
    if symbol is not None:
        num_segments = memory.example(symbol)
    elif isinstance(num_segments, Tensor):
        num_segments = _number(row, num_segments)
    options: dict[str, Any] = {
        "sorted": sorted,
        "out_of_range": out_of_range,
        "return_indices": return_indices,
        "return_empty": return_empty,
        "initial": _known_scalar(initial),
    }
    if not watched(*arrays.values(), initial, out):
        result = engine.segment_max(
            _look(data),
            _look(segment_ids),
            num_segments,
            fill_mode=fill_mode,
            out=outputs.memory(out),
            check_ids=check_ids,
            offsets=_look(offsets),
            **options,
            ties=ties,
        )
        return _tensors(out, result)
    plan = plan_segment_max(
        row,
        _planned(data),
        _planned(segment_ids),
        num_segments,
        fill_mode,
        None,
        check_ids,
        offsets=_planned(offsets),
        **options,
        in_memory=device.type == "cpu" and num_segments is not None and not at_work(),
        values_known=False,
    )
    if device.type == "meta" and num_segments is None and offsets is None:
        raise EngineError(f"{row.name} got no num_segments, and tensors on meta have no ids that would tell it")
    rows, ids, bounds = (
        array if array is None or isinstance(array, Tensor) else memory.beside(row, name, array, device)
        for name, array in arrays.items()
    )
    values, indices, empty = functions.segment_max(
        rows,
        ids,
        bounds,
        symbol if symbol is not None else None if num_segments is None else plan.num_segments,
        plan.fill_mode,
        plan.check_ids,
        plan.sorted,
        out_of_range,
        _initial(row, initial, plan.initial, device),
        plan.return_indices,
        plan.return_empty,
        ties,
    )
    results = [outputs.copy(row, out, values)]
    results += [indices] * plan.return_indices + [empty] * plan.return_empty
    return tuple(results) if len(results) > 1 else results[0]


def _at_once(arrays: Iterable[Any]) -> list[Any] | None:
    """The arguments' memory for the core, which takes clearly valid calls; None where more has to be looked at.

    `Tensor.numpy` itself refuses what is not plain: other devices and layouts, and what requires a gradient.
    """
    if at_work():
        return None
    views = []
    try:
        for array in arrays:
            if type(array) is not Tensor:
                views.append(array)
            elif array.dtype in NATIVE:
                views.append(array.numpy())
            elif array.requires_grad:  # which a view of other types would hide
                return None
            else:
                views.append(memory.view(array))
    except (RuntimeError, TypeError):
        return None
    return views


def _number(row: Spec, num_segments: Tensor) -> Any:
    """The value of num_segments, on which the result's shape depends."""
    try:
        return num_segments.detach().cpu().numpy()
    except RuntimeError as error:  # in a batch of vmap, on meta, in a mode that has no data
        raise NumSegmentsError(
            f"{row.name} num_segments is a tensor whose value cannot be read here, but the result's shape depends on "
            f"it: {error}",
            row.clause("num_segments"),
        ) from error


def _look(value: Any) -> Any:
    return memory.view(value) if isinstance(value, Tensor) else value


def _planned(value: Any) -> Any:
    return memory.planned(value) if isinstance(value, Tensor) else value


def _known_scalar(initial: Any) -> Any:
    """What a plan makes of `initial`: its memory, or what stands in for it."""
    if not isinstance(initial, Tensor):
        return initial
    return _planned(initial) if watched(initial.detach()) else _look(initial)


def _initial(row: Spec, given: Any, planned: Array | None, device: torch.device) -> Tensor | None:
    """`initial` as a tensor; no gradient goes to it."""
    if isinstance(given, Tensor):
        return given.detach()
    return None if planned is None else memory.beside(row, "initial", planned, device)


def _tensors(out: Tensor | None, result: Array | tuple[Array, ...]) -> Any:
    """What the NumPy engine gave, as tensors of the same memory; out for what was written there."""
    parts = result if isinstance(result, tuple) else (result,)
    tensors = [memory.result(part) if out is None or number else out for number, part in enumerate(parts)]
    return tuple(tensors) if isinstance(result, tuple) else tensors[0]
