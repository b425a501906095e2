"""Runs subprocesses from several threads, and kills them with their process groups at the end of a block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

from maxops.conformance.resource_limits import limit_resources, memory_limit


class Subprocesses:
    """A context manager that kills all running subprocesses at its exit, and later subprocesses immediately."""

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for group in list(self._running):
            kill_group(group)

    def run(
        self, command: Sequence[str], cwd: str, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end with the resource limits of a runtime, and kill its process group.

        Raises subprocess.TimeoutExpired on timeout.
        """
        with subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        ) as process:
            self._running.add(process.pid)
            try:
                with suppress(ProcessLookupError):  # it has ended
                    limit_resources(memory_limit(), process.pid)
                out, err = process.communicate(timeout=0 if self._is_over else timeout)
            finally:
                self._running.discard(process.pid)
                kill_group(process.pid)
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def python_command(module: str, arguments: Sequence[str]) -> list[str]:
    """Return a command that calls a module's `main` with the module search path of this process.

    `-m` would find modules in the current folder first, and the folder of a downloaded model may contain a random.py.
    PYTHONPATH would affect programs that a runtime starts with a different Python.
    """
    program = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main(sys.argv[1:])"
    return [sys.executable, "-u", "-c", program, *arguments]


def kill_group(group: int) -> None:
    """Kill a process group. Do nothing if it has ended."""
    with suppress(ProcessLookupError, PermissionError):  # macOS raises PermissionError
        os.killpg(group, signal.SIGKILL)


def signal_name(number: int) -> str:
    """Return the name of a signal, or its number if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
