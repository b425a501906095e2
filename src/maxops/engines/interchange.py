"""The engine for other arrays in memory: columns, tables, and objects with `__array__` or, on the CPU, `__dlpack__`.

Results have the kind of the arguments if that kind has an array API namespace. Otherwise, they are NumPy arrays.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from maxops.calls import Call, MaxCall, SegmentCall
from maxops.engines import columns
from maxops.engines import numpy as engine
from maxops.engines.base import alone_if_one, as_tuple, is_of
from maxops.errors import DTypeError, EngineError, MaxopsError
from maxops.plan.values import Array, is_python_scalar
from maxops.spec import Spec

_CPU = 1  # DLPack's device type for the CPU


def run(call: Call) -> Any:
    """Run a call on the arrays, without copying them if possible."""
    if isinstance(call, MaxCall):
        columns.check_labels(call.row, call.arrays)
    elif isinstance(call, SegmentCall):
        columns.check_rows(call.row, call.data, call.segment_ids, call.axis)
    return _give_back(call, engine.run(call.map(partial(_look, call.row))))


def _look(row: Spec, name: str, value: Any) -> Any:
    """Return a value as a NumPy array, without a copy if possible. Return NumPy arrays and Python scalars unchanged."""
    if isinstance(value, (np.ndarray, np.generic)) or is_python_scalar(value):
        return value
    kind = type(value).__name__
    try:
        return _memory_of(row, name, value)
    except (MaxopsError, MemoryError):
        raise
    except Exception as error:  # hooks of other libraries may raise any exception
        raise DTypeError(
            f"{row.name} {name} of type {kind} cannot be read: {type(error).__name__}: {error}; "
            "convert it with np.asarray(...)",
            row.clause("arrays"),
        ) from error


def _memory_of(row: Spec, name: str, value: Any) -> Any:
    kind = type(value).__name__
    if (elements := columns.array_of(row, name, value)) is not None:
        return elements
    for more, instead in (
        ("mask", "fill masked elements first"),
        ("units", "pass .magnitude"),
        ("unit", "pass .value"),
    ):
        if getattr(value, more, None) is not None:
            raise DTypeError(
                f"{row.name} {name} of type {kind} has a {more.removesuffix('s')}, which the result would lose; "
                + instead,
                row.clause("arrays"),
            )
    if is_of(type(value), "tensorflow:Tensor") and not _is_numeric(value.dtype):
        raise DTypeError(
            f"{row.name} {name} of type {kind} has unsupported dtype {value.dtype.name}; convert it to numbers",
            row.clause("types"),
        )
    if hasattr(value, "__dlpack__"):
        device = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else _CPU
        if device != _CPU:
            raise EngineError(
                f"{row.name} {name} of type {kind} is on a device (DLPack device type {int(device)}) that no engine "
                "supports; copy it to the CPU first",
                row.clause("arrays"),
            )
        return np.from_dlpack(value)
    # not asarray, which would silently drop the additional information of subclasses, such as masks or units
    array = np.asanyarray(value)
    if type(array) is not np.ndarray:
        raise DTypeError(
            f"{row.name} {name} of type {kind} cannot be converted to a plain NumPy array", row.clause("arrays")
        )
    return array


def _is_numeric(dtype: Any) -> bool:
    """Return whether tensors of a TensorFlow dtype can be read. Reading text through DLPack would end the process."""
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex)


def _give_back(call: Call, result: Array | tuple[Array, ...]) -> Any:
    """Return the results as arrays of the arguments' kind if that kind has an array API namespace."""
    try:
        spaces = {
            id(space): space
            for _, value in call.arrays
            if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__array_namespace__")
            for space in [value.__array_namespace__()]
        }
    except MemoryError:
        raise
    except Exception as error:  # hooks of other libraries may raise any exception
        raise _no_way_back(call, error) from error
    if not spaces:
        return result
    if len(spaces) > 1:
        raise EngineError(
            f"{call.row.name} got arrays from different libraries: {', '.join(s.__name__ for s in spaces.values())}; "
            "convert them to arrays of one library",
            call.row.clause("arrays"),
        )
    (space,) = spaces.values()
    try:
        return alone_if_one([space.from_dlpack(part) for part in as_tuple(result)])
    except MemoryError:
        raise
    except Exception as error:
        raise _no_way_back(call, error) from error


def _no_way_back(call: Call, error: Exception) -> EngineError:
    return EngineError(
        f"{call.row.name} result cannot be converted to an array of the inputs' library: {type(error).__name__}: "
        f"{error}; convert the arrays with numpy.asarray(...)",
        call.row.clause("arrays"),
    )
