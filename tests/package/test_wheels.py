"""`make wheels`: its table and its errors, without building anything."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "wheels.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheels", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wheels"] = module  # dataclasses look up annotations there
    spec.loader.exec_module(module)
    return module


def file(folder: Path, tags: str, machine: str) -> Path:
    path = folder / f"maxops-1.2.3-{tags}-manylinux_2_17_{machine}.manylinux2014_{machine}.whl"
    path.touch()
    return path


def test_every_python_that_the_package_names_has_a_wheel(script: ModuleType) -> None:
    """Test that each version in the classifiers has a wheel, which was tested on it."""
    classified = {each[-4:] for each in PROJECT["project"]["classifiers"] if re.search(r"Python :: 3\.\d+$", each)}
    tried = {version for wheel in script.WHEELS for version in wheel.tried_by}
    assert classified <= tried


def test_wheels_have_names_of_their_own(script: ModuleType) -> None:
    names = [each.name for each in script.WHEELS]
    assert sorted(set(names)) == sorted(names)


def test_every_wheel_is_tried_by_pythons_that_take_its_tags(script: ModuleType) -> None:
    for wheel in script.WHEELS:
        python, abi = wheel.tags.split("-")
        oldest = int(python.removeprefix("cp3"))
        tried = [int(version.removeprefix("3.")) for version in wheel.tried_by]
        assert tried
        assert min(tried) >= oldest
        assert abi == "abi3" or tried == [oldest]
        assert wheel.built_by in wheel.tried_by


def test_the_page_has_every_wheel_and_who_tries_it(script: ModuleType) -> None:
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    policy = f"manylinux_{script.GLIBC.replace('.', '_')}"
    for wheel in script.WHEELS:
        [row] = [line for line in page.splitlines() if f"`{wheel.tags}-{policy}_{wheel.machine.name}`" in line]
        tried = row.split("|")[3]
        assert sorted(re.findall(r"(?<!glibc )\b3\.\d+", tried)) == sorted(wheel.tried_by)


def test_files_are_told_apart(script: ModuleType, tmp_path: Path) -> None:
    paths = [file(tmp_path, wheel.tags, wheel.machine.name) for wheel in script.WHEELS]
    (tmp_path / "maxops-1.2.3.tar.gz").touch()
    assert [script.find(wheel, tmp_path) for wheel in script.WHEELS] == paths


def test_a_wheel_that_was_not_built(script: ModuleType, tmp_path: Path) -> None:
    first, second, *_ = script.WHEELS
    file(tmp_path, second.tags, second.machine.name)
    with pytest.raises(script.WheelError, match=f"expected one file for {first.name}, got 0; run make wheels WHEELS="):
        script.find(first, tmp_path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("                 U malloc@GLIBC_2.2.5", []),
        ("                 U PyList_New", []),
        ("                 U _Py_Dealloc", []),
        ("                 w __gmon_start__", []),
        ("00000000003dc8a0 T PyInit__native", []),
        ("00000000003e3fe0 T RegisterCustomOps", []),
        ("                 U arc4random", ["requires arc4random, which glibc 2.17 lacks"]),
        ("00000000003e3fe0 T maximum", ["exports maximum"]),
        ("00000000003e3fe0 u _ZNSs4_Rep20_S_empty_rep_storageE", ["exports _ZNSs4_Rep20_S_empty_rep_storageE"]),
        ("00000000003e3fe0 W _ZSt4move", ["exports _ZSt4move"]),
    ],
)
def test_symbols(script: ModuleType, line: str, says: list[str]) -> None:
    assert script.faults(f"                 U free@GLIBC_2.2.5\n{line}\n") == says


def test_wheels_run_the_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = [each.replace("{project}/", "") for each in PROJECT["tool"]["cibuildwheel"]["test-command"]]
    [command] = re.findall("^python -m pip install .* && (maxops .*)$", readme, re.MULTILINE)
    assert command in commands


def test_tests_of_values_are_there() -> None:
    named = re.findall(r"{project}/(tests/\S+)", PROJECT["tool"]["cibuildwheel"]["test-command"][-1])
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_a_pattern_that_selects_nothing(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "build", str(tmp_path / "dist"), "--only", "cp27-*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("wheels: no wheel matches --only cp27-*; the wheels are cp311-cp311-x86_64, ")
    assert not (tmp_path / "dist").exists()
