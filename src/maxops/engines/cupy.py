"""The engine for CuPy's arrays: the Triton kernels of the GPU, on the arrays' own memory lent to PyTorch by DLPack.

Nothing is copied and nothing comes to the host. DLPack also orders the streams: PyTorch's current stream waits for
what CuPy's has been given, and CuPy's for the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from maxops import spec
from maxops.errors import DTypeError, EngineError, OutputError
from maxops.spec import Spec


def maximum(*arrays: Any, out: Any = None, ties: str = "first") -> Any:
    """See `maxops.maximum`."""
    row = spec.MAXIMUM
    lent = [_lend(row, f"input {number}", array) for number, array in enumerate(arrays)]
    return _call(row, _kernels(row).maximum, lent, out, {"ties": ties})


def reduce_max(data: Any, axes: Any = None, *args: Any, out: Any = None, **options: Any) -> Any:
    """See `maxops.reduce_max`."""
    row = spec.REDUCE_MAX
    if len(args) > 2:
        out, args = args[2], args[:2]
    return _call(row, _kernels(row).reduce_max, [_lend(row, "data", data), axes, *args], out, options)


def segment_max(
    data: Any, segment_ids: Any = None, num_segments: Any = None, *, out: Any = None, **options: Any
) -> Any:
    """See `maxops.segment_max`."""
    row = spec.SEGMENT_MAX
    names = ("data", "segment_ids", "num_segments")
    lent = [_lend(row, name, value) for name, value in zip(names, (data, segment_ids, num_segments), strict=True)]
    return _call(row, _kernels(row).segment_max, lent, out, options)


def _kernels(row: Spec) -> Any:
    """The engine of the kernels, or an error that says what to install."""
    try:
        return import_module("maxops.engines.gpu")
    except ImportError as error:
        if error.name not in ("torch", "triton"):
            raise
        raise EngineError(
            f"{row.name} got CuPy's arrays, whose kernels need PyTorch and Triton, and {error.name} is not installed: "
            'pip install "maxops[gpu]". Nothing is moved to the CPU in silence'
        ) from error


def _call(row: Spec, function: Callable[..., Any], args: list[Any], out: Any, options: dict[str, Any]) -> Any:
    """The results as CuPy's arrays, or `out` itself."""
    cupy = import_module("cupy")
    if out is not None and isinstance(out, cupy.ndarray) and any(step < 0 for step in out.strides):
        raise OutputError(
            f"{row.name} out has the strides {out.strides}; PyTorch takes none below 0", row.clause("out")
        )
    lent = {name: _lend(row, name, value) for name, value in options.items()}
    result = function(*args, out=None if out is None else _lend(row, "out", out), **lent)
    if not isinstance(result, tuple):
        return cupy.from_dlpack(result) if out is None else out
    first = cupy.from_dlpack(result[0]) if out is None else out
    return (first, *map(cupy.from_dlpack, result[1:]))


def _lend(row: Spec, name: str, value: Any) -> Any:
    """A CuPy array's own memory as a tensor; other values as they are."""
    cupy = import_module("cupy")
    if not isinstance(value, cupy.ndarray):
        return value
    _kernels(row)  # first, for its error
    if any(step < 0 for step in value.strides):
        value = cupy.ascontiguousarray(value)  # on the device: PyTorch has no strides below 0
    try:
        return import_module("torch").from_dlpack(value)
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(
            f"{row.name} {name} of type cupy.ndarray and {value.dtype} is not given out by DLPack: {error}",
            row.clause("types"),
        ) from error
