"""What `maxops bench --gpu` measures: cases of tensors on a CUDA device, as data, and other libraries' calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import maxops as mo
from maxops import dtypes
from maxops.dtypes import DType
from maxops.errors import MaxopsError
from maxops.plan import Array

GIB = 1 << 30
# Types that are measured unless others are named: one of 2, 4 and 8 bytes, and an integer.
DEFAULT_TYPES = ("float32", "float16", "float64", "int64")
# torch has no maxima of these.
_TORCH_LACKS = ("uint16", "uint32", "uint64")
_CUPY_LACKS = ("bfloat16",)


class NoDeviceError(MaxopsError, RuntimeError):
    """There is no GPU to measure, or not what reaches it."""


@dataclass(frozen=True)
class GpuCase:
    """A case: our call, others' by library, the bytes that it must move, and the same on the CPU."""

    id: str
    bytes: int
    ours: Callable[[], Any]
    on_cpu: Callable[[], Array]
    libraries: dict[str, Callable[[], Any]] = field(default_factory=dict)


def find_device() -> Any:
    """The CUDA device to measure on, or an error that says what is missing."""
    if find_spec("torch") is None:
        raise NoDeviceError('bench --gpu needs PyTorch, and torch is not installed: "maxops[gpu]"')
    torch = import_module("torch")
    if not torch.cuda.is_available():
        raise NoDeviceError(
            f"bench --gpu found no CUDA device: PyTorch {torch.__version__} sees none. Nothing was measured"
        )
    return torch.device("cuda")


def cases(dtype: DType, where: Any, size: int = GIB) -> Iterator[GpuCase]:
    """The cases of a type, whose largest tensor has `size` bytes; one at a time, since they fill the memory."""
    make = _Maker(dtype, where, size)
    yield make.maximum()
    for name, shape, axes in make.reductions():
        yield make.reduce_max(name, shape, axes)
    for mean in (10, 100, 1000):
        for variant in ("ids", "unchecked", "offsets"):
            yield make.segment_max(f"flat,mean-{mean},{variant}", (make.count,), mean, variant)
    yield make.segment_max("rows-of-64,mean-10,ids", (make.count // 64, 64), 10, "ids")
    yield make.segment_max("flat,mean-100,unsorted", (make.count,), 100, "unsorted")


class _Maker:
    """Makes cases; each holds its own tensors."""

    def __init__(self, dtype: DType, where: Any, size: int) -> None:
        self.torch = import_module("torch")
        self.dtype, self.where = dtype, where
        self.item = dtype.bits // 8
        self.count = size // self.item
        self.kind = getattr(self.torch, str(dtype))
        self.cupy: Any = import_module("cupy") if find_spec("cupy") is not None and where.type == "cuda" else None

    def data(self, shape: tuple[int, ...]) -> Any:
        """Ordinary numbers; random bits would be NaN so often that every maximum is."""
        torch = self.torch
        if self.dtype.kind == "float":
            return torch.randn(shape, dtype=torch.float32, device=self.where).to(self.kind)
        storage = torch.int64 if self.item > 1 else torch.uint8
        top = 2 if self.dtype.kind == "bool" else 1 << min(self.dtype.bits - 1, 62)
        return torch.randint(0, top, shape, dtype=storage, device=self.where).to(self.kind)

    def maximum(self) -> GpuCase:
        a, b = (self.data((self.count,)) for _ in range(2))
        libraries: dict[str, Callable[[], Any]] = {}
        if str(self.dtype) not in _TORCH_LACKS:
            libraries["torch.maximum"] = lambda: self.torch.maximum(a, b)
        if (x := self.lent(a)) is not None and (y := self.lent(b)) is not None:
            libraries["cupy.maximum"] = lambda: self.cupy.maximum(x, y)
        return GpuCase(
            f"Max,2-inputs,{self.dtype}",
            3 * self.count * self.item,
            lambda: mo.maximum(a, b),
            lambda: mo.maximum(as_array(a), as_array(b)),
            libraries,
        )

    def reductions(self) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """Names, shapes and axes."""
        wide = min(1024, self.count)
        yield "all", (self.count,), (0,)
        yield "rows-of-1024", (self.count // wide, wide), (1,)
        yield "columns-1024", (self.count // wide, wide), (0,)
        yield "middle", (max(self.count // wide // 256, 1), 256, wide), (1,)

    def reduce_max(self, name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> GpuCase:
        x = self.data(shape)
        out = x.numel() // (shape[axes[0]] or 1)
        libraries: dict[str, Callable[[], Any]] = {}
        if str(self.dtype) not in _TORCH_LACKS:
            libraries["torch.amax"] = lambda: self.torch.amax(x, axes)
        if (y := self.lent(x)) is not None:
            libraries["cupy.max"] = lambda: y.max(axis=axes)
        return GpuCase(
            f"ReduceMax,{name},{self.dtype}",
            (x.numel() + out) * self.item,
            lambda: mo.reduce_max(x, axes, False),
            lambda: mo.reduce_max(as_array(x), axes, False),
            libraries,
        )

    def segment_max(self, name: str, shape: tuple[int, ...], mean: int, variant: str) -> GpuCase:
        torch = self.torch
        x, rows = self.data(shape), shape[0]
        width = x.numel() // rows
        segments = max(rows // mean, 1)
        ids = torch.randint(0, segments, (rows,), dtype=torch.int64, device=self.where)
        ids = ids if variant == "unsorted" else ids.sort().values
        lengths = torch.bincount(ids, minlength=segments)
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        options: dict[str, Any] = {"fill_mode": "LOWEST" if self.dtype.kind != "bool" else "ZERO"}
        named: dict[str, Any] = {"offsets": offsets} if variant == "offsets" else {"segment_ids": ids}
        if variant != "offsets":
            options |= {"num_segments": segments, "check_ids": variant == "ids", "sorted": variant != "unsorted"}
        moved = (rows * width + segments * width) * self.item
        moved += 8 * (segments + 1 if variant == "offsets" else rows)
        return GpuCase(
            f"SegmentMax,{name},{self.dtype}",
            moved,
            lambda: mo.segment_max(x, **named, **options),
            lambda: mo.segment_max(as_array(x), **(options | {key: as_array(each) for key, each in named.items()})),
            dict(self.segment_libraries(x, ids, lengths, segments, variant)),
        )

    def segment_libraries(
        self, x: Any, ids: Any, lengths: Any, segments: int, variant: str
    ) -> Iterator[tuple[str, Callable[[], Any]]]:
        """torch's two functions; CuPy has none."""
        torch = self.torch
        if str(self.dtype) in _TORCH_LACKS or self.dtype.kind == "bool":
            return
        lowest = float("-inf") if self.dtype.kind == "float" else torch.iinfo(self.kind).min
        index = ids if x.ndim == 1 else ids[:, None].expand(x.shape)

        def scatter() -> Any:
            out = torch.full((segments, *x.shape[1:]), lowest, dtype=self.kind, device=self.where)
            return out.scatter_reduce_(0, index, x, "amax")

        yield "torch.scatter_reduce", scatter
        if variant != "unsorted" and self.dtype.kind == "float":
            known: dict[str, Any] = {"lengths": lengths, "axis": 0, "initial": lowest, "unsafe": True}
            yield "torch.segment_reduce", lambda: torch.segment_reduce(x, "max", **known)

    def lent(self, tensor: Any) -> Any:
        """A tensor's memory as CuPy's array, where there is CuPy and it has the type."""
        if self.cupy is None or str(self.dtype) in _CUPY_LACKS:
            return None
        return self.cupy.from_dlpack(tensor)


def as_array(tensor: Any) -> Array:
    """A tensor's bits as an array on the CPU."""
    torch, dtype = import_module("torch"), dtypes.BY_NAME[str(tensor.dtype).removeprefix("torch.")]
    storage = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[dtype.bits]
    array: Array = tensor.detach().view(storage).cpu().numpy().view(dtype.numpy)
    return array
