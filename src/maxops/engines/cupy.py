"""The engine for CuPy arrays. It shares their memory with PyTorch through DLPack, and runs the PyTorch engine.

Data is never moved to the host, and only arrays with negative strides are copied. DLPack also synchronizes the streams:
PyTorch's current stream waits for CuPy's stream, and CuPy's stream waits for PyTorch's operators.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from maxops.calls import Call, SegmentCall
from maxops.engines.base import alone_if_one, as_tuple
from maxops.errors import DTypeError, EngineError, OutputError
from maxops.spec import Spec


def run(call: Call) -> Any:
    """Run a call on tensors that share the arrays' memory, and return CuPy arrays, or `out` if it is passed."""
    row, out = call.row, call.out
    cupy = import_module("cupy")
    if out is not None and isinstance(out, cupy.ndarray) and any(step < 0 for step in out.strides):
        raise OutputError(
            f"{row.name} out has strides {out.strides}, but PyTorch does not support negative strides",
            row.clause("out"),
        )
    lend = partial(_lend, row)
    lent = call.map(lend, lend, out=lend("out", out))
    if isinstance(lent, SegmentCall):
        lent = lent._replace(num_segments=lend("num_segments", lent.num_segments))
    values, *others = as_tuple(_engine(row).run(lent))
    return alone_if_one([cupy.from_dlpack(values) if out is None else out, *map(cupy.from_dlpack, others)])


def _engine(row: Spec) -> Any:
    """Import the PyTorch engine, or raise an error that names the package to install."""
    try:
        return import_module("maxops.engines.torch")
    except ImportError as error:
        if error.name != "torch":
            raise
        raise EngineError(
            f"{row.name} got CuPy arrays, which require PyTorch, but torch is not installed: "
            'pip install "maxops[gpu]"; maxops never moves data to the CPU silently'
        ) from error


def _lend(row: Spec, name: str, value: Any) -> Any:
    """Return a tensor that shares the memory of a CuPy array. Return other values unchanged."""
    cupy = import_module("cupy")
    if not isinstance(value, cupy.ndarray):
        return value
    _engine(row)  # raises if torch is not installed
    if any(step < 0 for step in value.strides):
        value = cupy.ascontiguousarray(value)  # a copy on the device, because PyTorch does not support negative strides
    try:
        return import_module("torch").from_dlpack(value)
    except MemoryError:
        raise
    except Exception as error:  # a subclass may raise any exception
        raise DTypeError(
            f"{row.name} {name} is a cupy.ndarray of dtype {value.dtype} that DLPack cannot export: {error}",
            row.clause("types"),
        ) from error
