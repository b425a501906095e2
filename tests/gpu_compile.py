"""A program that compiles the GPU's kernels for a GPU that is not here, and prints what came of each.

Triton's compiler and assembler need no device; it only asks a driver for its target, which is here one that has
nothing but an answer. Nothing is launched: a launch ends when its kernel is compiled.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from maxops import dtypes, spec
from maxops.engines.gpu import device, fold, ids, reduce, segment
from maxops.engines.gpu.order import Constant, Order


class Driver:
    """A device of compute capability 9.0, as far as the compiler asks."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", 90, 32)


def main() -> None:
    """Compile, and print each kernel's name with how it reaches memory."""
    triton.runtime.driver.set_active(Driver())
    compile_and_run = JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = compile_and_run(self, *args, grid=grid, warmup=True, **options)
        reached = Counter(re.findall(r"(?:(?:ld|st|red|atom)\.global)[.\w:]*", kernel.asm["ptx"]))
        print(self.__name__, *(f"{how}*{count}" for how, count in sorted(reached.items())))
        return kernel

    JITFunction.run = compile_only
    device.programs = lambda _: 1056  # type: ignore[assignment]
    size, order, empty = 1 << 20, Order(dtypes.FLOAT32), torch.empty
    x = torch.zeros(size, dtype=order.storage)
    table = x.view(1024, 1024)
    fold.maximum([x, x], None, x, order)
    fold.maximum([table, table.t(), table[0].expand_as(table)], 3, empty(table.shape, dtype=torch.int32), order)
    for axes, shape in (((0, 1), ()), ((1,), (1024,)), ((0,), (1024,))):
        reduce.reduce_max(table, axes, None, empty(shape, dtype=torch.int32), None, order)
    halves = torch.zeros(size, dtype=torch.int16)
    indices = empty((), dtype=torch.int64)
    reduce.reduce_max(halves, (0,), Constant(1, 1), empty((), dtype=torch.int16), indices, Order(dtypes.BFLOAT16))
    starts = torch.arange(0, size + 1, 16, dtype=torch.int32)
    for data, width in ((x, 1), (x.view(-1, 16), 16)):
        count = len(data) // 16
        by = segment.Segments(count, starts[: count + 1], count)
        out, seen = empty(count * width, dtype=torch.int32), empty(count, dtype=torch.bool)
        segment.segment_max(data, by, Constant(0, 0), False, out, empty(out.shape, dtype=torch.int64), seen, order)
    data, given = torch.zeros(1024, 16, dtype=torch.int64), torch.zeros(1024, dtype=torch.int64)
    out, seen = empty(16, 16, dtype=torch.int64), empty(16, dtype=torch.bool)
    by = segment.Segments(16, ids=given)
    segment.segment_max(
        data, by, Constant(0, 0), True, out, empty(16, 16, dtype=torch.int64), seen, Order(dtypes.FLOAT64)
    )
    ids.starts_of(spec.SEGMENT_MAX, given, 16, check=True, outside=None)
    ids.check_ids(spec.SEGMENT_MAX, given.int(), is_sorted=False, outside="error", count=16)


main()
