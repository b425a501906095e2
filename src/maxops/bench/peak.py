"""Peak memory of a call beyond its inputs and its output, each call in a process of its own.

python -m maxops.bench.peak NAME      prints the bytes as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import maxops as mo
from maxops.plan import Array
from maxops.posix import resource_of

ELEMENTS = 16_000_000  # 64 MB of float32
ALLOWED = 8 * 2**20  # "a few MB": stacks of threads, partial results, the first use of the pool


def _ones(*shape: int) -> Array:
    array = np.empty(shape, np.float32)
    array.fill(1)
    return array


def _ids(rows: int) -> Array:
    ids = np.empty(rows, np.int32)
    for start in range(0, rows, 100_000):  # in parts, so that no temporary array raises the peak before the call
        ids[start : start + 100_000] = np.arange(start, min(start + 100_000, rows)) // 10
    return ids


# By name: the call on arrays of about so many elements.
CALLS: dict[str, Callable[[int], Callable[[], Array]]] = {
    "Max, new output": lambda n: partial(mo.maximum, _ones(n), _ones(n)),
    "Max, out=": lambda n: partial(mo.maximum, _ones(n), _ones(n), out=_ones(n)),
    "Max, one input transposed": lambda n: partial(mo.maximum, _ones(n // 4_000, 4_000), _ones(4_000, n // 4_000).T),
    "ReduceMax, all": lambda n: partial(mo.reduce_max, _ones(n)),
    "ReduceMax, rows of 8": lambda n: partial(mo.reduce_max, _ones(n // 8, 8), -1),
    "ReduceMax, columns of 8": lambda n: partial(mo.reduce_max, _ones(n // 8, 8), 0),
    "SegmentMax, 1-D": lambda n: partial(mo.segment_max, _ones(n), _ids(n), fill_mode="ZERO"),
    "SegmentMax, rows of 16": lambda n: partial(mo.segment_max, _ones(n // 16, 16), _ids(n // 16), fill_mode="ZERO"),
}


def extra_bytes(name: str, elements: int = ELEMENTS) -> dict[str, int]:
    """Run a call in this process: the bytes of a new output, and what the peak rose by beyond them."""
    call = CALLS[name](elements)
    before = _resident()
    _reset_peak()
    result = call()
    rose = max(_peak() - before, 0)
    new = 0 if name.endswith("out=") else result.nbytes
    return {"output": new, "extra": max(rose - new, 0)}


def measure(elements: int = ELEMENTS, names: tuple[str, ...] = tuple(CALLS)) -> list[dict[str, Any]]:
    """Every call, each in a new process."""
    rows: list[dict[str, Any]] = []
    for name in names:
        completed = subprocess.run(
            [sys.executable, "-m", "maxops.bench.peak", name, str(elements)],
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode:
            rows.append({"call": name, "error": completed.stderr.strip().splitlines()[-1]})
        else:
            figures = json.loads(completed.stdout)
            rows.append({"call": name, **figures, "allowed": ALLOWED, "within": figures["extra"] <= ALLOWED})
    return rows


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(key):
            return int(line.split()[1]) << 10
    raise OSError(f"/proc/self/status has no {key}")


def _resident() -> int:
    try:
        return _status("VmRSS:")
    except OSError:
        return _most_resident()


def _reset_peak() -> None:
    # where that cannot be, the peak is that of the process, which inputs filled in place leave at their own size
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> int:
    try:
        return _status("VmHWM:")
    except OSError:
        return _most_resident()


def _most_resident() -> int:
    unit = 1 if sys.platform == "darwin" else 1 << 10
    resource = resource_of("the peak of memory")
    most: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most * unit


if __name__ == "__main__":
    print(json.dumps(extra_bytes(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else ELEMENTS)))
