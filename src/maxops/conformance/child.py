"""One child process of a runtime, from the parent's side: requests, graceful shutdown, kill."""

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

START_TIMEOUT = 120  # TensorFlow from a cold disk
SHUTDOWN_TIMEOUT = 20
_TAIL = 4096
_MAX_LINE_LENGTH = 300


class RuntimeUnusableError(MaxopsError, RuntimeError):
    """A runtime that cannot be started, or whose process does not answer as it should."""


class ChildEndedError(Exception):
    """The process ended; the text says how."""


class ChildHungError(Exception):
    """No response before the timeout."""


class Child:
    """A process; `version`, once it has started, is that of the runtime.

    What the runtime prints goes to a file without a name, never among the messages. The thread that makes this object
    is to outlive it.
    """

    def __init__(self, name: str, environment: Mapping[str, str], memory: int) -> None:
        self.name = name
        self._is_killed = False
        self._output = tempfile.TemporaryFile("ab+", buffering=0)  # noqa: SIM115 - as long as the process
        self._connection, theirs = Pipe()
        arguments = [name, str(theirs.fileno()), str(os.getpid()), str(memory)]
        try:
            self._process = subprocess.Popen(
                python_command("maxops.conformance.worker", arguments),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the parent, which ends the whole group
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
        os.ftruncate(self._output.fileno(), 0)  # what is printed from here on belongs to this message
        try:
            self._connection.send(message)
        except OSError:
            raise ChildEndedError(self._end()) from None
        return self.response(seconds)

    def response(self, seconds: float) -> Any:
        """The next response."""
        try:
            if self._connection.poll(seconds):
                return self._connection.recv()
        except (EOFError, OSError):
            raise ChildEndedError(self._end()) from None
        if self._process.poll() is not None:  # and a process of its own holds the pipe open
            raise ChildEndedError(self._end())
        raise ChildHungError

    def shut_down(self) -> str:
        """Shut the process down gracefully; how it ended if that was by a signal."""
        os.ftruncate(self._output.fileno(), 0)
        self._connection.close()
        try:
            status = self._process.wait(SHUTDOWN_TIMEOUT)
        except subprocess.TimeoutExpired:
            status = 0  # threads that do not end are no crash
        how = self._how(status) if status < 0 else ""
        self.kill()
        return how

    def kill(self) -> None:
        """End the process and what it started, now; fine if it has ended."""
        if self._is_killed:  # its number may be another's by now
            return
        kill_group(self._process.pid)
        self._process.wait()
        self._is_killed = True
        self._connection.close()
        self._output.close()

    def wait_until_ready(self) -> None:
        """Wait until it is ready; raises RuntimeUnusableError, and kills the process, if it will not be."""
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
            raise RuntimeUnusableError(f"{self.name} cannot be loaded: not ready in {START_TIMEOUT} s") from None
        if kind == "failed":
            raise RuntimeUnusableError(payload)
        return str(payload)

    def _end(self) -> str:
        """How the process, whose pipe is closed, ended."""
        try:
            how = self._how(self._process.wait(SHUTDOWN_TIMEOUT))
        except subprocess.TimeoutExpired:
            how = "the process closed the kit's pipe and goes on"
        self.kill()
        return how

    def _how(self, status: int) -> str:
        if status < 0:
            how = f"the process ended by {signal_name(-status)}"
        else:
            how = f"the process ended with status {status}"
        line = self._last_line()
        return f"{how}: {line}" if line else how

    def _last_line(self) -> str:
        """The last line that it printed."""
        size = os.fstat(self._output.fileno()).st_size
        text = os.pread(self._output.fileno(), _TAIL, max(0, size - _TAIL)).decode(errors="replace")
        printable = ("".join(filter(str.isprintable, line)).strip() for line in reversed(text.splitlines()))
        last = next(filter(None, printable), "")
        return last if len(last) <= _MAX_LINE_LENGTH else last[:_MAX_LINE_LENGTH] + "..."


def _environment(runtime: Mapping[str, str]) -> dict[str, str]:
    """The parent's, malloc's tunables for poisoning, and the runtime's own."""
    tunables = ":".join(filter(None, (os.environ.get("GLIBC_TUNABLES", ""), TUNABLES)))
    return {**os.environ, "GLIBC_TUNABLES": tunables, **runtime}
