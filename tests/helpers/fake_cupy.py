"""A stand-in for CuPy where there is no GPU: as much of `cupy` as the engine touches, over PyTorch's CPU memory.

It shows that arrays are lent and given back through DLPack, without a copy; not that CuPy does as it does here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.utils.dlpack

from maxops.engines.torch.memory import tensor_of
from maxops.plan import Array


class ndarray:  # noqa: N801 - CuPy's own name
    """An array that shows its memory by DLPack alone; `transposed` ones have their first axis backwards."""

    def __init__(self, tensor: torch.Tensor, transposed: bool = False) -> None:
        self.tensor, self.transposed = tensor, transposed

    @property
    def strides(self) -> tuple[int, ...]:
        steps = [step * self.tensor.itemsize for step in self.tensor.stride()]
        return tuple([-steps[0], *steps[1:]] if self.transposed else steps)

    @property
    def dtype(self) -> torch.dtype:
        return self.tensor.dtype

    def __dlpack__(self, **asked: Any) -> Any:
        if self.transposed:
            raise BufferError("a consumer of strides below 0 is not known")
        return self.tensor.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


def from_dlpack(giver: Any) -> ndarray:
    """An array of the giver's memory."""
    return ndarray(torch.utils.dlpack.from_dlpack(giver))


def ascontiguousarray(array: ndarray) -> ndarray:
    """A copy with the axes forwards."""
    return ndarray(array.tensor.flip(0) if array.transposed else array.tensor.contiguous())


def asarray(array: Array) -> ndarray:
    """A NumPy array's values."""
    return ndarray(tensor_of(np.array(array)))
