"""Memory leaks of calls, for each engine and each kind of error. leaks.py measures them in a separate process."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import leaks
from helpers.engine_adapters import NUMPY
from test_out_of_memory import failing_malloc  # noqa: F401  (a fixture)

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("group", leaks.GROUPS)
def test_nothing_is_left_behind(group: str, request: pytest.FixtureRequest) -> None:
    leaks.ENGINES.get(group, NUMPY).need()
    for package in leaks.NEEDS.get(group, ()):
        pytest.importorskip(package)
    more = {}
    if group == "where memory ends":
        more = {"LD_PRELOAD": request.getfixturevalue("failing_malloc"), "PYTHONMALLOC": "malloc"}
    path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "leaks.py"), group],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path} | more,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *leaking, counted = done.stdout.splitlines()
    assert leaking == []
    assert int(counted.split()[0]) >= 3


def test_a_leak_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that a leaked object, memory, mapping or file is found, and also one reference too many or too few."""
    monkeypatch.setattr(leaks, "MORE", (1,))
    monkeypatch.setattr(gc, "collect", lambda: 0)  # a collection would visit all objects of imported modules
    kept: list[object] = []
    many = iter(range(10**9))
    watched, libc = leaks.WATCHED["f4"], ctypes.CDLL(None)
    cases = {
        "objects": lambda: kept.append(object()),
        "bytes": lambda: libc.malloc(2000),  # more than glibc keeps for each thread
        "mappings": lambda: kept.append(_mapping(next(many))),
        "files": lambda: kept.append(os.open(os.devnull, os.O_RDONLY)),
        "references to f4": lambda: ctypes.pythonapi.Py_IncRef(ctypes.py_object(watched)),
    }
    for name, call in cases.items():
        assert name in leaks.left_by(call, 10), name
    assert "references to f4" in leaks.left_by(lambda: ctypes.pythonapi.Py_DecRef(ctypes.py_object(watched)), 10)
    assert leaks.left_by(lambda: [object() for _ in range(9)], 10) == {}


def _mapping(number: int) -> object:
    import mmap  # noqa: PLC0415

    return mmap.mmap(-1, 4096, prot=mmap.PROT_READ if number % 2 else mmap.PROT_READ | mmap.PROT_WRITE)
