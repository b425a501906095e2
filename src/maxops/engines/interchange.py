"""The engine for any other array that lends its memory: columns and tables, `__dlpack__` on the CPU, `__array__`.

A result goes back to the arrays' own kind if they name an array API namespace, and is a NumPy array if not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxops import spec
from maxops.engines import columns
from maxops.engines import numpy as engine
from maxops.errors import DTypeError, EngineError, OutputError
from maxops.plan.values import Array, is_python_scalar
from maxops.spec import Spec

_CPU = 1  # DLPack's number for it


def maximum(*arrays: Any, out: Any = None, ties: str = "first") -> Any:
    """See `maxops.maximum`."""
    _no_out(spec.MAXIMUM, out)
    named = [(f"input {number}", array) for number, array in enumerate(arrays)]
    columns.check_labels(spec.MAXIMUM, named)
    looked_at = [_look(spec.MAXIMUM, name, array) for name, array in named]
    return _give_back(spec.MAXIMUM, arrays, engine.maximum(*looked_at, ties=ties))


def reduce_max(data: Any, axes: Any = None, *args: Any, out: Any = None, **options: Any) -> Any:
    """See `maxops.reduce_max`."""
    _no_out(spec.REDUCE_MAX, out)
    looked_at = _look(spec.REDUCE_MAX, "data", data)
    return _give_back(spec.REDUCE_MAX, [data], engine.reduce_max(looked_at, axes, *args, **options))


def segment_max(data: Any, segment_ids: Any = None, *args: Any, out: Any = None, **options: Any) -> Any:
    """See `maxops.segment_max`."""
    row = spec.SEGMENT_MAX
    _no_out(row, out)
    offsets = options.pop("offsets", None)
    columns.check_rows(row, data, segment_ids)
    ids = None if segment_ids is None else _look(row, "segment_ids", segment_ids)
    bounds = None if offsets is None else _look(row, "offsets", offsets)
    result = engine.segment_max(_look(row, "data", data), ids, *args, offsets=bounds, **options)
    return _give_back(row, [data, segment_ids, offsets], result)


def _look(row: Spec, name: str, value: Any) -> Any:
    """The value's own memory as a NumPy array; NumPy arrays and Python scalars as they are."""
    if isinstance(value, (np.ndarray, np.generic)) or is_python_scalar(value):
        return value
    kind = type(value).__name__
    if (elements := columns.array_of(row, name, value)) is not None:
        return elements
    for more, instead in (("mask", "fill it first"), ("units", ".magnitude"), ("unit", ".value")):
        if getattr(value, more, None) is not None:
            raise DTypeError(
                f"{row.name} {name} of type {kind} has a {more.removesuffix('s')}, which a plain array has not; "
                f"take the array that is meant out of it ({instead})",
                row.clause("arrays"),
            )
    if hasattr(value, "__dlpack__"):
        device = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else _CPU
        if device != _CPU:
            raise EngineError(
                f"{row.name} {name} of type {kind} lies on a device (DLPack's number {int(device)}), and no engine "
                "takes its kind; maxops copies nothing from a device in silence",
                row.clause("arrays"),
            )
        try:
            return np.from_dlpack(value)
        except (BufferError, TypeError, ValueError, RuntimeError) as error:
            raise DTypeError(
                f"{row.name} {name} of type {kind} is not given out by DLPack: {error}", row.clause("arrays")
            ) from error
    try:
        array = np.asanyarray(value)  # a subclass would lose here what makes it one
    except (TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(f"{row.name} {name} of type {kind} gives no array: {error}", row.clause("arrays")) from error
    if type(array) is not np.ndarray:
        raise DTypeError(f"{row.name} {name} of type {kind} gives no plain array", row.clause("arrays"))
    return array


def _no_out(row: Spec, out: object) -> None:
    if out is not None:
        raise OutputError(
            f"{row.name} out is given, but results in arrays of other kinds than NumPy's are new", row.clause("out")
        )


def _give_back(row: Spec, given: Any, result: Array | tuple[Array, ...]) -> Any:
    """The results as arrays of the arguments' own kind, where that has a namespace to make them in."""
    spaces = {
        id(space): space
        for value in given
        if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__array_namespace__")
        for space in [value.__array_namespace__()]
    }
    if not spaces:
        return result
    if len(spaces) > 1:
        raise EngineError(
            f"{row.name} got arrays of several kinds, {', '.join(s.__name__ for s in spaces.values())}",
            row.clause("arrays"),
        )
    (space,) = spaces.values()
    if isinstance(result, tuple):
        return tuple(map(space.from_dlpack, result))
    return space.from_dlpack(result)
