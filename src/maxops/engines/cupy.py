"""The engine for CuPy's arrays: it runs PyTorch's engine on the arrays' own memory, shared by DLPack.

Nothing is copied, and no data moves to the host. DLPack also orders the streams: PyTorch's current stream waits for the
work of CuPy's stream, and CuPy's stream waits for PyTorch's operators.
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
    """Run a call on tensors of the same memory; return CuPy arrays of the results' memory, or `out` itself."""
    row, out = call.row, call.out
    cupy = import_module("cupy")
    if out is not None and isinstance(out, cupy.ndarray) and any(step < 0 for step in out.strides):
        raise OutputError(
            f"{row.name} out has the strides {out.strides}; PyTorch takes none below 0", row.clause("out")
        )
    lend = partial(_lend, row)
    lent = call.map(lend, lend, out=lend("out", out))
    if isinstance(lent, SegmentCall):
        lent = lent._replace(num_segments=lend("num_segments", lent.num_segments))
    values, *others = as_tuple(_engine(row).run(lent))
    return alone_if_one([cupy.from_dlpack(values) if out is None else out, *map(cupy.from_dlpack, others)])


def _engine(row: Spec) -> Any:
    """Return PyTorch's engine, or raise an error that says what to install."""
    try:
        return import_module("maxops.engines.torch")
    except ImportError as error:
        if error.name != "torch":
            raise
        raise EngineError(
            f"{row.name} got CuPy's arrays, which need PyTorch, and torch is not installed: "
            'pip install "maxops[gpu]". Nothing is moved to the CPU silently'
        ) from error


def _lend(row: Spec, name: str, value: Any) -> Any:
    """Return a CuPy array's own memory as a tensor; other values are unchanged."""
    cupy = import_module("cupy")
    if not isinstance(value, cupy.ndarray):
        return value
    _engine(row)  # first, for its error
    if any(step < 0 for step in value.strides):
        value = cupy.ascontiguousarray(value)  # on the device: PyTorch has no strides below 0
    try:
        return import_module("torch").from_dlpack(value)
    except Exception as error:  # a subclass may raise anything
        raise DTypeError(
            f"{row.name} {name} of type cupy.ndarray and {value.dtype} is not given out by DLPack: {error}",
            row.clause("types"),
        ) from error
