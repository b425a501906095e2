"""A PyTorch module that torch exports returns the same bits through every integration."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from helpers.bits import Array, assert_same_bits
from maxops import onnx as mx
from maxops.checker import check
from maxops.cli.app import app
from maxops.onnx.suite import data_set_folders, read_data_set

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "exported"
OPERATORS = ["Max", "ReduceMax", "ScatterElements"]


@pytest.fixture(scope="module", params=["as committed", "exported now"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the example, or of the example as exported on this machine."""
    if request.param == "as committed":
        return FOLDER
    pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    place = tmp_path_factory.mktemp("exported")
    subprocess.run([sys.executable, str(FOLDER / "export.py"), str(place)], check=True, capture_output=True)
    return place


def data(folder: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    found = read_data_set(data_set_folders(folder)[0], mx.load(folder / "model.onnx"))
    return dict(found.inputs), dict(found.expected)


def assert_as_torch(folder: Path, results: Iterable[Array]) -> None:
    for result, expected in zip(results, data(folder)[1].values(), strict=True):
        assert_same_bits(np.asarray(result), expected)


def test_it_is_what_torch_exports(folder: Path) -> None:
    model = onnx.load(folder / "model.onnx")
    assert model.producer_name == "pytorch"
    assert [node.op_type for node in model.graph.node] == OPERATORS
    committed, fresh = data(FOLDER), data(folder)
    for one, other in zip(committed, fresh, strict=True):
        for name, array in one.items():
            assert_same_bits(other[name], array)


def test_maxops(folder: Path) -> None:
    results = mx.load(folder / "model.onnx").run(data(folder)[0])
    assert list(results) == list(data(folder)[1])
    assert_as_torch(folder, results.values())


def test_the_command(folder: Path) -> None:
    result = CliRunner().invoke(app, ["run", str(folder)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "2 of 2 outputs agree bit for bit" in result.stdout


def test_the_evaluator(folder: Path) -> None:
    evaluator = mx.ReferenceEvaluator(onnx.load(folder / "model.onnx"))
    results: Any = evaluator.run(None, data(folder)[0])
    assert_as_torch(folder, results)


def test_the_checker(folder: Path) -> None:
    report = check(folder / "model.onnx")
    assert [node.operator for node in report.nodes] == OPERATORS
    assert not report.broken
    assert CliRunner().invoke(app, ["check", str(folder / "model.onnx")]).exit_code == 0


def test_onnxruntime(folder: Path) -> None:
    maxops_onnxruntime = pytest.importorskip("maxops.onnxruntime")
    results = maxops_onnxruntime.session(folder / "model.onnx").run(None, data(folder)[0])
    assert_as_torch(folder, results)


def test_a_moved_model(folder: Path, tmp_path: Path) -> None:
    maxops_onnxruntime = pytest.importorskip("maxops.onnxruntime")
    onnxruntime = pytest.importorskip("onnxruntime")
    moved = tmp_path / "moved.onnx"
    assert CliRunner().invoke(app, ["rewrite", str(folder / "model.onnx"), str(moved)]).exit_code == 0
    session = onnxruntime.InferenceSession(moved, maxops_onnxruntime.register(onnxruntime.SessionOptions()))
    assert_as_torch(folder, session.run(None, data(folder)[0]))
    assert_as_torch(folder, mx.load(moved).run(data(folder)[0]).values())


def test_openvino(folder: Path) -> None:
    openvino = pytest.importorskip("openvino")
    from maxops.openvino import rewrite  # noqa: PLC0415  (needs openvino)

    model = rewrite(openvino.Core().read_model(folder / "model.onnx"))
    ours = [node.get_type_name() for node in model.get_ordered_ops() if node.get_type_info().version_id == "maxops"]
    assert ours == ["Maximum", "ReduceMax"]
    request = openvino.Core().compile_model(model, "CPU").create_infer_request()
    results = request.infer(data(folder)[0])
    assert_as_torch(folder, [results[name] for name in data(folder)[1]])
