"""Small valid and broken ONNX models for tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from maxops.plan import Array

Dims = Sequence[int | str | None]
FLOAT = TensorProto.FLOAT


def node(op: str, inputs: Sequence[str], output: str, name: str = "", **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs, [output], name, **attributes)


def value(name: str, dims: Dims = (4,), elem_type: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, dims)


def tensor(name: str, array: Array) -> TensorProto:
    return numpy_helper.from_array(array, name)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[str | onnx.ValueInfoProto] = ("x",),
    outputs: Sequence[str | onnx.ValueInfoProto] = ("y",),
    initializers: Sequence[TensorProto] = (),
    opset: int = 13,
    ir_version: int = 8,
) -> ModelProto:
    """Return a model. Inputs and outputs that are given as names have type float and shape (4,)."""
    given, made = ([value(info) if isinstance(info, str) else info for info in side] for side in (inputs, outputs))
    graph = helper.make_graph(nodes, "graph", given, made, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


MAX = model([node("Max", ["x", "x"], "y", "top")])


def external(**entries: object) -> ModelProto:
    """Return a model that computes Max of x and four floats in an external file."""
    weights = TensorProto(name="w", data_type=FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, text in entries.items():
        weights.external_data.add(key=key, value=str(text))
    return model([node("Max", ["x", "w"], "y", "top")], initializers=[weights])


@dataclass(frozen=True)
class BadModel:
    """A broken model: a function that writes it to a folder, and parts of its error message."""

    id: str
    write: Callable[[Path], Path]
    words: tuple[str, ...]


def _saved(id_: str, *words: str) -> Callable[[Callable[[], ModelProto]], Callable[[], ModelProto]]:
    """Register a function that makes a broken model."""

    def add(make: Callable[[], ModelProto]) -> Callable[[], ModelProto]:
        def write(folder: Path) -> Path:
            path = folder / "model.onnx"
            path.write_bytes(make().SerializeToString())
            return path

        BAD_MODELS.append(BadModel(id_, write, words))
        return make

    return add


def _of_bytes(id_: str, data: bytes, *words: str) -> None:
    def write(folder: Path) -> Path:
        path = folder / "model.onnx"
        path.write_bytes(data)
        return path

    BAD_MODELS.append(BadModel(id_, write, words))


def _changed(change: Callable[[ModelProto], object], start: ModelProto = MAX) -> Callable[[], ModelProto]:
    def make() -> ModelProto:
        copy = ModelProto()
        copy.CopyFrom(start)
        change(copy)
        return copy

    return make


def _with_weights(change: Callable[[TensorProto], object], array: Array | None = None) -> Callable[[], ModelProto]:
    weights = tensor("w", np.zeros(4, np.float32) if array is None else array)
    change(weights)
    return lambda: model([node("Max", ["x", "w"], "y", "top")], initializers=[weights])


BAD_MODELS: list[BadModel] = []

# ------------------------------------------------------------------------------------------------------ files
_of_bytes("empty_file", b"", "is empty")
_of_bytes("truncated", MAX.SerializeToString()[:-9], "truncated or not an ONNX model")
_of_bytes("text", b"This is no model, but a letter to my aunt.\n" * 9, "not an ONNX model")
_of_bytes("zeros", bytes(1000), "not an ONNX model")
_of_bytes("numpy_file", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'}", "not an ONNX model")
BAD_MODELS.append(BadModel("missing_file", lambda folder: folder / "model.onnx", ("cannot be read", "No such file")))
BAD_MODELS.append(BadModel("folder_without_model", lambda folder: folder, ("model.onnx", "No such file")))

# --------------------------------------------------------------------------------------------------- versions
_saved("ir_version_missing", "IR version is missing")(_changed(lambda m: m.ClearField("ir_version")))
_saved("ir_version_too_new", "got 999", "update the onnx package")(_changed(lambda m: setattr(m, "ir_version", 999)))
_saved("opset_missing", "expected an operator set")(_changed(lambda m: m.ClearField("opset_import")))
_saved("opset_zero", "got 0", "supports operator sets 1 to")(lambda: model(MAX.graph.node, opset=0))
_saved("opset_negative", "got -3", "supports operator sets 1 to")(lambda: model(MAX.graph.node, opset=-3))
_saved("opset_too_new", "got 999", "update the onnx package")(lambda: model(MAX.graph.node, opset=999))
_saved("two_opsets", "got [12, 13]")(_changed(lambda m: m.opset_import.append(helper.make_opsetid("ai.onnx", 12))))
_saved("old_ir_with_opset", "cannot have opset_import")(_changed(lambda m: setattr(m, "ir_version", 2)))

# ------------------------------------------------------------------------------------------------------ graph
_saved("no_graph", "name", "graph")(_changed(lambda m: m.ClearField("graph")))
_saved("cycle", "node 'first' (Max)", "has a cycle", "'b'", "'a'")(
    lambda: model([node("Max", ["x", "b"], "a", "first"), node("Max", ["a"], "b"), node("Max", ["b"], "y")])
)
_saved("cycle_of_one", "has a cycle", "'a' -> 'a'")(lambda: model([node("Max", ["a"], "a"), node("Max", ["a"], "y")]))
_saved("unsorted", "node (Max) with output 'y'", "'a' is produced later", "'late'", "topological")(
    lambda: model([node("Max", ["a"], "y"), node("Max", ["x"], "a", "late")])
)
_saved("undefined_input", "node 'top' (Max)", "'nowhere' is not a graph input")(
    lambda: model([node("Max", ["x", "nowhere"], "y", "top")])
)
_saved("undefined_output", "output 'z' is not a graph input")(lambda: model(MAX.graph.node, outputs=("z",)))
_saved("made_twice", "'y' has been used as output names multiple times")(
    lambda: model([node("Max", ["x"], "y"), node("Max", ["x"], "y")])
)
_saved("node_makes_input", "'x' has been used")(lambda: model([node("Max", ["x"], "x"), node("Max", ["x"], "y")]))
_saved("two_inputs_of_a_name", "'x' has been used")(lambda: model(MAX.graph.node, inputs=("x", "x")))
_saved("two_outputs_of_a_name", "output 'y' appears twice")(lambda: model(MAX.graph.node, outputs=("y", "y")))
_saved("two_initializers_of_a_name", "w initializer name is not unique")(
    lambda: model(MAX.graph.node, initializers=[tensor("w", np.zeros(4, np.float32))] * 2)
)
_saved("input_without_type", "type", "required")(_changed(lambda m: m.graph.input[0].ClearField("type")))
_A_MAP = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(FLOAT, []))
_saved("map_input", "input 's' is a sequence of a map", "dense tensors")(
    lambda: model(MAX.graph.node, ["x", helper.make_value_info("s", helper.make_sequence_type_proto(_A_MAP))])
)
_saved("string_input", "input 'x' has unsupported type string", "float16")(
    lambda: model([node("Identity", ["x"], "a"), node("Max", ["a"], "y")], [value("x", elem_type=TensorProto.STRING)])
)
_saved("string_output", "output 'y' has unsupported type string", "float16")(
    _changed(lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", TensorProto.STRING))
)
_saved("undefined_type", "input 'x' has unsupported type undefined")(
    _changed(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 0))
)
_saved("unknown_type", "input 'x' has unsupported type number 77")(
    _changed(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 77))
)
_saved("negative_size", "input 'x' has a negative size", "(-2,)")(lambda: model(MAX.graph.node, [value("x", (-2,))]))
_saved("sparse_initializer", "sparse initializers are not supported: 'w'")(
    _changed(
        lambda m: m.graph.sparse_initializer.append(
            helper.make_sparse_tensor(tensor("w", np.ones(1, np.float32)), tensor("i", np.array([1])), [4])
        )
    )
)

# protobuf can read such a name, but cannot set it
_of_bytes("name_not_text", MAX.SerializeToString().replace(b"top", b"t\xffp"), "not UTF-8", "b't\\xffp'")
_of_bytes(
    "attribute_not_text",
    model([node("ReduceMax", ["x"], "y", "top", keepdims=1)]).SerializeToString().replace(b"keepdims", b"keep\xffims"),
    "node 'top' (ReduceMax)",
    "not UTF-8",
)

# ------------------------------------------------------------------------------------------------------ nodes
_saved("unknown_operator", "Foo", "No Op registered")(lambda: model([node("Foo", ["x"], "y")]))
_saved("other_domain", "'com.example'", "No opset import")(
    lambda: model([node("Max", ["x"], "y", domain="com.example")])
)
_saved("left_out_input", "node 'top' (Max)", "input 1 of Max-13 is required", "[ONNX.Max-13.inputs]")(
    lambda: model([node("Max", ["x", ""], "y", "top")])
)
_saved("no_inputs", "node 'top' (Max)", "input size 0")(lambda: model([node("Max", [], "y", "top")]))
_saved("two_node_outputs", "node 'top' (Max)", "output size 2")(
    lambda: model([helper.make_node("Max", ["x"], ["y", "z"], "top")])
)
_saved("unknown_attribute", "node 'top' (Max)", "colour")(lambda: model([node("Max", ["x"], "y", "top", colour=1)]))
_saved("consumed_inputs_after_version_1", "node (Max)", "consumed_inputs")(
    lambda: model([node("Max", ["x"], "y", consumed_inputs=[0])])
)
_saved("keepdims_as_float", "node 'r' (ReduceMax)", "keepdims", "INT", "FLOAT")(
    lambda: model([node("ReduceMax", ["x"], "y", "r", keepdims=1.0)])
)
_saved("axes_as_int", "node 'r' (ReduceMax)", "axes", "INTS")(
    lambda: model([node("ReduceMax", ["x"], "y", "r", axes=0)])
)
_saved("axes_attribute_after_version_13", "node 'r' (ReduceMax)", "axes")(
    lambda: model([node("ReduceMax", ["x"], "y", "r", axes=[0])], opset=18)
)
_saved("axes_input_before_version_18", "node 'r' (ReduceMax)", "input size 2")(
    lambda: model([node("ReduceMax", ["x", "axes"], "y", "r")], ["x", value("axes", (1,), TensorProto.INT64)])
)
_saved("noop_before_version_18", "node (ReduceMax)", "noop_with_empty_axes")(
    lambda: model([node("ReduceMax", ["x"], "y", noop_with_empty_axes=1)])
)
_saved("attribute_twice", "node 'r' (ReduceMax)", "'keepdims' appears twice")(
    _changed(
        lambda m: m.graph.node[0].attribute.append(helper.make_attribute("keepdims", 0)),
        model([node("ReduceMax", ["x"], "y", "r", keepdims=1)]),
    )
)
_saved("attribute_of_a_function", "'keepdims' refers to a function attribute")(
    _changed(
        lambda m: setattr(m.graph.node[0].attribute[0], "ref_attr_name", "other"),
        model([node("ReduceMax", ["x"], "y", "r", keepdims=1)]),
    )
)
_saved("constant_without_value", "node 'c' (Constant)", "exactly one attribute", "none")(
    lambda: model([node("Constant", [], "y", "c")])
)
_saved("constant_with_two_values", "node 'c' (Constant)", "2: value_float, value_int")(
    lambda: model([node("Constant", [], "y", "c", value_float=1.0, value_int=1)])
)
_saved("constant_string", "node 'c' (Constant)", "unsupported type string")(
    lambda: model([node("Constant", [], "a", "c", value_string="a"), node("Max", ["a"], "y")])
)
_saved("constant_strings", "node 'c' (Constant)", "unsupported type string")(
    lambda: model([node("Constant", [], "a", "c", value_strings=["a"]), node("Max", ["a"], "y")])
)
_saved("constant_string_that_is_not_text", "node 'c' (Constant): the value", "utf-8")(
    lambda: model([node("Constant", [], "a", "c", value_string=b"\xff"), node("Max", ["x"], "y")])
)
_saved("constant_sparse", "node 'c' (Constant)", "unsupported attribute 'sparse_value'")(
    lambda: model(
        [
            node(
                "Constant",
                [],
                "y",
                "c",
                sparse_value=helper.make_sparse_tensor(
                    tensor("v", np.ones(1, np.float32)), tensor("i", np.array([1])), [4]
                ),
            )
        ]
    )
)
_saved("constant_of_strings", "node 'c' (Constant)", "unsupported type string")(
    lambda: model(
        [
            node(
                "Constant", [], "a", "c", value=TensorProto(data_type=TensorProto.STRING, dims=[1], string_data=[b"a"])
            ),
            node("Identity", ["a"], "b"),
            node("Max", ["b"], "y"),
        ]
    )
)

# ---------------------------------------------------------------------------------------------------- tensors
_saved("initializer_too_short", "initializer 'w'", "(4,)", "16 bytes", "got 12")(
    _with_weights(lambda t: setattr(t, "raw_data", bytes(12)))
)
_saved("initializer_too_long", "initializer 'w'", "16 bytes", "got 20")(
    _with_weights(lambda t: setattr(t, "raw_data", bytes(20)))
)
_saved("initializer_without_data", "initializer 'w'", "got 0")(_with_weights(lambda t: t.ClearField("raw_data")))
_saved("initializer_of_negative_size", "initializer 'w'", "(-4,)", "negative dimensions")(
    _with_weights(lambda t: t.dims.__setitem__(0, -4))
)
_saved("initializer_of_huge_size", "initializer 'w'", "got 16")(_with_weights(lambda t: t.dims.__setitem__(0, 2**62)))
_saved("initializer_of_huge_sizes", "initializer 'w'", "got 16")(
    _with_weights(lambda t: t.dims.extend([2**62, 2**62, 2**62]))
)
_saved("initializer_of_unknown_type", "initializer 'w'", "unsupported type number 99")(
    _with_weights(lambda t: setattr(t, "data_type", 99))
)
_saved("initializer_of_complex", "initializer 'w'", "complex64", "supported types")(
    _with_weights(lambda t: None, np.zeros(4, np.complex64))
)
_saved("initializer_of_two_fields", "one and only one value field")(
    _with_weights(lambda t: t.float_data.extend([1, 2, 3, 4]))
)
_saved("initializer_segment", "initializer 'w'", "segment")(_with_weights(lambda t: t.segment.SetInParent()))
_saved("initializer_out_of_range", "initializer 'w'", "300", "values stored for int8", "between -128 and 127")(
    lambda: model(
        MAX.graph.node,
        initializers=[TensorProto(name="w", data_type=TensorProto.INT8, dims=[1], int32_data=[300])],
    )
)
_saved("initializer_bool_of_two", "initializer 'w'", "bool", "other than 0 or 1")(
    lambda: model(
        MAX.graph.node, initializers=[TensorProto(name="w", data_type=TensorProto.BOOL, dims=[1], raw_data=b"\x02")]
    )
)
_saved("default_of_other_type", "initializer 'w' is int64 (4,)", "declared as 'w': float32 (4,)")(
    lambda: model(MAX.graph.node, ["x", "w"], initializers=[tensor("w", np.zeros(4, np.int64))])
)
_saved("default_of_other_shape", "initializer 'w' is float32 (5,)", "declared as 'w': float32 (4,)")(
    lambda: model(MAX.graph.node, ["x", "w"], initializers=[tensor("w", np.zeros(5, np.float32))])
)

# ---------------------------------------------------------------------------------------------- external data


def _external(
    id_: str, entries: dict[str, object], *words: str, beside: Callable[[Path], object] | None = None
) -> None:
    """Write a model to `inner/`, 16 valid bytes to `inner/good.bin`, and 16 forbidden bytes to `secret.bin`."""

    def write(folder: Path) -> Path:
        inner = folder / "inner"
        inner.mkdir()
        (inner / "good.bin").write_bytes(bytes(16))
        (folder / "secret.bin").write_bytes(b"secret!!" * 2)
        if beside is not None:
            beside(inner)
        filled = {key: str(entry).replace("FOLDER", str(folder)) for key, entry in entries.items()}
        (inner / "model.onnx").write_bytes(external(**filled).SerializeToString())
        return inner / "model.onnx"

    BAD_MODELS.append(BadModel(id_, write, ("initializer 'w'", *words)))


_external("external_parent", {"location": "../secret.bin"}, "outside")
_external("external_parent_and_back", {"location": "../inner/../secret.bin"}, "outside")
_external("external_absolute", {"location": "FOLDER/secret.bin"}, "absolute path")
_external(
    "external_link", {"location": "link"}, "symbolic link", beside=lambda f: (f / "link").symlink_to("../secret.bin")
)
_external(
    "external_link_inside", {"location": "link"}, "symbolic link", beside=lambda f: (f / "link").symlink_to("good.bin")
)
_external(
    "external_linked_folder", {"location": "up/secret.bin"}, "outside", beside=lambda f: (f / "up").symlink_to("..")
)
_external(
    "external_hard_link",
    {"location": "hard"},
    "hard link",
    beside=lambda f: os.link(f.parent / "secret.bin", f / "hard"),
)
_external("external_fifo", {"location": "fifo"}, "not regular file", beside=lambda f: os.mkfifo(f / "fifo"))
_external("external_folder", {"location": "."}, "not regular file")
_external("external_missing", {"location": "nowhere.bin"}, "not regular file")
_external("external_without_location", {}, "empty")
_external("external_offset_past_end", {"location": "good.bin", "offset": 999}, "offset (999) exceeds file size (16)")
for _id, _length in {"short": 9, "past_end": 99, "huge": 2**62}.items():
    _external(
        f"external_length_{_id}", {"location": "good.bin", "length": _length}, "must have 16 bytes", f"got {_length}"
    )
for _id, _text in {"negative": "-1", "word": "one", "empty": "", "spaced": " 0", "other_digits": "\u0660"}.items():
    for _key in ("offset", "length"):
        _external(f"external_{_key}_{_id}", {"location": "good.bin", _key: _text}, f"{_key} must be a number", _text)
_external("external_too_short", {"location": "good.bin", "offset": 8}, "(4,)")
_external("external_key_mistyped", {"location": "good.bin", "ofset": 0}, "'ofset'", "location, offset, length")
_of_bytes(
    "external_location_not_text",
    external(location="good.bin").SerializeToString().replace(b"good", b"g\xffod"),
    "initializer 'w'",
    "location is not UTF-8",
)
