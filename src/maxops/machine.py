"""Describe the machine and the installed versions, which affect the results of benchmarks and conformance tests."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import maxops
from maxops import _native
from maxops.physical_memory import physical_memory


def machine(threads: int) -> dict[str, Any]:
    """Return the properties of the machine and of the installation that affect benchmarks."""
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
        "commit": commit(Path(maxops.__file__).parent),
        "isa": _native.isa(),
        "threads": threads,
        "output_cache": os.environ.get("MAXOPS_OUTPUT_CACHE", "on, default size"),
    }


def installed(distribution: str) -> str:
    """Return a distribution's version, or "" if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _lines(file: str) -> list[str]:
    """Return the lines of a file in /proc or /sys, or an empty list if the file is not readable."""
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


def commit(package: Path) -> str:
    """Return the commit of the Git checkout that contains a package, or "" without a checkout or if Git cannot run."""
    root = package.resolve().parents[1]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # git is not installed, or a folder of PATH is not accessible
        return ""
