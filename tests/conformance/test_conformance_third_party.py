"""Third-party runtimes: backends by their dotted name, and programs that read test folders."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance_calls import plain, scripted
from maxops import dtypes
from maxops.conformance import runtimes
from maxops.conformance.runtimes.backend import only_output
from maxops.conformance.runtimes.command import CommandError
from maxops.conformance.runtimes.runtime import (
    BrokenRuntimeError,
    GarbageError,
    ProcessEndedError,
    Runtime,
    UnknownRuntimeError,
)

GOOD = """
from onnx.backend.base import Backend, BackendRep
from onnx.reference import ReferenceEvaluator

__version__ = "7"

class Ready(BackendRep):
    def __init__(self, model):
        self.evaluator = ReferenceEvaluator(model)
    def run(self, inputs, **kwargs):
        return tuple(self.evaluator.run(None, dict(zip(self.evaluator.input_names, inputs))))

class MyBackend(Backend):
    class Inner(Backend):
        @classmethod
        def prepare(cls, model, device="CPU", **kwargs):
            return Ready(model)

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return Ready(model)
    @classmethod
    def supports_device(cls, device):
        return device == "CPU"
"""
OTHER = "\nclass Other:\n    @staticmethod\n    def prepare(model, device):\n        return None\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with modules, and remove these from sys.modules afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    for name in [name for name in sys.modules if name.partition(".")[0] in ("theirs", "single")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def package(folder: Path, text: str) -> None:
    (folder / "theirs").mkdir()
    (folder / "theirs" / "__init__.py").write_text("")
    (folder / "theirs" / "backend.py").write_text(text)


@pytest.mark.parametrize(
    "name",
    [
        "theirs.backend",
        "theirs.backend.MyBackend",
        "theirs.backend:MyBackend",
        "theirs.backend.MyBackend.Inner",
        "theirs.backend:MyBackend.Inner",
    ],
)
def test_a_backend_runs_by_each_way_to_name_it(folder: Path, name: str) -> None:
    package(folder, GOOD)
    runtime = runtimes.load(name)
    assert (runtime.name, runtime.version) == (name, "7")
    for operator in ("Max", "ReduceMax"):
        call, feed, expected = plain(operator)
        (actual,) = runtime.run(call, [feed])
        assert (actual.dtype, actual.tolist()) == (expected.dtype, expected.tolist())
        assert scripted(runtimes.resolve(name), call, feed).tolist() == expected.tolist()


def test_functions_of_a_module_are_a_backend_too(folder: Path) -> None:
    (folder / "single.py").write_text(GOOD + "\nprepare = MyBackend.prepare\n")
    call, feed, expected = plain("Max")
    runtime = runtimes.load("single")
    assert runtime.run(call, [feed])[0].tolist() == expected.tolist()
    assert scripted(runtime, call, feed).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("import no_such_module", "theirs.backend", r"cannot be imported: ModuleNotFoundError: .*'no_such_module'"),
        ("1 / 0", "theirs.backend", r"cannot be imported: ZeroDivisionError"),
        ("x = 1", "theirs.backend", r"theirs\.backend has no prepare method and contains no class that has one"),
        ("from onnx.backend.base import Backend", "theirs.backend", r"and contains no class that has one"),
        (GOOD + OTHER, "theirs.backend", r"several classes .* theirs\.backend:MyBackend, theirs\.backend:Other"),
        (
            GOOD,
            "theirs.backend:Ready",
            r"theirs\.backend:Ready has no prepare method; expected an ONNX backend, got .*Ready",
        ),
        (GOOD, "theirs.backend:Gone", r"cannot be imported: AttributeError: .*'Gone'"),
        ("class B:\n    def prepare(self, model): ...", "theirs.backend", r"B\.prepare must be a class method"),
        (GOOD.replace('== "CPU"', '== "CUDA"'), "theirs.backend", r"supports_device\('CPU'\) is false"),
    ],
)
def test_what_is_no_backend_is_reported_in_one_line(folder: Path, text: str, name: str, words: str) -> None:
    package(folder, text)
    with pytest.raises(BrokenRuntimeError, match=words) as raised:
        runtimes.load(name)
    assert "\n" not in str(raised.value)


def test_a_module_that_is_not_there_is_an_unknown_runtime(folder: Path) -> None:
    with pytest.raises(UnknownRuntimeError, match=r"unknown runtime 'theirs\.backend'"):
        runtimes.load("theirs.backend")


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (None, r"run must return a tuple or list of outputs, got None of type NoneType"),
        (np.zeros(2), r"run must return a tuple or list of outputs, got array\(.*\) of type ndarray"),
        ((), "run returned 0 outputs; the model has 1"),
        ((np.zeros(2), np.zeros(2)), "run returned 2 outputs; the model has 1"),
        ((None,), "run must return arrays, got None of type NoneType"),
        (("text",), "run must return arrays, got 'text' of type str"),
        (([1.0, 2.0],), r"run must return arrays, got \[1\.0, 2\.0\] of type list"),
        ((np.array(["a"]),), "the non-numeric dtype <U1"),
        ((np.ma.array([1.0, 2.0], mask=[False, True]),), "an array with masked elements"),
        ((np.array([None]),), "the non-numeric dtype object"),
    ],
    ids=str,
)
def test_garbage_is_told(outputs: object, words: str) -> None:
    with pytest.raises(GarbageError, match=words):
        only_output(outputs)


def test_a_prepare_that_gives_nothing_is_garbage(folder: Path) -> None:
    (folder / "single.py").write_text("def prepare(model, device):\n    return None\n")
    call, _, _ = plain("Max")
    with pytest.raises(GarbageError, match="prepare returned None of type NoneType, which has no run method"):
        runtimes.load("single").prepare(call)


# ---------------------------------------------------------------------------------------------- programs

RUNS_ONNX = """
folder = pathlib.Path(sys.argv[-1])
from onnx.reference import ReferenceEvaluator
evaluator = ReferenceEvaluator(str(folder / "model.onnx"))
for data in sorted(folder.glob("test_data_set_*")):
    tensors = [onnx.load_tensor(path) for path in sorted(data.glob("input_*.pb"))]
    feeds = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
    onnx.save_tensor(numpy_helper.from_array(evaluator.run(None, feeds)[0]), data / "output_0.pb")
"""
RUNS_IR = """
folder = pathlib.Path(sys.argv[-1])
import maxops.openvino
model = maxops.openvino.load(folder / "model.xml")
for data in sorted(folder.glob("test_data_set_*")):
    arrays = [np.load(path) for path in sorted(data.glob("input_*.npy"))]
    arrays = [array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array for array in arrays]
    feeds = {value.name: array for value, array in zip(model.inputs, arrays)}
    np.save(data / "output_0.npy", model.run(feeds)["y"])
"""


def command(folder: Path, text: str) -> Runtime:
    imports = "import pathlib, sys, ml_dtypes, numpy as np, onnx\nfrom onnx import numpy_helper\n"
    path = folder / "their program.py"
    path.write_text(imports + text)
    return runtimes.load(f"command:{shlex.join([sys.executable, str(path), '--some', 'option'])}")


def test_a_program_runs_onnx_models(tmp_path: Path) -> None:
    runtime = command(tmp_path, RUNS_ONNX)
    call, feed, expected = plain("ReduceMax", dtypes.BFLOAT16)
    first, second = runtime.run(call, [feed, feed])
    assert first.dtype == expected.dtype
    assert first.tobytes() == second.tobytes() == expected.tobytes()


def test_its_script_gives_the_same(tmp_path: Path) -> None:
    call, feed, expected = plain("Max")
    assert scripted(command(tmp_path, RUNS_ONNX), call, feed).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [dtypes.FLOAT32, dtypes.BFLOAT16], ids=str)
def test_a_program_runs_irs(tmp_path: Path, dtype: dtypes.DType) -> None:
    runtime = command(tmp_path, RUNS_IR)
    call, feed, expected = plain("SegmentMax", dtype)
    (actual,) = runtime.run(call, [feed])
    assert (actual.dtype, actual.tobytes()) == (expected.dtype, expected.tobytes())
    assert scripted(runtime, call, feed).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("sys.stderr.write('loading\\nno such type\\n'); sys.exit(3)", CommandError, r"^no such type$"),
        ("sys.exit(4)", CommandError, "ended with status 4 and no message"),
        ("import os; os.kill(os.getpid(), 11)", ProcessEndedError, "was killed by SIGSEGV"),
        ("raise SystemExit(128 + 11)", ProcessEndedError, "was killed by SIGSEGV"),  # the status that a shell reports
        ("", GarbageError, r"ended with status 0, but did not write test_data_set_0/output_0\.pb"),
        (
            "(pathlib.Path(sys.argv[-1]) / 'test_data_set_0' / 'output_0.pb').write_bytes(b'nonsense')",
            GarbageError,
            r"^test_data_set_0/output_0\.pb is truncated or not a TensorProto file",
        ),
    ],
)
def test_how_a_program_ends_is_told(tmp_path: Path, text: str, kind: type[Exception], words: str) -> None:
    call, feed, _ = plain("Max")
    with pytest.raises(kind, match=words):
        command(tmp_path, text).run(call, [feed])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("all", "expected a single runtime, got the group 'all'; choose maxops:"),
        ("maxops", "expected a single runtime, got the group 'maxops'; choose maxops:"),
        (None, "the name of a runtime must be a string, got None"),
    ],
)
def test_what_is_no_single_runtime_is_said(name: Any, words: str) -> None:
    with pytest.raises(UnknownRuntimeError, match=words):
        runtimes.resolve(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("command:", "the program '' does not exist"),
        ("command:./no-such-program here", r"the program '\./no-such-program' does not exist"),
        ("command:./a 'b", "is not a valid command line: No closing quotation"),
    ],
)
def test_a_program_that_is_not_there_is_said(name: str, words: str) -> None:
    with pytest.raises(BrokenRuntimeError, match=words):
        runtimes.load(name)
