"""Tensors of a call: that they lie where kernels reach them, and the abstract arrays with which the call is planned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from maxops.dtypes import DType
from maxops.engines.gpu import device
from maxops.engines.gpu.order import Order
from maxops.engines.torch.memory import DTYPES
from maxops.errors import DTypeError, EngineError, OutputError, OutputTooLargeError
from maxops.plan import abstract
from maxops.spec import Spec

_LONGEST = np.iinfo(np.int64).max


def check(row: Spec, named: Iterable[tuple[str, object]]) -> torch.device:
    """The device that all tensors of a call lie on; raise if one lies elsewhere."""
    found: tuple[str, torch.device] | None = None
    for name, value in named:
        if not isinstance(value, torch.Tensor):
            continue
        if value.layout is not torch.strided:
            raise EngineError(
                f"{row.name} {name} is a tensor of layout {value.layout}; the kernels take strided ones",
                row.clause("arrays"),
            )
        if value.device.type != ("cpu" if device.INTERPRETED else "cuda"):
            reach = "in Triton's interpreter, as here, on the CPU" if device.INTERPRETED else "on a CUDA device"
            raise EngineError(
                f"{row.name} {name} lies on {value.device}; the kernels take tensors {reach}", row.clause("arrays")
            )
        if found is None:
            found = name, value.device
        elif value.device != found[1]:
            raise EngineError(
                f"{row.name} {name} lies on {value.device}, but {found[0]} on {found[1]}; all lie on one device, and "
                "nothing is moved silently",
                row.clause("arrays"),
            )
    if found is None:
        raise EngineError(
            f"{row.name} got no tensor; this engine takes PyTorch's on a CUDA device", row.clause("arrays")
        )
    return found[1]


def planned(row: Spec, name: str, value: Any) -> Any:
    """What a plan has for a value: a tensor's shape and type; other values as they are."""
    if not isinstance(value, torch.Tensor):
        if isinstance(value, np.ndarray) and value.ndim:
            raise EngineError(
                f"{row.name} {name} is a NumPy array of shape {value.shape} beside tensors on a device; nothing is "
                "moved there silently",
                row.clause("arrays"),
            )
        return value
    return abstract(tuple(value.shape), type_of(row, name, value).numpy)


def type_of(row: Spec, name: str, value: torch.Tensor) -> DType:
    """The row of a tensor's type."""
    dtype = DTYPES.get(value.dtype)
    if dtype is None:
        raise DTypeError(
            f"{row.name} {name} is {value.dtype}; the types are {', '.join(map(str, row.dtypes))}", row.clause("types")
        )
    return dtype


def scalar(_: str, value: Any) -> Any:
    """A tensor of rank 0 as NumPy's, brought to the host; other values as they are.

    For `initial` and `num_segments`, which belong to the call and not to its data.
    """
    if not isinstance(value, torch.Tensor) or value.ndim:
        return value
    dtype = DTYPES.get(value.dtype)
    if dtype is None:
        return value
    return bits(value, Order(dtype).storage).cpu().numpy().view(dtype.numpy)


def bits(value: torch.Tensor, storage: torch.dtype) -> torch.Tensor:
    """A tensor's own memory as signed integers of its width."""
    return value.detach().view(storage)


def check_out(row: Spec, out: object, like: torch.dtype, shape: tuple[int, ...], where: torch.device) -> None:
    """Raise unless `out` can take a result."""
    if out is None:
        return
    if not isinstance(out, torch.Tensor):
        raise OutputError(f"{row.name} out is of type {type(out).__name__}; it is a tensor", row.clause("out"))
    if out.dtype is not like:
        raise OutputError(f"{row.name} out is {out.dtype}, but the inputs are {like}", row.clause("out"))
    if tuple(out.shape) != shape:
        raise OutputError(
            f"{row.name} out has shape {tuple(out.shape)}, but the result has shape {shape}", row.clause("out")
        )
    if out.device != where:
        raise OutputError(f"{row.name} out lies on {out.device}, but the inputs on {where}", row.clause("out"))


def give(result: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
    """The result, in `out` if there is one. It may overlap the inputs: they have been read."""
    return result if out is None else out.copy_(result)


def new(row: Spec, shape: tuple[int, ...], dtype: torch.dtype, where: torch.device) -> torch.Tensor:
    """An empty tensor for a result, or for the work on one."""
    if max(shape, default=0) > _LONGEST:
        raise OutputTooLargeError(
            f"{row.name} output needs a tensor of shape {shape}; an axis has at most {_LONGEST}", row.clause("value")
        )
    try:
        return torch.empty(shape, dtype=dtype, device=where)
    except (torch.OutOfMemoryError, RuntimeError) as error:
        raise OutputTooLargeError(
            f"{row.name} output needs a tensor of shape {shape} of {dtype} on {where}: {error}",
            row.clause("value"),
        ) from error
