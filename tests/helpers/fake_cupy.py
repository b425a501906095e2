"""A fake CuPy for machines without a GPU: the part of `cupy` that the engine uses, on PyTorch's CPU memory.

It tests that the engine exchanges arrays through DLPack without a copy, but not the behavior of CuPy itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.utils.dlpack

from maxops.engines.torch.memory import tensor_of
from maxops.plan import Array


class ndarray:  # noqa: N801 - CuPy's own name
    """An array that exposes its memory only through DLPack. The axis `backwards`, if any, has a negative stride."""

    def __init__(self, tensor: torch.Tensor, backwards: int | None = None) -> None:
        self.tensor, self.backwards = tensor, backwards

    @property
    def strides(self) -> tuple[int, ...]:
        steps = [step * self.tensor.itemsize for step in self.tensor.stride()]
        return tuple(-step if axis == self.backwards else step for axis, step in enumerate(steps))

    @property
    def dtype(self) -> torch.dtype:
        return self.tensor.dtype

    def __dlpack__(self, **asked: Any) -> Any:
        if self.backwards is not None:
            raise BufferError("negative strides are unsupported")
        return self.tensor.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


def from_dlpack(giver: Any) -> ndarray:
    """Return an array that shares memory with a DLPack producer."""
    return ndarray(torch.utils.dlpack.from_dlpack(giver))


def ascontiguousarray(array: ndarray) -> ndarray:
    """Return a contiguous copy."""
    return ndarray(array.tensor.contiguous() if array.backwards is None else array.tensor.flip(array.backwards))


def asarray(array: Array) -> ndarray:
    """Return an array with the values of a NumPy array."""
    return ndarray(tensor_of(np.array(array)))
