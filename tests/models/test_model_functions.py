"""Models with max operators in functions and nested graphs: every code path returns the reference's bits."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, inliner, parser
from typer.testing import CliRunner

from helpers.bits import Array, assert_same_bits, fast_reduce_max
from maxops import errors, reference
from maxops import onnx as mx
from maxops.cli.app import app
from maxops.onnx.inline import MAX_NODES, by_key, called, inlined
from maxops.onnx.rewrite import inlined_functions
from maxops.onnx.structure import all_nodes

ort = pytest.importorskip("onnxruntime")
maxops_onnxruntime = pytest.importorskip("maxops.onnxruntime")

X: Array = np.array([[1, 5, -2], [7, -3, -0.0]], np.float32)
ROWS, COLUMNS, ALL = (fast_reduce_max(X, axes, True) for axes in ((1,), (0,), (0, 1)))
INPUTS: dict[str, Array] = {"x": X, "c": np.array(True), "n": np.array(1), "w": np.zeros((1, 2, 3), np.float32)}
# versions that define Max, ReduceMax, Constant, Identity or If anew; before version 11, If requires equal shapes
OPSETS = (11, 12, 13, 14, 16, 18, 19, 20, 26)
NAMES = ("Max", "ReduceMax")
OPTIONS = maxops_onnxruntime.register(ort.SessionOptions())
OPTIONS.intra_op_num_threads = 1


def function(
    body: str, name: str = "f", inputs: str = "a", attributes: str = "", opset: int = 13, domain: str = ""
) -> str:
    imports = f'"{domain}": {opset}, "own": 1'
    return f'<domain: "own", opset_import: [{imports}]> {name}{attributes} ({inputs}) => (b) {{ {body} }}\n'


def model(main: str, *functions: str, opset: int = 13, ir_version: int = 10, domain: str = "") -> ModelProto:
    text = (
        f'<ir_version: {ir_version}, opset_import: ["{domain}": {opset}, "own": 1]> '
        "g (float[2,3] x, bool c, int64 n, float[1,2,3] w) => (float[p,q] y) {" + main + "}\n"
    )
    return parser.parse_model(text + "".join(functions))


def same_everywhere(made: ModelProto, expected: Array) -> ModelProto:
    """Check the results of `run`, and of onnx.checker and ONNX Runtime on the rewritten model, which is returned."""
    before = made.SerializeToString()
    assert_same_bits(mx.from_proto(made).run(INPUTS)["y"], expected)
    moved = mx.rewrite(made)
    onnx.checker.check_model(moved, full_check=True)
    assert not [node for node in all_nodes(moved) if not node.domain and node.op_type in ("Max", "ReduceMax")]
    session = ort.InferenceSession(moved.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
    assert_same_bits(session.run(None, INPUTS)[0], expected)
    assert made.SerializeToString() == before
    return moved


# ------------------------------------------------------------------------------------- where, and which version


def by_if(operator: str) -> str:
    return (
        f"b = If (c) <then_branch = t () => (tb) {{ ta = Identity(a) tb = {operator.replace('(a', '(ta')} }}, "
        "else_branch = e () => (eb) { eb = Neg(a) }>"
    )


def by_loop(operator: str) -> str:
    """Return a Loop like `by_scan`. Its state is compared, because onnx's evaluator stacks scan outputs incorrectly."""
    body = operator.replace("(a", "(la")
    return (
        "k = Constant <value = int64 {1}> () t = Constant <value = bool {1}> () b = Loop (k, t, a) <body = l "
        "(int64 i, bool go, float[2,3] la) => (bool go2, float[2,3] la2) { go2 = Identity(go) "
        f"lb = {body} la2 = Max(la, lb) }}>"
    )


def by_scan(operator: str) -> str:
    """Return the maximum of the operator's result and its input, because the state of a Scan keeps its shape."""
    body = operator.replace("(a", "(sa")
    return (
        "b, f0 = Scan <num_scan_inputs = 1, body = l (float[2,3] sa, float[2,3] each) => "
        f"(float[2,3] sa2, f) {{ sb = {body} sa2 = Max(sa, sb) f = Identity(each) }}> (a, w)"
    )


def in_graph(body: str) -> str:
    return "a = Identity(x) " + body + " y = Identity(b)"


# by name: the text of the graph and of functions, with an operator on `a`
Place = Callable[[str, int], tuple[str, list[str]]]
PLACES: dict[str, Place] = {
    "graph": lambda op, _: (in_graph(f"b = {op}"), []),
    "function": lambda op, v: ("y = own.f(x)", [function(f"b = {op}", opset=v)]),
    "function, result without a type": lambda op, v: (in_graph("b = own.f(a)"), [function(f"b = {op}", opset=v)]),
    "function in a function": lambda op, v: (
        "y = own.g(x)",
        [function(f"b = {op}", opset=v), function("b = own.f(a)", "g", opset=v)],
    ),
    "caller first": lambda op, v: (
        "y = own.g(x)",
        [function("b = own.f(a)", "g", opset=v), function(f"b = {op}", opset=v)],
    ),
    "three deep": lambda op, v: (
        in_graph("b = own.h(a)"),
        [
            function("b = own.g(a)", "h", opset=v),
            function("d = Neg(a) e = Neg(d) b = own.f(e)", "g", opset=v),
            function(f"b = {op}", opset=v),
        ],
    ),
    "function called at two places": lambda op, v: (
        in_graph("b1 = own.f(a) a2 = Neg(a) b2 = own.f(a2) b = Identity(b1)"),
        [function(f"d = {op} b = Identity(d)", opset=v)],
    ),
}
for _name, _by in {"If": by_if, "Loop": by_loop, "Scan": by_scan}.items():
    PLACES |= {
        _name: lambda op, _, by=_by: (in_graph(by(op)), []),  # type: ignore[misc]
        f"{_name} in a function": lambda op, v, by=_by: (  # type: ignore[misc]
            "y = own.f(x, c, w)",
            [function(by(op), inputs="a, c, w", opset=v)],
        ),
        f"call in {_name}": lambda op, v, by=_by: (  # type: ignore[misc]
            in_graph(by("own.f(a)")),
            [function(f"b = {op}", opset=v)],
        ),
        f"call in {_name} in a function": lambda op, v, by=_by: (  # type: ignore[misc]
            in_graph("b = own.g(a, c, w)"),
            [function(by("own.f(a)"), "g", "a, c, w", opset=v), function(f"b = {op}", opset=v)],
        ),
    }


def each_with(cases: Iterable[tuple[Any, ...]], ways: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the cases, each with one of the variants in turn."""
    return [(*case, *way) for case, way in zip(cases, cycle(ways), strict=False)]


def operator_on_a(name: str, opset: int) -> tuple[str, Array]:
    if name == "Max":
        return "Max(a, a)", reference.maximum(X, X)
    if opset < 18:
        return "ReduceMax <axes = [-1]> (a)", ROWS
    return "ReduceMax(a)", ALL


@pytest.mark.parametrize(
    ("place", "opset", "name", "domain"), each_with(product(PLACES, OPSETS), product(NAMES, ["", "ai.onnx"]))
)
def test_every_place_and_operator_set(place: str, opset: int, name: str, domain: str) -> None:
    text, expected = operator_on_a(name, opset)
    main, functions = PLACES[place](text, opset)
    made = model(main, *functions, opset=opset)
    for holder in (made, *made.functions):
        holder.opset_import[0].domain = domain
    expected = reference.maximum(X, expected) if "Scan" in place or "Loop" in place else expected
    moved = same_everywhere(made, expected)
    assert_same_bits(mx.from_proto(moved).run(INPUTS)["y"], expected)


@pytest.mark.parametrize("place", ["graph", "three deep", "call in If in a function"])
def test_every_way_to_run(place: str) -> None:
    main, functions = PLACES[place]("ReduceMax(a)", 18)
    made = model(main, *functions, opset=18)
    assert_same_bits(mx.Backend.prepare(made).run(INPUTS)[0], ALL)
    assert_same_bits(maxops_onnxruntime.session(made, providers=["CPUExecutionProvider"]).run(None, INPUTS)[0], ALL)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("opset", OPSETS)
def test_outputs_of_a_scan_without_a_shape(opset: int, name: str) -> None:
    """Test outputs without shapes on ONNX Runtime. onnx's evaluator is skipped, because it stacks them incorrectly."""
    text, expected = operator_on_a(name, opset)
    main = (
        "f0, b3 = Scan <num_scan_inputs = 1, body = l (float[2,3] a, float[2,3] each) => (float[2,3] a2, float s) "
        f"{{ a2 = Identity(a) s = {text} }}> (x, w) zero = Constant <value = int64 {{0}}> () "
        "y = Gather <axis = 0> (b3, zero)"
    )
    made = model(main, opset=opset)
    made.graph.node[0].attribute[1].g.output[1].type.tensor_type.ClearField("shape")
    (got,) = maxops_onnxruntime.session(made).run(None, INPUTS)
    assert_same_bits(got, expected)


@pytest.mark.parametrize(
    ("name", "opset", "place"),
    each_with(
        product(NAMES, range(7, 27)), [("graph",), ("function",), ("three deep",), ("function called at two places",)]
    ),
)
def test_every_operator_set_that_onnxruntime_runs(name: str, opset: int, place: str) -> None:
    text, expected = operator_on_a(name, opset)
    main, functions = PLACES[place](text.replace("[-1]", "[1]"), opset)
    same_everywhere(model(main, *functions, opset=opset), expected)


@pytest.mark.parametrize("ir_version", range(3, 14))
@pytest.mark.parametrize("opset", [8, 9])
def test_every_version_of_the_format(ir_version: int, opset: int) -> None:
    moved = same_everywhere(model("y = ReduceMax <axes = [1]> (x)", opset=opset, ir_version=ir_version), ROWS)
    assert moved.ir_version == max(ir_version, 4 if opset < 9 else 3)


@pytest.mark.parametrize(
    ("name", "of_function", "of_model", "place"),
    each_with(
        product(NAMES, *[[9, 11, 12, 13, 18, 20, 26]] * 2),
        [("function",), ("function, result without a type",), ("function in a function",)],
    ),
)
def test_functions_of_another_operator_set(name: str, of_function: int, of_model: int, place: str) -> None:
    """Test that Max and ReduceMax keep the version of their function."""
    text, expected = operator_on_a(name, of_function)
    main, functions = PLACES[place](text.replace("[-1]", "[1]"), of_function)
    same_everywhere(model(main, *functions, opset=of_model), expected)


@pytest.mark.parametrize("opsets", [(13, 18), (12, 18), (12, 13)], ids=str)
@pytest.mark.parametrize("deep", [False, True], ids=["called by the graph", "called by a function"])
def test_other_operators_of_another_operator_set(deep: bool, opsets: tuple[int, int]) -> None:
    """Test that onnx.version_converter converts other operators, also if functions call functions."""
    of_function, of_model = opsets
    body = "d = ReduceMax <axes = [1]> (a) e = Squeeze <axes = [1]> (d) b = Unsqueeze <axes = [1]> (e)"
    if of_function == 13:
        body = "k = Constant <value = int64[1] {1}> () d = ReduceMax <axes = [1]> (a) e = Squeeze(d, k)"
        body += " b = Unsqueeze(e, k)"
    inner = function(body, opset=of_function)
    outer = function("b = own.f(a)", "g", opset=of_model)
    same_everywhere(model(f"y = own.{'g' if deep else 'f'}(x)", inner, outer, opset=of_model), ROWS)


@pytest.mark.parametrize("act", [inlined, mx.rewrite], ids=["inlined", "rewrite"])
def test_a_conversion_without_types(act: Callable[..., object]) -> None:
    """Test that the error names the functions."""
    inner = function("c = Max(a, a) b = Softmax <axis = 1> (c)", opset=12)
    made = model("u = other.unknown(x) y = own.f(u)", inner, opset=18)
    made.opset_import.add(domain="other", version=1)
    with pytest.raises(errors.ModelError, match=r"cannot inline .*own\.f"):
        act(made, {*by_key(made)}) if act is inlined else act(made)


# ------------------------------------------------------------------------------------------- attributes and inputs

BY_AXES = "b = ReduceMax <axes: ints = @over> (a)"
BY_IF = (
    "b = If (c) <then_branch = t () => (tb) { tb = ReduceMax <axes: ints = @over> (a) }, "
    "else_branch = e () => (eb) { eb = Neg(a) }>"
)


OWN, DEFAULT = function(BY_AXES, attributes="<over>"), function(BY_AXES, attributes="<over: ints = [1]>")


def by_way(attributes: str) -> str:
    return function("b = own.f <over: ints = @o> (a)", "g", attributes=attributes)


# by name: the graph, the functions, and the result
ATTRIBUTES: dict[str, tuple[str, list[str], Array]] = {
    "given": ("y = own.f <over = [1]> (x)", [OWN], ROWS),
    "omitted": ("y = own.f(x)", [OWN], ALL),
    "default": ("y = own.f(x)", [DEFAULT], ROWS),
    "default, given": ("y = own.f <over = [0]> (x)", [DEFAULT], COLUMNS),
    "default, given once": (
        "u = own.f <over = [1]> (x) y = own.f(u)",
        [function(BY_AXES, attributes="<over: ints = [0]>")],
        ALL,
    ),
    "given once": ("u = own.f <over = [1]> (x) y = own.f(u)", [OWN], ALL),
    "by way of another, given": ("y = own.g <o = [0]> (x)", [by_way("<o>"), DEFAULT], COLUMNS),
    "by way of another, omitted": ("y = own.g(x)", [by_way("<o>"), DEFAULT], ROWS),
    "by way of another's default": ("y = own.g(x)", [by_way("<o: ints = [0]>"), DEFAULT], COLUMNS),
    "default, in another": ("y = own.g(x)", [function("b = own.f(a)", "g"), DEFAULT], ROWS),
    "keepdims omitted": (
        "y = own.f(x)",
        [function("b = ReduceMax <axes = [1], keepdims: int = @keep> (a)", attributes="<keep>")],
        ROWS,
    ),
    "in an If": ("y = own.f <over = [1]> (x, c)", [function(BY_IF, inputs="a, c", attributes="<over>")], ROWS),
    "default in an If": ("y = own.f(x, c)", [function(BY_IF, inputs="a, c", attributes="<over: ints = [1]>")], ROWS),
}


@pytest.mark.parametrize("opset", [9, 11, 12])
@pytest.mark.parametrize("case", ATTRIBUTES)
def test_attributes_of_functions(case: str, opset: int) -> None:
    main, functions, expected = ATTRIBUTES[case]
    if "If" in functions[0] and opset < 11:
        functions = [text.replace("Neg(a)", "ReduceMax <axes = [1]> (a)") for text in functions]
    made = model(main, *functions, opset=opset)
    for each in made.functions:
        each.opset_import[0].version = opset
    same_everywhere(made, expected)


@pytest.mark.parametrize(
    ("main", "body", "inputs", "expected"),
    [
        ("y = own.f(x)", "b = ReduceMax(a, k)", "a, k", ALL),
        ("y = own.f(x, n1)", "b = ReduceMax(a, k)", "a, k", ROWS),
        ("y = own.f(x)", "d = Identity(a) b = Clip(d, low, high)", "a, low, high", X),
        ("y = own.f(x)", "d = ReduceMax(a) b = Clip(d, low, high)", "a, low, high", ALL),
    ],
    ids=["axes", "axes given", "without our operators", "of another operator"],
)
@pytest.mark.parametrize("empty", [False, True], ids=["left out", "empty name"])
def test_omitted_inputs(main: str, body: str, inputs: str, expected: Array, empty: bool) -> None:
    made = model("n1 = Constant <value_ints = [1]> () " + main, function(body, inputs=inputs, opset=18), opset=18)
    call = made.graph.node[-1]
    if empty:
        call.input.extend([""] * (len(inputs.split(",")) - len(call.input)))
    same_everywhere(made, expected)


# --------------------------------------------------------------------------------------------- overloads, outputs


@pytest.mark.parametrize("overloads", [("one", "two"), ("", "two"), ("two", "")], ids=str)
@pytest.mark.parametrize("swapped", [False, True])
def test_overloads(overloads: tuple[str, str], swapped: bool) -> None:
    rows, columns = overloads
    made = model("y = own.f(x)", function("b = ReduceMax <axes = [1]> (a)"), function("b = ReduceMax <axes = [0]> (a)"))
    for each, overload in zip(made.functions, overloads, strict=True):
        each.overload = overload
    made.graph.node[0].overload = columns if swapped else rows
    same_everywhere(made, COLUMNS if swapped else ROWS)


@pytest.mark.parametrize("overload", ["", "other"])
def test_placements_tell_functions_from_operators(overload: str) -> None:
    """Test that a function with the name of an operator is not an operator."""
    made = model("y = own.Max(x)", function("b = ReduceMax <axes = [1]> (a)", "Max"))
    made.functions[0].overload = made.graph.node[0].overload = overload
    assert [(row.operator, row.nodes) for row in mx.from_proto(made).placements] == [("ReduceMax", 1)]


def test_a_converted_function_on_the_input_of_a_body() -> None:
    """Test that a conversion gets the type of a value that only a body's declaration of its inputs has."""
    branch = "t () => (float[2,3] {0}) {{ {0} = Max(a) }}"
    branches = f"then_branch = {branch.format('s')}, else_branch = {branch.format('e')}"
    loop = """y = Loop <body = r (int64 i, bool k, float[2,3] v) => (bool d, float[2,3] o)
        { d = Identity(k)  o = own.f(v, c) }> (n, c, x)"""
    made = model(loop, function(f"b = If (k) <{branches}>", inputs="a, k", opset=18), opset=20)
    assert_same_bits(mx.from_proto(made).run(INPUTS)["y"], X)


def test_functions_at_one_distance_are_inlined_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that the number of copies of a model does not grow with the number of its functions."""
    count = 20
    inner = [function("b = Max(a)", f"h{number}") for number in range(count)]
    outer = [function(f"b = own.h{number}(a)", f"f{number}") for number in range(count)]
    made = model(
        " ".join(f"t{n + 1} = own.f{n}(t{n})" for n in range(count)) + f" y = Identity(t{count})", *inner, *outer
    )
    made.graph.node[0].input[0] = "x"
    for each in made.functions:
        each.attribute_proto.append(
            helper.make_attribute("k", 1)
        )  # a default, which requires a group for each distance
    seen: list[int] = []
    inline = inliner.inline_local_functions

    def counted(given: ModelProto, **more: Any) -> ModelProto:
        seen.append(len(given.functions))
        return inline(given, **more)

    monkeypatch.setattr(inliner, "inline_local_functions", counted)
    assert_same_bits(mx.from_proto(made).run(INPUTS)["y"], X)
    assert seen == [count, count]


@pytest.mark.parametrize("outputs", [["y"], ["y", ""], ["", "y"], ["y", "z"]], ids=str)
def test_outputs_that_are_not_taken(outputs: list[str]) -> None:
    made = model("y = own.f(x)", function("b = ReduceMax <axes = [1]> (a) d = ReduceMax <axes = [0]> (a)"))
    made.functions[0].output.append("d")
    made.graph.node[0].output[:] = outputs
    same_everywhere(made, COLUMNS if outputs[0] == "" else ROWS)


@pytest.mark.parametrize("outputs", [["a"], ["b", "b"], ["a", "b"], ["b", "a"]], ids=str)
def test_an_output_that_is_an_input_or_another_output(outputs: list[str]) -> None:
    made = model("y = own.f(x)", function("b = ReduceMax <axes = [1]> (a)"))
    made.functions[0].output[:] = outputs
    if len(outputs) == 2:
        made.graph.node[0].output.append("z")
    same_everywhere(made, X if outputs[0] == "a" else ROWS)


# ----------------------------------------------------------------------------------------------------------- names


def _float(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [9])


NAMED: dict[str, Callable[[ModelProto], object]] = {
    "value_info": lambda made: made.graph.value_info.append(_float("y_axes")),
    "function": lambda made: made.functions[0].input.append("b_axes"),
    "function's value_info": lambda made: made.functions[0].value_info.append(_float("b_axes")),
    "quantization": lambda made: made.graph.quantization_annotation.add(tensor_name="y_axes"),
    "initializer": lambda made: made.graph.initializer.append(
        helper.make_tensor("y_axes", TensorProto.FLOAT, [9], [0.0] * 9)
    ),
}


@pytest.mark.parametrize("named", NAMED)
@pytest.mark.parametrize("opset", [8, 9])
@pytest.mark.parametrize("main", ["y = own.f(x)", "y = ReduceMax <axes = [1]> (x)"], ids=["function", "graph"])
def test_names_of_axes_are_new(main: str, opset: int, named: str) -> None:
    made = model(main, function("b = ReduceMax <axes = [1]> (a)", opset=opset), opset=opset)
    NAMED[named](made)
    same_everywhere(made, ROWS)


# ------------------------------------------------------------------------------------------- inlined functions


def test_what_the_runtime_takes_stays() -> None:
    made = model(
        "u = own.plain(x) v = own.peaks(u) y = own.last(v)",
        function("b = Identity(a)", "plain"),
        function("b = ReduceMax <axes = [1]> (a)", "peaks"),
        function("b = ReduceMax <axes = [0]> (a)", "last"),
    )
    moved = same_everywhere(made, ALL)
    assert [each.name for each in moved.functions] == ["plain", "last"]
    assert inlined_functions(made, moved) == ["own.peaks"]


def test_a_function_that_training_calls_is_kept_as_it_was() -> None:
    made = model("u = own.f(x) y = Identity(u)", function("b = own.h(a)"), function("b = Max(a, a)", "h"))
    info = made.training_info.add()
    info.algorithm.node.append(helper.make_node("f", ["x"], ["loss"], domain="own"))
    assert_same_bits(mx.from_proto(made).run(INPUTS)["y"], X)
    assert_same_bits(maxops_onnxruntime.session(made).run(None, INPUTS)[0], X)
    moved = mx.rewrite(made)
    assert moved.training_info == made.training_info
    assert list(moved.functions) == list(made.functions)


# ------------------------------------------------------------------------------------------------------- refusals


def chain(length: int, wide: int) -> ModelProto:
    """Return functions that each call the next one several times."""
    bodies = [
        " ".join(f"b{n} = own.f{number + 1}(a)" for n in range(wide)) + " b = Identity(b0)" for number in range(length)
    ]
    functions = [function(body, f"f{number}") for number, body in enumerate(bodies)]
    return model("y = own.f0(x)", *functions, function("b = Max(a, a)", f"f{length}"))


def test_a_long_chain_of_functions_runs() -> None:
    same_everywhere(chain(20, 1), X)


REFUSED: dict[str, tuple[Callable[[], ModelProto], str]] = {
    "calls itself": (lambda: model("y = own.f(x)", function("b = own.f(a)")), r"own\.f calls itself: own\.f -> own\.f"),
    "in a circle": (
        lambda: model("y = own.f(x)", function("b = own.g(a)"), function("b = own.f(a)", "g")),
        "calls itself",
    ),
    "in a circle, by an If": (
        lambda: model("y = own.f(x, c)", function(by_if("own.f(a)"), inputs="a, c")),
        "calls itself",
    ),
    "two of one name": (
        lambda: model("y = own.f(x)", function("b = Max(a)"), function("b = Neg(a)")),
        r"the function own\.f twice",
    ),
    "too many inputs": (lambda: model("y = own.f(x, x)", function("b = Max(a)")), r"has 2 inputs, but .* own\.f has 1"),
    "too many outputs": (
        lambda: model("y, z = own.f(x)", function("b = Max(a)")),
        r"has 2 outputs, but .* own\.f has 1",
    ),
    "grows without bound": (lambda: chain(12, 10), rf"nodes after its functions are inlined; the limit is {MAX_NODES}"),
}
# an attribute of a function: the nodes that refer to it, and values of other types
OF_KINDS: dict[str, tuple[str, str, dict[str, str]]] = {
    "axes": (BY_AXES, "INTS", {"INT": "1", "FLOAT": "1.0", "FLOATS": "[1.0]", "STRING": '"1"'}),
    "keepdims": ("b = ReduceMax <keepdims: int = @over> (a)", "INT", {"INTS": "[0]", "FLOAT": "0.0"}),
    "axes in an If": (BY_IF.replace("(c)", "(a)"), "INTS", {"INT": "1"}),
    "reduction": ("b = ScatterND <reduction: string = @over> (a, a, a)", "STRING", {"INT": "1"}),
}


def refused_kinds(name: str, kind: str) -> dict[str, tuple[Callable[[], ModelProto], str]]:
    """Return models that give an attribute a wrong kind of value: in a call, as a default, and through a function."""
    body, expected, values = OF_KINDS[name]
    value, typed = values[kind], kind.lower()
    words = f"'over' of the function own.f must have type {expected}, got {kind}"
    own = function(body, attributes="<over>")
    other = function(f"b = own.f <over: {typed} = @o> (a)", "g", attributes="<o>")
    return {
        f"{name} of kind {kind}": (
            lambda: model(f"y = own.f <over = {value}> (x)", own),
            rf"own\.f\) with output 'y': the attribute {words}",
        ),
        f"{name} of kind {kind} by default": (
            lambda: model("y = own.f(x)", function(body, attributes=f"<over: {typed} = {value}>")),
            f"default of the attribute {words}",
        ),
        f"{name} of kind {kind} by way of another": (lambda: model(f"y = own.g <o = {value}> (x)", other, own), words),
    }


for _name, (_, _, _values) in OF_KINDS.items():
    for _kind in _values:
        REFUSED |= refused_kinds(_name, _kind)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    make, words = REFUSED[name]
    made = make()
    for act in (mx.from_proto, mx.rewrite, maxops_onnxruntime.session):
        with pytest.raises(errors.ModelError, match=words):
            act(made)


def test_a_rewritten_model_that_the_checker_refuses() -> None:
    made = model("u = Max(x, x) y = Relu(u, u)")
    with pytest.raises(errors.ModelError, match=r"onnx\.checker rejects .*Relu"):
        mx.rewrite(made)


def test_only_what_the_graph_calls_is_looked_at() -> None:
    made = model("y = own.f(x)", function("b = Max(a)"), function("b = own.f(a)", "unused"))
    assert called(made) == [("own", "f", "")]
    assert not inlined(made, by_key(made)).functions


def test_a_default_is_not_added_to_a_call_that_gives_it() -> None:
    made = model("y = own.f <over = [0]> (x)", function(BY_AXES, attributes="<over: ints = [1]>"))
    (node,) = inlined(made, by_key(made)).graph.node
    (axes,) = (each for each in node.attribute if each.name == "axes")
    assert (axes.type, list(axes.ints)) == (AttributeProto.INTS, [0])


# -------------------------------------------------------------------------------------------------- the commands

OVERLOADS = model(
    "u = own.f:rows(x) y = own.f:columns(u)",
    function("b = ReduceMax <axes = [1]> (a)"),
    function("b = ReduceMax <axes = [0]> (a)"),
)
OVERLOADS.functions[0].overload, OVERLOADS.functions[1].overload = "rows", "columns"


def command(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*map(str, words)])
    return result.exit_code, result.output + result.stderr


@pytest.mark.parametrize("runtime", ["onnxruntime", "maxops:onnxruntime", "onnx-reference"])
def test_another_runtime_is_given_the_same_functions(runtime: str, tmp_path: Path) -> None:
    """Test overloads, the alias of the default domain, and a caller before its callee."""
    path = tmp_path / "m.onnx"
    callers = function("b = own.h(a)", "g"), function("b = Max(a)", "h")
    made = model("t = own.g(x) u = own.f:rows(t) y = own.f:columns(u)", *callers, domain="ai.onnx")
    made.functions.extend(OVERLOADS.functions)
    path.write_bytes(made.SerializeToString())
    code, text = command("run", path, "--seed", 1, "--against", runtime)
    assert (code, " nodes agree bit for bit" in text) == (0, True), text


def test_rewrite_says_which_functions_it_inlines(tmp_path: Path) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    path.write_bytes(OVERLOADS.SerializeToString())
    code, text = command("rewrite", path, out)
    assert code == 0
    assert "inlined these functions, because ONNX Runtime does not infer types in them: own.f:rows" in text.splitlines()
    assert [each.overload for each in onnx.load(out).functions] == ["columns"]


@pytest.mark.parametrize("out", ["out.onnx", "-"])
@pytest.mark.parametrize(
    "made",
    [model("u = Max(x, x) y = Relu(u, u)"), model("y = own.f(x)", function("b = own.f(a)"))],
    ids=["not valid", "cannot be inlined"],
)
def test_nothing_is_written_of_what_is_not_valid(made: ModelProto, out: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    code, text = command("rewrite", path, out if out == "-" else tmp_path / out)
    assert (code, "wrote" in text, "m.onnx: " in text) == (2, False, True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.onnx"]


@pytest.mark.parametrize("words", [("run",), ("check",), ("rewrite",)], ids=" ".join)
@pytest.mark.parametrize("what", ["/dev/zero", "/dev/null", "folder", "empty", "none", "fifo"])
def test_what_is_no_file_of_a_model(words: tuple[str], what: str, tmp_path: Path) -> None:
    path = Path(what) if what.startswith("/") else tmp_path / what
    if what == "folder":
        path.mkdir()
    elif what == "empty":
        path.touch()
    elif what == "fifo":
        os.mkfifo(path)
        threading.Thread(target=lambda: path.write_bytes(b"no model"), daemon=True).start()
    more = [tmp_path / "out.onnx"] if words == ("rewrite",) else []
    code, text = command(*words, path, *more)
    assert code == 2, text
    assert str(path) in " ".join(text.split()) or what == "fifo"
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("name", ["run", "check", "rewrite"])
def test_a_stream_without_an_end(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Test that reading stops at the size limit of a model, which is reduced to a thousandth here."""
    reading = sys.modules["maxops.onnx.load"]
    monkeypatch.setattr(reading, "MAX_MESSAGE", 2**21)
    more = [str(tmp_path / "out.onnx")] if name == "rewrite" else []
    result = CliRunner().invoke(app, [name, "-", *more], input=bytes(2**22))
    assert (result.exit_code, "a protobuf message has at most 2097152" in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("unknown", ["x", "k"])
@pytest.mark.parametrize(
    "operator",
    [
        "Max(x, k)",
        "Max(k, x)",
        "ReduceMax(x)",
        "ReduceMax(k)",
        'maxops.SegmentMax <fill_mode = "ZERO"> (x, ids)',
        'maxops.SegmentMax <fill_mode = "ZERO"> (k, ids)',
    ],
)
def test_types_that_onnx_does_not_know(operator: str, unknown: str) -> None:
    """Test that a type that onnx.checker does not know is not a fault of the model."""
    made = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18, "maxops": 1, "other": 1]> g '
        "(float[2,3] in, int64[2] ids) => (float[p,q] y) "
        f"{{ x = Identity(in) k = Identity(in) {unknown} = other.Op(in) y = {operator} }}"
    )
    del made.graph.node["xk".index(unknown)]
    mx.rewrite(made)


# --------------------------------------------------------------------------------------- other content of a model


def test_what_else_a_model_holds_stays() -> None:
    """Test that every field that is unrelated to max operators is unchanged."""
    made = model("u = Max(x, x) y = own.f(u)", function("b = Identity(a)"))
    made.producer_name, made.domain, made.model_version, made.doc_string = "p", "d", 7, "of a model"
    for holder in (made, made.graph, made.graph.node[0], made.functions[0], made.functions[0].node[0]):
        holder.metadata_props.add(key="from", value="torch")
        holder.doc_string = "text"
    made.configuration.add(name="two", num_devices=2)
    made.graph.node[0].device_configurations.add(configuration_id="two")
    made.graph.node[0].name = "top"
    made.graph.quantization_annotation.add(tensor_name="u")
    made.graph.value_info.append(helper.make_tensor_value_info("u", TensorProto.FLOAT, [2, 3]))
    made.graph.initializer.append(helper.make_tensor("unused", TensorProto.FLOAT, [1], [1.0]))
    made.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            helper.make_tensor("sparse", TensorProto.FLOAT, [1], [1.0]),
            helper.make_tensor("at", TensorProto.INT64, [1], [1]),
            [4],
        )
    )
    made.training_info.add().algorithm.node.append(helper.make_node("Max", ["x"], ["t"]))
    moved = mx.rewrite(made)
    expected = ModelProto()
    expected.CopyFrom(made)
    expected.graph.node[0].domain = "maxops"
    expected.graph.node[0].attribute.append(helper.make_attribute("since_version", 13))
    expected.opset_import.append(helper.make_opsetid("maxops", 1))
    assert moved == expected


CHAINS = {
    "of an operator": "{made} y = own.k(u)",
    "of a call": "u = own.l(x) y = own.k(u)",
    "of its own call": "v = own.k(x) {again} y = own.k(u)",
    "of a call of a call": "u = own.l(x) v = own.k(u) y = own.k(v)",
    "in a function": "u = own.l(x) y = own.m(u)",
}
MADE = {
    "Max": "{} = Max ({}, x)",
    "ReduceMax": "{} = ReduceMax <axes = [1]> ({})",
    "ReduceMax of another rank": "{} = ReduceMax <axes = [1], keepdims = 0> ({})",
}


@pytest.mark.parametrize(
    ("chain", "of_model", "of_function", "made"),
    each_with(
        ((chain, *opsets) for chain in CHAINS for opsets in [(13, 11), (13, 12), (17, 11), (12, 13), (11, 13)]),
        [(made,) for made in MADE],
    ),
)
def test_a_conversion_knows_the_types_that_max_nodes_and_calls_make(
    chain: str, of_model: int, of_function: int, made: str
) -> None:
    """Test that converted functions use the types of nodes and calls, without temporary names or declarations."""
    again = MADE[made].format("u", "v")
    main = CHAINS[chain].format(made=MADE[made].format("u", "x"), again=again)
    axes = "p,q" if made.endswith("rank") else "p,q,r"
    functions = [
        f'<domain: "own", opset_import: ["": {of_function}]> k (a) => (b) {{ b = Softmax <axis = -1> (a) }}',
        f'<domain: "own", opset_import: ["": {of_model}]> l (x) => (b) {{ {MADE[made].format("b", "x")} }}',
        f'<domain: "own", opset_import: ["": {of_model}, "own": 1]> m (a) => (b) {{ b = own.k(a) }}',
    ]
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {of_model}, "own": 1]> '
        f"g (float[2,3,4] x) => (float[{axes}] y) {{ {main} }}" + "".join(functions)
    )
    feed = {"x": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)}
    (expected,) = onnx.reference.ReferenceEvaluator(proto).run(None, feed)
    assert_same_bits(mx.from_proto(proto).run(feed)["y"], np.asarray(expected))
    whole = inlined(proto, {*by_key(proto)})
    assert (whole.graph.output, list(whole.graph.value_info)) == (proto.graph.output, [])


REPEATED = {
    "twice": "u = own.f(x) v = own.f(u) y = Max(v, x)",
    "three times": "u = own.f(x) v = own.f(u) _v_4 = own.f(v) y = Max(_v_4, x)",
    "in functions": "u = own.g(x) v = own.f(u) y = Max(v, x)",
    "in branches": "v = If(c) <then_branch = t () => (p) { u = own.f(x) p = own.f(u) },"
    "                          else_branch = e () => (q) { q = own.f(x) }> y = Max(v, x)",
    "around a branch": "u = own.f(x) v = If(c) <then_branch = t () => (p) { r = own.f(u) p = own.f(r) },"
    "  else_branch = e () => (q) { q = own.f(u) }> last = own.f(v) y = Max(last, u)",
}
CONVERTED = {
    "ReduceSum": "s = ReduceSum <axes = [1]> (a) b = Max(s, a)",
    "Squeeze": "r = ReduceMax <axes = [1]> (a) s = Squeeze <axes = [1]> (r) b = Unsqueeze <axes = [1]> (s)",
}


@pytest.mark.parametrize(
    ("calls", "opset", "body"), each_with(product(REPEATED, [13, 17, 18]), [(body,) for body in CONVERTED])
)
def test_a_function_that_is_converted_in_each_call(calls: str, opset: int, body: str) -> None:
    """Test that values that the conversion adds are renamed differently in each call."""
    outer = function("c = own.f(a) b = own.f(c)", "g", opset=opset)
    proto = model(REPEATED[calls], function(CONVERTED[body], opset=11), outer, opset=opset, ir_version=8)
    (expected,) = onnx.reference.ReferenceEvaluator(proto).run(None, INPUTS)
    same_everywhere(proto, np.asarray(expected))


@pytest.mark.parametrize("name", ["Missing", "Max", "é"])
@pytest.mark.parametrize("opset", [9, 13, 20])
@pytest.mark.parametrize("act", [mx.from_proto, mx.rewrite], ids=lambda act: act.__name__)
def test_what_onnx_refuses_to_inline(act: Callable[[ModelProto], object], opset: int, name: str) -> None:
    """Test an unknown operator next to a max node, in a function of another operator set."""
    made = model(
        "u = Max(x) y = own.f(u)", function(f"c = Max(a) b = {name.replace('é', 'e')}(c, c)", opset=opset), opset=18
    )
    made.functions[0].node[1].op_type = name
    if name == "Max":
        assert act(made) is not None
        return
    with pytest.raises(errors.ModelError, match=r"own\.f"):
        act(made)


def test_placements_count_what_runs() -> None:
    """Test that uncalled functions and training graphs are not counted."""
    made = model("u = own.f(x) y = Abs(u)", function("b = Max(a)"), function("b = Neg(a)", "idle"))
    made.training_info.add().algorithm.node.add(op_type="Sqrt", input=["y"], output=["s"])
    made.functions[1].node[0].op_type = "Exp"
    found = {each.operator: each.nodes for each in mx.from_proto(made).placements}
    assert found == {"Max": 1, "Abs": 1}
