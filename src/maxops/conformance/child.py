"""The parent's end of the connection to a runtime's child process: requests, graceful shutdown, and kill."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from multiprocessing import Pipe
from typing import Any, Self

from maxops.conformance.poison import TUNABLES
from maxops.conformance.subprocesses import kill_group, python_command, signal_name
from maxops.errors import MaxopsError

START_TIMEOUT = 120  # seconds; TensorFlow loads slowly if its files are not cached
SHUTDOWN_TIMEOUT = 20
_TAIL = 4096
_MAX_LINE_LENGTH = 300


class RuntimeUnusableError(MaxopsError, RuntimeError):
    """Raised if a runtime cannot be started or is not ready in time."""


class ChildEndedError(Exception):
    """Raised if the process has ended. The message states how."""


class ChildHungError(Exception):
    """Raised if there was no response before the timeout."""


class Child:
    """A child process that hosts a runtime. `wait_until_ready` sets `version`, the runtime's version.

    The runtime's output goes to an unnamed file, never into the connection. The thread that creates this object must
    outlive it.
    """

    def __init__(self, name: str, environment: Mapping[str, str], memory: int) -> None:
        self.name = name
        self._is_killed = False
        self._output = tempfile.TemporaryFile("ab+", buffering=0)  # noqa: SIM115 - stays open as long as the process
        self._connection, theirs = Pipe()
        arguments = [name, str(theirs.fileno()), str(os.getpid()), str(memory)]
        try:
            self._process = subprocess.Popen(
                python_command("maxops.conformance.worker", arguments),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C interrupts only the parent, which kills the whole group
                env=_environment(environment),
            )
        except BaseException:
            self._connection.close()
            self._output.close()
            raise
        finally:
            theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def request(self, message: object, seconds: float) -> Any:
        """Send a request and return the response."""
        os.ftruncate(self._output.fileno(), 0)  # later output belongs to this request
        try:
            self._connection.send(message)
        except OSError:
            raise ChildEndedError(self._end()) from None
        return self.response(seconds)

    def response(self, seconds: float) -> Any:
        """Return the next response."""
        try:
            if self._connection.poll(seconds):
                return self._connection.recv()
        except (EOFError, OSError):
            raise ChildEndedError(self._end()) from None
        if self._process.poll() is not None:  # a child of the ended process may still hold the pipe open
            raise ChildEndedError(self._end())
        raise ChildHungError

    def shut_down(self) -> str:
        """Shut the process down gracefully. Return how it ended, or "" if its status is 0."""
        os.ftruncate(self._output.fileno(), 0)
        self._connection.close()
        try:
            status = self._process.wait(SHUTDOWN_TIMEOUT)
        except subprocess.TimeoutExpired:
            status = 0  # a thread that does not end is not a crash
        how = self._how(status) if status else ""
        self.kill()
        return how

    def kill(self) -> None:
        """Kill the process and its children immediately. Do nothing if it has ended."""
        if self._is_killed:  # the system may have reused its process id
            return
        kill_group(self._process.pid)
        self._process.wait()
        self._is_killed = True
        self._connection.close()
        self._output.close()

    def wait_until_ready(self) -> None:
        """Wait until the process is ready. If it is not ready in time, kill it and raise RuntimeUnusableError."""
        try:
            self.version: str = self._ready()
        except BaseException:
            self.kill()
            raise

    def _ready(self) -> str:
        try:
            kind, payload = self.response(START_TIMEOUT)
        except ChildEndedError as error:
            raise RuntimeUnusableError(f"{self.name} cannot be loaded: {error}") from None
        except ChildHungError:
            raise RuntimeUnusableError(f"{self.name} cannot be loaded: timed out after {START_TIMEOUT} s") from None
        if kind == "failed":
            raise RuntimeUnusableError(payload)
        return str(payload)

    def _end(self) -> str:
        """Return how the process ended after it closed its pipe. Kill it if it still runs."""
        try:
            how = self._how(self._process.wait(SHUTDOWN_TIMEOUT))
        except subprocess.TimeoutExpired:
            how = "the process closed the kit's pipe and is still running"
        self.kill()
        return how

    def _how(self, status: int) -> str:
        if status < 0:
            how = f"the process was killed by {signal_name(-status)}"
        else:
            how = f"the process ended with status {status}"
        line = self._last_line()
        return f"{how}: {line}" if line else how

    def _last_line(self) -> str:
        size = os.fstat(self._output.fileno()).st_size
        text = os.pread(self._output.fileno(), _TAIL, max(0, size - _TAIL)).decode(errors="replace")
        printable = ("".join(filter(str.isprintable, line)).strip() for line in reversed(text.splitlines()))
        last = next(filter(None, printable), "")
        return last if len(last) <= _MAX_LINE_LENGTH else last[:_MAX_LINE_LENGTH] + "..."


def _environment(runtime: Mapping[str, str]) -> dict[str, str]:
    """Return the parent's environment plus glibc's tunables for memory poisoning and the runtime's own variables."""
    tunables = ":".join(filter(None, (os.environ.get("GLIBC_TUNABLES", ""), TUNABLES)))
    return {**os.environ, "GLIBC_TUNABLES": tunables, **runtime}
