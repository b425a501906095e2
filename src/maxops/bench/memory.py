"""Peak memory of a call beyond its inputs and its output: python -m maxops.bench.memory CASE."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from maxops import dtypes
from maxops.bench import grid, libraries
from maxops.bench.inputs import build
from maxops.bench.timing import Json
from maxops.posix import resource_of

ALLOWED = 8 * 2**20  # "a few MB": stacks of threads, partial results, the first use of the pool
QUICK_CASES = ("Max/2-inputs/float32/1e6", "Max/2-inputs,out/float32/1e6")
CASES = (
    "Max/2-inputs/float32/3e7", "Max/2-inputs,out/float32/3e7", "Max/transposed/float32/3e7", "ReduceMax/all/float32/3e7",
    "ReduceMax/last-8/float32/3e7", "ReduceMax/first-narrow/float32/8e6", "SegmentMax/1d,mean-10,int64/float32/3e7",
    "SegmentMax/rows-16,mean-10,int64/float32/3e7",
)  # fmt: skip


def extra_bytes(case_id: str) -> Json:
    """Run a call in this process: the bytes of a new output, and what the peak rose by beyond them."""
    case = next(case for case in grid.cases(types=[dtypes.FLOAT32]) if case.id == case_id)
    candidate = libraries.ours(build(case))
    with suppress(OSError):  # elsewhere the peak includes what inputs took while they were made
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _peak()
    _kept = eval(candidate.code, dict(candidate.names))
    new = 0 if case.out else case.bytes_written
    return {"output": new, "extra": max(_peak() - before - new, 0)}


def measure(case_ids: Iterable[str] = CASES) -> list[Json]:
    """Every call, each in a new process."""
    rows: list[Json] = []
    for case_id in case_ids:
        command = [sys.executable, "-m", "maxops.bench.memory", case_id]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        found = {"error": completed.stderr.strip().rpartition("\n")[2]}
        if completed.returncode == 0:
            found = json.loads(completed.stdout)
            found |= {"allowed": ALLOWED, "within": found["extra"] <= ALLOWED}
        rows.append({"call": case_id} | found)
    return rows


def _peak() -> int:
    status = Path("/proc/self/status")  # of this program alone: ru_maxrss is also its parent's, who started it
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))):
        return int(found[1]) << 10
    resource = resource_of("the peak of memory")
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    print(json.dumps(extra_bytes(sys.argv[1])))
