"""Peak memory of a call beyond its inputs and its output: python -m maxops.bench.memory CALL ELEMENTS."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

import maxops as mo
from maxops.bench.timing import Json
from maxops.plan import Array
from maxops.posix import resource_of

ELEMENTS = 16_000_000  # 64 MB of float32, which is more than the process has had before
ALLOWED = 8 * 2**20  # "a few MB": stacks of threads, partial results, the first use of the pool


def _ones(*shape: int) -> Array:
    array = np.empty(shape, np.float32)
    array.fill(1)  # in place: no temporary array raises the peak before the call
    return array


def _ids(rows: int) -> Array:
    ids = np.empty((rows // 10, 10), np.int32)
    ids[:] = np.arange(rows // 10, dtype=np.int32)[:, None]
    return ids.reshape(-1)


_segment_max = partial(mo.segment_max, fill_mode="ZERO")
# By name: the call on arrays of about so many elements.
CALLS: dict[str, Callable[[int], Callable[[], Array]]] = {
    "Max, new output": lambda n: partial(mo.maximum, _ones(n), _ones(n)),
    "Max, out=": lambda n: partial(mo.maximum, _ones(n), _ones(n), out=_ones(n)),
    "Max, one input transposed": lambda n: partial(mo.maximum, _ones(n // 4_000, 4_000), _ones(4_000, n // 4_000).T),
    "ReduceMax, all": lambda n: partial(mo.reduce_max, _ones(n)),
    "ReduceMax, rows of 8": lambda n: partial(mo.reduce_max, _ones(n // 8, 8), -1),
    "ReduceMax, columns of 8": lambda n: partial(mo.reduce_max, _ones(n // 8, 8), 0),
    "SegmentMax, 1-D": lambda n: partial(_segment_max, _ones(n), _ids(n)),
    "SegmentMax, rows of 16": lambda n: partial(_segment_max, _ones(n // 16, 16), _ids(n // 16)),
}


def extra_bytes(name: str, elements: int = ELEMENTS) -> dict[str, int]:
    """Run a call in this process: the bytes of a new output, and what the peak rose by beyond them."""
    call = CALLS[name](elements)
    before = _peak()
    result = call()
    new = 0 if name.endswith("out=") else result.nbytes
    return {"output": new, "extra": max(_peak() - before - new, 0)}


def measure(elements: int = ELEMENTS, names: Iterable[str] = CALLS) -> list[Json]:
    """Every call, each in a new process."""
    rows: list[Json] = []
    for name in names:
        command = [sys.executable, "-m", "maxops.bench.memory", name, str(elements)]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        if completed.returncode:
            rows.append({"call": name, "error": completed.stderr.strip().splitlines()[-1]})
        else:
            figures = json.loads(completed.stdout)
            rows.append({"call": name, **figures, "allowed": ALLOWED, "within": figures["extra"] <= ALLOWED})
    return rows


def _peak() -> int:
    status = Path("/proc/self/status")  # of this program alone: ru_maxrss is also its parent's, who started it
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))):
        return int(found[1]) << 10
    resource = resource_of("the peak of memory")
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    print(json.dumps(extra_bytes(sys.argv[1], int(sys.argv[2]))))
