"""torch: maximum, amax, and scatter_reduce_ for segments, on the CPU."""

from __future__ import annotations

from functools import reduce

from maxops import dtypes
from maxops.conformance.case import Call
from maxops.conformance.runtimes.library import Library


class Torch(Library):
    """PyTorch's tensors share NumPy's memory; bfloat16 goes to and fro as its bits."""

    name = "torch"
    opening = ("import torch",)

    def start(self) -> None:
        """On one thread: calls are small."""
        super().start()
        self.module.set_num_threads(1)

    @property
    def version(self) -> str:
        """The version, without what it was built for."""
        return str(self.module.__version__).partition("+")[0]

    def maximum(self, call: Call, names: list[str]) -> list[str]:
        """torch.maximum, from the first to the last."""
        tensors = [_tensor(call, name) for name in names]
        return _numpy(call, reduce(lambda made, tensor: f"torch.maximum({made}, {tensor})", tensors))

    def reduce_max(self, call: Call, data: str, axis: str, keepdims: bool) -> list[str]:
        """torch.amax, which takes an empty tuple for all axes."""
        return _numpy(call, f"torch.amax({_tensor(call, data)}, dim={axis or '()'}, keepdim={keepdims})")

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """scatter_reduce_ with amax, whose 64-bit ids have the data's shape; then what has no ids is filled."""
        limits = "torch.finfo" if call.dtype.kind == "float" else "torch.iinfo"
        start = "-np.inf" if call.dtype.kind == "float" else f"{limits}(data.dtype).min"
        return [
            f"data, ids = {_tensor(call, data)}, torch.from_numpy({ids}).long()",
            "places = ids.reshape(-1, *[1] * (data.ndim - 1)).expand(data.shape)",
            f"highest = torch.full(({count}, *data.shape[1:]), {start}, dtype=data.dtype)",
            'highest.scatter_reduce_(0, places, data, "amax")',
            f"empty = torch.bincount(ids, minlength={count}) == 0",
            f"highest[empty] = {'0' if fill == '0' else f'{limits}(data.dtype).min'}",
            *_numpy(call, "highest"),
        ]


def _tensor(call: Call, name: str) -> str:
    if call.dtype == dtypes.BFLOAT16:
        return f"torch.from_numpy({name}.view(np.int16)).view(torch.bfloat16)"
    return f"torch.from_numpy({name})"


def _numpy(call: Call, tensor: str) -> list[str]:
    if call.dtype == dtypes.BFLOAT16:
        return [f"actual = {tensor}.view(torch.int16).numpy().view(ml_dtypes.bfloat16)"]
    return [f"actual = {tensor}.numpy()"]
