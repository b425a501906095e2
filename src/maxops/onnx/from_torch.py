"""Translates the operators of maxops to ONNX nodes for `torch.onnx.export`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxops import spec
from maxops.calls import Call, MaxCall
from maxops.errors import DTypeError, ModelError
from maxops.onnx.schemas import DOMAIN, register
from maxops.onnx.schemas import SEGMENT_MAX as SEGMENT_MAX_NODE
from maxops.onnx.tensors import DTYPES
from maxops.plan.values import scalar_as
from maxops.spec import Spec


def torch_translations() -> dict[Any, Callable[..., Any]]:
    """Return the translation table for `torch.onnx.export(..., dynamo=True)`.

    >>> import torch
    >>> import maxops as mo
    >>> class Model(torch.nn.Module):
    ...     def forward(self, x, y):
    ...         return mo.maximum(x, y)
    >>> table = torch_translations()
    >>> sorted(op.name() for op in table)
    ['maxops::maximum', 'maxops::reduce_max', 'maxops::scalar', 'maxops::segment_max']

    Pass the table as ``custom_translation_table``. `maximum` is translated to Max, and `reduce_max` to ReduceMax.
    `segment_max` is translated to the custom operator maxops.SegmentMax, which `portable` replaces with standard
    operators.

    Raises ModuleNotFoundError if PyTorch is not installed. The export also requires onnxscript. It raises DTypeError
    for unsupported types, and ModelError for options that the ONNX operators lack. These options are
    ``return_indices``, ``return_empty`` and ``nan`` and, for `segment_max`, also ``offsets``, ``sorted=False``,
    ``out_of_range``, ``fill_value`` and ``initial``.
    """
    import torch  # noqa: PLC0415 - slow to import

    import maxops.engines.torch  # noqa: F401, PLC0415 - registers the operators

    register()  # onnxscript accepts only operators with a schema
    ops = torch.ops.maxops
    return {
        ops.maximum.default: _maximum,
        ops.reduce_max.default: _reduce_max,
        ops.segment_max.default: _segment_max,
        ops.scalar.default: _scalar,
    }


def _op(version: int = 18) -> Any:
    import onnxscript  # noqa: PLC0415 - slow to import

    return getattr(onnxscript, f"opset{version}")


def _maximum(tensors: Any, ties: str, nan: str = "propagate") -> Any:
    row = spec.find("ONNX", "Max", 13)
    _refuse(row, MaxCall(tensors, nan=nan))
    for number, tensor in enumerate(tensors):
        _check_type(row, f"input {number}", tensor)
    return _op().Max(*tensors)


def _reduce_max(*inputs: Any) -> Any:
    from maxops.engines.torch.schemas import reduce_call  # noqa: PLC0415 - slow to import

    call = reduce_call(*inputs)
    data, axes, initial = call.data, call.axes, call.initial
    is_bool = DTYPES[data.dtype].kind == "bool"
    row = spec.find("ONNX", "ReduceMax", 20 if is_bool else 18)
    _check_type(row, "data", data)
    if initial is not None:
        _check_type(spec.find("ONNX", "Max", 13), "data", data)
    _refuse(row, call, "axes", "keepdims", "noop_with_empty_axes", "initial")
    op = _op(20 if is_bool else 18)
    taken = op.Constant(value_ints=list(axes)) if axes else None
    values = op.ReduceMax(data, taken, keepdims=int(call.keepdims), noop_with_empty_axes=int(call.noop_with_empty_axes))
    if initial is not None:
        values = op.Max(values, initial)
    return values, _nothing(np.int64)


def _segment_max(*inputs: Any) -> Any:
    from maxops.engines.torch.schemas import segment_call  # noqa: PLC0415 - slow to import

    row, call = spec.SEGMENT_MAX_16, segment_call(*inputs)
    data, segment_ids, num_segments = call.data, call.segment_ids, call.num_segments
    _refuse(row, call, "segment_ids", "num_segments", "fill_mode", "check_ids")
    _check_type(row, "data", data)
    _check_type(row, "segment_ids", segment_ids, "T_IDX")
    import onnxscript  # noqa: PLC0415 - slow to import

    count = _op().Constant(value_int=num_segments) if isinstance(num_segments, int) else num_segments
    node = getattr(onnxscript.values.Opset(DOMAIN, 1), SEGMENT_MAX_NODE.operator)
    return node(data, segment_ids, count, fill_mode=call.fill_mode), _nothing(np.int64), _nothing(np.bool)


def _scalar(like: Any, value: Any, operator: str, name: str, beside: str) -> Any:
    row = next(row for row in spec.PLAIN if row.name == operator)
    if not isinstance(value, (bool, int, float)):
        raise ModelError(f"{row.name} {name} is known only at run time; pass a tensor instead of a number")
    return _constant(scalar_as(row, name, value, DTYPES[like.dtype], beside))


def _nothing(dtype: Any) -> Any:
    """Return an empty constant, which replaces a result that was not requested."""
    return _constant(np.empty(0, dtype))


def _constant(array: Any) -> Any:
    import onnx_ir  # noqa: PLC0415 - slow to import

    return _op().Constant(value=onnx_ir.tensor(array))


def _check_type(row: Spec, name: str, value: Any, clause: str = "T") -> None:
    types = row.dtypes if clause == "T" else row.index_dtypes
    if (dtype := DTYPES[value.dtype]) not in types:
        listed = ", ".join(map(str, types))
        raise DTypeError(f"{row.name} {name} must be one of {listed}, got {dtype}", row.clause(clause))


def _refuse(row: Spec, call: Call, *taken: str) -> None:
    """Raise ModelError if a call has options that the ONNX operator lacks. `taken` contains the supported options."""
    free = {*taken, "ties", "nan", "row"}  # ties and row do not affect results, and nan is checked below
    fields = {name: default for name, default in call._field_defaults.items() if name not in free}
    given = [name for name, default in fields.items() if getattr(call, name) is not default]
    if call.nan != "propagate":
        given.append("nan")
    if given:
        raise ModelError(f"{row.name} does not support {', '.join(given)} in ONNX; export without these options")
