"""maxops as an ONNX backend: the standard's own tests, repeated with a bitwise comparison."""

from __future__ import annotations

import re
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import DATA_DIR
from typer.testing import CliRunner

from helpers.bits import assert_same_bits
from helpers.models import MAX, model, node, tensor, value
from helpers.official import official_cases
from maxops import errors, reference
from maxops.cli.app import app
from maxops.model import Other
from maxops.onnx import Backend, from_proto, load, nodes
from maxops.onnx.suite import data_set_folders, read_data_set
from maxops.plan import Array

OURS = re.compile(r"test_(max|reduce_max)_(?!.*expanded)\w+|test_operator_max")
PYTORCH = Path(DATA_DIR) / "pytorch-operator"
X = np.array([1, -0.0, np.nan, -np.inf], np.float32)
Y = np.array([2, 0.0, 1, -3], np.float32)

NODE_CASES = [case for case in official_cases() if OURS.fullmatch(case.name)]
RUNNER = BackendTest(Backend, __name__)

# Only tests of max operators, so that none is skipped; the names end with the device.
OFFICIAL: dict[str, Any] = {
    name: function
    for name, function in vars(RUNNER.tests).items()
    if name.endswith("_cpu") and OURS.fullmatch(name.removesuffix("_cpu"))
}
OfficialTest = type("OfficialTest", (unittest.TestCase,), OFFICIAL)
OfficialTest.__module__ = __name__


def test_official_cases_are_complete() -> None:
    assert len(OFFICIAL) == 25 + 1
    assert "test_operator_max_cpu" in OFFICIAL
    assert sum(name.startswith("test_max_") for name in OFFICIAL) == 14
    assert [name for name, function in OFFICIAL.items() if getattr(function, "__unittest_skip__", False)] == []
    assert len(NODE_CASES) == 25


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in NODE_CASES])
def test_official_case_by_its_bits(case: Any) -> None:
    loaded = from_proto(case.model)
    assert case.data_sets
    for inputs, outputs in case.data_sets:
        names = [declared.name for declared in loaded.inputs]
        results = loaded.run(dict(zip(names, inputs, strict=True)))
        for result, expected in zip(results.values(), outputs, strict=True):
            assert_same_bits(result, np.asarray(expected))


def _uses_only_ours(folder: Path) -> bool:
    graph = onnx.load(folder / "model.onnx").graph
    return all(made.domain == "" and made.op_type in nodes.OPERATORS for made in graph.node)


PYTORCH_FOLDERS = sorted(folder for folder in PYTORCH.iterdir() if (folder / "model.onnx").is_file())
PYTORCH_OURS = [folder for folder in PYTORCH_FOLDERS if _uses_only_ours(folder)]


def test_pytorch_models_are_found() -> None:
    assert len(PYTORCH_FOLDERS) > 20
    assert "test_operator_max" in [folder.name for folder in PYTORCH_OURS]


@pytest.mark.parametrize("folder", [pytest.param(folder, id=folder.name) for folder in PYTORCH_OURS])
def test_pytorch_model_runs_on_its_own_data(folder: Path) -> None:
    result = CliRunner().invoke(app, ["run", str(folder)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "outputs agree bit for bit" in result.stdout
    loaded = from_proto(onnx.load(folder / "model.onnx"))
    sets = [read_data_set(path, loaded) for path in data_set_folders(folder)]
    assert sets
    for data in sets:
        results = loaded.run(data.inputs)
        for name, expected in data.expected.items():
            assert_same_bits(results[name], expected)


# Before version 7, these broadcast by an attribute, which onnxruntime does not support.
OLD_BROADCASTS = {"Add", "Gemm", "Mul", "Pow", "PRelu", "Sub"}


@pytest.mark.parametrize(
    "folder", [pytest.param(folder, id=folder.name) for folder in PYTORCH_FOLDERS if folder not in PYTORCH_OURS]
)
def test_other_pytorch_model_runs_with_our_operators_inside(folder: Path, on: Other) -> None:
    operators = {each.operator for each in load(folder / "model.onnx").placements}
    if on == "onnxruntime" and load(folder / "model.onnx").opset < 7 and operators & OLD_BROADCASTS:
        with pytest.raises(
            errors.ModelError, match=r"cannot run the model: .*Could not find an implementation.*--on onnx"
        ):
            load(folder / "model.onnx", on=on)
        return
    loaded = load(folder / "model.onnx", on=on)
    other = {place.runs_on.partition(" ")[0] for place in loaded.placements} - {"maxops"}
    assert other == {"onnx's" if on == "onnx" else "onnxruntime"}
    for path in data_set_folders(folder):
        data = read_data_set(path, loaded)
        for name, result in loaded.run(data.inputs).items():
            np.testing.assert_allclose(result, data.expected[name], rtol=1e-3, atol=1e-7)


# --------------------------------------------------------------------------------------------------- data sets

TWO = model([node("Max", ["a", "b"], "y"), node("Identity", ["a"], "z")], ["a", "b"], ["y", "z"])
WHOLE = {"input_0": X, "input_1": Y, "output_0": reference.maximum(X, Y), "output_1": X}


def data_set(folder: Path, arrays: dict[str, Array]) -> Path:
    folder.mkdir()
    for name, array in arrays.items():
        (folder / f"{name}.pb").write_bytes(tensor("whatever", array).SerializeToString())
    return folder


def test_data_sets_are_folders_by_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 0):
        (tmp_path / f"test_data_set_{number}").mkdir()
    (tmp_path / "test_data_set_1").touch()
    assert [path.name for path in data_set_folders(tmp_path)] == [f"test_data_set_{n}" for n in (0, 9, 10)]


def test_the_files_of_a_data_set_go_by_their_numbers(tmp_path: Path) -> None:
    """Test that files without a number are ignored."""
    folder = data_set(tmp_path / "test_data_set_7", {**WHOLE, "input_01": Y, "output_x": Y})
    (folder / "input_2.txt").touch()
    data = read_data_set(folder, from_proto(TWO))
    assert (data.name, [*data.inputs], [*data.expected]) == ("test_data_set_7", ["a", "b"], ["y", "z"])
    for array, expected in zip((*data.inputs.values(), *data.expected.values()), WHOLE.values(), strict=True):
        assert_same_bits(array, expected)


@pytest.mark.parametrize(
    ("left_out", "text"),
    [
        ("output_1", "expected one output_*.pb for each output ('y': float32 (4,), 'z': float32 (4,)), got 1 file"),
        ("output_0", "output_*.pb must be numbered from 0 without gaps, got [1]"),
        ("input_0", "input_*.pb must be numbered from 0 without gaps, got [1]"),
    ],
)
def test_a_data_set_that_lacks_a_file(left_out: str, text: str, tmp_path: Path) -> None:
    folder = data_set(tmp_path / "test_data_set_0", {name: each for name, each in WHOLE.items() if name != left_out})
    with pytest.raises(errors.ModelInputError, match=re.escape(text)):
        read_data_set(folder, from_proto(TWO))


# ----------------------------------------------------------------------------------------------------- the class


def test_prepare_runs_lists_and_mappings() -> None:
    prepared = Backend.prepare(TWO)
    for inputs in ([X, Y], (X, Y), {"b": Y, "a": X}):
        y, z = prepared.run(inputs)
        assert_same_bits(y, reference.maximum(X, Y))
        assert_same_bits(z, X)
    assert_same_bits(Backend.run_model(TWO, [X, Y])[0], reference.maximum(X, Y))


def test_lists_may_leave_out_defaults() -> None:
    made = model([node("Max", ["w", "x"], "y")], ["w", "x"], initializers=[tensor("w", Y)])
    prepared = Backend.prepare(made)
    assert_same_bits(prepared.run([X])[0], reference.maximum(X, Y))
    assert_same_bits(prepared.run([X, X])[0], reference.maximum(X, X))


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        pytest.param([X, X], "expected one array for each input ('x': float32", id="too_many"),
        pytest.param([], "missing inputs: 'x': float32", id="too_few"),
        pytest.param(X, "got ndarray", id="no_list"),
    ],
)
def test_wrong_inputs_are_refused(inputs: Any, text: str) -> None:
    with pytest.raises(errors.ModelInputError, match=re.escape(text)):
        Backend.run_model(MAX, inputs)


@pytest.mark.parametrize(
    ("device", "supported"), [("CPU", True), ("CPU:0", True), ("CUDA", False), ("CUDA:1", False), ("cpu", False)]
)
def test_devices(device: str, supported: bool) -> None:
    assert Backend.supports_device(device) is supported
    assert Backend.is_compatible(MAX, device) is supported
    if not supported:
        with pytest.raises(errors.ConfigurationError, match="device must be 'CPU', got"):
            Backend.prepare(MAX, device)


def test_is_compatible_is_false_for_unknown_operators() -> None:
    assert Backend.is_compatible(model([node("Relu", ["x"], "y")]))
    assert not Backend.is_compatible(model([node("Foo", ["x"], "y")]))


def test_unknown_option_is_refused() -> None:
    with pytest.raises(errors.ConfigurationError, match="does not support the options precision"):
        Backend.prepare(MAX, precision="low")


def test_run_node() -> None:
    assert_same_bits(Backend.run_node(node("Max", ["a", "b"], "y"), [X, Y])[0], reference.maximum(X, Y))
    reduce = node("ReduceMax", ["a"], "y", keepdims=0)
    assert_same_bits(Backend.run_node(reduce, [Y])[0], reference.reduce_max(Y, keepdims=False))
    reduce = node("ReduceMax", ["a", ""], "y", keepdims=0)
    assert_same_bits(Backend.run_node(reduce, [Y, None])[0], reference.reduce_max(Y, keepdims=False))
    constant = node("Constant", [], "y", value_float=-0.0)
    assert_same_bits(Backend.run_node(constant, [])[0], np.array(-0.0, np.float32))
    assert_same_bits(Backend.run_node(node("Identity", ["a"], "y"), [X])[0], X)


def test_run_node_at_an_opset() -> None:
    reduce = node("ReduceMax", ["a"], "y", axes=[0], keepdims=0)
    with pytest.raises(errors.ModelError, match="axes"):
        Backend.run_node(reduce, [Y])
    assert_same_bits(Backend.run_node(reduce, [Y], opset_version=13)[0], reference.reduce_max(Y, keepdims=False))
    with pytest.raises(errors.DTypeError) as caught:
        Backend.run_node(node("Max", ["a"], "y"), [np.zeros(1, np.int8)], opset_version=8)
    assert caught.value.clause == "ONNX.Max-8.T"


def test_run_node_counts_inputs() -> None:
    with pytest.raises(errors.ModelInputError, match=r"expected one array for each input \(a, b\), got 1"):
        Backend.run_node(node("Max", ["a", "b"], "y"), [X])


@pytest.mark.parametrize("inputs", [None, 5, {"a": X, "b": X}], ids=lambda each: type(each).__name__)
def test_run_node_requires_a_list(inputs: object) -> None:
    text = f"node (Max) with output 'y': inputs must be a list of arrays, got {type(inputs).__name__}"
    with pytest.raises(errors.ModelInputError, match=re.escape(text)):
        Backend.run_node(node("Max", ["a", "b"], "y"), inputs)


def test_results_have_the_graphs_order_and_names() -> None:
    made = model([node("Max", ["x"], "b"), node("Identity", ["x"], "a")], outputs=("b", "a"))
    results = Backend.run_model(made, [X])
    assert isinstance(results, tuple)
    named: Any = results
    assert_same_bits(named["b"], reference.maximum(X))
    assert_same_bits(named["a"], X)


def test_bfloat16_and_bool_through_the_backend() -> None:
    made = helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)
    assert_same_bits(Backend.run_node(made, [np.array([False, True])])[0], np.array(True))
    inputs = [value("x", (2,), TensorProto.BFLOAT16)]
    outputs = [value("y", (), TensorProto.BFLOAT16)]
    numpy = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    data = np.array([-1, -0.0]).astype(numpy)
    assert_same_bits(Backend.run_model(model([made], inputs, outputs, opset=20), [data])[0], data[1:].reshape(()))


@pytest.mark.parametrize("version", [-(2**63), -1, 0, 99, 2**31 - 1, 2**31, 2**63, "13", 13.0, None, [13]], ids=repr)
def test_an_operator_set_that_nobody_knows(version: object) -> None:
    node = helper.make_node("Max", ["a", "b"], ["c"])
    with pytest.raises(errors.MaxopsError, match=r"operator set|must be an integer"):
        Backend.run_node(node, [np.ones(1, np.float32), np.ones(1, np.float32)], opset_version=version)
