"""Functions of a model: the size of their calls, their dependencies, their bodies, and the types of each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, parser

from maxops.checker import Report, check, onnx_functions
from maxops.checker.onnx_functions import Functions, body, name_of
from maxops.errors import ModelError
from maxops.onnx import from_proto, rewrite

pytestmark = pytest.mark.usefixtures("unsandboxed")

FLOAT = TensorProto.FLOAT
IMPORTS = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
HEAD = '<ir_version: 10, opset_import: ["": 18, "own": 1]> '


def neg() -> NodeProto:
    return helper.make_node("Neg", ["x"], ["n"])


def call(name: str) -> NodeProto:
    return helper.make_node(name, ["x"], ["y"], domain="own")


def graph(*nodes: NodeProto) -> GraphProto:
    return helper.make_graph([*nodes], "g", [], [])


def branches(*nodes: NodeProto) -> NodeProto:
    """Return an If whose else branch has these nodes, and whose then branch has one node."""
    return helper.make_node("If", ["c"], ["y"], then_branch=graph(neg()), else_branch=graph(*nodes))


def function(name: str, *nodes: NodeProto) -> FunctionProto:
    return helper.make_function("own", name, ["x"], ["y"], [*nodes], IMPORTS)


FUNCTIONS = [
    function("top", neg(), call("outer"), call("other")),
    function("outer", call("leaf"), branches(neg(), call("leaf"))),
    function("leaf", neg(), neg(), neg()),
    function("other", neg()),
]
LEAF, OTHER = 3, 1
OUTER = 5 + 2 * LEAF
TOP = 3 + OTHER + OUTER


def in_training(made: ModelProto, field: str) -> None:
    made.training_info.add().initialization.CopyFrom(graph(neg()))
    getattr(made.training_info.add(), field).CopyFrom(graph(neg(), call("leaf")))


CALLS: dict[str, Callable[[ModelProto], None]] = {
    "main": lambda made: made.graph.node.append(call("leaf")),
    "branch": lambda made: made.graph.node.append(branches(neg(), call("leaf"))),
    "initialization": lambda made: in_training(made, "initialization"),
    "algorithm": lambda made: in_training(made, "algorithm"),
}


def model(functions: Sequence[FunctionProto] = FUNCTIONS) -> ModelProto:
    return helper.make_model(graph(neg(), call("top")), opset_imports=IMPORTS, functions=functions, ir_version=10)


@pytest.mark.parametrize("turn", [1, -1], ids=["callers first", "callers last"])
@pytest.mark.parametrize("place", CALLS)
def test_every_call_counts(place: str, turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = model(FUNCTIONS[::turn])
    CALLS[place](made)
    nodes, levels = TOP + LEAF, 3
    for most, deepest in ((nodes, levels), (nodes - 1, levels), (nodes, levels - 1)):
        monkeypatch.setattr(onnx_functions, "MAX_NODES", most)
        monkeypatch.setattr(onnx_functions, "MAX_DEPTH", deepest)
        says = (
            f"the functions expand to {nodes} nodes, nested {levels} levels deep; the limits are {most} nodes "
            f"and {deepest} levels, so types are not inferred across function calls"
        )
        assert Functions(made).fault == ("" if (most, deepest) == (nodes, levels) else says)


@pytest.mark.parametrize("excess", [0, 1])
def test_types_are_followed_through_so_many(excess: int) -> None:
    """Test the limits: 100000 nodes, or 64 levels of calls."""
    deep = [function(f"f{level}", call(f"f{level - 1}") if level else neg()) for level in range(64 + excess)]
    assert bool(Functions(model(deep)).fault) == excess
    made = model([function("top", *[neg()] * 1000), function("more", *[neg()] * excess)])
    made.graph.node.extend([*[call("top")] * 99, call("more")])
    assert bool(Functions(made).fault) == excess


def test_what_a_function_needs() -> None:
    functions = Functions(model())
    for name, needs in {"top": ["leaf", "other", "outer"], "outer": ["leaf"], "leaf": [], "other": []}.items():
        for _ in range(2):
            assert sorted(each.name for each in functions.needed(("own", name, ""))) == needs


def test_callers_come_before_what_they_call() -> None:
    functions = Functions(model(FUNCTIONS[::-1]))
    assert not functions.recursive
    places = {name: place for place, (_, name, _) in enumerate(functions.callers_first)}
    assert places["top"] < places["outer"] < places["leaf"]
    assert places["top"] < places["other"]


def test_functions_that_call_each_other() -> None:
    functions = Functions(model([function("a", neg(), call("b")), function("b", branches(call("a")))]))
    assert functions.recursive
    circles = ("own.a -> own.b -> own.a", "own.b -> own.a -> own.b")
    assert functions.fault in [f"recursive functions are not allowed: {circle}" for circle in circles]


@pytest.mark.parametrize(
    ("key", "name"), [(("own", "f", "2"), "own.f.2"), (("own", "f", ""), "own.f"), (("", "f", ""), "f")]
)
def test_the_name_of_a_function(key: tuple[str, str, str], name: str) -> None:
    assert name_of(key) == name


def attributes(node: NodeProto) -> dict[str, int | str]:
    """Return the attributes by name: their numbers, or the attributes that they refer to."""
    return {each.name: each.ref_attr_name or each.i for each in node.attribute}


@pytest.mark.parametrize(
    ("given", "outer", "inner"),
    [
        ({"k": 7, "e": 9}, {"a": 1, "b": 9, "c": 5}, {"a": 7, "b": 9}),
        ({"d": 3}, {"a": 3, "b": 2, "c": 5}, {"b": 2}),
        ({}, {"a": 1, "b": 2, "c": 5}, {"b": 2}),
        (None, {"a": 1, "b": 2, "c": 5}, {"a": "k", "b": 2}),
    ],
    ids=str,
)
def test_attributes_in_a_body(given: Mapping[str, int] | None, outer: object, inner: object) -> None:
    """Test that a call's attributes take precedence over defaults. Without either, an attribute is unknown."""
    nodes = [helper.make_node("Own", ["x"], ["y"], c=5), helper.make_node("Own", ["x"], ["z"])]
    for node, names in zip(nodes, ("de", "ke"), strict=True):
        for name, refers in zip("ab", names, strict=True):
            node.attribute.add(name=name, ref_attr_name=refers, type=AttributeProto.INT)
    defaults = [helper.make_attribute("d", 1), helper.make_attribute("e", 2)]
    made = helper.make_function(
        "own", "f", ["x"], ["y"], [nodes[0], branches(neg(), nodes[1])], IMPORTS, ["k"], defaults
    )
    made.value_info.add(name="z")
    before = made.SerializeToString()
    values = None if given is None else {name: helper.make_attribute(name, value) for name, value in given.items()}
    found = body(made, values, 8)
    assert attributes(found.graph.node[0]) == outer
    (branch,) = [each.g for each in found.graph.node[1].attribute if each.name == "else_branch"]
    assert attributes(branch.node[1]) == inner
    assert (found.ir_version, [*found.opset_import], found.graph.value_info[0].name) == (8, IMPORTS, "z")
    assert made.SerializeToString() == before


def expected_message(report: Report, short: str) -> list[tuple[str, str]]:
    """Return the verdicts and messages about a clause, with the value that the node computes."""
    return [(each.node.split("'")[-2], each.message) for each in report.findings if each.clause.endswith(short)]


def parsed(text: str) -> ModelProto:
    return parser.parse_model(HEAD + text)


def test_each_call_has_its_own_types() -> None:
    """Test calls of adjacent functions and calls inside functions."""
    report = check(
        parsed("""g (float[2] a, float[3] b) => (float[2] y, float[3] z, float[3] w) {
            y = own.f(a)  z = own.g(b)  w = own.f(b) }
        <domain: "own", opset_import: ["": 18]> f (p) => (r) { m = Abs(p)  r = Max(m, m) }
        <domain: "own", opset_import: ["": 18, "own": 1]> g (p) => (s) { n = Abs(p)  k = own.f(n) s = Max(k, n) }""")
    )
    # two calls of f have three elements: one with a declared type, and one without
    makes = [(name, f"the inputs broadcast to ({size},)") for name, size in zip("rrrs", (2, 3, 3, 3), strict=True)]
    assert not report.faults
    assert sorted(expected_message(report, "-13.shape")) == makes
    assert {each.verdict for each in report.findings if not each.at_run_time} == {"holds"}


@pytest.mark.parametrize("more", [[], [""]], ids=str)
@pytest.mark.parametrize(
    ("operator", "clause", "verdict"),
    [("Max", "ONNX.Max-13.inputs", "broken"), ("ReduceMax", "ONNX.ReduceMax-18.axes", "holds")],
)
def test_a_call_that_omits_an_input(operator: str, clause: str, verdict: str, more: list[str]) -> None:
    """Test that nodes of the body also omit the input, even inside an If."""
    made = parsed(
        f"""g (float[2,3] a, bool c) => (float[p,q] y) {{ y = own.f(c, a) }}
        <domain: "own", opset_import: ["": 18]> f (c, a, b) => (r) {{
            s = {operator}(a, b)
            r = If (c) <then_branch = t () => (float[p,q] u) {{ u = {operator}(a, b) }},
                        else_branch = e () => (float[p,q] v) {{ v = Identity(a) }}> }}"""
    )
    made.graph.node[0].input.extend(more)
    assert [each.verdict for each in check(made).findings if each.clause == clause] == [verdict] * 2


@pytest.mark.parametrize("declares", [True, False])
@pytest.mark.parametrize(("keeps", "sizes"), [(0, [2]), (1, [2, 1]), (None, [2, 1])], ids=str)
def test_a_reference_to_an_attribute_that_a_function_does_not_declare(
    keeps: int | None, sizes: list[int], declares: bool
) -> None:
    """Test that inference and clauses agree with runtimes, which use the value of the call."""
    given = "" if keeps is None else f" <k = {keeps}>"
    made = parsed(
        f"""g (float[2,3] a) => (float[p] y) {{ y = own.f{given}(a) }}
        <domain: "own", opset_import: ["": 13]> f <k> (p) => (r) {{
            r = ReduceMax <keepdims: int = @k, axes = [1]> (p) }}"""
    )
    if not declares:
        del made.functions[0].attribute[:]
    for declared in (sizes, [*sizes, 1]):
        made.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(FLOAT, declared))
        report = check(made)
        assert {each.verdict for each in report.findings if each.clause.endswith("keepdims")} == {
            "holds" if declared == sizes else "broken"
        }
        assert report.broken == (declared != sizes)


@pytest.mark.parametrize(
    "call",
    ["Max(a, a)", "ReduceMax(a)", 'ScatterND <reduction = "max"> (a, i, a)', "Abs(a)"],
    ids=lambda text: text[:3],
)
def test_a_function_with_the_name_of_an_operator(call: str) -> None:
    """Test that the operator is checked, and that the report says that runtimes may run the function."""
    made = parsed(f"g (float[2] a, int64[2, 1] i) => (float[p] y) {{ y = {call} }}")
    node = made.graph.node[0]
    body = [helper.make_node("Identity", ["p"], ["q"])]
    names = ["p", "i", "u"][: len(node.input)]
    made.functions.append(helper.make_function("", node.op_type, names, ["q"], body, IMPORTS[:1]))
    report = check(made)
    (fault,) = report.faults
    assert (fault.verdict, "is both a function of the model and an operator" in fault.message) == ("unknown", True)
    found = [(each.where, each.operator) for each in report.nodes if each.where.startswith("graph")]
    assert found == [(f"graph / node ({node.op_type}) with output 'y'", node.op_type)] * (node.op_type != "Abs")
    for run in (from_proto, rewrite):
        with pytest.raises(ModelError, match=rf"node \({node.op_type}\) with output 'y': {node.op_type} is both a fun"):
            run(made)


def test_a_function_with_the_name_of_a_later_operator() -> None:
    """Test that Gelu is a function before operator set 20, which has an operator Gelu."""
    text = """<ir_version: 9, opset_import: ["": {0}]> g (float[2] a) => (float[2] y) {{ y = Gelu(a) }}
        <domain: "", opset_import: ["": {0}]> Gelu (p) => (q) {{ t = Neg(p) q = Max(t, t) }}"""
    result = from_proto(parser.parse_model(text.format(18))).run({"a": np.array([1, -2], np.float32)})["y"]
    assert result.tolist() == [-1, 2]
    with pytest.raises(ModelError, match="Gelu is both a function of the model and an operator"):
        from_proto(parser.parse_model(text.format(20)))


@pytest.mark.parametrize("written", ["yz", "y", "z", ""])
def test_a_caller_writes_the_type_of_each_output(written: str) -> None:
    outputs = ", ".join(f"float[2] {name}" for name in written)
    report = check(
        parsed(f"""g (float[2] a) => (float[2] o) <{outputs}> {{ y, z = own.f(a)  o = Add(y, z) }}
        <domain: "own", opset_import: ["": 18]> f (p) => (r, s) {{ r = Max(p)  s = Max(p, p) }}"""),
        "sonnx",
    )
    assert [each.verdict for each in report.findings if each.clause.endswith("GR2")] == [
        "holds" if name in written else "broken" for name in "yz"
    ]


def test_functions_know_the_initializers_of_their_branches() -> None:
    made = parsed("""g (float[2] a, bool c) => (float[2] y) { y = own.f(a, c) }
        <domain: "own", opset_import: ["": 18]> f (p, c) => (r) {
            r = If (c) <then_branch = t () => (float[2] u) { u = Max(p, w) },
                        else_branch = e () => (float[2] v) { v = Max(p, w) }> }""")
    for attribute in made.functions[0].node[0].attribute:
        attribute.g.initializer.append(helper.make_tensor("w", FLOAT, [2], [1, 2]))
    report = check(made)
    assert not report.faults
    assert {each.verdict for each in report.findings if not each.at_run_time} == {"holds"}


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_call_gives_no_more_than_the_function_has(count: int, side: str) -> None:
    made = model([function("f", helper.make_node("Max", ["x"], ["y"]))])
    names = {"input": ["x"], "output": ["y"]} | {side: ["x", "v", "w"][:count]}
    made.graph.node[1].CopyFrom(helper.make_node("f", names["input"], names["output"], "call", domain="own"))
    said = [(each.node, each.verdict, each.message) for each in check(made).faults if "the function" in each.message]
    text = f"the call has {count} {side}s, but the function own.f has 1"
    assert said == [("graph / node 'call' (own.f)", "broken", text)] * (count > 1)


@pytest.mark.parametrize("operator", ["Max", "ReduceMax"])
@pytest.mark.parametrize("outputs", [[], [""], ["y"], ["y", "z"]], ids=len)
def test_a_max_node_makes_one_value(outputs: list[str], operator: str) -> None:
    made = helper.make_model(graph(helper.make_node(operator, ["x"], outputs, "top")), opset_imports=IMPORTS)
    said = [each.message for each in check(made).faults if "expected one output" in each.message]
    actual = {0: "0", 1: "an empty name", 2: "2"}[len(outputs)]
    assert said == ([] if outputs == ["y"] else [f"expected one output, got {actual}"])
