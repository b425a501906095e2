"""A sandbox for other packages' work on untrusted models: a forked process with limits on CPU time and memory."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from maxops.errors import ModelError
from maxops.posix import resource_of

MAX_SECONDS = 20  # of CPU time; three times as long of wall-clock time, on a busy machine
MAX_BYTES = 4 << 30  # beyond what this process has
MAPPED = Path("/proc/self/statm")  # in pages
_DONE, _FAILED = b"+", b"-"


def sandboxed(work: Callable[[], bytes]) -> bytes:
    """Run work in the sandbox; raises ModelError with its own message, or with how the process ended."""
    resource = resource_of("the inference of types in a sandbox")
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
            raise ModelError(f"cannot start a subprocess: {error.strerror}") from error
    if child == 0:
        _be_child(work, writing, resource)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            reply = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if reply[:1] == _DONE and status == 0:
        return reply[1:]
    if reply[:1] == _FAILED:
        raise ModelError(reply[1:].decode())
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
        raise ModelError(f"takes more than {MAX_SECONDS} seconds")
    raise ModelError(f"ends its process with status {os.waitstatus_to_exitcode(status)}")


def _be_child(work: Callable[[], bytes], writing: int, resource: ModuleType) -> None:
    """Do the work in the child, and exit without Python's own clean-up."""
    try:
        for number in (signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.alarm(3 * MAX_SECONDS)  # a lock that another thread held at the fork is never given back
        limits = [(resource.RLIMIT_CPU, MAX_SECONDS), (resource.RLIMIT_CORE, 0)]
        if MAPPED.exists():  # Linux has it
            mapped = int(MAPPED.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            limits.append((resource.RLIMIT_AS, mapped + MAX_BYTES))
        for limit, most in limits:
            hard = resource.getrlimit(limit)[1]
            resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        try:
            reply = _DONE + work()
        except ModelError as error:
            reply = _FAILED + str(error).encode(errors="replace")
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(reply)
        os._exit(0)
    finally:
        os._exit(1)
