"""maxops on a Python without POSIX modules and names, as on Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "detector"
# What Windows' Python lacks of what maxops, or a library that it uses, might ask for.
WITHOUT = """
import os, signal, sys
for name in ("resource", "fcntl", "pwd", "grp", "termios", "tty", "pty"):
    sys.modules[name] = None
names = "fork sysconf sched_getaffinity sched_setaffinity register_at_fork killpg getuid geteuid"
for name in names.split():
    delattr(os, name)
for name in ("SIGALRM", "SIGKILL", "SIGBUS", "SIGTRAP", "SIGXCPU", "SIGPIPE", "SIGHUP", "SIGQUIT"):
    delattr(signal, name)
"""
ARRAYS = """
import numpy as np
import maxops as mo
data = np.array([1.0, 5.0, 2.0])
with mo.num_threads(2):
    print(mo.maximum(data, 3.0), mo.reduce_max(data), mo.segment_max(data, np.array([0, 0, 1]), fill_mode="zero"))
print(mo.memory_info().limit == 1 << 30)
"""


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_operators() -> None:
    done = run(ARRAYS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "[3. 5. 3.] [5.] [5. 2.]\nTrue\n"


@pytest.mark.parametrize(
    "words",
    [["run", str(EXAMPLE)], ["info"], ["clause", "ONNX.Max-13.value"], ["conform", "--list"], ["bench", "--help"]],
    ids=lambda words: words[0],
)
def test_commands(words: list[str]) -> None:
    done = run("from maxops.cli import main\nmain()\n", *words)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["check", str(EXAMPLE)], "the inference of types in a sandbox"),
        (["conform", "onnx-reference"], "a runtime's process"),
    ],
)
def test_what_needs_limits_on_resources_says_so(words: list[str], what: str) -> None:
    done = run("from maxops.cli import main\nmain()\n", *words)
    assert done.returncode == 2
    assert f"{what} requires the resource limits of a POSIX system" in done.stderr
    assert "Traceback" not in done.stderr
