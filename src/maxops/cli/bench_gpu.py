"""`maxops bench --gpu`: the operators on a CUDA device beside a copy of as many bytes, PyTorch and CuPy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from maxops.bench import gpu, gpu_measure
from maxops.cli import streams
from maxops.cli.table import show
from maxops.dtypes import DType
from maxops.json_text import in_lines


def bench_gpu(rows: list[DType], only: str, json_file: Path | None, write: Callable[[Path, str], None]) -> bool:
    """Measure and print; whether all bits were the same as on the CPU."""
    where = gpu.find_device()
    torch = import_module("torch")
    found = []
    for dtype in rows:
        for case in gpu.cases(dtype, where):
            if only not in case.id:
                continue
            print(f"maxops bench: {case.id}", file=sys.stderr)
            found.append(gpu_measure.measure(case, where, gpu_measure.events))
            torch.cuda.empty_cache()
    device, capability = torch.cuda.get_device_name(where), torch.cuda.get_device_capability(where)
    with streams.stdout_kept_for([json_file]):
        where_it_ran = f"{device}, compute capability {capability[0]}.{capability[1]}, PyTorch {torch.__version__}"
        print(f"\n{where_it_ran}, 1 GiB tensors")
        show(gpu_measure.COLUMNS, [gpu_measure.row(one) for one in found])
    if json_file is not None:
        run = {"device": device, "torch": torch.__version__, "cases": [one.as_json() for one in found]}
        write(json_file, in_lines(run) + "\n")
    return all(one.same_bits for one in found)
