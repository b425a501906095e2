"""maxops on a Python without POSIX modules and names, as on Windows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.programs import run

pytest.importorskip("typer")
EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "detector")
# Names that Python lacks on Windows, and that maxops or its dependencies might use.
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


# Commands, each with its exit code and its output on stderr.
COMMANDS = """
import contextlib, json, tempfile
from maxops.cli import main
done = []
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    with open(os.devnull, "w") as out, tempfile.TemporaryFile("w+") as said:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            try:
                code = main()
            except SystemExit as end:
                code = end.code
        said.seek(0)
        done.append([code or 0, said.read()])
print(json.dumps(done))
"""
WELL = [["run", EXAMPLE], ["info"], ["clause", "ONNX.Max-13.value"], ["conform", "--list"], ["bench", "--help"]]
LIMITS = {
    "the inference of types in a sandbox": ["check", EXAMPLE],
    "a runtime's process": ["conform", "onnx-reference"],
}


def test_the_operators() -> None:
    assert run(WITHOUT + ARRAYS, warnings="error") == "[3. 5. 3.] [5.] [5. 2.]\nTrue\n"


def test_commands() -> None:
    """Test that commands that need resource limits report that these are unavailable."""
    done = json.loads(run(WITHOUT + COMMANDS, json.dumps([*WELL, *LIMITS.values()]), warnings="error"))
    assert done[: len(WELL)] == [[0, ""]] * len(WELL)
    for what, (code, said) in zip(LIMITS, done[len(WELL) :], strict=True):
        assert code == 2
        assert f"{what} requires the resource limits of a POSIX system" in said
        assert "Traceback" not in said
