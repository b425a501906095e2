"""The command as installers start it, and programs that import maxops: errors for invalid environment variables."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
VARIABLES = ["MAXOPS_ISA", "MAXOPS_NUM_THREADS", "MAXOPS_OUTPUT_CACHE"]
OTHER_PROGRAMS = {
    "another script": ["{folder}/other"],
    "a script whose argument is the command": ["{folder}/other", "maxops"],
    "another module": ["-m", "other"],
    "a module whose name ends alike": ["-m", "notmaxops"],
    "a module of maxops": ["-m", "maxops.errors"],
    "a line": ["-c", "import maxops", "-m", "maxops"],
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the script `maxops` as installers write it, and other programs that import maxops."""
    folder = tmp_path_factory.mktemp("scripts")
    (entry,) = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"].items()
    module, function = entry[1].split(":")
    launcher = f"import sys\nfrom {module} import {function}\nif __name__ == '__main__':\n    sys.exit({function}())\n"
    (folder / entry[0]).write_text(launcher, encoding="utf-8")
    for name in ("other", "other.py", "notmaxops.py"):
        (folder / name).write_text("import maxops\n", encoding="utf-8")
    return folder


Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(scripts: Path) -> Start:
    """Return a function that runs Python with arguments, in an environment with other programs."""

    def run(words: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(scripts), *filter(None, sys.path)])
        command = [sys.executable, *(word.format(folder=scripts) for word in words)]
        environment = os.environ | {"PYTHONPATH": path} | variables
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    return run


# The arguments that start the command, in each spelling.
STARTS = [
    ["{folder}/maxops"],
    ["-m", "maxops"],
    ["-mmaxops"],
    ["-Bm", "maxops"],
    ["-Bmmaxops"],
    ["-W", "error", "-mmaxops"],
]


@pytest.mark.parametrize(("started", "variable"), [*zip(STARTS, 2 * VARIABLES, strict=True)], ids=str)
def test_what_the_command_does_not_understand_is_one_line(start: Start, started: list[str], variable: str) -> None:
    done = start([*started, "operators", "-m"], **{variable: "x"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"maxops: error: {variable} must be ")
    assert "got 'x'" in done.stderr
    assert done.stderr.count("\n") == 1


# The text of a module that hides an installed package, and the start of the command's error.
BROKEN = {
    ("numpy", "raise AttributeError('of numpy')"): "the package 'numpy' cannot be imported: AttributeError: of",
    ("numpy", "raise MemoryError"): "out of memory\n",
    ("typer", "raise MemoryError('of typer')"): "out of memory: of typer\n",
    ("typer", "raise ImportError('x.so: failed to map segment from shared object')"): "out of memory: x.so: ",
    ("typer", "raise DeprecationWarning('of typer')"): "of typer (a warning, ",
}


@pytest.mark.parametrize(("module", "text"), BROKEN)
@pytest.mark.parametrize("started", [["{folder}/maxops"], ["-m", "maxops"]], ids=" ".join)
def test_a_broken_package_is_one_line(
    start: Start, started: list[str], module: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    done = start([*started, "operators"])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith(f"maxops: error: {BROKEN[module, text]}")


@pytest.mark.parametrize("started", STARTS[-1:], ids=" ".join)
def test_a_warning_that_python_raises_is_one_line(start: Start, started: list[str]) -> None:
    done = start([*started, "operators"], OMP_NUM_THREADS="abc")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("maxops: error: OMP_NUM_THREADS='abc' is not a number of threads")


@pytest.mark.parametrize("started", [["{folder}/maxops"], ["-m", "maxops"]], ids=" ".join)
def test_the_command_starts(start: Start, started: list[str]) -> None:
    done = start([*started, "operators"], MAXOPS_NUM_THREADS="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "SegmentMax" in done.stdout


@pytest.mark.parametrize("program", OTHER_PROGRAMS)
def test_in_another_program_it_is_an_exception(start: Start, program: str) -> None:
    done = start(OTHER_PROGRAMS[program], MAXOPS_NUM_THREADS="x")
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert last == "maxops.errors.ConfigurationError: MAXOPS_NUM_THREADS must be an integer from 1 to 1024, got 'x'"


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
def test_a_command_that_can_tell_nobody_ends_with_its_code(redirected: str) -> None:
    command = f"{sys.executable} -m maxops operators {redirected}"
    environment = os.environ | {"MAXOPS_ISA": "x"}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_the_package_is_all_that_is_installed() -> None:
    """Test that the distribution installs only the package, because another top-level name could conflict."""
    assert [each.name for each in (PYPROJECT.parent / "src").iterdir() if each.name.isidentifier()] == ["maxops"]
