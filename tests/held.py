"""Tensors that only the GPU's kernels take, as an engine of their own: what brings those under the shared table.

Where there is a GPU they lie on it. Where there is none they lie in the CPU's memory, and the kernels run in Triton's
interpreter (conftest.py asks for it): every line of them, but neither the compiler nor the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from maxops import dtypes
from maxops.calls import Call, MaxCall, ReduceCall, SegmentCall
from maxops.engines import gpu
from maxops.plan import Array

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Held:
    """A tensor that no other engine takes."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def tensor_of(array: Array) -> torch.Tensor:
    """A copy of an array as a tensor of the same bits."""
    dtype = dtypes.of(array.dtype)
    assert dtype is not None
    words = np.array(array, dtype.numpy, copy=True, order="C").reshape(array.shape).view(dtype.word)
    return torch.from_numpy(words).view(getattr(torch, str(dtype))).to(DEVICE)


def array_of(tensor: torch.Tensor) -> Array:
    """A tensor's bits as an array."""
    name = str(tensor.dtype).removeprefix("torch.")
    dtype = next(dtype for dtype in dtypes.ALL if str(dtype) == name)
    array: Array = tensor.cpu().view(getattr(torch, f"uint{dtype.bits}")).numpy().view(dtype.numpy)
    return array


def give(array: Array) -> Held:
    """An array's bits in a held tensor."""
    return Held(tensor_of(array))


def take(held: Any) -> Array:
    """A held tensor's bits; an error for anything else."""
    assert type(held) is Held
    return array_of(held.tensor)


def run(call: Call) -> Any:
    """The engine for held tensors."""
    out = None if call.out is None else call.out.tensor
    result = gpu.run(call.map(_tensor, _tensor, out=out))
    return tuple(map(Held, result)) if isinstance(result, tuple) else Held(result)


def _tensor(_: str, value: Any) -> Any:
    return value.tensor if isinstance(value, Held) else value


def maximum(*arrays: Any, **options: Any) -> Any:
    """The kernels on tensors of their own."""
    return gpu.run(MaxCall(arrays, **options))


def reduce_max(*args: Any, **options: Any) -> Any:
    """The kernels on tensors of their own."""
    return gpu.run(ReduceCall(*args, **options))


def segment_max(*args: Any, **options: Any) -> Any:
    """The kernels on tensors of their own."""
    return gpu.run(SegmentCall(*args, **options))
