"""Attributes of ONNX nodes in every form: onnx.checker determines which are valid, and onnxruntime what they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, helper

from maxops.checker import check
from maxops.errors import MaxopsError
from maxops.onnx.backend import Backend
from maxops.onnx.load import from_proto
from maxops.plan import Array

ort = pytest.importorskip("onnxruntime")

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
X = np.array([[0, 7, 2], [5, 4, 6]], np.float32)
KIND = AttributeProto
OPTIONS = ort.SessionOptions()
OPTIONS.intra_op_num_threads = 1


@pytest.fixture(autouse=True)
def _quiet(unsandboxed: None) -> None:
    ort.set_default_logger_severity(4)


def _attribute(kind: int | None, **fields: object) -> Callable[[str], AttributeProto]:
    def make(name: str) -> AttributeProto:
        made = AttributeProto(name=name)
        if kind is not None:
            made.type = kind  # type: ignore[assignment]
        for field, value in fields.items():
            if isinstance(value, list):
                getattr(made, field).extend(value)
            elif hasattr(value, "SerializeToString"):
                getattr(made, field).CopyFrom(value)
            else:
                setattr(made, field, value)
        return made

    return make


TENSOR = helper.make_tensor("t", INT64, [1], [1])
FORMS: dict[str, list[Callable[[str], AttributeProto]]] = {
    "absent": [],
    **{f"int {number}": [_attribute(KIND.INT, i=number)] for number in (0, 1, 2, -1, -3, 2**62)},
    **{f"ints {each}": [_attribute(KIND.INTS, ints=each)] for each in ([], [0], [1], [-1], [0, 1], [1, 1], [2])},
    "float": [_attribute(KIND.FLOAT, f=1.0)],
    "floats": [_attribute(KIND.FLOATS, floats=[1.0])],
    "string": [_attribute(KIND.STRING, s=b"1")],
    "strings": [_attribute(KIND.STRINGS, strings=[b"1"])],
    "tensor": [_attribute(KIND.TENSOR, t=TENSOR)],
    "tensors": [_attribute(KIND.TENSORS, tensors=[TENSOR])],
    "graph": [_attribute(KIND.GRAPH, g=helper.make_graph([], "inner", [], []))],
    "no type, int": [_attribute(None, i=1)],
    "no type, ints": [_attribute(None, ints=[1])],
    "no type, nothing": [_attribute(None)],
    "int without a value": [_attribute(KIND.INT)],
    "int in ints": [_attribute(KIND.INTS, i=1)],
    "ints in int": [_attribute(KIND.INT, ints=[1])],
    "float in int": [_attribute(KIND.INT, f=1.0)],
    "int and float": [_attribute(KIND.INT, i=1, f=1.0)],
    "int and ints": [_attribute(KIND.INT, i=1, ints=[1])],
    "another type": [_attribute(KIND.TYPE_PROTO, i=1)],
    "reference": [_attribute(KIND.INT, ref_attr_name="given")],
    "reference and value": [_attribute(KIND.INT, i=1, ref_attr_name="given")],
    "twice": [_attribute(KIND.INT, i=1), _attribute(KIND.INT, i=0)],
    "twice the same": [_attribute(KIND.INT, i=1)] * 2,
    "twice, of two types": [_attribute(KIND.INT, i=1), _attribute(KIND.INTS, ints=[1])],
}
OPERATORS: dict[str, tuple[str, int, str, bool]] = {
    "ReduceMax-13 keepdims": ("ReduceMax", 13, "keepdims", False),
    "ReduceMax-13 axes": ("ReduceMax", 13, "axes", False),
    "ReduceMax-13 noop": ("ReduceMax", 13, "noop_with_empty_axes", False),
    "ReduceMax-18 keepdims": ("ReduceMax", 18, "keepdims", True),
    "ReduceMax-18 noop": ("ReduceMax", 18, "noop_with_empty_axes", False),
    "ReduceMax-20 noop and axes": ("ReduceMax", 20, "noop_with_empty_axes", True),
    "ReduceMax-18 axes": ("ReduceMax", 18, "axes", False),
    "Max-13 unknown": ("Max", 13, "odd", False),
    "Max-13 consumed_inputs": ("Max", 13, "consumed_inputs", False),
    "Max-1 consumed_inputs": ("Max", 1, "consumed_inputs", False),
    "Max-13 nameless": ("Max", 13, "", False),
}
Place = Callable[[NodeProto, int], ModelProto]


def _info(name: str, elem_type: int = FLOAT, shape: list[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, shape)


def _whole(nodes: list[NodeProto], opset: int, functions: list[onnx.FunctionProto] | None = None) -> ModelProto:
    inputs = [_info("x", FLOAT, [2, 3]), _info("c", BOOL, [])]
    axes = helper.make_tensor("over", INT64, [1], [1])
    graph = helper.make_graph(nodes, "whole", inputs, [_info("y")], [axes])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions or [], ir_version=8)


def _in_branch(node: NodeProto, opset: int) -> ModelProto:
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["other"])], "no", [], [_info("other")])
    chosen = helper.make_graph([node], "yes", [], [_info("y")])
    return _whole([helper.make_node("If", ["c"], ["y"], then_branch=chosen, else_branch=other)], opset)


def _in_function(node: NodeProto, opset: int) -> ModelProto:
    imports = [helper.make_opsetid("", opset)]
    function = helper.make_function("own", "f", ["x", "over"], ["y"], [node], imports)
    return _whole([helper.make_node("f", ["x", "over"], ["y"], domain="own")], opset, [function])


PLACES: dict[str, Place] = {
    "graph": lambda node, opset: _whole([node], opset),
    "branch": _in_branch,
    "function": _in_function,
}


def _node(operator: str, form: str) -> tuple[NodeProto, int]:
    name, opset, attribute, has_axes = OPERATORS[operator]
    node = helper.make_node(name, ["x", "over"] if has_axes else ["x"], ["y"], "top")
    node.attribute.extend(make(attribute) for make in FORMS[form])
    return node, opset


def _feeds(model: ModelProto) -> dict[str, Array]:
    every: Mapping[str, Array] = {"x": X, "c": np.array(True)}
    return {info.name: every[info.name] for info in model.graph.input}


def _refused_by_onnx(model: ModelProto) -> bool:
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        return True
    return False


def _by_onnxruntime(model: ModelProto) -> Array | None:
    try:
        made: Array = ort.InferenceSession(model.SerializeToString(), OPTIONS).run(None, _feeds(model))[0]
    except Exception:  # noqa: BLE001 - whatever it refuses
        return None
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_attributes_in_each_form(operator: str, form: str) -> None:
    """Test attributes in the graph, in branches and in functions, with references in each place."""
    node, opset = _node(operator, form)
    other = ["branch", "function"][(list(OPERATORS).index(operator) + list(FORMS).index(form)) % 2]
    for place in PLACES if form.startswith("reference") else ("graph", other):
        model = PLACES[place](node, opset)
        is_reference = form.startswith("reference") and place == "function"
        report = check(model)
        if _refused_by_onnx(model):
            assert report.broken, place
            with pytest.raises(MaxopsError):
                from_proto(model).run(_feeds(model))
            continue
        expected = _by_onnxruntime(model)
        try:
            made = from_proto(model).run(_feeds(model))["y"]
        except MaxopsError:
            # axes out of range, which type checks do not detect, and duplicates, which are undetermined
            assert report.broken or "twice" in form or form in ("ints [1, 1]",) or is_reference, place
            assert expected is None or form == "ints [1, 1]", place
            continue
        if expected is not None and opset > 6:
            assert (made.dtype, made.shape, made.tobytes()) == (expected.dtype, expected.shape, expected.tobytes()), (
                place
            )
        assert not report.broken, (place, [each.message for each in report.findings if each.verdict == "broken"])
        again = Backend.run_model(model, list(_feeds(model).values()))[0]
        assert again.tobytes() == made.tobytes()
