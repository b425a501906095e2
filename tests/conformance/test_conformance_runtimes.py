"""The kit's runtimes: each returns its own results, and its scripts return the same results."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conformance_calls
import maxops as mo
from conformance_calls import ASKED, OPERATORS, bits, plain, scripted
from maxops import _native, dtypes, spec
from maxops.conformance import runtimes
from maxops.conformance.case import Call, Input
from maxops.conformance.runtimes.libraries import Columns, Library
from maxops.conformance.runtimes.runtime import BrokenRuntimeError, NotApplicableError, Runtime, UnknownRuntimeError
from maxops.dtypes import DType
from maxops.plan import Array

NAMES = [f"maxops:{_native.isa()}", *(name for name in runtimes.CLASSES)]
# The package of each runtime.
PACKAGES = {name: name.removeprefix("maxops:") for name in runtimes.CLASSES} | {
    "maxops:onnx": "onnx",
    "onnx-reference": "onnx",
}
LIBRARIES = ("numpy", "torch", "jax", "tensorflow", "numbagg", "numpy_groupies")
# Operators that a runtime does not support.
LACKS = {
    "onnx-reference": {"SegmentMax"},
    "onnxruntime": {"SegmentMax"},
    "maxops:onnxruntime": {"SegmentMax"},
    "numbagg": {"Max"},
    "numpy_groupies": {"Max", "ReduceMax"},
}


def need(name: str) -> None:
    """Skip if a package is missing, without importing it, because some packages break tests that fork."""
    package = PACKAGES.get(name)
    if package is not None and find_spec(package) is None:
        pytest.skip(f"not installed: {package}")


def started(name: str) -> Runtime:
    """Return a runtime of maxops, onnx, onnxruntime or openvino, started in this process."""
    need(name)
    return runtimes.load(name)


@cache
def answers(name: str) -> dict[str, Any]:
    """Return a runtime's results for all calls, computed in a separate process."""
    need(name)
    command = [sys.executable, conformance_calls.__file__, name]
    environment = {**os.environ, **runtimes.resolve(name).environment}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", NAMES)
def test_plain_values_are_right_and_the_script_gives_the_same(name: str, operator: str) -> None:
    found = answers(name)
    if operator in LACKS.get(name, ()):
        assert re.match(r"NotApplicableError: .* (has no|does not support|cannot contain) ", found[operator])
        return
    call, feed, expected = ASKED[operator]
    assert found[operator] == [bits(expected)] * 3
    assert len(runtimes.resolve(name).script(call, feed)) <= 12


@pytest.mark.parametrize("asked", sorted(set(ASKED) - set(OPERATORS)))
@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_take_each_kind_of_axes_and_rows(name: str, asked: str) -> None:
    call, _, expected = ASKED[asked]
    found = answers(name)[asked]
    if call.row.operator in LACKS.get(name, ()):
        assert found.startswith("NotApplicableError: ")
    else:
        assert found == [bits(expected)] * 3


@pytest.mark.parametrize("name", NAMES)
def test_versions_are_numbers(name: str) -> None:
    """Test that versions are numbers. A runtime that runs on another one has both versions."""
    assert re.fullmatch(r"(\d+(\.\d+)+|unknown)( in \w+ \d+(\.\d+)+)?", answers(name)["version"])


@pytest.mark.parametrize("dtype", [dtypes.BFLOAT16, dtypes.FLOAT16, dtypes.UINT64, dtypes.BOOL], ids=str)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("maxops:")])
def test_maxops_is_right_for_every_door(name: str, operator: str, dtype: DType) -> None:
    if operator in LACKS.get(name, ()) or (dtype is dtypes.BOOL and operator != "ReduceMax"):
        return
    call, feed, expected = plain(operator, dtype)
    assert bits(started(name).run(call, [feed])[0]) == bits(expected)


@pytest.mark.parametrize("name", _native.isas())
def test_maxops_is_right_on_every_instruction_set(name: str) -> None:
    before = _native.isa()
    assert _native.use_isa(name)
    try:
        runtime = runtimes.load(f"maxops:{name}")
        for operator in OPERATORS:
            call, feed, expected = plain(operator)
            assert bits(runtime.run(call, [feed])[0]) == bits(expected)
    finally:
        assert _native.use_isa(before)


def test_maxops_refuses_a_process_of_another_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    here = _native.isa()
    monkeypatch.setattr(_native, "isa", lambda: "another")  # this machine may support only one
    with pytest.raises(
        BrokenRuntimeError, match=f"requires a process with MAXOPS_ISA={here}, but this process uses another"
    ):
        runtimes.load(f"maxops:{here}")


def real(values: list[Fraction]) -> Array:
    made = np.empty(len(values), object)
    made[:] = values
    return made


@pytest.mark.parametrize("name", [f"maxops:{_native.isa()}", "numpy"])
def test_rational_numbers_are_exact(name: str) -> None:
    call = Call(spec.SONNX_MAX, (Input("a", dtypes.REAL, (None,)), Input("b", dtypes.REAL, (None,))), (), 1)
    feed = (real([Fraction(1, 3), Fraction(2)]), real([Fraction(10**20, 3 * 10**20 - 1), Fraction(-2)]))
    (actual,) = runtimes.load(name).run(call, [feed])
    assert actual.tolist() == [Fraction(10**20, 3 * 10**20 - 1), Fraction(2)]


def test_models_have_no_rational_numbers() -> None:
    call = Call(spec.MAX_13, (Input("a", dtypes.REAL, (None,)),), (), 1)
    with pytest.raises(NotApplicableError, match="no type for real numbers"):
        runtimes.load("onnx-reference").prepare(call)


def test_sonnx_is_refused_as_sonnx() -> None:
    """Test that the error for SONNX is the error of SONNX's row."""
    call = Call(spec.SONNX_MAX, (Input("a", dtypes.FLOAT32, (0,)), Input("b", dtypes.FLOAT32, (1,))), (), 1)
    with pytest.raises(mo.errors.ShapeError, match=r"SONNX\.Max\.zero-size"):
        runtimes.load(f"maxops:{_native.isa()}").run(call, [(np.array([], np.float32), np.array([1], np.float32))])


def test_an_error_of_the_runtime_passes() -> None:
    call, feed, _ = plain("Max", dtypes.INT16)
    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        started("onnxruntime").run(call, [feed])


@pytest.mark.parametrize("name", ["maxops:openvino", "maxops:onnxruntime"])
def test_a_call_from_another_process_is_the_same_call(name: str) -> None:
    call, feed, expected = plain("Max", dtypes.BFLOAT16)
    sent = pickle.loads(pickle.dumps(call))
    assert sent.dtype is dtypes.BFLOAT16
    assert bits(started(name).run(sent, [feed])[0]) == bits(expected)


def test_a_known_fault_of_openvino_shows() -> None:
    runtime = started("openvino")
    if runtime.version != "2026.4.1":
        pytest.skip(f"not installed: openvino 2026.4.1, which has the fault; here is {runtime.version}")
    call, _, _ = plain("Max", dtypes.INT64)
    feed = (np.full(4, 3_000_000_000), np.ones(4, np.int64))
    assert runtime.run(call, [feed])[0].tolist() == [1] * 4
    assert np.asarray(scripted(runtime, call, feed)).tolist() == [1] * 4


@pytest.mark.parametrize("name", ["pyarrow", "polars"])
def test_columns_are_of_one_axis(name: str) -> None:
    found = answers(name)
    assert found["axes [1], constant"] == f"NotApplicableError: {name} supports only 1-D columns of equal length"
    assert found["rows, ZERO"] == f"NotApplicableError: {name} supports only 1-D columns of equal length"


@pytest.mark.parametrize(
    ("operator", "feed", "words"),
    [
        ("Max", [[1], [1, 2]], "1-D columns of equal length"),
        ("Max", [[[1]], [[2]]], "1-D columns of equal length"),
        ("ReduceMax", [[]], "null for the maximum of no elements"),
    ],
)
def test_columns_hold_something_and_are_of_one_length(operator: str, feed: list[Any], words: str) -> None:
    """Test that the kit does not pass empty columns, or columns of different lengths, to a library of columns."""
    call, _, _ = plain(operator)
    with pytest.raises(NotApplicableError, match=words):
        begun(Nobody()).run(call, [tuple(np.array(each, np.float32) for each in feed)])


class Nobody(Columns):
    name = "nobody"
    package = "math"
    elementwise = "actual = None"
    along_axes = ("actual = None",)


class Empty(Library):
    name = "nobody"
    package = "math"


def begun(runtime: Runtime) -> Runtime:
    runtime.start()
    return runtime


def test_what_a_library_does_not_have_is_not_applicable() -> None:
    for operator, words in (
        ("Max", "has no element-wise maximum"),
        ("ReduceMax", "does not support the maximum along axes"),
        ("SegmentMax", "has no segment maximum"),
    ):
        with pytest.raises(NotApplicableError, match=f"nobody {words}"):
            begun(Empty()).prepare(plain(operator)[0])


def test_the_lines_keep_their_names_from_the_inputs() -> None:
    call = Call(spec.MAX_13, (Input("model", dtypes.FLOAT32, (None,)),), (), 1)
    text = "named model, but the script's imports or the runtime's opening or setup lines already define these names"
    with pytest.raises(ValueError, match=text):
        runtimes.load("onnx-reference").prepare(call)


def test_libraries_have_no_noop() -> None:
    call = Call(spec.REDUCE_MAX_20, (Input("data", dtypes.FLOAT32, (None,)),), (("noop_with_empty_axes", 1),))
    with pytest.raises(NotApplicableError, match="has no noop_with_empty_axes"):
        runtimes.load("numpy").prepare(call)


# ------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", runtimes.known())
def test_a_name_gives_the_runtime_of_that_name(name: str) -> None:
    try:
        runtime = runtimes.resolve(name)
    except BrokenRuntimeError as error:
        assert "pip install" in str(error)  # noqa: PT017  (a runtime that is not installed)
        return
    assert runtime.name == name
    assert runtime.claims <= {row.standard for row in spec.ALL}
    assert runtime.versioned == bool(runtime.claims)


def test_names_are_resolved_and_scripts_written_without_importing_anybody() -> None:
    packages = ["onnxruntime", "openvino", "torch", "jax", "tensorflow", "pyarrow", "polars", "numbagg"]
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from conformance_calls import plain\n"
        "from maxops.conformance import runtimes\n"
        "from maxops.conformance.runtimes.runtime import NotApplicableError\n"
        "for name in runtimes.installed():\n"
        "    for operator in ('Max', 'SegmentMax'):\n"
        "        call, feed, _ = plain(operator)\n"
        "        try:\n"
        "            runtimes.resolve(name).script(call, feed)\n"
        "        except NotApplicableError:\n"
        "            continue\n"
        f"print([name for name in {packages} if name in sys.modules])"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_groups_stand_for_what_is_installed() -> None:
    ours = runtimes.expand("maxops")
    assert ours[: len(_native.isas())] == [f"maxops:{isa}" for isa in _native.isas()]
    assert {"maxops:onnx"} <= set(ours) <= set(runtimes.known())
    assert {*ours, "numpy", "onnx-reference"} <= set(runtimes.expand("all")) == set(runtimes.installed())
    assert runtimes.expand("numpy") == ["numpy"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("onnxruntim", r"unknown runtime 'onnxruntim' \(did you mean onnxruntime.*\); choose maxops, all, .*, numpy"),
        ("", r"unknown runtime ''; choose"),
        ("no_such_package.backend", r"unknown runtime 'no_such_package\.backend'"),
        ("onnx reference", r"unknown runtime 'onnx reference' \(did you mean onnx-reference"),
        ("maxops:onx", r"unknown runtime 'maxops:onx' \(did you mean maxops:onnx"),
        ("../numpy", r"unknown runtime '\.\./numpy'"),
    ],
)
def test_an_unknown_name_is_one_line_with_near_names(name: str, words: str) -> None:
    with pytest.raises(UnknownRuntimeError, match=words) as raised:
        runtimes.load(name)
    assert "\n" not in str(raised.value)


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "find_spec", lambda name: None)
    with pytest.raises(BrokenRuntimeError, match="'torch' is not installed: pip install torch"):
        runtimes.resolve("torch")


def test_an_import_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(runtime: Runtime) -> None:
        raise OSError("libgone.so: no such file")

    monkeypatch.setattr(Runtime, "start", fail)
    with pytest.raises(BrokenRuntimeError, match=r"'numpy' cannot be imported: OSError: libgone\.so"):
        runtimes.load("numpy")
