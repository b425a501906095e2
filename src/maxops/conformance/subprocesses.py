"""Subprocesses that several threads wait for, killed with their process groups at the end of a block; signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self


class Subprocesses:
    """A context manager: at its exit, it kills all running subprocesses and starts no more."""

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
        """Run a command to its end, and kill its process group; raises subprocess.TimeoutExpired."""
        with subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        ) as process:
            self._running.add(process.pid)
            try:
                out, err = process.communicate(timeout=0 if self._is_over else timeout)
            finally:
                self._running.discard(process.pid)
                kill_group(process.pid)
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def python_command(module: str, arguments: Sequence[str]) -> list[str]:
    """A command that calls a module's `main`, and finds modules where this process does.

    Not by `-m`, which would find what lies in the current folder first: a downloaded model may have a random.py beside
    it. Nor by PYTHONPATH, which programs of another Python that a runtime starts would see, too.
    """
    program = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main(sys.argv[1:])"
    return [sys.executable, "-u", "-c", program, *arguments]


def kill_group(group: int) -> None:
    """Kill a process group; fine if it has ended."""
    with suppress(ProcessLookupError, PermissionError):  # macOS raises the latter
        os.killpg(group, signal.SIGKILL)


def signal_name(number: int) -> str:
    """A signal's name, if it has one."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
