"""What keeps a runtime's process from taking the machine, or from outliving the kit."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

MOST_WRITTEN = 1 << 30  # bytes in a file, so that a runtime that prints without end cannot fill the disk
_PR_SET_PDEATHSIG = 1


def most_bytes() -> int:
    """The memory that a runtime may have: half of what this machine, or this container, has."""
    has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdecimal():
        has = min(has, int(text))
    return has // 2


def contain(memory: int) -> None:
    """Limit this process and its children.

    The limit is on data, not on addresses: torch, jax and others reserve far more addresses than they ever write to.
    """
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, MOST_WRITTEN),
        (resource.RLIMIT_DATA, memory),
    ):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    score = Path("/proc/self/oom_score_adj")
    if score.exists():  # if memory runs out all the same, it is this process that goes
        score.write_text("1000")


def die_with(parent: int) -> None:
    """End when the parent does, also in the midst of a call that never returns.

    The system means the thread that started this process. Without prctl, the end of the pipe has to do.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it was gone before that
            os._exit(1)
