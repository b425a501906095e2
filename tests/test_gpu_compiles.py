"""The kernels compile for a Hopper GPU where there is none, and move memory by the widest loads and stores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
triton = pytest.importorskip("triton")

PROGRAM = Path(__file__).with_name("gpu_compile.py")


def test_kernels_compile(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {line[0] for line in lines} == {
        *("fold", "reduce", "chunk_maxima", "segments", "scatter_keys", "scatter_indices", "finish"),
        *("bounds", "first_wrong"),
    }
    # Of the passes that the goal speaks of, all loads of data are of 16 bytes: two inputs; whole and edge tiles.
    assert lines[0] == ["fold", "ld.global.v4.b32*16", "st.global.v4.b32*8"]
    assert lines[2][:2] == ["reduce", "ld.global.v4.b32*8"]
