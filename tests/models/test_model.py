"""Models: loading, errors for unsupported models, and the checks and results of a run."""

from __future__ import annotations

import os
import pickle
import re
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from helpers.bits import assert_same_bits
from helpers.ir_models import reduce_net, saved
from helpers.models import BAD_MODELS, FLOAT, MAX, BadModel, external, model, node, tensor, value
from maxops import errors, reference
from maxops.checker import check
from maxops.errors import MaxopsError, ModelError, ModelInputError
from maxops.onnx import Backend, from_proto, load, portable, rewrite
from maxops.onnx.exposed import expose
from maxops.onnx.tensors import DTYPES, read_tensor_file, to_array
from maxops.openvino import load as load_ir
from maxops.plan import Array

X = np.array([1, -0.0, np.nan, -np.inf], np.float32)
Y = np.array([2, 0.0, 1, -3], np.float32)
ALL_TYPES = [pytest.param(elem_type, dtype, id=dtype.name) for elem_type, dtype in DTYPES.items()]


# ------------------------------------------------------------------------------------------------ broken models


@pytest.mark.parametrize("bad", [pytest.param(bad, id=bad.id) for bad in BAD_MODELS])
def test_broken_model_is_refused(bad: BadModel, tmp_path: Path) -> None:
    path = bad.write(tmp_path)
    path = path / "model.onnx" if path.is_dir() else path
    with pytest.raises((ModelError, errors.InputCountError)) as caught:
        load(path)
    text = str(caught.value)
    assert text.startswith((f"{path}: ", f"{path} "))
    assert [word for word in bad.words if word not in text] == []
    assert "secret!!" not in text


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = MAX.SerializeToString()
    path = tmp_path / "model.onnx"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError, match=re.escape(str(path))):
            load(path)


def test_huge_dimensions_allocate_nothing(tmp_path: Path) -> None:
    huge = TensorProto(name="w", data_type=FLOAT, dims=[2**40], raw_data=bytes(16))
    tracemalloc.start()
    with pytest.raises(ModelError, match="got 16"):
        to_array(huge, "w")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (TensorProto(data_type=TensorProto.FLOAT8E5M2, dims=[-1], raw_data=b"ab"), "has negative dimensions"),
        (TensorProto(data_type=TensorProto.INT4, dims=[2], raw_data=b"ab"), "must have 1 bytes, got 2"),
        (TensorProto(data_type=TensorProto.INT4, dims=[2], int32_data=[256]), "int4 must be between 0 and 255"),
        (TensorProto(data_type=TensorProto.STRING, dims=[0], segment={"begin": 0}), "is a segment of a tensor"),
    ],
    ids=["negative", "long", "large", "segment"],
)
def test_tensors_of_types_that_no_max_takes_are_checked(made: TensorProto, said: str) -> None:
    with pytest.raises(ModelError, match=f"^w .*{said}"):
        to_array(made, "w", any_type=True)


def test_newer_operator_version_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Schema:
        since_version = 99

    monkeypatch.setattr(onnx.defs, "get_schema", lambda *_: Schema)
    with pytest.raises(
        ModelError, match=r"'top' \(Max\): operator set 13 has Max-99, which this version of maxops does not support"
    ):
        from_proto(MAX)


@pytest.mark.parametrize("given", [None, b"", "model.onnx", MAX.graph], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("act", [from_proto, rewrite, portable, Backend.prepare], ids=lambda act: act.__name__)
def test_models_of_wrong_types(act: Callable[[Any], object], given: object) -> None:
    with pytest.raises(ModelError, match=rf"must be an onnx\.ModelProto, got {type(given).__name__}; read files with"):
        act(given)
    with pytest.raises(ModelError, match=r"path of a model file, got a ModelProto; .*from_proto"):
        load(MAX)


def _move_to_constant(proto: ModelProto) -> None:
    """Replace the initializer by a Constant."""
    constant = helper.make_node("Constant", [], ["w"], "constant", value=proto.graph.initializer.pop())
    proto.graph.node.insert(0, constant)


@pytest.mark.parametrize("is_attribute", [False, True])
@pytest.mark.parametrize("others", [False, True])
def test_external_data_needs_a_file(
    others: bool, is_attribute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto = external(location="good.bin", length=16)
    if is_attribute:
        _move_to_constant(proto)
    if others:
        proto.graph.node.append(helper.make_node("Relu", ["y"], ["unused"]))
    (tmp_path / "good.bin").write_bytes(Y.tobytes())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="can read only if the model is loaded from a file"):
        from_proto(proto).run({"x": X})


# ----------------------------------------------------------------------------------------------- external data


@pytest.mark.parametrize("key", ["ofset", "offset"])
def test_keys_that_runtimes_ignore_are_refused(key: str, tmp_path: Path) -> None:
    """Test models with other operators too. onnx would read a misspelled offset as 0, with a warning."""
    proto = external(location="good.bin", offset=8)
    proto.graph.initializer[0].external_data.add(key=key, value="0")
    path = tmp_path / "model.onnx"
    (tmp_path / "good.bin").write_bytes(bytes(8) + Y.tobytes())
    calls: list[Callable[[], Any]] = [
        lambda: load(path),
        lambda: load(path, on="onnxruntime"),
        lambda: expose(path, "m"),
    ]
    if find_spec("onnxruntime"):
        calls.append(lambda: import_module("maxops.onnxruntime").session(path))
    for others in (False, True):
        if others:
            proto.graph.node.append(helper.make_node("Relu", ["y"], ["unused"]))
        path.write_bytes(proto.SerializeToString())
        for call in calls:
            with pytest.raises(ModelError, match=rf"external data key '{key}'"):
                call()


@pytest.mark.parametrize("is_attribute", [False, True])
@pytest.mark.parametrize(
    ("location", "offset"), [("good.bin", 0), ("good.bin", 8), ("./good.bin", 0), ("sub/../good.bin", 0)]
)
def test_external_data_in_the_folder_is_read(location: str, offset: int, is_attribute: bool, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "good.bin").write_bytes(bytes(offset) + Y.tobytes() + bytes(8))
    path = tmp_path / "model.onnx"
    proto = external(location=location, offset=offset, length=16)
    if is_attribute:
        _move_to_constant(proto)
    path.write_bytes(proto.SerializeToString())
    assert_same_bits(load(path).run({"x": X})["y"], reference.maximum(X, Y))


@pytest.mark.parametrize("others", [False, True])
def test_a_model_and_its_data_that_are_links(others: bool, tmp_path: Path) -> None:
    """Test links as in Hugging Face's cache, where the files have other names."""
    here, there = tmp_path / "here", tmp_path / "there"
    proto = external(location="w.bin", length=16)
    if others:
        proto.graph.node.append(helper.make_node("Relu", ["y"], ["unused"]))
    for folder in (here, there):
        folder.mkdir()
    for name, data in (("w.bin", Y.tobytes()), ("m.onnx", proto.SerializeToString())):
        (there / f"blob of {name}").write_bytes(data)
        (here / name).symlink_to(there / f"blob of {name}")
    assert_same_bits(load(here / "m.onnx").run({"x": X})["y"], reference.maximum(X, Y))
    assert not check(here / "m.onnx").broken
    assert_same_bits(expose(here / "m.onnx", "m").constants["w"], Y)


# ------------------------------------------------------------------------------------------------ broken inputs

TWO = model(
    [node("Max", ["a", "b"], "y", "top")], [value("a", ("n", 3)), value("b", ("n", None))], [value("y", (None, 3))]
)
F = np.float32


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        pytest.param({}, ["missing inputs: ", "'a': float32 (n, 3)", "'b': float32 (n, ?)"], id="all_missing"),
        pytest.param({"a": np.zeros((2, 3), F)}, ["missing inputs: 'b': float32 (n, ?)"], id="one_missing"),
        pytest.param({"c": X}, ["input 'c' is unknown", "'a': float32 (n, 3)"], id="unknown_name"),
        pytest.param(
            {"a": np.zeros((2, 3)), "b": np.zeros((2, 3), F)},
            ["input 'a' has dtype float64", "expects 'a': float32 (n, 3)"],
            id="wrong_type",
        ),
        pytest.param(
            {"a": np.zeros((2, 3), "U3"), "b": np.zeros((2, 3), F)},
            ["input 'a' has dtype <U3", "float32"],
            id="strings",
        ),
        pytest.param(
            {"a": np.zeros(3, F), "b": np.zeros((2, 3), F)}, ["input 'a' has rank 1 and shape (3,)"], id="wrong_rank"
        ),
        pytest.param(
            {"a": np.zeros((2, 4), F), "b": np.zeros((2, 3), F)},
            ["input 'a' has shape (2, 4)", "size 4 along axis 1", "(n, 3)"],
            id="wrong_size",
        ),
        pytest.param(
            {"a": np.zeros((2, 3), F), "b": np.zeros((5, 3), F)},
            ["input 'b'", "size 5 along axis 0", "'n' is 2 along axis 0 of input 'a'"],
            id="two_sizes_of_a_name",
        ),
        pytest.param(
            {"a": [[1, 2, 3]], "b": np.zeros((2, 3), F)},
            ["input 'a' must be a NumPy array, got list", "NumPy array"],
            id="list",
        ),
        pytest.param(
            {"a": np.ma.masked_array(np.zeros((2, 3), F)), "b": np.zeros((2, 3), F)},
            ["input 'a' must be a NumPy array, got MaskedArray"],
            id="masked_array",
        ),
    ],
)
def test_broken_input_is_refused(inputs: dict[str, Array], words: list[str]) -> None:
    with pytest.raises(ModelInputError) as caught:
        from_proto(TWO, "two.onnx").run(inputs)
    assert [word for word in ["two.onnx: ", *words] if word not in str(caught.value)] == []


def test_constant_cannot_be_given() -> None:
    fixed = model([node("Max", ["x", "w"], "y")], initializers=[tensor("w", Y)])
    with pytest.raises(ModelInputError, match="input 'w' is a constant of the model"):
        from_proto(fixed).run({"x": X, "w": X})


@pytest.mark.parametrize(
    ("made", "inputs", "kind", "clause"),
    [
        pytest.param(
            model([node("Max", ["x", "z"], "y", "top")], ["x", value("z", (3,))]),
            {"x": X, "z": X[:3]},
            errors.ShapeError,
            "ONNX.Max-13.shape",
            id="no_broadcast",
        ),
        pytest.param(
            model([node("Max", ["x", "z"], "y", "top")], ["x", value("z", (1,))], opset=6),
            {"x": X, "z": X[:1]},
            errors.ShapeError,
            "ONNX.Max-6.shape",
            id="broadcast_before_version_8",
        ),
        pytest.param(
            model([node("Max", ["x", "z"], "y", "top")], ["x", value("z", (4,), TensorProto.INT64)]),
            {"x": X, "z": np.zeros(4, np.int64)},
            errors.DTypeError,
            "ONNX.Max-13.T",
            id="mixed_types",
        ),
        pytest.param(
            model([node("Max", ["x"], "y", "top")], [value("x", (4,), TensorProto.INT8)], opset=8),
            {"x": np.zeros(4, np.int8)},
            errors.DTypeError,
            "ONNX.Max-8.T",
            id="type_before_its_version",
        ),
        pytest.param(
            model([node("ReduceMax", ["x"], "y", "top", axes=[1])]),
            {"x": X},
            errors.AxesError,
            "ONNX.ReduceMax-13.axes.range",
            id="axes_out_of_range",
        ),
        pytest.param(
            model([node("ReduceMax", ["x"], "y", "top", axes=[-1])], opset=1),
            {"x": X},
            errors.AxesError,
            "ONNX.ReduceMax-1.axes.range",
            id="negative_axes_in_version_1",
        ),
        pytest.param(
            model([node("ReduceMax", ["x"], "y", "top", keepdims=7)]),
            {"x": X},
            errors.AttributeValueError,
            "ONNX.ReduceMax-13.keepdims",
            id="keepdims_of_7",
        ),
        pytest.param(
            model(
                [node("ReduceMax", ["x", "axes"], "y", "top")], ["x", value("axes", (1,), TensorProto.INT32)], opset=18
            ),
            {"x": X, "axes": np.zeros(1, np.int32)},
            errors.AxesError,
            "ONNX.ReduceMax-18.axes",
            id="axes_of_int32",
        ),
    ],
)
def test_broken_clause_names_file_node_and_clause(
    made: onnx.ModelProto, inputs: dict[str, Array], kind: type[MaxopsError], clause: str
) -> None:
    with pytest.raises(kind) as caught:
        from_proto(made, "some.onnx").run(inputs)
    assert type(caught.value) is kind
    assert caught.value.clause == clause
    assert str(caught.value).startswith("some.onnx: node 'top' (")
    assert str(caught.value).count(f"[{clause}]") == 1


@pytest.mark.parametrize("output", [value("y", (5,)), value("y", (4, 1)), value("y", (4,), TensorProto.DOUBLE)])
def test_output_other_than_declared_is_refused(output: onnx.ValueInfoProto) -> None:
    with pytest.raises(ModelError, match=r"declares output 'y': .*, but its nodes return float32 \(4,\)"):
        from_proto(model(MAX.graph.node, outputs=[output])).run({"x": X})


# --------------------------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize("opset", range(1, onnx.defs.onnx_opset_version() + 1))
def test_max_at_every_opset(opset: int) -> None:
    attributes: dict[str, Any] = {"consumed_inputs": [0, 0]} if opset < 6 else {}
    made = model([node("Max", ["x", "z"], "y", **attributes)], ["x", "z"], opset=opset)
    assert_same_bits(from_proto(made).run({"x": X, "z": Y})["y"], reference.maximum(X, Y))


@pytest.mark.parametrize("opset", range(1, onnx.defs.onnx_opset_version() + 1))
def test_reduce_max_at_every_opset(opset: int) -> None:
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 12
    inputs = [value("x", (2, 3, 4))]
    if opset < 18:
        made = model([node("ReduceMax", ["x"], "y", axes=[0, 2], keepdims=0)], inputs, [value("y", (3,))], opset=opset)
    else:
        axes = tensor("axes", np.array([0, 2]))
        made = model(
            [node("ReduceMax", ["x", "axes"], "y", keepdims=0)], inputs, [value("y", (3,))], [axes], opset=opset
        )
    assert_same_bits(from_proto(made).run({"x": data})["y"], reference.reduce_max(data, (0, 2), keepdims=False))


@pytest.mark.parametrize("ir_version", [1, 2])
def test_oldest_models_have_no_opset(ir_version: int) -> None:
    made = model([node("Max", ["x", "x"], "y")], ir_version=ir_version)
    del made.opset_import[:]
    loaded = from_proto(made)
    assert loaded.opset == 1
    assert_same_bits(loaded.run({"x": X})["y"], reference.maximum(X))


@pytest.mark.parametrize("imported", ["", "ai.onnx"])
@pytest.mark.parametrize("used", ["", "ai.onnx"])
def test_both_names_of_the_domain_run(imported: str, used: str) -> None:
    made = model([node("Max", ["x"], "y", domain=used)])
    made.opset_import[0].domain = imported
    assert_same_bits(from_proto(made).run({"x": X})["y"], reference.maximum(X))


@pytest.mark.parametrize("way", ["absent", "empty_name", "input", "initializer", "constant", "value_ints"])
@pytest.mark.parametrize("noop", [0, 1])
def test_axes_of_version_18_from_everywhere(way: str, noop: int) -> None:
    data = np.array([[1, np.nan], [-0.0, 4]], np.float32)
    given = {"x": data}
    nodes, inputs, initializers = [], [value("x", (2, 2))], []
    axes = tensor("axes", np.array([-1]))
    if way == "input":
        inputs.append(value("axes", ("k",), TensorProto.INT64))
        given["axes"] = np.array([-1])
    elif way == "initializer":
        initializers.append(axes)
    elif way == "constant":
        nodes.append(node("Constant", [], "axes", value=axes))
    elif way == "value_ints":
        nodes.append(node("Constant", [], "axes", value_ints=[-1]))
    names = {"absent": ["x"], "empty_name": ["x", ""]}.get(way, ["x", "axes"])
    nodes.append(node("ReduceMax", names, "y", keepdims=0, noop_with_empty_axes=noop))
    without = way in ("absent", "empty_name")
    expected = reference.reduce_max(data, () if without else (1,), keepdims=False, identity=without and noop == 1)
    made = model(nodes, inputs, [value("y", [None] * expected.ndim)], initializers, opset=18)
    assert_same_bits(from_proto(made).run(given)["y"], expected)


@pytest.mark.parametrize(("elem_type", "dtype"), ALL_TYPES)
def test_identity_passes_bits_of_every_type(elem_type: int, dtype: object) -> None:
    numpy = DTYPES[elem_type].numpy
    words = np.array([0, 1], np.uint8) if numpy == np.bool else np.array([0, 1, 2, 3, 253, 254, 255] * 8, np.uint8)
    data = words.view(numpy)
    dims = data.shape
    made = model([node("Identity", ["x"], "y")], [value("x", dims, elem_type)], [value("y", dims, elem_type)])
    given = data.copy()
    result = from_proto(made).run({"x": given})["y"]
    assert_same_bits(result, data)
    result[...] = np.zeros_like(result)
    assert_same_bits(given, data)


@pytest.mark.parametrize(
    ("attribute", "number", "expected"),
    [
        ("value_float", -0.0, np.array(-0.0, np.float32)),
        ("value_floats", [1.5, np.nan], np.array([1.5, np.nan], np.float32)),
        ("value_int", -(2**63), np.array(-(2**63), np.int64)),
        ("value_ints", [1, 2**63 - 1], np.array([1, 2**63 - 1], np.int64)),
        ("value", tensor("", np.array([[7]], np.uint64)), np.array([[7]], np.uint64)),
    ],
)
def test_constant_as_output(attribute: str, number: Any, expected: Array) -> None:
    elem_type = helper.np_dtype_to_tensor_dtype(expected.dtype)
    made = model([node("Constant", [], "y", **{attribute: number})], [], [value("y", expected.shape, elem_type)])
    assert_same_bits(from_proto(made).run({})["y"], expected)


def test_default_holds_until_it_is_given() -> None:
    made = from_proto(model([node("Max", ["x", "w"], "y")], ["x", "w"], initializers=[tensor("w", Y)]))
    assert [declared.name for declared in made.required] == ["x"]
    assert_same_bits(made.run({"x": X})["y"], reference.maximum(X, Y))
    assert_same_bits(made.run({"x": X, "w": X})["y"], reference.maximum(X, X))
    assert_same_bits(made.run({"x": X})["y"], reference.maximum(X, Y))


def test_only_the_values_of_max_operators_need_a_type_of_maxops() -> None:
    words = np.array(["a", "b"], object)
    string = partial(value, dims=(2,), elem_type=TensorProto.STRING)
    nodes = [node("Max", ["x"], "y"), node("Identity", ["s"], "t"), node("Constant", [], "c", value=tensor("", words))]
    weights = [tensor("s", words), tensor("unused", np.array([1j], np.complex64))]
    nodes += [node("Constant", [], "d", value_strings=["a", "b"]), node("Constant", [], "e", value_string="a")]
    outputs: list[str | onnx.ValueInfoProto] = ["y", *map(string, ("s", "t", "c", "d")), string("e", dims=())]
    result = from_proto(model(nodes, ["x", string("s")], outputs, weights)).run({"x": X})
    assert [result[name].tolist() for name in ("s", "t", "c", "d", "e")] == [["a", "b"]] * 4 + ["a"]
    given = {"x": X, "s": words[::-1]}
    assert from_proto(model(nodes, ["x", string("s")], outputs, weights)).run(given)["t"].tolist() == ["b", "a"]


def test_inputs_and_initializers_as_outputs() -> None:
    made = from_proto(model([], outputs=("x", "w"), initializers=[tensor("w", Y)]))
    first = made.run({"x": X})
    assert_same_bits(first["x"], X)
    assert_same_bits(first["w"], Y)
    first["w"][:] = 0
    assert not np.shares_memory(first["x"], X)
    assert_same_bits(made.run({"x": X})["w"], Y)


def test_two_outputs_share_nothing() -> None:
    made = from_proto(model([node("Max", ["x"], "y"), node("Identity", ["y"], "z")], outputs=("y", "z")))
    results = made.run({"x": X})
    assert_same_bits(results["y"], results["z"])
    assert not np.shares_memory(results["y"], results["z"])


MAKERS_OF_Z = {
    **{f"reshaped {name}": [node("Reshape", [name, "shape"], "z")] for name in ("x", "y", "w")},
    **{f"identity of {name}": [node("Identity", [name], "z")] for name in ("x", "y", "w")},
    "constant tensor": [node("Constant", [], "z", value=tensor("c", Y))],
    "constant list": [node("Constant", [], "z", value_floats=Y.tolist())],
    "initializer": [],
}


@pytest.mark.parametrize("others", [[], [node("Abs", ["x"], "a")]], ids=["alone", "beside another operator"])
@pytest.mark.parametrize("maker", MAKERS_OF_Z)
def test_who_changes_a_result_changes_nothing_else(maker: str, others: list[onnx.NodeProto]) -> None:
    """Test that changing a result does not change inputs, other results or the model, if operators return views."""
    nodes = [node("Max", ["x"], "y"), *MAKERS_OF_Z[maker], *others]
    given = {"shape": np.array([4]), "w" if MAKERS_OF_Z[maker] else "z": Y}
    made = from_proto(model(nodes, outputs=("y", "z"), initializers=[tensor(*each) for each in given.items()]))
    x = X.copy()
    before = made.run({"x": x})
    expected = {name: array.copy() for name, array in before.items()}
    before["z"][:] = 7
    assert_same_bits(x, X)
    assert_same_bits(before["y"], expected["y"])
    for name, array in made.run({"x": x}).items():
        assert_same_bits(array, expected[name])


def test_intermediate_values_are_freed() -> None:
    steps, size = 20, 1 << 18
    chain = [node("Max", [f"v{i}", f"v{i}"], f"v{i + 1}") for i in range(steps)]
    made = from_proto(model(chain, [value("v0", (size,))], [value(f"v{steps}", (size,))]))
    data = np.zeros(size, np.float32)
    tracemalloc.start()
    made.run({"v0": data})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * data.nbytes


def test_a_pickled_model_is_the_same_model(tmp_path: Path) -> None:
    steps = [node("Max", ["x", "y"], "a"), node("ReduceMax", ["a"], "b", keepdims=0), node("Identity", ["b"], "z")]
    for made, inputs in (
        (from_proto(model(steps, ["x", "y"])), {"x": X, "y": Y}),
        (load_ir(saved(tmp_path, reduce_net(8), np.array([1]).tobytes())), {"x": X[None, :3], "b": Y[:3]}),
    ):
        for name, result in pickle.loads(pickle.dumps(made)).run(inputs).items():
            assert_same_bits(result, made.run(inputs)[name])


def test_progress_is_told_before_each_node() -> None:
    seen: list[tuple[int, int, str]] = []
    made = from_proto(model([node("Max", ["x"], "a", "first"), node("Identity", ["a"], "y")]))
    made.run({"x": X}, progress=lambda *args: seen.append(args))
    assert seen == [(0, 2, "node 'first' (Max)"), (1, 2, "node (Identity) with output 'y'")]


def test_identity_of_byte_swapped_is_native() -> None:
    made = from_proto(model([node("Identity", ["x"], "y")]))
    assert made.run({"x": X.astype(">f4")})["y"].dtype.str == X.dtype.str
    assert_same_bits(made.run({"x": X.astype(">f4")})["y"], X)


def test_byte_swapped_and_mapped_inputs_run(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_same_bits(from_proto(MAX).run({"x": mapped})["y"], reference.maximum(X))
    assert_same_bits(from_proto(MAX).run({"x": X.astype(">f4")})["y"], reference.maximum(X))


# ------------------------------------------------------------------------------------------------- tensor files


@pytest.mark.parametrize(("elem_type", "dtype"), ALL_TYPES)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed_field"])
def test_tensor_file_keeps_bits(elem_type: int, dtype: object, raw: bool, tmp_path: Path) -> None:
    numpy = DTYPES[elem_type].numpy
    data = np.array([0, 1, 1, 0, 1, 0] if numpy == np.bool else [0, 1, 2, 127, 3, 5]).astype(numpy).reshape(2, 3)
    if DTYPES[elem_type].kind == "float":
        data[0] = [-0.0, np.inf, -1.5]
    stored = data.tobytes() if raw else data
    made = helper.make_tensor("t", elem_type, data.shape, stored, raw=raw)
    (tmp_path / "t.pb").write_bytes(made.SerializeToString())
    name, read = read_tensor_file(tmp_path / "t.pb")
    assert name == "t"
    assert_same_bits(read, data)


def test_tensor_file_keeps_nan_payloads_of_bfloat16(tmp_path: Path) -> None:
    bits = np.array([0x7FC1, 0xFFFF, 0x8000, 0x0001], np.uint16)
    (tmp_path / "t.pb").write_bytes(tensor("t", bits.view(ml_dtypes.bfloat16)).SerializeToString())
    assert read_tensor_file(tmp_path / "t.pb")[1].view(np.uint16).tolist() == bits.tolist()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", ["has no element type"], id="empty"),
        pytest.param(b"\xff" * 40, ["truncated or not a TensorProto"], id="noise"),
        pytest.param(tensor("t", X).SerializeToString()[:-3], ["truncated or not a TensorProto"], id="truncated"),
        pytest.param(
            TensorProto(data_type=FLOAT, dims=[5], raw_data=bytes(16)).SerializeToString(),
            ["dtype float32 and dimensions (5,)", "20 bytes, got 16"],
            id="too_short",
        ),
        pytest.param(
            TensorProto(data_type=FLOAT, dims=[-1], raw_data=bytes(16)).SerializeToString(),
            ["(-1,)", "negative dimensions"],
            id="negative",
        ),
        pytest.param(
            TensorProto(data_type=TensorProto.BFLOAT16, dims=[1], int32_data=[70000]).SerializeToString(),
            ["70000"],
            id="bfloat16_out_of_range",
        ),
        pytest.param(
            TensorProto(data_type=TensorProto.UINT32, dims=[1], uint64_data=[2**32]).SerializeToString(),
            ["4294967296", "values stored for uint32 must be between 0 and 4294967295"],
            id="uint32_out_of_range",
        ),
        pytest.param(
            TensorProto(data_type=TensorProto.STRING, dims=[1], string_data=[b"a"]).SerializeToString(),
            ["string"],
            id="strings",
        ),
        pytest.param(
            external(location="/etc/passwd").graph.initializer[0].SerializeToString(), ["external data"], id="external"
        ),
    ],
)
def test_broken_tensor_file_is_refused(data: bytes, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.pb"
    path.write_bytes(data)
    with pytest.raises(ModelInputError) as caught:
        read_tensor_file(path)
    assert [word for word in [str(path), *words] if word not in str(caught.value)] == []


def test_run_as_in_onnx_runtime_gives_a_list() -> None:
    """Test the list of all outputs, or of the named ones in that order, and a single mapping as the only argument."""
    nodes = [node("Max", ["x", "y"], "top"), node("ReduceMax", ["x"], "high", keepdims=0)]
    two = model(nodes, ["x", "y"], ["top", value("high", ())])
    loaded, feed = from_proto(two), {"x": X, "y": Y}
    top, high = reference.maximum(X, Y), reference.reduce_max(X, keepdims=False)
    for names, expected in ((None, [top, high]), (["high", "top"], [high, top]), (("top",), [top]), ([], [])):
        for got in (loaded.run(names, feed), loaded.run(names, inputs=feed)):  # type: ignore[call-overload]
            assert isinstance(got, list)
            for one, other in zip(got, expected, strict=True):
                assert_same_bits(one, other)
    for mapping in (loaded.run(feed), loaded.run(inputs=feed)):
        assert [*mapping] == ["top", "high"]
        assert_same_bits(mapping["high"], high)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((["bottom"], {"x": X, "y": Y}), "output 'bottom' is unknown; the model's outputs: 'top': float"),
        (("top", {"x": X, "y": Y}), "output_names must be None or a list of names, got str"),
        (({"x": X}, ["top"]), "output_names must be None or a list of names, got dict"),
        ((["top", "top"], {"x": X, "y": Y}), "output_names must not contain duplicates"),
        ((None, [X, Y]), "inputs must be a mapping of names to arrays, got list"),
        ((None,), "inputs must be a mapping of names to arrays, got NoneType"),
    ],
    ids=["unknown", "text", "swapped", "twice", "list", "no-inputs"],
)
def test_run_with_wrong_arguments(arguments: tuple[Any, ...], says: str) -> None:
    one = model([node("Max", ["x", "y"], "top")], ["x", "y"], ["top"])
    with pytest.raises(ModelInputError, match=re.escape(says)):
        from_proto(one).run(*arguments)


@pytest.mark.parametrize("length", [2**31, 2**31 + 5, 2**33])
@pytest.mark.parametrize("read", [load, check], ids=["load", "check"])
def test_a_model_past_the_limit_of_protobuf_is_not_read(
    read: Callable[[Path], object], length: int, tmp_path: Path
) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(length)  # a sparse file, which uses no disk space
    tracemalloc.start()
    with pytest.raises(ModelError, match=f"has {length} bytes.*protobuf.*2 GiB.*external data"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_pipe_without_end_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        import_module("maxops.onnx.load"), "MAX_MESSAGE", 1 << 22
    )  # the module, not the function of this name
    pipe = tmp_path / "pipe.onnx"
    os.mkfifo(pipe)

    def write() -> None:
        with suppress(BrokenPipeError), pipe.open("wb") as file:
            while True:
                file.write(bytes(1 << 16))

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(ModelError, match="a protobuf message has at most"):
        load(pipe)
    writer.join()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_is_not_a_model(device: str) -> None:
    with pytest.raises(ModelError, match=f"{device} is a device"):
        load(device)
