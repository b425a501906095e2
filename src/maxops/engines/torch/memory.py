"""Views CPU tensors as NumPy arrays, and results as tensors, without copying. Copies NumPy arguments to tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor

from maxops import dtypes
from maxops.calls import Call
from maxops.dtypes import DType
from maxops.engines.base import check_ties
from maxops.engines.torch.dispatch import modes_are_active
from maxops.errors import DTypeError, EngineError
from maxops.plan import Array, abstract
from maxops.plan.values import allocate
from maxops.shown import shown
from maxops.spec import Spec

DTYPES: dict[torch.dtype, DType] = {getattr(torch, row.name): row for row in dtypes.ALL if row is not dtypes.REAL}
NATIVE = frozenset(DTYPES) - {torch.bfloat16}  # dtypes with an equivalent in NumPy itself
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def name_of(dtype: torch.dtype) -> str:
    """Return the name of a dtype for messages: maxops's name, or torch's name for unsupported dtypes."""
    return DTYPES[dtype].name if dtype in DTYPES else str(dtype)


def unsupported_kind(tensor: torch.Tensor) -> str:
    """Return the kind of an unsupported tensor, such as "nested", or "" for a plain strided tensor."""
    if isinstance(tensor, torch.masked.MaskedTensor):
        return "masked"
    if tensor.is_nested:
        return "nested"
    if tensor.is_quantized:
        return "quantized"
    return "" if tensor.layout is torch.strided else str(tensor.layout)


def check(spec: Spec, name: str, tensor: torch.Tensor) -> None:
    """Raise an error unless a tensor is plain and strided, and has a supported dtype."""
    if kind := unsupported_kind(tensor):
        raise EngineError(
            f"{spec.name} {name} must be a strided tensor, got a {kind} tensor; convert it to a dense tensor"
        )
    if tensor.dtype not in DTYPES:
        listed = ", ".join(map(str, spec.dtypes))
        raise DTypeError(
            f"{spec.name} {name} has unsupported dtype {tensor.dtype}; supported dtypes: {listed}", spec.clause("types")
        )


def checked(call: Call) -> Any:
    """Run the checks that require torch, and return the call with abstract arrays."""
    check_ties(call)
    for name, tensor in call.arrays:
        check(call.row, name, tensor)
    return call.map(abstracted, abstracted)


def device_of(spec: Spec, named: Iterable[tuple[str, Any]]) -> torch.device:
    """Check all tensors, and return their common device."""
    first, found = "", None
    for name, value in named:
        if not isinstance(value, torch.Tensor):
            continue
        check(spec, name, value)
        if found is None:
            first, found = name, value.device
        elif value.device != found:
            raise EngineError(
                f"{spec.name} {name} is on {value.device}, but {first} is on {found}; move all tensors to one device"
            )
    assert found is not None, "the engine table selected this engine for a call without tensors"
    return found


def has_memory(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has memory, without which `Tensor.numpy` returns an array with arbitrary elements."""
    return tensor.data_ptr() != 0 or tensor.numel() == 0


def without_memory(tensor: torch.Tensor, name: str) -> EngineError:
    """Return the error for a tensor without memory."""
    return EngineError(
        f"{name} of shape {shown(tuple(tensor.shape))} has no memory, because its storage was resized to 0 bytes; "
        "resize the storage before the call"
    )


def view(tensor: torch.Tensor, name: str = "tensor") -> Array:
    """Return a CPU tensor as an array that shares its memory, without its gradient history."""
    if not has_memory(tensor):
        raise without_memory(tensor, name)
    try:
        return _view(tensor)
    except ValueError as error:
        raise EngineError(
            f"{name} of shape {shown(tuple(tensor.shape))} and dtype {name_of(tensor.dtype)} exceeds the limits of "
            f"NumPy, which maxops uses for CPU tensors: {str(error).rstrip('.')}; reshape it to fewer or smaller axes"
        ) from error


def _view(tensor: torch.Tensor) -> Array:
    plain = tensor
    if plain.requires_grad or plain.is_neg():
        plain = tensor.detach().resolve_neg()  # copies only tensors with the negative bit
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.int16).numpy().view(_BFLOAT16)
    array: Array = plain.numpy()
    return array


def tensor_of(array: Array) -> torch.Tensor:
    """Return a tensor that shares the memory of a writable, native-endian NumPy array with nonnegative strides."""
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def result(array: Array) -> torch.Tensor:
    """Return a result of the NumPy engine, which may have any layout, as a contiguous tensor."""
    return tensor_of(np.asarray(array, order="C"))


def elementwise(array: Array, *inputs: Any) -> torch.Tensor:
    """Return an element-wise result of the NumPy engine as a tensor in the layout that `like` chooses."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if array.flags.c_contiguous and all(tensor.is_contiguous() for tensor in tensors):
        return tensor_of(array)
    return laid_out(tensor_of(array), tensors)


def laid_out(result: torch.Tensor, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return an element-wise result in the layout that `like` chooses."""
    new = like(inputs, result.shape)
    return result if new.stride() == result.stride() else new.copy_(result)


def like(inputs: Sequence[torch.Tensor], shape: Any) -> torch.Tensor:
    """Return a new tensor for an element-wise result, in the dense layout of the first input with the same shape."""
    for tensor in inputs:
        if _has_shape(tensor, shape):
            if tensor.is_contiguous():
                break
            return torch.empty_like(tensor)
    return inputs[0].new_empty(shape)


def move(result: torch.Tensor, source: int, destination: int) -> torch.Tensor:
    """Move an axis of a result, and return the result in C order."""
    return torch.movedim(result, source, destination).contiguous()


def _has_shape(tensor: torch.Tensor, shape: Any) -> bool:
    """Return whether a tensor has the given shape, or False if the answer depends on data."""
    return tensor.ndim == len(shape) and all(
        example(difference := size - expected) is not None and difference == 0
        for size, expected in zip(tensor.shape, shape, strict=True)
    )


def fake_mode(values: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return the mode of the first FakeTensor, because torch combines FakeTensors only if they have the same mode."""
    modes = (value.fake_mode for value in values if isinstance(value, FakeTensor))
    return nullcontext() if modes_are_active() else next(modes, nullcontext())


def beside(spec: Spec, name: str, array: Array, device: torch.device) -> torch.Tensor:
    """Copy a NumPy array, passed in a call on tensors, to a new tensor. Only scalars are moved to other devices.

    The array is copied because the caller may change it before the backward pass, which torch would not detect.
    """
    array = np.asarray(array)
    if array.ndim and device.type != "cpu":
        raise EngineError(
            f"{spec.name} {name} is a NumPy array, but the tensors are on {device}; pass a tensor on {device}"
        )
    native = array.dtype if array.ndim else array.dtype.newbyteorder("=")
    try:
        return tensor_of(allocate(np.array, array, native)).to(device)
    except TypeError as error:
        raise EngineError(f"{spec.name} {name} is a NumPy array that torch cannot represent: {error}") from error


def abstracted(_: str, value: Any) -> Any:
    """Return an abstract array for a tensor, and other values unchanged.

    Symbolic sizes become their `example`, or 1 if it is unknown.
    """
    if not isinstance(value, torch.Tensor):
        return value
    dtype = DTYPES[value.dtype].numpy if value.dtype in DTYPES else np.dtype(object)
    return abstract(tuple([1 if (known := example(size)) is None else known for size in value.shape]), dtype)


def example(size: Any) -> int | None:
    """Return a size in the traced example without specializing the graph, or None if the size depends on data."""
    if type(size) is int:
        return size
    return int(size.node.hint) if size.node.has_hint() else None
