"""Public functions with each argument replaced by an object of another kind.

The error is one of maxops or of the original library, never an accident inside maxops, such as an AttributeError.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers import ir_models, models
from maxops.calls import MaxCall
from maxops.dtypes import FLOAT32
from maxops.engines import table
from maxops.errors import MaxopsError

OTHERS: dict[str, Any] = {"None": None, "a string": "x", "an object": object(), "a number": -1, "a list": []}
PACKAGE = str(Path(mo.__file__).parent)
X, IDS = np.arange(4, dtype=np.float32), np.array([0, 0, 1, 1])
MODEL = models.model([models.node("Max", ["x"], "y")], ["x"])
OPTIONS = {"ties": "even", "nan": "propagate"}

Calls = dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]  # functions with valid arguments


class Engine:
    """An engine that can be registered."""

    def run(self, call: object) -> None:
        """Run nothing."""


def _own() -> Calls:
    reducing = {"axes": (0,), "keepdims": True, "noop_with_empty_axes": False, "return_indices": False}
    segments = {"check_ids": True, "sorted": True, "out_of_range": None, "axis": 0, "return_empty": False}
    more = {"out": None, "dim": None, "initial": None}
    return {
        "maximum": (mo.maximum, (X, X), OPTIONS | {"out": None}),
        "reduce_max": (mo.reduce_max, (X,), OPTIONS | reducing | more),
        "segment_max": (mo.segment_max, (X, IDS, 2), OPTIONS | segments | more | {"fill_mode": "ZERO"}),
        "segment_max by offsets": (mo.segment_max, (X,), {"offsets": np.array([0, 4]), "fill_value": 0}),
        "operator": (mo.operator, ("ONNX", "Max", 13), {}),
        "an operator": (mo.operator("ONNX", "ReduceMax", 18), (X, np.array([0])), {"keepdims": 1, "out": None}),
        "run": (mo.run, (MaxCall([X, X]),), {}),
        "register_engine": (mo.register_engine, ("own", Engine, Engine()), {"beside": ("numpy",)}),
        "set_num_threads": (mo.set_num_threads, (mo.get_num_threads(),), {}),
        "num_threads": (lambda count: mo.num_threads(count).__enter__(), (mo.get_num_threads(),), {}),
    }


def _onnx() -> Calls:
    onnx: Any = import_module("maxops.onnx")
    loaded = onnx.from_proto(MODEL)
    node = models.node("Max", ["x"], "y")
    return {
        "load": (onnx.load, ("m.onnx",), {"on": "onnx"}),
        "from_proto": (onnx.from_proto, (MODEL, "m"), {"on": "onnx"}),
        "Model.run": (loaded.run, (["y"], {"x": X}), {}),
        "rewrite": (onnx.rewrite, (MODEL,), {}),
        "portable": (onnx.portable, (MODEL,), {}),
        "Backend.prepare": (onnx.Backend.prepare, (MODEL, "CPU"), {}),
        "Backend.run_model": (onnx.Backend.run_model, (MODEL, [X], "CPU"), {}),
        "Backend.run_node": (onnx.Backend.run_node, (node, [X], "CPU"), {}),
        "Backend.is_compatible": (onnx.Backend.is_compatible, (MODEL, "CPU"), {}),
        "Backend.supports_device": (onnx.Backend.supports_device, ("CPU",), {}),
        "ReferenceEvaluator": (onnx.ReferenceEvaluator, (MODEL,), {}),
        "segment_max_node": (onnx.segment_max_node, ("x", "i", "y"), {"fill_mode": "ZERO"}),
        "segment_max_function": (onnx.segment_max_function, (FLOAT32, "ZERO"), {"num_segments": True}),
        "checker.check": (import_module("maxops.checker").check, (MODEL, "onnx"), {}),
        "conformance.select": (import_module("maxops.conformance").select, ("ONNX.Max-13.T",), {"quick": True}),
    }


def _onnxruntime() -> Calls:
    ours, theirs = import_module("maxops.onnxruntime"), pytest.importorskip("onnxruntime")
    return {
        "register": (ours.register, (theirs.SessionOptions(),), {}),
        "rewrite": (ours.rewrite, (MODEL,), {}),
        "session": (ours.session, (MODEL, theirs.SessionOptions()), {}),
    }


def _openvino() -> Calls:
    ours, theirs = import_module("maxops.openvino"), pytest.importorskip("openvino")
    return {
        "load": (ours.load, ("m.xml",), {}),
        "register": (ours.register, (theirs.Core(),), {}),
        "rewrite": (ours.rewrite, (theirs.Model([], [], "m"),), {}),
    }


def _torch() -> Calls:
    torch = pytest.importorskip("torch")
    ours, scatter = import_module("maxops.compat.torch"), import_module("maxops.compat.torch_scatter")
    x, ids, offsets = torch.arange(4.0), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 2, 4])
    return {
        "maximum": (ours.maximum, (x, x), {"out": None}),
        "fmax": (ours.fmax, (x, x), {"out": None}),
        "amax": (ours.amax, (x, 0, False), {"out": None}),
        "max": (ours.max, (x, 0, False), {"out": None}),
        "argmax": (ours.argmax, (x, 0, False), {}),
        "scatter_reduce": (ours.scatter_reduce, (x, 0, ids, x, "amax"), {"include_self": True}),
        "index_reduce": (ours.index_reduce, (x, 0, ids, x, "amax"), {"include_self": True}),
        "segment_reduce": (ours.segment_reduce, (x, "max"), {"offsets": offsets, "axis": 0, "initial": None}),
        "scatter_max": (scatter.scatter_max, (x, ids, 0, None, 2), {}),
        "segment_max_coo": (scatter.segment_max_coo, (x, ids, None, 2), {}),
        "segment_max_csr": (scatter.segment_max_csr, (x, offsets, None), {}),
        "scatter": (scatter.scatter, (x, ids, 0, None, 2, "max"), {}),
    }


def _others() -> Calls:
    ours = import_module("maxops.compat.numpy")
    maxima: Calls = {
        "numpy.maximum": (ours.maximum, (X, X), {"out": None, "where": True, "dtype": None}),
        "numpy.maximum.reduce": (ours.maximum.reduce, (X, 0, None, None, False, 0.0, True), {}),
        "numpy.maximum.reduceat": (ours.maximum.reduceat, (X, [0, 2], 0, None, None), {}),
        "numpy.maximum.accumulate": (ours.maximum.accumulate, (X, 0, None, None), {}),
        "numpy.max": (ours.max, (X, 0, None, False, 0.0, True), {}),
        "numpy.nanmax": (ours.nanmax, (X, 0, None, False, 0.0, True), {}),
        "numpy.argmax": (ours.argmax, (X, 0, None), {"keepdims": False}),
    }
    ours = import_module("maxops.compat.array_api")
    maxima |= {"array_api.max": (ours.max, (X,), {"axis": 0}), "array_api.argmax": (ours.argmax, (X,), {"axis": 0})}
    return maxima


LIBRARIES = {"own": _own, "onnx": _onnx, "ort": _onnxruntime, "openvino": _openvino, "torch": _torch, "others": _others}
ORIGINALS = ("torch", "others")  # replacements, which raise the originals' errors, such as TypeError and IndexError
# These exceptions mean that maxops used an argument without a check.
ACCIDENTS = (AttributeError, KeyError, AssertionError, UnboundLocalError, RecursionError)


def _accident(call: Callable[[], object], *, is_own: bool) -> str:
    """Return the exception of a call if it is an accident, or ""."""
    try:
        call()
    except MaxopsError:
        return ""
    except Exception as error:  # noqa: BLE001  (any other exception is judged)
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_raised = str(last.line).startswith("raise") or not last.filename.startswith(PACKAGE)
        if (is_own and not is_raised) or (isinstance(error, ACCIDENTS) and last.filename.startswith(PACKAGE)):
            return f"{type(error).__name__}: {error}, at {last.filename}:{last.lineno}"
    return ""


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_argument_is_no_accident(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table, "_rows", [*table._rows])
    (tmp_path / "m.onnx").write_bytes(MODEL.SerializeToString())
    (tmp_path / "m.xml").write_text(ir_models.reduce_net(8))
    (tmp_path / "m.bin").write_bytes(bytes(8))
    threads = mo.get_num_threads()
    found = []
    for name, (function, args, options) in LIBRARIES[library]().items():
        function(*args, **options)
        for kind, other in OTHERS.items():
            for place in (*range(len(args)), *options):
                given = [other if number == place else each for number, each in enumerate(args)]
                named = options | ({place: other} if isinstance(place, str) else {})
                if why := _accident(lambda: function(*given, **named), is_own=library not in ORIGINALS):  # noqa: B023
                    found.append(f"{name}, argument {place} is {kind}: {why}")
    mo.set_num_threads(threads)
    table._known.clear()
    table._found.clear()
    assert "\n".join(found) == ""


def _index() -> None:
    dict[str, int]()["x"]


def test_an_accident_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _accident(lambda: mo.set_num_threads(0), is_own=True) == ""
    monkeypatch.setattr(f"{__name__}.PACKAGE", str(Path(__file__).parent))
    for is_own in (False, True):
        assert _accident(_index, is_own=is_own).startswith("KeyError")
    assert _accident(lambda: len(3), is_own=True).startswith("TypeError")  # type: ignore[arg-type]
