"""Tensors on the CPU seen as NumPy arrays of the same memory, and the other way round; nothing is copied."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from maxops import dtypes
from maxops.dtypes import DType
from maxops.errors import DTypeError, EngineError
from maxops.plan import Array, stand_in
from maxops.spec import Spec

DTYPES: dict[torch.dtype, DType] = {getattr(torch, row.name): row for row in dtypes.ALL if row is not dtypes.REAL}
NATIVE = frozenset(DTYPES) - {torch.bfloat16}  # the types that NumPy itself has
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def check(spec: Spec, name: str, tensor: torch.Tensor) -> None:
    """Raise unless a tensor holds plain strided elements of a known type."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        kind = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else str(tensor.layout)
        raise EngineError(
            f"{spec.name} {name} is a tensor of another kind than strided: {kind}; maxops makes no dense one of it"
        )
    if tensor.dtype not in DTYPES:
        listed = ", ".join(map(str, spec.dtypes))
        raise DTypeError(f"{spec.name} {name} is {tensor.dtype}; the types are {listed}", spec.clause("T"))


def view(tensor: torch.Tensor) -> Array:
    """The memory of a tensor on the CPU, without its history."""
    plain = tensor
    if plain.requires_grad or plain.is_neg():
        plain = tensor.detach().resolve_neg()  # a copy only for the imaginary part of a conjugate
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.int16).numpy().view(_BFLOAT16)
    array: Array = plain.numpy()
    return array


def tensor_of(array: Array) -> torch.Tensor:
    """The memory of a writable NumPy array of the machine's byte order, with steps of at least 0."""
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def result(array: Array) -> torch.Tensor:
    """A result of the NumPy engine, contiguous as torch's compilers expect it; NumPy's follow the inputs' order."""
    return tensor_of(array if array.flags.c_contiguous else array.copy(order="C"))


def beside(spec: Spec, name: str, array: Array) -> torch.Tensor:
    """The memory of a NumPy array that was given beside tensors."""
    array = np.asarray(array)
    if not array.flags.writeable:
        array = np.asarray(_Unlocked(array)).view(array.dtype)  # inputs are only read, so torch need not warn
    try:
        return tensor_of(array)
    except (TypeError, ValueError) as error:
        raise EngineError(
            f"{spec.name} {name} is a NumPy array that torch cannot look at without a copy: {error}"
        ) from error


class _Unlocked:
    """The memory of a read-only array by NumPy's own protocol, without the lock; of bytes, if NumPy did not name the
    type.
    """

    def __init__(self, array: Array) -> None:
        self._array = array  # lives as long as its memory is looked at
        interface = dict(array.view(array.dtype.str.replace("V", "u")).__array_interface__)
        self.__array_interface__ = interface | {"data": (array.ctypes.data, False)}


def planned(tensor: torch.Tensor) -> Array:
    """What stands in for a tensor in a plan: its shape and type."""
    return stand_in(tuple(tensor.shape), DTYPES[tensor.dtype].numpy if tensor.dtype in DTYPES else np.dtype(object))


def symbolic(*tensors: Any) -> bool:
    """Whether a shape is not of plain integers, as while a graph for many shapes is traced."""
    return any(type(size) is not int for tensor in tensors if tensor is not None for size in tensor.shape)
