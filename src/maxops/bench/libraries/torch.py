"""torch: maximum and amax with `out=`, scatter_reduce, index_reduce and segment_reduce."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from maxops.bench.candidate import Candidate, UnsupportedError, Work
from maxops.bench.libraries.library import Library
from maxops.plan import Array


def as_tensor(torch: Any) -> Callable[[Array], Any]:
    """An array's own memory as a tensor."""

    def convert(array: Array) -> Any:
        if array.dtype.name != "bfloat16":
            return torch.from_numpy(array)
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)

    return convert


def as_numpy(torch: Any, dtype: np.dtype[Any]) -> Callable[[Any], Array]:
    """A tensor's own memory as an array."""

    def convert(tensor: Any) -> Array:
        if tensor.dtype is torch.bfloat16:
            return np.asarray(tensor.view(torch.int16).numpy()).view(dtype)
        return np.asarray(tensor.numpy())

    return convert


class Torch(Library):
    """PyTorch on the CPU, in inference mode as its users would run it."""

    name = "torch"

    def set_threads(self, threads: int) -> None:
        """Of its OpenMP pool."""
        self.module.set_num_threads(threads)
        self.module.set_grad_enabled(False)
        warnings.filterwarnings("ignore", message=".*(index_reduce|segment_reduce|scatter_reduce).*")

    def _tensor(self, array: Array) -> Any:
        return as_tensor(self.module)(array)

    def _numpy(self, work: Work) -> Any:
        return as_numpy(self.module, work.case.dtype.numpy)

    def maximum(self, work: Work) -> list[Candidate]:
        """torch.maximum; more than two inputs pair by pair into one output."""
        torch, tensors = self.module, tuple(map(self._tensor, work.inputs.arrays))
        out = None if work.inputs.out is None else self._tensor(work.inputs.out)

        def chain() -> Any:
            result = torch.maximum(tensors[0], tensors[1], out=out)
            for tensor in tensors[2:]:
                torch.maximum(result, tensor, out=result)
            return result

        if len(tensors) > 2:
            return [Candidate("maximum, chained", chain, to_numpy=self._numpy(work))]
        options = {} if out is None else {"out": out}
        return [Candidate("maximum", torch.maximum, tensors, options, self._numpy(work))]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """torch.amax, and torch.max over all."""
        tensor, axes = self._tensor(work.data), work.case.axes
        if len(axes) < work.data.ndim:
            return [Candidate("amax", self.module.amax, (tensor, axes), to_numpy=self._numpy(work))]
        return [
            Candidate("amax", self.module.amax, (tensor,), to_numpy=self._numpy(work)),
            Candidate("max", self.module.max, (tensor,), to_numpy=self._numpy(work)),
        ]

    def segment_max(self, work: Work) -> list[Candidate]:
        """Three functions; scatter_reduce takes 64-bit ids of the data's shape."""
        torch, data, ids = self.module, self._tensor(work.data), self._tensor(work.ids)
        if work.case.dtype.name in ("uint16", "uint32", "uint64"):
            raise UnsupportedError(f"not implemented for {work.case.dtype}")
        shape = work.case.shape
        lowest = bool(work.lowest) if work.case.dtype.kind == "bool" else work.lowest.item()

        def scatter() -> Any:
            index = ids.long()
            if data.ndim > 1:
                index = index[:, None].expand(data.shape)
            return torch.full(shape, lowest, dtype=data.dtype).scatter_reduce_(0, index, data, "amax")

        def index_reduce() -> Any:
            return torch.full(shape, lowest, dtype=data.dtype).index_reduce_(0, ids, data, "amax")

        def segment_reduce() -> Any:
            lengths = torch.bincount(ids, minlength=shape[0])
            return torch.segment_reduce(data, "max", lengths=lengths, axis=0, initial=lowest, unsafe=True)

        counts = torch.bincount(ids, minlength=shape[0])
        known = {"lengths": counts, "axis": 0, "initial": lowest, "unsafe": True}
        convert = self._numpy(work)
        return [
            Candidate("scatter_reduce_", scatter, to_numpy=convert),
            Candidate("index_reduce_", index_reduce, to_numpy=convert),
            Candidate("segment_reduce", segment_reduce, to_numpy=convert),
            Candidate(
                "segment_reduce, lengths given",
                torch.segment_reduce,
                (data, "max"),
                known,
                convert,
                other_input="lengths instead of ids",
            ),
        ]


LIBRARY = Torch
