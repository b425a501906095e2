"""The engine for other arrays in memory: columns, tables, and objects with `__dlpack__` on the CPU or `__array__`.

A result has the kind of the arrays if they have an array API namespace; otherwise, it is a NumPy array.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from maxops.calls import Call, MaxCall, SegmentCall
from maxops.engines import columns
from maxops.engines import numpy as engine
from maxops.engines.base import alone_if_one, as_tuple
from maxops.errors import DTypeError, EngineError, MaxopsError
from maxops.plan.values import Array, is_python_scalar
from maxops.spec import Spec

_CPU = 1  # DLPack's number for it


def run(call: Call) -> Any:
    """Run a call on the arrays' own memory."""
    if isinstance(call, MaxCall):
        columns.check_labels(call.row, call.arrays)
    elif isinstance(call, SegmentCall):
        columns.check_rows(call.row, call.data, call.segment_ids, call.axis)
    return _give_back(call, engine.run(call.map(partial(_look, call.row))))


def _look(row: Spec, name: str, value: Any) -> Any:
    """Return the value's own memory as a NumPy array; NumPy arrays and Python scalars are unchanged."""
    if isinstance(value, (np.ndarray, np.generic)) or is_python_scalar(value):
        return value
    kind = type(value).__name__
    try:
        return _memory_of(row, name, value)
    except MaxopsError:
        raise
    except Exception as error:  # of a hook, which is anybody's code
        raise DTypeError(
            f"{row.name} {name} of type {kind} does not give its memory: {type(error).__name__}: {error}; "
            "give np.asarray(...) of it",
            row.clause("arrays"),
        ) from error


def _memory_of(row: Spec, name: str, value: Any) -> Any:
    kind = type(value).__name__
    if (elements := columns.array_of(row, name, value)) is not None:
        return elements
    for more, instead in (("mask", "fill it first"), ("units", ".magnitude"), ("unit", ".value")):
        if getattr(value, more, None) is not None:
            raise DTypeError(
                f"{row.name} {name} of type {kind} has a {more.removesuffix('s')}, which a plain array lacks; "
                f"take the array that is meant out of it ({instead})",
                row.clause("arrays"),
            )
    if hasattr(value, "__dlpack__"):
        device = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else _CPU
        if device != _CPU:
            raise EngineError(
                f"{row.name} {name} of type {kind} lies on a device (DLPack's number {int(device)}), and no engine "
                "takes its kind; maxops copies nothing from a device silently",
                row.clause("arrays"),
            )
        return np.from_dlpack(value)
    array = np.asanyarray(value)  # a subclass would lose here what makes it one
    if type(array) is not np.ndarray:
        raise DTypeError(f"{row.name} {name} of type {kind} gives no plain array", row.clause("arrays"))
    return array


def _give_back(call: Call, result: Array | tuple[Array, ...]) -> Any:
    """Return the results as arrays of the arguments' kind, if it has an array API namespace."""
    try:
        spaces = {
            id(space): space
            for _, value in call.arrays
            if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__array_namespace__")
            for space in [value.__array_namespace__()]
        }
    except Exception as error:  # of a hook, which is anybody's code
        raise _no_way_back(call, error) from error
    if not spaces:
        return result
    if len(spaces) > 1:
        raise EngineError(
            f"{call.row.name} got arrays of several kinds, {', '.join(s.__name__ for s in spaces.values())}",
            call.row.clause("arrays"),
        )
    (space,) = spaces.values()
    try:
        return alone_if_one([space.from_dlpack(part) for part in as_tuple(result)])
    except Exception as error:  # likewise
        raise _no_way_back(call, error) from error


def _no_way_back(call: Call, error: Exception) -> EngineError:
    return EngineError(
        f"{call.row.name} has a result that the namespace of its arrays does not take: {type(error).__name__}: "
        f"{error}; give numpy.asarray(...) of the arrays",
        call.row.clause("arrays"),
    )
