"""Runs tasks on untrusted models in a sandbox: a forked process with limits on CPU time and memory."""

from __future__ import annotations

import os
import select
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from types import ModuleType

from maxops.errors import ModelError
from maxops.posix import resource_of

MAX_SECONDS = 20  # CPU time; the limit on wall-clock time is three times as long
MAX_BYTES = 4 << 30  # memory in addition to the memory of the parent process
MAPPED = Path("/proc/self/statm")  # starts with the size of the mapped memory, in pages
PATIENCE = 4 * MAX_SECONDS  # the timeout for a reply; a library may hang after a fork, before the limits are set
_DONE, _FAILED = b"+", b"-"
_LENGTH = 8  # the length of a reply takes this many bytes, after the first byte of the reply

Work = Callable[[], bytes]


def sandboxed(works: Sequence[Work]) -> list[bytes | ModelError]:
    """Run tasks in a subprocess, and return the result or the ModelError of each.

    If a task crashes the subprocess or exceeds a limit, its error describes this, and a new subprocess runs the
    remaining tasks. The time limits apply to each task separately. Raises ModelError if no subprocess can be started.
    """
    resource = resource_of("the inference of types in a sandbox")
    results: list[bytes | ModelError] = []
    while len(results) < len(works):
        rest = works[len(results) :]
        replies, ending = _replies(rest, resource)
        results += replies
        if len(replies) < len(rest):
            results.append(ModelError(ending))
    return results


def _replies(works: Sequence[Work], resource: ModuleType) -> tuple[list[bytes | ModelError], str]:
    """Run tasks in one subprocess. Return the results that it sent, and a description of how it ended."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python and JAX warn about forks in a process with threads, whose locks may be held in the child. This child
        # takes none of these locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        try:
            child = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            raise ModelError(f"cannot start a subprocess: {error.strerror}") from error
    if child == 0:
        _be_child(works, writing, resource)
    os.close(writing)
    parts: list[bytes] = []
    is_late = True
    try:
        ready = select.poll()
        ready.register(reading, select.POLLIN)
        while is_late and ready.poll(1000 * PATIENCE):
            parts.append(os.read(reading, 1 << 20))
            is_late = parts[-1] != b""  # an empty read marks the end of the output
    finally:
        if is_late:
            os.kill(child, signal.SIGKILL)
        os.close(reading)
        _, status = os.waitpid(child, 0)
    return [*_parsed(b"".join(parts))], _ending(status, is_late=is_late)


def _parsed(data: bytes) -> Iterator[bytes | ModelError]:
    """Yield the complete replies. The last reply may be truncated, because a task can end the subprocess."""
    head = 0
    while len(data) >= (start := head + 1 + _LENGTH):
        end = start + int.from_bytes(data[head + 1 : start], "little")
        if len(data) < end:
            return
        reply = data[start:end]
        yield reply if data[head : head + 1] == _DONE else ModelError(reply.decode())
        head = end


def _ending(status: int, *, is_late: bool) -> str:
    if is_late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM)):
        return f"took more than {MAX_SECONDS} seconds"
    return f"exited with status {os.waitstatus_to_exitcode(status)}"


def _be_child(works: Sequence[Work], writing: int, resource: ModuleType) -> None:
    """Set the limits, run the tasks in the child process, and exit without Python's cleanup."""
    try:
        for number in (signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        _limit(resource, resource.RLIMIT_CORE, 0)
        if MAPPED.exists():  # only on Linux
            mapped = int(MAPPED.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            _limit(resource, resource.RLIMIT_AS, mapped + MAX_BYTES)
        with os.fdopen(writing, "wb") as pipe:
            for work in works:
                used = resource.getrusage(resource.RUSAGE_SELF)
                _limit(resource, resource.RLIMIT_CPU, ceil(used.ru_utime + used.ru_stime) + MAX_SECONDS)
                signal.alarm(3 * MAX_SECONDS)  # a lock that another thread held at the fork is never released
                try:
                    kind, reply = _DONE, work()
                except ModelError as error:
                    kind, reply = _FAILED, str(error).encode(errors="replace")
                pipe.write(kind + len(reply).to_bytes(_LENGTH, "little") + reply)
                pipe.flush()
        os._exit(0)
    finally:
        os._exit(1)


def _limit(resource: ModuleType, limit: int, most: int) -> None:
    hard = resource.getrlimit(limit)[1]
    resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
