"""Limits the resources of a runtime's process, and ends the process when its parent ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

from maxops.physical_memory import physical_memory
from maxops.posix import resource_of

MAX_FILE_BYTES = 1 << 30  # limits each file, so that a runtime with endless output cannot fill the disk
_PR_SET_PDEATHSIG = 1


def memory_limit() -> int:
    """Return the memory limit of a runtime: half of the memory of this machine or container."""
    resource_of("a runtime's process")  # raises before a process starts
    has = physical_memory()
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdecimal():
        has = min(has, int(text))
    return has // 2


def limit_resources(memory: int, process: int | None = None) -> None:
    """Set the resource limits of this process or, on Linux, of another process, and of its later children.

    The memory limit applies to data, not to address space, because torch, jax and others reserve more than they use.
    """
    resource = resource_of("a runtime's process")
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, MAX_FILE_BYTES),
        (resource.RLIMIT_DATA, memory),
    ):
        hard = resource.getrlimit(limit)[1]
        limits = most if hard == resource.RLIM_INFINITY else min(most, hard), hard
        if process is None:
            resource.setrlimit(limit, limits)
        elif sys.platform == "linux":
            resource.prlimit(process, limit, limits)
    score = Path(f"/proc/{process or 'self'}/oom_score_adj")
    if score.exists():  # makes the OOM killer choose this process
        score.write_text("1000")


def remove_file_limit() -> None:
    """Remove the limit on the size of this process's files."""
    resource = resource_of("a runtime's process")
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def die_with_parent(parent: int) -> None:
    """End this process when its parent ends, even during a call that never returns.

    The parent is the *thread* that started this process. Without prctl, the process ends when it detects that
    its pipe is closed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the call
            os._exit(1)
