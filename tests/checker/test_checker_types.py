"""Types from tensors and inference: a declared type is a claim that the checker verifies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from helpers import places
from helpers.places import Part, info
from maxops.checker import Report, check, onnx_values
from maxops.onnx.tensors import DTYPES, to_array, type_name

pytestmark = pytest.mark.usefixtures("unsandboxed")

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


@dataclass
class Producer:
    """Nodes that compute the value v of two elements, in a graph with the input x of type float[2]."""

    elem_type: int
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    shape: tuple[int, ...] = (2,)


def _node(operator: str, *inputs: str, domain: str = "", **attributes: Any) -> NodeProto:
    return helper.make_node(operator, list(inputs), ["v"], "maker", domain=domain, **attributes)


def _branch(elem_type: int) -> onnx.GraphProto:
    cast = helper.make_node("Cast", ["x"], ["b"], to=elem_type)
    return helper.make_graph([cast], "branch", [], [info("b", elem_type)])


INTS = helper.make_tensor("v", INT64, [2], [1, 2])
PRODUCERS: dict[str, Callable[[], Producer]] = {
    "initializer": lambda: Producer(INT64, initializers=[INTS]),
    "Constant value": lambda: Producer(INT64, [_node("Constant", value=INTS)]),
    "Constant value_ints": lambda: Producer(INT64, [_node("Constant", value_ints=[1, 2])]),
    "Constant value_int": lambda: Producer(INT64, [_node("Constant", value_int=1)], shape=()),
    "Constant value_floats": lambda: Producer(FLOAT, [_node("Constant", value_floats=[1.0, 2.0])]),
    "Constant value_float": lambda: Producer(FLOAT, [_node("Constant", value_float=1.0)], shape=()),
    "Constant value_strings": lambda: Producer(STRING, [_node("Constant", value_strings=[b"a", b"b"])]),
    "Cast": lambda: Producer(INT64, [_node("Cast", "x", to=INT64)]),
    "Shape": lambda: Producer(INT64, [_node("Shape", "x")], shape=(1,)),
    "Size": lambda: Producer(INT64, [_node("Size", "x")], shape=()),
    "Equal": lambda: Producer(BOOL, [_node("Equal", "x", "x")]),
    "ArgMax": lambda: Producer(INT64, [_node("ArgMax", "x", keepdims=0)], shape=()),
    "Identity": lambda: Producer(FLOAT, [_node("Identity", "x")]),
    "Abs": lambda: Producer(FLOAT, [_node("Abs", "x")]),
    "If": lambda: Producer(INT64, [_node("If", "c", then_branch=_branch(INT64), else_branch=_branch(INT64))]),
    "function": lambda: Producer(INT64, [_node("to_ints", "x", domain="own")]),
    "after another": lambda: Producer(INT64, [helper.make_node("Cast", ["x"], ["u"], to=INT64), _node("Neg", "u")]),
}


def _model(graph: onnx.GraphProto) -> ModelProto:
    return _with_to_ints(helper.make_model(graph, opset_imports=places.IMPORTS, ir_version=10))


def _with_to_ints(made: ModelProto) -> ModelProto:
    cast = helper.make_node("Cast", ["p"], ["q"], to=INT64)
    made.functions.append(helper.make_function("own", "to_ints", ["p"], ["q"], [cast], places.IMPORTS[:1]))
    return made


# The places of claims about v, and of the nodes that compute it.
PLACES = {
    "value_info": "main",
    "output": "main",
    "branch value_info": "branch",
    "branch output": "branch",
    "loop value_info": "loop",
    "function value_info": "function",
    "nested function": "nested function",
    "training value_info": "training step",
}


def _claimed(made: Producer, claim: ValueInfoProto, place: str) -> ModelProto:
    """Return a model with nodes that compute v, a claim about v, and a Max of it."""
    consumer = helper.make_node("Max", ["v", "v"], ["m"], "judged")
    part = Part([*made.nodes, consumer], made.initializers, info("m", made.elem_type, made.shape))
    of_graph = {"output": "output", "input beside initializer": "input"}
    if place not in (*of_graph, "branch output"):
        part.value_info.append(claim)
    result = places.PLACES["main" if place in of_graph else PLACES.get(place, place)](part)
    if place in of_graph:
        getattr(result.graph, of_graph[place]).append(claim)
    elif place == "branch output":
        (branch,) = [each.g for each in result.graph.node[0].attribute if each.name == "then_branch"]
        branch.output[0].CopyFrom(claim)
    return _with_to_ints(result)


CLAIMS = {"float": FLOAT, "int64": INT64, "int32": TensorProto.INT32, "bfloat16": TensorProto.BFLOAT16, "bool": BOOL,
          "string": STRING}  # fmt: skip


def _faults(report: Report) -> list[str]:
    return [each.message for each in report.faults if each.verdict == "broken" and "onnx.checker" not in each.message]


def _type_of_judged(report: Report) -> str:
    (message,) = {each.message for each in report.findings if each.clause.endswith(".T")}
    return message


def _expected_type(elem_type: int) -> str:
    return str(DTYPES.get(elem_type) or type_name(elem_type))


def _some(values: Iterable[Any], producer: str, place: str, right: Any) -> list[Any]:
    """Return the correct item and two others. Each occurs for each producer and for each place."""
    others = [value for value in values if value != right]
    start = 2 * ([*PRODUCERS].index(producer) + [*PLACES].index(place))
    return [right, *(others[(start + step) % len(others)] for step in range(2))]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_claim_that_is_wrong(producer: str, place: str) -> None:
    made = PRODUCERS[producer]()
    for elem_type, standard in product(_some(CLAIMS.values(), producer, place, made.elem_type), (None, "sonnx")):
        wrong = _claimed(made, info("v", elem_type, made.shape), place)
        report = check(wrong, standard)
        named = [text for text in _faults(report) if "'v'" in text and "declares" in text]
        if elem_type == made.elem_type:
            assert not named
            continue
        assert report.broken
        assert not report.passed
        assert named, _faults(report)
        assert _expected_type(elem_type) in named[0]
        assert _expected_type(made.elem_type) in named[0]
        # the input determines the verdict of the node
        assert _expected_type(made.elem_type) in _type_of_judged(report)


@pytest.mark.parametrize("producer", sorted(PRODUCERS.keys() - {"Identity", "Abs"}))
def test_a_claim_in_a_function_that_nothing_calls(producer: str) -> None:
    made = PRODUCERS[producer]()
    for elem_type in CLAIMS.values():
        report = check(_claimed(made, info("v", elem_type, made.shape), "function that nothing calls"))
        assert any("declares 'v'" in text for text in _faults(report)) is (elem_type != made.elem_type)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_size_that_is_wrong(producer: str, place: str) -> None:
    made = PRODUCERS[producer]()
    for shape in _some([(3,), (2, 1), (), (2,), (1,)], producer, place, made.shape):
        report = check(_claimed(made, info("v", made.elem_type, shape), place))
        named = [text for text in _faults(report) if "'v'" in text and "declares" in text]
        assert bool(named) is (shape != made.shape), (shape, _faults(report))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_names_of_sizes_are_free(producer: str, place: str) -> None:
    made = PRODUCERS[producer]()
    claim = helper.make_tensor_value_info("v", made.elem_type, ["anything"] * len(made.shape))
    assert not _faults(check(_claimed(made, claim, place)))


@pytest.mark.parametrize("kind", ["sequence", "optional", "sparse", "map"])
@pytest.mark.parametrize("place", PLACES)
def test_a_kind_that_is_wrong(place: str, kind: str) -> None:
    dense = helper.make_tensor_type_proto(INT64, (2,))
    claim = {
        "sequence": helper.make_sequence_type_proto(dense),
        "optional": helper.make_optional_type_proto(dense),
        "sparse": helper.make_sparse_tensor_type_proto(INT64, (2,)),
        "map": helper.make_map_type_proto(INT64, dense),
    }[kind]
    made = PRODUCERS["Cast"]()
    report = check(_claimed(made, ValueInfoProto(name="v", type=claim), place))
    assert any("'v'" in text and kind in text and "int64 (2,)" in text for text in _faults(report)), _faults(report)


@pytest.mark.parametrize("inference", [True, False], ids=["inferred", "not inferred"])
@pytest.mark.parametrize("elem_type", CLAIMS.values(), ids=CLAIMS)
def test_an_input_beside_its_initializer(elem_type: int, inference: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not inference:
        monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda *_, **__: 1 // 0)
    made = PRODUCERS["initializer"]()
    for standard in (None, "sonnx"):
        report = check(_claimed(made, info("v", elem_type), "input beside initializer"), standard)
        assert report.broken is (elem_type != INT64)
        assert _type_of_judged(report) == "int64"
        named = [
            text for text in _faults(report) if "input declares 'v'" in text and "its initializer is int64" in text
        ]
        assert len(named) == (elem_type != INT64)


@pytest.mark.parametrize("inference", [True, False], ids=["inferred", "not inferred"])
@pytest.mark.parametrize(
    ("sizes", "verdict"), [((2,), "broken"), (("n",), "unknown"), ((None,), "unknown"), (None, "unknown")], ids=str
)
def test_a_caller_may_give_what_is_not_the_default(
    sizes: tuple[Any, ...] | None, verdict: str, inference: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test that an input has its declared sizes, not those of the initializer with the same name."""
    if not inference:
        monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda *_, **__: 1 // 0)
    other = helper.make_tensor("other", INT64, [3], [1, 2, 3])
    graph = helper.make_graph(
        [helper.make_node("Max", ["v", "other"], ["m"])],
        "g",
        [helper.make_tensor_value_info("v", INT64, sizes)],
        [info("m", INT64, None)],
        [INTS, other],
    )
    (ruling,) = [each for each in check(_model(graph)).findings if each.clause.endswith(".shape")]
    assert ruling.verdict == verdict


@pytest.mark.parametrize("operator", ["Max", "ReduceMax", "SegmentMax"])
def test_only_constants_that_a_rule_reads_are_read(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that only axes, ids and num_segments are read, but no data, which may be large."""
    read: list[str] = []

    def recorded(tensor: TensorProto, source: str) -> Any:
        read.append(tensor.name)
        return to_array(tensor, source)

    monkeypatch.setattr(onnx_values, "to_array", recorded)
    more: dict[str, Any] = {"domain": "maxops", "fill_mode": "ZERO"} if operator == "SegmentMax" else {}
    constants = [helper.make_tensor("data", FLOAT, [2], [1, 2]), helper.make_tensor("one", INT64, [1], [0])]
    constants += [helper.make_tensor("two", INT64, [], [1])]
    names = {"Max": ["data", "data"], "ReduceMax": ["data", "one"], "SegmentMax": ["data", "one", "two"]}[operator]
    node = helper.make_node(operator, names, ["m"], **more)
    made = _model(helper.make_graph([node], "g", [], [info("m", FLOAT, None)], constants))
    made.opset_import.add(domain="maxops", version=1)
    check(made)
    assert read == ([] if operator == "Max" else names[1:])


# Models that compare the inferred size of NonZero(x) with a declared size of o, which is otherwise unknown.
GENERATED = {
    "value": "(m) <float[%s] o> { n = NonZero(x) z = Cast <to = 1> (n) o = own.Own(x) m = Max(z, o) }",
    "input": "(m) { n = NonZero(x) z = Cast <to = 1> (n) m = Max(z, o) }",
    "a gap": "(m) <int64[2,k] n, float[%s] o> { s = own.Own(x) n = NonZero(s) z = Cast <to = 1> (n) t = own.Own(x) "
    "o = Identity(t) m = Max(z, o) }",
    "argument": '(m) { m = own.f(x, o) } <domain: "own", opset_import: ["": 18]> f (x, o) => (r) { n = NonZero(x) '
    "z = Cast <to = 1> (n) r = Max(z, o) }",
    "result": '(float[%s] o, m) { o, m = own.f(x) } <domain: "own", opset_import: ["": 18, "own": 1]> f (x) => '
    "(o, r) { n = NonZero(x) z = Cast <to = 1> (n) o = own.Own(x) r = Max(z, o) }",
}


@pytest.mark.parametrize("name", ["unk__0", "unk__1", "unk__2", "unk__0_0", "unk___0_0"])
@pytest.mark.parametrize("way", GENERATED)
def test_a_generated_size_is_not_a_declared_one_of_its_name(way: str, name: str) -> None:
    given = f", float[{name}] o" if way in ("input", "argument") else ""
    head = f'<ir_version: 10, opset_import: ["": 18, "own": 1]> g (float[p,q] x{given}) => '
    text = GENERATED[way]
    made = onnx.parser.parse_model(head + (text % name if "%s" in text else text))
    made.graph.output[-1].type.CopyFrom(helper.make_tensor_type_proto(FLOAT, ["u", "w"]))
    (shape,) = [each for each in check(made).findings if each.clause.endswith("shape")]
    assert shape.verdict == "unknown"
    assert f"({name},)" in shape.message


def test_a_generated_size_is_itself() -> None:
    text = "(float[u,w] m) { n = NonZero(x) z = Cast <to = 1> (n) m = Max(z, z) }"
    made = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 18]> g (float[p,q] x) => ' + text)
    (shape,) = [each for each in check(made).findings if each.clause.endswith("shape")]
    assert (shape.verdict, shape.message) == ("holds", "the inputs broadcast to (2, unk__0_0)")


# Nodes that compute y from x of type float[-1,-1], with wrong sizes if inference uses -1 as a number.
OF_OPEN_SIZES = {
    "Flatten": "y = Flatten <axis = 0> (x)",
    "Reshape": "t = Constant <value_ints = [1, -1]> () y = Reshape(x, t)",
    "Pad": "t = Constant <value_ints = [0, 0, 3, 7]> () y = Pad(x, t)",
    "ConstantOfShape": "s = Shape(x) one = Constant <value_ints = [3, 7]> () t = Add(s, one) y = ConstantOfShape(t)",
    "Identity": "y = Identity(x)",
}


@pytest.mark.parametrize("place", ["main", "branch", "function", "initializer"])
@pytest.mark.parametrize("way", OF_OPEN_SIZES)
def test_minus_one_is_an_open_size(way: str, place: str) -> None:
    """Test that a size of -1 is treated as a size without a name."""
    nodes = OF_OPEN_SIZES[way] + " m = Max(y, z)"
    head = '<ir_version: 10, opset_import: ["": 18, "own": 1]> g (bool c, float[p,q] x, float[2,6] z) => '
    branch = (
        "(float[r,s] o) { o = If (c) <then_branch = t () => (m) { %s }, else_branch = e () => (n) { n = Neg(x) }> }"
    )
    function = (
        f'(float[r,s] o) {{ o = own.f(x, z) }} <domain: "own", opset_import: ["": 18]> f (x, z) => (m) {{ {nodes} }}'
    )
    text = {"branch": branch % nodes, "function": function}.get(place, f"(float[r,s] m) {{ {nodes} }}")
    made = onnx.parser.parse_model(head + text)
    if place == "initializer":
        made.graph.initializer.append(helper.make_tensor("x", FLOAT, [1, 3], [1, 2, 3]))
    reports = []
    for size in (-1, None):
        for dim in made.graph.input[1].type.tensor_type.shape.dim:
            dim.Clear()
            if size is not None:
                dim.dim_value = size
        reports.append(check(made))
    assert reports[0].findings == reports[1].findings
    assert reports[0].faults == reports[1].faults == ()
    (shape,) = [each for each in reports[0].findings if each.clause.endswith("shape")]
    assert shape.verdict == "unknown"


# Nodes that compute y with sizes from x, float[2,3], or from q, float[3,2], and the sizes of y.
COMPUTED = {
    "Reshape": ("s = Shape(x) y = Reshape(q, s)", "(2, 3)"),
    "ConstantOfShape": ("s = Shape(x) y = ConstantOfShape(s)", "(2, 3)"),
    "Expand": (
        "s = Shape(x) one = Constant <value_ints = [1]> () t = Concat <axis = 0> (one, s) y = Expand(x, t)",
        "(1, 2, 3)",
    ),
    "Gather": (
        "s = Shape(x) one = Constant <value_ints = [1]> () t = Gather(s, one) y = ConstantOfShape(t)",
        "(3,)",
    ),
}


@pytest.mark.parametrize("place", ["main", "branch", "function"])
@pytest.mark.parametrize("way", COMPUTED)
def test_sizes_that_a_graph_computes(way: str, place: str) -> None:
    nodes, sizes = COMPUTED[way]
    nodes += " m = Max(y, y)"
    head = '<ir_version: 10, opset_import: ["": 18, "own": 1]> g (bool c, float[2,3] x, float[3,2] q) => '
    text = {
        "main": f"(m) {{ {nodes} }}",
        "branch": f"(o) {{ o = If (c) <then_branch = t () => (m) {{ {nodes} }}, "
        "else_branch = e () => (n) { n = Neg(x) }> }",
        "function": f'(o) {{ o = own.f(x, q) }} <domain: "own", opset_import: ["": 18]> f (x, q) => (m) {{ {nodes} }}',
    }[place]
    (ruling,) = [
        each for each in check(onnx.parser.parse_model(head + text)).findings if each.clause.endswith(".shape")
    ]
    assert ruling.message == f"the inputs broadcast to {sizes}"


@pytest.mark.parametrize("elem_type", CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("operator", ["Max", "ReduceMax"])
@pytest.mark.parametrize("standard", [None, "sonnx"])
def test_a_claim_about_what_a_max_node_makes(operator: str, elem_type: int, standard: str | None) -> None:
    nodes = [helper.make_node(operator, ["x"], ["v"]), helper.make_node("Neg", ["v"], ["y"])]
    shape = (1,) if operator == "ReduceMax" else (2,)
    graph = helper.make_graph(
        nodes, "g", [info("x", FLOAT)], [info("y", FLOAT, shape)], value_info=[info("v", elem_type, shape)]
    )
    report = check(_model(graph), standard)
    assert report.broken is (elem_type != FLOAT)
    # reported once: by the clause of the node's output if the standard has one, otherwise as a fault of the model
    own = [each for each in report.findings if each.verdict == "broken" and "onnx.checker" not in each.message]
    assert len(own) == (elem_type != FLOAT)


@pytest.mark.parametrize("elem_type", CLAIMS.values(), ids=CLAIMS)
def test_what_nobody_can_infer_is_as_it_is_written(elem_type: int) -> None:
    nodes = [_node("Unknown", "x", domain="com.example"), helper.make_node("Max", ["v", "v"], ["m"])]
    graph = helper.make_graph(nodes, "g", [info("x", FLOAT)], [info("m", elem_type)], value_info=[info("v", elem_type)])
    made = _model(graph)
    made.opset_import.add(domain="com.example", version=1)
    report = check(made)
    assert not _faults(report)
    assert _expected_type(elem_type) in _type_of_judged(report)


@pytest.mark.parametrize("elem_type", CLAIMS.values(), ids=CLAIMS)
def test_two_claims_of_what_nobody_can_infer(elem_type: int) -> None:
    nodes = [_node("Unknown", "x", domain="com.example"), helper.make_node("Identity", ["v"], ["w"])]
    claims = [info("v", FLOAT), info("w", elem_type)]
    graph = helper.make_graph(nodes, "g", [info("x", FLOAT)], [info("x", FLOAT)], value_info=claims)
    del graph.output[:]
    graph.output.append(info("w", elem_type))
    made = _model(graph)
    made.opset_import.add(domain="com.example", version=1)
    assert check(made).broken is (elem_type != FLOAT)


@pytest.mark.parametrize("sizes", [(2, 3), (2, None), ("n", 3), (None, None), ("n", "m")], ids=str)
def test_a_claim_fills_what_inference_leaves_open(sizes: tuple[Any, ...]) -> None:
    # the sizes of Reshape's result are known only at run time
    graph = helper.make_graph(
        [_node("Reshape", "x", "s"), helper.make_node("Max", ["v", "x"], ["m"])],
        "g",
        [info("x", FLOAT, (2, 3)), info("s", INT64, (2,))],
        [info("m", FLOAT, (2, 3))],
        value_info=[helper.make_tensor_value_info("v", FLOAT, sizes)],
    )
    report = check(_model(graph))
    (ruling,) = [each for each in report.findings if each.clause.endswith(".shape")]
    assert ruling.verdict == ("holds" if sizes[0] == 2 and sizes[1] == 3 else "unknown")
    assert not report.broken


def test_a_type_is_written_of_no_value() -> None:
    made = _claimed(PRODUCERS["Cast"](), info("nothing", STRING), "value_info")
    assert not check(made).broken


def test_the_callers_model_is_left_alone() -> None:
    made = _claimed(PRODUCERS["Cast"](), info("v", STRING), "branch value_info")
    before = made.SerializeToString(deterministic=True)
    check(made)
    assert made.SerializeToString(deterministic=True) == before


def test_a_type_without_a_value_is_no_claim() -> None:
    for empty in (TypeProto(), TypeProto(tensor_type=TypeProto.Tensor())):
        made = _claimed(PRODUCERS["Cast"](), ValueInfoProto(name="v", type=empty), "value_info")
        assert _type_of_judged(check(made)) == "int64"
        assert not _faults(check(made))


def test_constants_of_every_type() -> None:
    for number, dtype in DTYPES.items():
        tensor = helper.make_tensor("v", number, [2], np.zeros(2, np.uint8).tobytes() * dtype.numpy.itemsize, raw=True)
        for wrong in (FLOAT, INT64):
            if wrong == number:
                continue
            for made in (Producer(number, initializers=[tensor]), Producer(number, [_node("Constant", value=tensor)])):
                report = check(_claimed(made, info("v", wrong), "value_info"))
                assert any(f"{dtype} (2,)" in text for text in _faults(report)), dtype
