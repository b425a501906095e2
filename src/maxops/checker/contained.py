"""Work of another package on a hostile model, in a process of its own: it may hang, crash or take all memory there."""

from __future__ import annotations

import os
import resource
import signal
import warnings
from collections.abc import Callable
from pathlib import Path

from maxops.errors import ModelError

MOST_SECONDS = 20  # of the processor's time; three times as long by the clock, on a busy machine
MOST_BYTES = 4 << 30  # beyond what this process has
MAPPED = Path("/proc/self/statm")  # in pages
_DONE, _FAILED = b"+", b"-"


def contained(work: Callable[[], bytes]) -> bytes:
    """What the work gives; ModelError with its own words, or with the way in which its process ended."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of forks beside threads, whose locks a child may find taken, and so does JAX once it is
        # imported: this child takes none of theirs
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        try:
            child = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            raise ModelError(f"cannot have a process of its own: {error.strerror}") from error
    if child == 0:
        _be_child(work, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if told[:1] == _DONE and status == 0:
        return told[1:]
    if told[:1] == _FAILED:
        raise ModelError(told[1:].decode())
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
        raise ModelError(f"takes more than {MOST_SECONDS} seconds")
    raise ModelError(f"ends its process with status {os.waitstatus_to_exitcode(status)}")


def _be_child(work: Callable[[], bytes], writing: int) -> None:
    """Do the work and end here, without anything that Python does at its end."""
    try:
        for number in (signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(3 * MOST_SECONDS)  # a lock that another thread held at the fork is never given back
        limits = [(resource.RLIMIT_CPU, MOST_SECONDS), (resource.RLIMIT_CORE, 0)]
        if MAPPED.exists():  # Linux has it
            mapped = int(MAPPED.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            limits.append((resource.RLIMIT_AS, mapped + MOST_BYTES))
        for limit, most in limits:
            hard = resource.getrlimit(limit)[1]
            resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        try:
            told = _DONE + work()
        except ModelError as error:
            told = _FAILED + str(error).encode(errors="replace")
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(told)
        os._exit(0)
    finally:
        os._exit(1)
