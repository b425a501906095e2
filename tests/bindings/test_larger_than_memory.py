"""A small run of the example with a store that is larger than memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

for package in ("distributed", "xarray", "zarr"):
    pytest.importorskip(package)

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "larger_than_memory"


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, str(FOLDER / script), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("store") / "heat.zarr")
    assert "0.06 GB in 8 chunks" in run("make_store.py", path, "--gigabytes", "0.06")
    return path


def test_the_store_and_its_maxima(store: str) -> None:
    said = run("maximum_of_store.py", store, "--limit", "600 MB")
    assert "0.06 GB in 8 chunks, on two workers of 600 MB" in said
    assert "100% Completed" in said
    # 128 hours in January: the maximum is in the afternoon, at the equator
    found = re.search(r"highest: ([\d.]+) degree Celsius, in hour (\d+)", said)
    assert found is not None
    assert found[1] == re.search(r"maximum of each month: ([\d.]+)\n", said)[1]  # type: ignore[index]
    assert int(found[2]) % 24 == 12
    assert re.search(r"peak memory of each worker: \d+ MB \d+ MB", said)


def test_a_limit_that_workers_reach_without_data_is_an_error(store: str) -> None:
    command = [sys.executable, str(FOLDER / "maximum_of_store.py"), store, "--limit", "100 MB"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert re.search(r'of the 100 MB of each worker, .*; pass --limit "\d{3} MB" or more\n$', done.stderr)


def test_the_page_shows_commands_that_are_there() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"examples/larger_than_memory/(\w+\.py)", page))
    assert named == {path.name for path in FOLDER.glob("*.py")}
