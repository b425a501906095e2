"""Every malformation at every place in a model: `check` names the place, and reports onnx.checker's error once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from helpers.places import (
    FLOAT,
    IMPORTS,
    INT64,
    OPSET,
    PLACES,
    Part,
    call,
    function,
    in_main,
    in_training,
    info,
    node,
    whole,
)
from maxops.checker import Finding, Report, check
from maxops.errors import ModelError
from maxops.onnx import from_proto, structure

pytestmark = pytest.mark.usefixtures("unsandboxed")

TRAINING = {"training step", "training initialization"}  # onnx.checker does not check these
SUBGRAPHS = {"branch", "branch in branch", "loop", "branch in function"}


MALFORMED: dict[str, tuple[Callable[[], Part], str]] = {
    "reads a later value of its own": (
        lambda: Part([node("Max", ["after", "x"], "y"), node("Neg", ["x"], "after")]),
        "'after' is produced later",
    ),
    "reads a value that is made after its place": (
        lambda: Part([node("Max", ["late", "x"], "y")]),
        "'late' is",
    ),
    "reads a value that is nowhere": (
        lambda: Part([node("Max", ["nowhere", "x"], "y")]),
        "'nowhere' is not a graph input",
    ),
    "is cyclic": (
        lambda: Part([node("Max", ["b"], "a"), node("Max", ["a"], "b"), node("Max", ["x"], "y")]),
        "has a cycle",
    ),
    "makes a value twice": (lambda: Part([node("Max", ["x"], "y"), node("Neg", ["x"], "y")]), "'y'"),
    "makes a value that it sees": (lambda: Part([node("Max", ["x"], "y"), node("Neg", ["x"], "x")]), "'x'"),
    "is of a domain that is not imported": (
        lambda: Part([node("Max", ["x"], "y"), node("Odd", ["x"], "odd", "com.example")]),
        "no operator set of the domain 'com.example'",
    ),
    "makes nothing of its output": (lambda: Part([node("Max", ["x"], "other_y")]), "'y' is not a graph input"),
    "holds a tensor that is too short": (
        lambda: Part(initializers=[TensorProto(name="w", data_type=FLOAT, dims=[4], raw_data=bytes(8))]),
        "must have 16 bytes, got 8",
    ),
}


@pytest.mark.parametrize("kind", ["initializer", "sparse_initializer"])
@pytest.mark.parametrize("name", ["x", "late", "own"])
@pytest.mark.parametrize("place", sorted({*SUBGRAPHS, "training step"}))
def test_an_initializer_that_hides_an_outer_value(place: str, name: str, kind: str) -> None:
    made = PLACES[place](Part([node("Neg", [name], "y")], initializers=[helper.make_tensor(name, FLOAT, [2], [1, 2])]))
    if kind == "sparse_initializer":
        (graph,) = [graph for graph in structure.all_graphs(made) if graph.initializer]
        indices = helper.make_tensor("", INT64, [2], [0, 1])
        graph.sparse_initializer.append(helper.make_sparse_tensor(graph.initializer[0], indices, [2]))
        del graph.initializer[:]
    hides = name == "x"
    said = [each for each in check(made).faults if "runtimes disagree" in each.message]
    assert [each.verdict for each in said] == ["unknown"] * hides
    if place in SUBGRAPHS - {"branch in function"} and hides:  # inlining renames initializers
        with pytest.raises(ModelError, match="initializer 'x' has the name of a value of an outer graph, and runtimes"):
            from_proto(made)
    elif kind == "initializer":
        from_proto(made)


@pytest.mark.parametrize("place", sorted(SUBGRAPHS))
@pytest.mark.parametrize("name", ["x", "late"])
def test_a_graph_in_a_node_returns_what_it_makes(place: str, name: str) -> None:
    made = PLACES[place](Part([node("Max", ["x", "x"], "y")]))
    for graph in structure.all_graphs(made):
        for output in graph.output:
            output.name = name if output.name == "y" else output.name
    expected_message = f"output {name!r} is " + (
        "a value of an outer graph" if name == "x" else "not a graph input, an initializer or a node's output"
    )
    assert [each for each in _broken(check(made)) if expected_message in each.message]
    assert _refusal(made) or place == "branch in function"


def _broken(report: Report) -> list[Finding]:
    return [each for each in report.faults if each.verdict == "broken"]


def _refusal(model: ModelProto) -> str:
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        return str(error)
    return ""


RIGHT: dict[str, Callable[[], Part]] = {
    "a node": Part,
    "initializers": lambda: Part([node("Max", ["x", "w"], "y")], [helper.make_tensor("w", FLOAT, [2], [1, 2])]),
    "outputs without a name": lambda: Part(
        [
            *(helper.make_node("Dropout", ["x"], [name, ""]) for name in ("first", "second")),
            node("Max", ["first", "second"], "y"),
        ]
    ),
}


@pytest.mark.parametrize("right", RIGHT)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_right_holds_everywhere(place: str, right: str) -> None:
    made = PLACES[place](RIGHT[right]())
    # an omitted output, which inner graphs may also have
    made.graph.node.insert(0, helper.make_node("Dropout", ["x"], ["dropped", ""]))
    assert not _refusal(made)
    report = check(made)
    assert not report.faults
    (judged,) = report.nodes
    assert not report.broken
    assert judged.row is not None
    assert judged.row.name == "Max-13"


@pytest.mark.parametrize("standard", [None, "sonnx"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("malformation", MALFORMED)
def test_what_is_wrong_is_named_once(malformation: str, place: str, standard: str | None) -> None:
    make, expected_message = MALFORMED[malformation]
    made = PLACES[place](make())
    report = check(made, standard)
    own = [each for each in _broken(report) if "onnx.checker" not in each.message]
    assert [each for each in own if expected_message in each.message], report.faults
    assert not report.passed
    assert len({(each.node, each.message) for each in own}) == len(own)
    heard = [each for each in report.faults if "onnx.checker" in each.message]
    refusal = _refusal(made)
    if place in TRAINING:
        assert not heard
    elif refusal:
        assert len(heard) == 1
        assert " ".join(refusal.split())[:500] in heard[0].message
    else:
        assert not heard or "Inference" in heard[0].message


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("form", ["", "tensor_type"])
def test_an_input_has_a_type(form: str, number: int) -> None:
    made = in_main(Part())
    info = made.graph.input[number]
    info.ClearField("type")
    if form:
        getattr(info.type, form).shape.SetInParent()
    named = [f"{each.node}: {each.message}" for each in _broken(check(made)) if "has no type" in each.message]
    assert named == [f"graph: the input {info.name!r} has no type"]


@pytest.mark.parametrize("ir_version", range(1, 14))
@pytest.mark.parametrize(
    "place", ["main", "branch", "branch in branch", "loop", "training initialization", "training step"]
)
def test_before_ir_version_4_an_initializer_is_an_input(place: str, ir_version: int) -> None:
    part = Part([node("Max", ["x", "w"], "y")], [helper.make_tensor("w", FLOAT, [2], [1, 2])])
    made = PLACES[place](part)
    made.ir_version = ir_version
    named = [each for each in _broken(check(made)) if "initializer 'w' must be an input" in each.message]
    assert len(named) == (ir_version < 4)


@pytest.mark.parametrize("domain", ["", "own", "ai.onnx"])
@pytest.mark.parametrize("ir_version", range(1, 14))
def test_before_ir_version_3_nothing_is_imported(ir_version: int, domain: str) -> None:
    made = in_main(Part([node("Abs", ["x"], "y")]))
    del made.opset_import[:]
    made.opset_import.add(domain=domain, version=6)
    made.ir_version = ir_version
    named = [each for each in _broken(check(made)) if "imports operator sets, which IR version" in each.message]
    assert len(named) == (ir_version < 3)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("overload", ["", "other"])
@pytest.mark.parametrize("place", ["function", "nested function", "function that nothing calls", "branch in function"])
def test_functions_of_one_key(place: str, overload: str, count: int) -> None:
    made = PLACES[place](Part())
    first = made.functions[0]
    for _ in range(count - 1):
        made.functions.add().CopyFrom(first)
    other = made.functions.add()  # only the overload differs
    other.CopyFrom(first)
    other.overload = overload or "another"
    named = [each for each in _broken(check(made)) if f"defined {count} times" in each.message]
    assert len(named) == (count > 1)


@pytest.mark.parametrize("place", ["function", "nested function", "function that nothing calls", "branch in function"])
@pytest.mark.parametrize("domain", ["", "own"])
def test_a_function_imports_what_it_uses(place: str, domain: str) -> None:
    made = PLACES[place](Part([node("Max", ["x"], "y"), helper.make_node("h", ["x"], ["z"], "z", domain="own")]))
    made.functions.append(helper.make_function("own", "h", ["p"], ["q"], [node("Neg", ["p"], "q")], IMPORTS))
    function = made.functions[0]
    kept = [entry for entry in function.opset_import if entry.domain != domain]
    del function.opset_import[:]
    function.opset_import.extend(kept)
    named = [each for each in _broken(check(made)) if "operator set of" in each.message]
    assert len(named) == 1
    assert "'own'" in named[0].message or not domain


def test_functions_are_told_apart_by_their_overload() -> None:
    first, second = (
        function("f", [node("Max", ["x"], "y")], "y"),
        function("f", [node("ReduceMax", ["x"], "y")], "y"),
    )
    second.overload = "second"
    for overload, operator in (("", "Max"), ("second", "ReduceMax")):
        made = whole([call("f")], info("called"), [first, second])
        made.graph.node[0].overload = overload
        del made.graph.output[0].type.tensor_type.shape.dim[:]
        made.graph.output[0].type.tensor_type.shape.dim.add(dim_param="k")
        nodes = [judged for judged in check(made).nodes if judged.where.startswith("graph")]
        assert [judged.operator for judged in nodes] == [operator]


@pytest.mark.parametrize("opset", [1, 6, 8, 12, 13, 18, 20])
@pytest.mark.parametrize("place", ["function", "nested function", "function that nothing calls", "branch in function"])
def test_a_node_is_judged_at_its_functions_own_operator_set(place: str, opset: int) -> None:
    made = PLACES[place](Part())
    made.functions[0].opset_import[0].version = opset
    (judged,) = check(made).nodes
    assert judged.row is not None
    assert judged.row.version == max(version for version in (1, 6, 8, 12, 13) if version <= opset)
    strict = check(made, "sonnx")
    (ruling,) = [each for each in strict.findings if each.clause == "SONNX.Max.opset"]
    assert ruling.verdict == ("holds" if opset >= 13 else "broken")


@pytest.mark.parametrize("opset", range(1, 29))
def test_sonnx_rests_on_operator_set_13(opset: int) -> None:
    made = in_main(Part())
    made.opset_import[0].version = opset
    report = check(made, "sonnx")
    (ruling,) = [each for each in report.findings if each.clause == "SONNX.Max.opset"]
    assert ruling.verdict == ("holds" if opset >= 13 else "broken")
    assert not [each for each in check(made, "sonnx-draft").findings if ".opset" in each.clause or ".GR" in each.clause]


@pytest.mark.parametrize("since_version", [1, 6, 8, 12, 13, None])
def test_sonnx_of_our_own_domain_goes_by_the_version_that_a_node_follows(since_version: int | None) -> None:
    ours = node("Max", ["x"], "y", "maxops")
    if since_version is not None:
        ours.attribute.append(helper.make_attribute("since_version", since_version))
    made = in_main(Part([ours]))
    made.opset_import.add(domain="maxops", version=1)
    (ruling,) = [each for each in check(made, "sonnx").findings if each.clause == "SONNX.Max.opset"]
    assert ruling.verdict == ("holds" if since_version in (13, None) else "broken")


def test_training_graphs_are_told_apart() -> None:
    made = in_training(Part(), "algorithm")
    made.training_info.add().CopyFrom(made.training_info[0])
    made.training_info[1].initialization.CopyFrom(in_training(Part(), "initialization").training_info[0].initialization)
    paths = [judged.where.partition(" / ")[0] for judged in check(made).nodes]
    assert paths == ["training_info[0] algorithm", "training_info[1] initialization", "training_info[1] algorithm"]


def test_a_step_of_training_reads_what_the_model_makes() -> None:
    made = in_training(Part([node("Max", ["z", "x"], "y")]), "algorithm")
    assert not check(made).broken
    made = in_training(Part([node("Max", ["z", "x"], "y")]), "initialization")
    assert [each.message for each in _broken(check(made)) if "'z' is not a graph input" in each.message]


@pytest.mark.parametrize("standard", [None, "sonnx"])
@pytest.mark.parametrize("keys", ["", "a", "ab", "aa", "aba"])
@pytest.mark.parametrize("place", ["main", "function", "branch", "training step"])
def test_metadata_that_onnx_refuses(place: str, keys: str, standard: str | None) -> None:
    made = PLACES[place](Part())
    for key in keys:
        made.metadata_props.add(key=key, value=key)
    heard = [each for each in _broken(check(made, standard)) if "metadata_props" in each.message]
    assert len(heard) == (len({*keys}) < len(keys))


DOMAINS = ("", "ai.onnx", "own")


@pytest.mark.parametrize("imported", [*product(DOMAINS, DOMAINS)], ids="-".join)
@pytest.mark.parametrize("called", [None, *DOMAINS])
@pytest.mark.parametrize("own", DOMAINS)
def test_domains_of_functions_as_onnx_takes_them(own: str, called: str | None, imported: tuple[str, str]) -> None:
    """Test each spelling of the domain of a function, of its call and of the import, and functions without calls."""
    function = helper.make_function(own, "f", ["p"], ["q"], [node("Max", ["p", "p"], "q")], IMPORTS)
    first = node("Neg", ["x"], "y") if called is None else node("f", ["x"], "y", called)
    values = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in "xy"]
    opsets = [helper.make_opsetid(domain, OPSET if domain != "own" else 1) for domain in dict.fromkeys(imported)]
    graph = helper.make_graph([first], "g", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10)
    refusal = _refusal_of_onnx(made)
    # maxops treats both names of ONNX's domain as equal, even where onnx does not
    if "No opset import for domain 'ai.onnx'" not in refusal:
        assert bool(_broken(check(made))) is bool(refusal), refusal


def test_a_function_without_a_domain_is_broken_as_onnx_says() -> None:
    made = PLACES["function that nothing calls"](Part())
    made.functions[0].ClearField("domain")
    assert "domain" in _refusal_of_onnx(made)
    assert [each for each in _broken(check(made)) if "Field 'domain' of 'function'" in each.message]


def _refusal_of_onnx(made: ModelProto) -> str:
    try:
        onnx.checker.check_model(made)
        onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return ""
