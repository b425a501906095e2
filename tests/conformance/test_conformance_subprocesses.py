"""Subprocesses that are killed together with their child processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from maxops.conformance.resource_limits import memory_limit
from maxops.conformance.subprocesses import Subprocesses
from trials import ends

# Starts a program that never ends, and waits for it.
STARTS = ["sh", "-c", "sleep 600 & echo $! > number; wait"]


def number_in(folder: Path) -> int:
    while not (path := folder / "number").exists() or not path.read_text().strip():
        time.sleep(0.01)
    return int(path.read_text())


def test_what_hangs_ends_with_what_it_started(tmp_path: Path) -> None:
    with Subprocesses() as programs, pytest.raises(subprocess.TimeoutExpired):
        programs.run(STARTS, str(tmp_path), os.environ, timeout=0.5)
    assert ends(number_in(tmp_path))


def test_nothing_is_left_when_nobody_waits(tmp_path: Path) -> None:
    with Subprocesses() as programs:
        thread = Thread(target=programs.run, args=(STARTS, str(tmp_path), os.environ, 600))
        thread.start()
        number = number_in(tmp_path)
    thread.join(10)
    assert not thread.is_alive()
    assert ends(number)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_its_memory_has_the_limit_of_a_runtime(tmp_path: Path) -> None:
    text = "import resource, time; time.sleep(0.5); print(resource.getrlimit(resource.RLIMIT_DATA)[0])"
    with Subprocesses() as programs:
        done = programs.run([sys.executable, "-c", text], str(tmp_path), os.environ, 60)
    assert int(done.stdout) == memory_limit()


def test_what_is_printed(tmp_path: Path) -> None:
    with Subprocesses() as programs:
        done = programs.run([sys.executable, "-c", "print(1); raise SystemExit(3)"], str(tmp_path), os.environ, 60)
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 3)
