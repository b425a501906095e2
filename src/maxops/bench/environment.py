"""Where a run takes place: the machine, the versions, and an environment in which no library's threads spin."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import maxops
from maxops import _native
from maxops.physical_memory import physical_memory

MARK = "MAXOPS_BENCH_ENVIRONMENT"
_COUNTS = ("OMP", "MKL", "OPENBLAS", "NUMBA", "MAXOPS")  # each with a variable *_NUM_THREADS
_OTHERS = (
    "OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0 KMP_BLOCKTIME=0 JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 ORT_LOGGING_LEVEL=4 "
    "OPENVINO_TELEMETRY_OPT_OUT=1 PYTHONWARNINGS=ignore"
)


def quiet(threads: int) -> dict[str, str]:
    """Variables that libraries read when they are imported: so many threads for each, which sleep when idle."""
    counts = dict.fromkeys((MARK, "POLARS_MAX_THREADS", *(f"{name}_NUM_THREADS" for name in _COUNTS)), str(threads))
    return counts | dict(each.split("=") for each in _OTHERS.split())


def is_quiet(threads: int) -> bool:
    """Whether this process was started with these variables."""
    return os.environ.get(MARK) == str(threads)


def re_execute(threads: int) -> None:
    """Replace this process by the same command in a quiet environment, on as many CPUs as there are threads.

    Some libraries read variables only when they are imported, and XLA's pool has as many threads as the process has
    CPUs.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | quiet(threads))


def machine(threads: int) -> dict[str, Any]:
    """What figures depend on."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    switch = "".join(_lines("/sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "cpu": next(iter(names), platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": physical_memory(),
        "caches": _caches(),
        "huge_pages": switch.partition("[")[2].partition("]")[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "maxops": installed("maxops") or "source tree",
        "commit": _commit(),
        "isa": _native.isa(),
        "threads": threads,
        "output_cache": os.environ.get("MAXOPS_OUTPUT_CACHE", "on, default size"),
    }


def installed(distribution: str) -> str:
    """A distribution's version, or "" if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _lines(file: str) -> list[str]:
    """Of one of the kernel's files, if it can be read."""
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _caches() -> dict[str, str]:
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ("".join(_lines(f"{index}/{name}")) for name in ("level", "type", "size"))
        if size:
            found[f"L{level}" + {"Data": "d", "Instruction": "i"}.get(kind, "")] = size
    return found


def _commit() -> str:
    """The commit of the source tree, if this is one."""
    root = Path(maxops.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
