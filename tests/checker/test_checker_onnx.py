"""Static checks of ONNX models: graphs, nested graphs, functions at each call, and invalid models."""

from __future__ import annotations

import itertools
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from helpers.models import FLOAT, external, model, node, tensor, value
from maxops import errors
from maxops.checker import Finding, Report, check, onnx_model, onnx_values, sandbox
from maxops.onnx import rewrite

HEAD = '<ir_version: 10, opset_import: ["": 18, "local": 1, "maxops": 1]> '


def parsed(text: str, head: str = HEAD) -> ModelProto:
    """Parse a model, and infer missing types of outputs, which onnx.checker requires."""
    made = parser.parse_model(head + text)
    inferred = onnx.shape_inference.infer_shapes(made)
    for info, found in zip(made.graph.output, inferred.graph.output, strict=True):
        if not info.HasField("type"):
            found.type.tensor_type.elem_type = found.type.tensor_type.elem_type or FLOAT
            found.type.tensor_type.shape.dim.extend([])
            info.type.CopyFrom(found.type)
    return made


def verdicts(report: Report, short: str) -> dict[str, str]:
    """Return each node's verdict on a clause, by the last part of its location."""
    return {
        finding.node.rsplit(" / ", 1)[-1]: finding.verdict
        for finding in report.findings
        if finding.clause.split(".", 2)[-1] == short
    }


def faults(report: Report, verdict: str = "broken") -> list[str]:
    return [f"{finding.node}: {finding.message}" for finding in report.faults if finding.verdict == verdict]


def finding(report: Report, short: str) -> Finding:
    (found,) = [each for each in report.findings if each.clause.split(".", 2)[-1] == short]
    return found


# --------------------------------------------------------------------------------------------------- known facts


def test_types_and_shapes_are_inferred() -> None:
    report = check(parsed("g (float[2,3] a, float[3] b) => (float[2,3] y) { s = Sqrt(a) t = Abs(b) y = Max(s, t) }"))
    assert not report.broken
    assert finding(report, "shape").message == "the inputs broadcast to (2, 3)"


def test_each_opset_has_its_row() -> None:
    for opset, row in ((1, "Max-1"), (7, "Max-6"), (8, "Max-8"), (12, "Max-12"), (18, "Max-13")):
        made = model([node("Max", ["x"], "y")], opset=opset)
        (judged,) = check(made).nodes
        assert judged.row is not None
        assert judged.row.name == row


@pytest.mark.parametrize("standard", [None, "onnx"])
@pytest.mark.parametrize(
    ("operator", "versions"), [("Max", (1, 6, 8, 12, 13)), ("ReduceMax", (1, 11, 12, 13, 18, 20))], ids=str
)
def test_a_node_of_our_domain_follows_the_version_that_it_names(
    operator: str, versions: tuple[int, ...], standard: str | None, unsandboxed: None
) -> None:
    """Test that the version attribute of a node determines its rules, whatever operator set the model imports."""
    for version, first in itertools.product((None, *range(22)), (True, False)):
        made = model([node(operator, ["x"], "y")], outputs=[value("y", (4 if operator == "Max" else 1,))], opset=7)
        made.graph.node[0].domain = "maxops"
        made.opset_import.add(domain="maxops", version=1)
        given = {"keepdims": 1} if operator == "ReduceMax" else {}
        if version is not None:
            given = {"since_version": version} | given if first else given | {"since_version": version}
        made.graph.node[0].attribute.extend(helper.make_attribute(name, number) for name, number in given.items())
        report = check(made, standard)
        (judged,) = report.nodes
        if version in (None, *versions):
            assert judged.row is not None
            assert (judged.row.name, judged.note) == (f"{operator}-{version or versions[-1]}", "")
            assert not faults(report)
            continue
        assert judged.row is None
        says = f"ONNX {operator} has no version {version}; known versions: {', '.join(map(str, versions))}"
        assert judged.note.startswith(says)
        # the rules of a version after the known ones are unknown
        (fault,) = faults(report, "broken" if version < versions[-1] else "unknown")
        assert fault.startswith(f"graph / node (maxops.{operator}) with output 'y': {says}")
        assert report.broken == (version < versions[-1])


@pytest.mark.parametrize("is_called", [True, False])
def test_a_version_that_a_functions_caller_sets(is_called: bool, unsandboxed: None) -> None:
    text = f"""g (float[2] a) => (y) {{ y = {"local.f <v = 8>" if is_called else "Abs"}(a) }}
        <domain: "local", opset_import: ["": 18, "maxops": 1]> f <v> (p) => (r) {{
            r = maxops.Max <since_version: int = @v> (p) }}"""
    report = check(parsed(text))
    (judged,) = report.nodes
    assert not report.broken
    if not is_called:
        assert judged.row is None
        assert judged.note == "the version is set by the caller of the function"
        assert [fault.partition(": ")[2] for fault in faults(report, "unknown")] == [judged.note]
    else:
        assert judged.row is not None
        assert judged.row.name == "Max-8"


# The attributes of each operator in each version; nodes of maxops's domain have axes as an input.
ATTRIBUTES: dict[str, dict[int, set[str]]] = {
    "Max": {1: {"consumed_inputs"}, 6: set(), 8: set(), 12: set(), 13: set()},
    "ReduceMax": {version: {"axes", "keepdims"} for version in (1, 11, 12, 13)}
    | {version: {"keepdims", "noop_with_empty_axes"} for version in (18, 20)},
    "SegmentMax": {1: {"fill_mode"}},
}


@pytest.mark.parametrize("domain", ["", "maxops"])
@pytest.mark.parametrize("operator", ATTRIBUTES)
@pytest.mark.parametrize(
    "name", ["axes", "keepdims", "noop_with_empty_axes", "consumed_inputs", "fill_mode", "since_version", "own"]
)
def test_an_attribute_that_an_operator_does_not_have(name: str, operator: str, domain: str, unsandboxed: None) -> None:
    if (domain, operator) == ("", "SegmentMax"):
        return
    for version, names in ATTRIBUTES[operator].items():
        made = model([helper.make_node(operator, ["x"], ["y"], domain=domain)], opset=version)
        made.opset_import.add(domain="maxops", version=1)
        attributes = {name: version} | ({"since_version": version} if domain and operator != "SegmentMax" else {})
        made.graph.node[0].attribute.extend(helper.make_attribute(*each) for each in attributes.items())
        has = name in names - ({"axes", "consumed_inputs"} if domain else set())
        has |= name == "since_version" and domain == "maxops"
        message = [fault for fault in faults(check(made)) if f"has no attribute {name!r}" in fault]
        assert len(message) == (not has), version


def test_a_type_before_its_version() -> None:
    made = model([node("Max", ["x"], "y")], [value("x", (4,), TensorProto.INT8)], opset=8)
    assert finding(check(made), "T").verdict == "broken"
    made.opset_import[0].version = 13
    assert "INT8" not in finding(check(made), "T").message


@pytest.mark.parametrize("way", ["initializer", "constant", "value_ints", "outer"])
def test_axes_of_version_18_from_everywhere(way: str) -> None:
    axes = tensor("axes", np.array([5]))
    nodes, initializers = [], []
    if way == "initializer":
        initializers.append(axes)
    elif way == "constant":
        nodes.append(node("Constant", [], "axes", value=axes))
    elif way == "value_ints":
        nodes.append(node("Constant", [], "axes", value_ints=[5]))
    inner = node("ReduceMax", ["x", "axes"], "y", "r")
    if way == "outer":
        initializers.append(axes)
        branch = helper.make_graph([inner], "b", [], [helper.make_tensor_value_info("y", FLOAT, None)])
        inner = node("If", ["c"], "y", then_branch=branch, else_branch=branch)
    made = model([*nodes, inner], ["x", value("c", (), TensorProto.BOOL)], initializers=initializers, opset=18)
    ranges = [f for f in check(made).findings if f.clause == "ONNX.ReduceMax-18.axes.range"]
    assert {f.verdict for f in ranges} == {"broken"}
    assert "axes must be between -1 and 0, got 5" in ranges[0].message


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("hides", [True, False])
def test_the_input_of_a_body_hides_an_outer_constant(hides: bool, typed: bool, unsandboxed: None) -> None:
    """Test that the input of a body hides an outer constant of the same name, with and without a type."""
    made = parsed(
        """g (float[2, 3] d, int64 t) => (y) <int64[1] axes = {1}> {
            s = local.Own(d)
            f, y = Loop(t, , s) <body = b (int64 i, bool c, int64[1] own) => (e, o, r) {
                e = Identity(c)  o = Identity(own)  r = ReduceMax <keepdims = 0> (d, axes) }> }"""
    )
    (body,) = [each.g for each in made.graph.node[1].attribute]
    if hides:
        body.input[2].name = body.node[1].input[0] = "axes"
    if not typed:
        body.input[2].ClearField("type")
    assert finding(check(made), "axes.range").verdict == ("unknown" if hides else "holds")


def test_an_initializer_that_may_be_replaced_is_no_constant() -> None:
    inputs: list[str | onnx.ValueInfoProto] = ["x", value("axes", (1,), TensorProto.INT64)]
    made = model(
        [node("ReduceMax", ["x", "axes"], "y")], inputs, initializers=[tensor("axes", np.array([5]))], opset=18
    )
    assert finding(check(made), "axes.range").verdict == "unknown"


def test_what_is_written_stands_over_what_is_inferred() -> None:
    text = "g (float[2] a) => (float[2] y) <float[2] m> { m = Max(a, a) y = Abs(m) }"
    assert not check(parsed(text)).broken
    broken = parsed(text)
    broken.graph.value_info[0].type.tensor_type.shape.dim[0].dim_value = 3
    assert finding(check(broken), "shape").message == "'m' has shape (3,), but the inputs broadcast to (2,)"


def test_sonnx_requires_written_types() -> None:
    text = "g (float[2] a) => (float[2] y) { m = Abs(a) y = Max(m, a) }"
    report = check(parsed(text), "sonnx")
    assert finding(report, "GR2").verdict == "broken"
    assert "'m'" in finding(report, "GR2").message
    written = onnx.shape_inference.infer_shapes(parsed(text))
    assert finding(check(written, "sonnx"), "GR2").verdict == "holds"


def test_sonnx_of_a_model_that_conforms() -> None:
    report = check(parsed("g (float[2,3] a, float[3] b) => (float[2,3] y) { y = Max(a, b) }"), "sonnx")
    assert report.passed
    assert {f.verdict for f in report.findings if not f.at_run_time} == {"holds"}


@pytest.mark.parametrize("kind", ["initializer", "constant"])
def test_sparse_tensors(kind: str) -> None:
    sparse = helper.make_sparse_tensor(tensor("w", np.ones(1, np.float32)), tensor("i", np.array([1])), [4])
    nodes = [node("Max", ["x", "w"], "y")]
    if kind == "constant":
        nodes.insert(0, node("Constant", [], "w", sparse_value=sparse))
    made = model(nodes)
    if kind == "initializer":
        made.graph.sparse_initializer.append(sparse)
    # such a Constant has a dense result
    assert finding(check(made), "T").verdict == ("broken" if kind == "initializer" else "holds")
    strict = check(made, "sonnx")
    assert finding(strict, "GR1").verdict == "broken"
    assert finding(strict, "T").verdict == "holds"
    assert finding(strict, "static").verdict == "holds"


def test_other_kinds_of_values() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    report = check(model([node("Max", ["s"], "y")], [sequence]))
    assert "'s' must be one of" in finding(report, "T").message


def test_external_data_is_not_read(tmp_path: Path) -> None:
    weights = tmp_path / "secret.bin"
    weights.write_bytes(b"\xff" * 16)
    weights.chmod(0)
    (tmp_path / "m.onnx").write_bytes(external(location="secret.bin").SerializeToString())
    assert check(tmp_path / "m.onnx").passed


def test_large_weights_do_not_go_to_inference(monkeypatch: pytest.MonkeyPatch, unsandboxed: None) -> None:
    made = model([node("Max", ["x", "w"], "y")], initializers=[tensor("w", np.zeros((3, 4, 1000), np.float32))])
    sizes: list[int] = []
    infer = onnx.shape_inference.infer_shapes

    def recorded(proto: ModelProto, **more: Any) -> ModelProto:
        sizes.append(proto.ByteSize())
        return infer(proto, **more)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", recorded)
    report = check(made)
    assert finding(report, "shape").message == "axis -1 does not broadcast: 'x' (4,), 'w' (3, 4, 1000)"
    assert sizes[0] < 1000 < made.ByteSize()


def test_the_callers_model_is_left_alone() -> None:
    made = parsed(CALLS)
    before = made.SerializeToString(deterministic=True)
    check(made)
    assert made.SerializeToString(deterministic=True) == before


# ------------------------------------------------------------------------------------- graphs in nodes, functions

NESTED = """g (bool c, int64 n, float[2] a, float[3] b) => (y, z, w) {
    q = Abs(a)
    y = If (c) <then_branch = yes () => (t) { t = Max(q, b) },
                else_branch = no () => (e) { e = If (c) <then_branch = in () => (u) { u = Max(a, q) },
                                                         else_branch = out () => (v) { v = Max(b) }> }>
    z = Loop (n, , a) <body = l (int64 i, bool k, float[2] x) => (k, m) { m = Max(x, b) }>
    w = Scan <num_scan_inputs = 1, body = s (float r) => (p) { p = Max(r, b) }> (a) }"""


def test_graphs_in_nodes() -> None:
    report = check(parsed(NESTED))
    assert verdicts(report, "shape") == {
        "node (Max) with output 't'": "broken",
        "node (Max) with output 'u'": "holds",
        "node (Max) with output 'v'": "holds",
        "node (Max) with output 'm'": "broken",
        "node (Max) with output 'p'": "holds",
    }
    assert "graph / node (If) with output 'y' else_branch / node (If) with output 'e' then_branch / " in " ".join(
        judged.where for judged in report.nodes
    )
    assert not report.faults


CALLS = """g (float[2] a, float[3] b, float[2] c) => (y, z, w) {
        y = local.outer(a, c)
        z = local.outer(a, b)
        w = local.outer(c, a) }
    <domain: "local", opset_import: ["": 18, "local": 1]> outer (p, q) => (r) { r = local.inner <keep = 0> (p, q) }
    <domain: "local", opset_import: ["": 13]> inner <keep> (p, q) => (r) {
        m = Max(p, q)  r = ReduceMax <keepdims: int = @keep, axes = [1]> (m) }"""


def test_functions_are_judged_as_they_are_called() -> None:
    report = check(parsed(CALLS))
    wheres = [judged.where for judged in report.nodes if judged.operator == "Max"]
    assert len(wheres) == 2, "the first and third call are of one kind"
    assert wheres[0] == (
        "graph / node (local.outer) with output 'y' / node (local.inner) with output 'r' / node (Max) with output 'm'"
    )
    shapes = {f.node: f.verdict for f in report.findings if f.clause == "ONNX.Max-13.shape"}
    assert [shapes[where] for where in wheres] == ["holds", "broken"]
    assert {f.clause for f in report.findings if f.verdict == "broken"} == {
        "ONNX.Max-13.shape",
        "ONNX.ReduceMax-13.axes.range",
    }
    keeps = [f for f in report.findings if f.clause == "ONNX.ReduceMax-13.keepdims"]
    assert {f.message for f in keeps} == {"keepdims is 0"}


def test_an_attribute_of_a_function_by_default_and_not_at_all() -> None:
    function = '<domain: "local", opset_import: ["": 18]>'
    body = "(p) => (r) { r = ReduceMax <keepdims: int = @keep> (p) }"
    for formal, call, message in (
        ("<keep: int = 7>", "", "keepdims must be 0 or 1, got 7"),
        ("<keep: int = 7>", "<keep = 0>", "keepdims is 0"),
        ("<keep>", "", "keepdims is 1"),
    ):
        text = f"g (float[2] a) => (y) {{ y = local.f {call} (a) }} {function} f {formal} {body}"
        assert finding(check(parsed(text)), "keepdims").message == message


def test_a_constant_handed_into_a_function() -> None:
    text = """g (float[2,3] a) => (y) { k = Constant <value_ints = [2]> () y = local.f(a, k) }
        <domain: "local", opset_import: ["": 18]> f (p, k) => (r) { r = ReduceMax(p, k) }"""
    assert finding(check(parsed(text)), "axes.range").verdict == "broken"


def test_a_function_that_nothing_calls() -> None:
    text = """g (float[2] a) => (y) { y = Abs(a) }
        <domain: "local", opset_import: ["": 18, "local": 1]> f <keep> (p) => (r) { s = local.h(p)
            r = ReduceMax <keepdims: int = @keep> (s) }
        <domain: "local", opset_import: ["": 18]> h (p) => (r) { r = Max(p) }"""
    report = check(parsed(text))
    assert [judged.where.partition(" / ")[0] for judged in report.nodes] == [
        "function local.f, which is never called"
    ] * 2
    assert not report.broken
    assert finding(report, "keepdims").message == "keepdims is set by the caller of the function"
    assert {f.verdict for f in report.findings if f.clause.endswith(".T")} == {"unknown"}


def test_sonnx_in_a_function() -> None:
    """Test that an input has the type that the caller declares, and that inner values have no type."""
    text = """g (float[2] a) => (float[2] y) { y = local.f(a) }
        <domain: "local", opset_import: ["": 18]> f (p) => (r) { BODY }"""
    direct = check(parsed(text.replace("BODY", "r = Max(p)")), "sonnx")
    assert finding(direct, "GR2").verdict == "holds"
    behind = check(parsed(text.replace("BODY", "m = Abs(p) r = Max(m)")), "sonnx")
    assert finding(behind, "GR2").verdict == "broken"


def chain(depth: int, width: int = 1) -> ModelProto:
    """Return functions that each call the next one, `width` times."""
    made = parsed("g (float[2] a) => (y) { y = local.f0(a) }")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    for number in range(depth):
        calls = [
            helper.make_node(f"f{number + 1}" if number + 1 < depth else "Max", ["p"], [f"r{turn}"])
            for turn in range(width)
        ]
        for call in calls:
            call.domain = "local" if call.op_type != "Max" else ""
        made.functions.append(helper.make_function("local", f"f{number}", ["p"], ["r0"], calls, opsets))
    return made


@pytest.mark.parametrize(
    ("made", "text"),
    [
        pytest.param(chain(40, 2), "nodes, nested 40 levels deep", id="exponential"),
        pytest.param(chain(3000), "nested 3000 levels deep", id="deep"),
    ],
)
def test_functions_that_grow_beyond_all_bounds(made: ModelProto, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    report = check(made)
    assert text in faults(report, "unknown")[0]
    assert len(report.nodes) == len([n for f in made.functions for n in f.node if n.op_type == "Max"])


def test_functions_that_call_themselves() -> None:
    made = chain(3)
    made.functions[2].node[0].op_type, made.functions[2].node[0].domain = "f0", "local"
    made.functions[1].node.add(op_type="Max", input=["p"], output=["s"])
    report = check(made)
    assert any("recursive functions are not allowed: local.f" in fault for fault in faults(report))
    assert [judged.where for judged in report.nodes] == ["function local.f1 / node (Max) with output 's'"]


def test_more_calls_than_anybody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_model, "MAX_CALLS", 1)
    report = check(parsed(CALLS))
    assert faults(report, "unknown")[0] == (
        "graph / node (local.outer) with output 'z': not judged, because the model has more than 1 different "
        "function calls"
    )
    assert {judged.operator for judged in report.nodes} == {"Max", "ReduceMax"}


def test_the_first_call_of_each_function_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_model, "MAX_CALLS", 1)
    text = "g (float[2] a) => (y) { b = local.f0(a) c = local.f1(b) y = local.f2(c) }"
    text += "".join(
        f'<domain: "local", opset_import: ["": 18]> f{number} (p) => (r) {{ r = Max(p) }}' for number in range(3)
    )
    report = check(parsed(text))
    assert faults(report, "unknown") == []
    assert [judged.where.partition(" / node (Max)")[0] for judged in report.nodes] == [
        f"graph / node (local.f{number}) with output '{name}'" for number, name in enumerate("bcy")
    ]


def test_a_function_without_operators_needs_no_opset() -> None:
    text = """g (float[2] a) => (y) { y = local.f(a) }
        <domain: "local", opset_import: ["local": 1]> f (p) => (r) { r = local.h(p) }
        <domain: "local", opset_import: []> h (p) => (r) { r = Max(p) }"""
    (fault, checker) = faults(check(parsed(text)))
    assert "expected an operator set" in fault
    assert "local.h" in fault
    assert "onnx.checker rejects the model: No Opset registered for domain" in checker


# ------------------------------------------------------------------------------------------------- SegmentMax


def test_segment_max_in_onnx() -> None:
    text = """g (float[4,3] x) => (y) { ids = Constant <value_ints = [0, 0, 2, 1]> ()
        y = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids) }"""
    report = check(parsed(text))
    assert finding(report, "ids").message == "segment_ids must be non-decreasing, got 1 after 2 at position 3"
    (judged,) = report.nodes
    assert judged.row is not None
    assert judged.row.standard == "OpenVINO"
    for standard in ("onnx", "sonnx", "sonnx-draft"):
        outside = check(parsed(text), standard)
        assert not outside.broken
        assert not outside.passed
        assert "has no SegmentMax" in outside.nodes[0].note


def test_num_segments_reaches_what_follows() -> None:
    text = """g (float[4,3] x, int64[4] ids, float[5,3] z) => (y) { k = Constant <value_int = 6> ()
        s = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids, k)  y = Max(s, z) }"""
    assert verdicts(check(parsed(text)), "shape")["node (Max) with output 'y'"] == "broken"


@pytest.mark.parametrize(
    "number", [tensor("k", np.array([1, 2])), tensor("k", np.array(-3)), tensor("k", np.array(0.5))]
)
def test_a_wrong_num_segments_does_not_end_the_inference(number: TensorProto) -> None:
    text = """g (float[4,3] x, int64[4] ids, float[2] a) => (y, z) {
        y = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids, k)  b = Abs(a)  z = Max(b, a) }"""
    made = parsed(text)
    made.graph.initializer.append(number)
    report = check(made)
    assert not faults(report, "unknown")
    assert verdicts(report, "shape")["node (Max) with output 'z'"] == "holds"
    assert report.broken


# -------------------------------------------------------------------------------------- outside of the standard


def test_what_a_standard_does_not_have() -> None:
    made = parsed("g (float[2] a) => (y, z) { y = Max(a) z = ReduceMax(a) }")
    own = check(made)
    assert own.passed
    assert not own.outside
    strict = check(made, "sonnx")
    assert [judged.note for judged in strict.outside] == ["SONNX has no ReduceMax"]
    assert not strict.passed
    other = check(made, "openvino")
    assert [judged.note for judged in other.outside] == [
        "maxops has no clauses for OpenVINO's Max",
        "maxops has no clauses for OpenVINO's ReduceMax",
    ]


def test_an_unknown_standard() -> None:
    with pytest.raises(errors.UnknownOperatorError, match=r"standard must be one of onnx, sonnx, .*, got 'iso'"):
        check(parsed("g () => () { }"), "iso")


def test_a_newer_version_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Schema:
        since_version = 99

    monkeypatch.setattr(onnx.defs, "get_schema", lambda *_: Schema)
    monkeypatch.setattr(onnx_values, "infer", lambda makers: [model([]).graph] * len(makers))
    (judged,) = check(model([node("Max", ["x"], "y")])).nodes
    assert judged.row is None
    assert "has Max-99, which this version of maxops does not support" in judged.note


@pytest.mark.parametrize("pause", [0, 0.1], ids=["busy", "waiting"])
def test_without_inference_what_is_written_is_known(pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_SECONDS", 0)  # the CPU time limit takes effect at the next whole second
    monkeypatch.setattr(signal, "alarm", lambda _: signal.setitimer(signal.ITIMER_REAL, 0.3 if pause else 60))

    def forever(*_: object, **__: object) -> None:
        while True:
            if pause:
                time.sleep(pause)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", forever)
    report = check(model([node("Max", ["x", "w"], "y")], initializers=[tensor("w", np.zeros(3, np.float32))]))
    assert faults(report, "unknown") == [
        "graph: onnx's shape inference took more than 0 seconds, so only declared types are known"
    ]
    assert finding(report, "shape").verdict == "broken"


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "exited with status -9"),
        (lambda: bytes(1 << 45), "failed"),
        (lambda: 1 // 0, "failed \\(ZeroDivisionError: "),
    ],
    ids=["crash", "memory", "error"],
)
def test_inference_that_ends_badly(ending: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda *_, **__: ending())
    (fault,) = faults(check(model([node("Max", ["x"], "y")])), "unknown")
    assert re.search(f"onnx's shape inference {text}", fault)


def test_a_process_that_hangs_before_it_sets_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "PATIENCE", 0.2)
    monkeypatch.setattr(sandbox, "_be_child", lambda *_: time.sleep(1000))
    forked, fork = [], os.fork

    def counted() -> int:
        forked.append(fork())
        return forked[-1]

    monkeypatch.setattr(os, "fork", counted)
    assert len(sandbox.sandboxed([bytes, bytes])) == 2
    fault, _ = faults(check(model([node("Max", ["x"], "y")])), "unknown")
    assert "onnx's shape inference took more than 20 seconds" in fault
    assert len(forked) >= 4
    for child in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_without_a_process_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    inference, checker = faults(check(model([node("Max", ["x"], "y")])), "unknown")
    for fault in (inference, checker):
        assert "cannot start a subprocess: Resource temporarily unavailable" in fault


# ------------------------------------------------------------------------------------------------ external data


def move_data(weights: TensorProto, path: Path, more: bytes = b"") -> None:
    """Move the data of a tensor to a file, followed by other bytes."""
    path.write_bytes(weights.raw_data + more)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=path.name)


@pytest.mark.parametrize("place", ["initializer", "constant", "sparse", "branch", "function", "training", "default"])
@pytest.mark.parametrize("is_there", [True, False], ids=["there", "missing"])
def test_external_data_that_is_missing_is_a_finding(
    place: str, is_there: bool, tmp_path: Path, unsandboxed: None
) -> None:
    made = parsed("""g (bool c, float[2] x) => (float[2] y) { y = local.f(x)
        z = If (c) <then_branch = yes () => (float[2] t) { t = Max(x) },
                    else_branch = no () => (float[2] e) { e = Neg(x) }> }
        <domain: "local", opset_import: ["": 18]> f <k: int = 1> (p) => (r) { r = Max(p) }""")
    several = [helper.make_tensor(name, FLOAT, [2], bytes(8), raw=True) for name in ("first", "second", "third")]
    for each in several:
        move_data(each, tmp_path / "weights.bin")
    constants = [helper.make_node("Constant", [], [each.name], value=each) for each in several]
    if place == "initializer":
        made.graph.initializer.extend(several)
    elif place == "constant":
        made.graph.node.extend(constants)
    elif place == "sparse":
        for each in several:
            indices = helper.make_tensor("i", TensorProto.INT64, [2], [0, 1])
            made.graph.sparse_initializer.append(helper.make_sparse_tensor(each, indices, [4]))
    elif place == "branch":
        made.graph.node[1].attribute[0].g.initializer.extend(several)
    elif place == "function":
        made.functions[0].node.extend(constants)
    elif place == "training":
        made.training_info.add().algorithm.initializer.extend(several)
    else:
        made.functions[0].attribute_proto.append(helper.make_attribute("tensors", several))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    if not is_there:
        (tmp_path / "weights.bin").unlink()
    report = check(tmp_path / "m.onnx")
    named = [fault for fault in faults(report) if "weights.bin" in fault]
    assert len(named) == (not is_there)
    assert report.broken is not is_there
    if not is_there:
        assert "is missing from the model's folder" in named[0]


# Nodes that compute z, whose type depends on an external tensor w.
OF_EXTERNAL = {
    "Reshape": ([6], "z = Reshape(x, w)"),
    "Slice": ([1], "z = Slice(x, w, w)"),
    "Unsqueeze": ([1], "z = Unsqueeze(x, w)"),
    "ReduceSum": ([1], "z = ReduceSum <keepdims = 0> (x, w)"),
    "ReduceMax": ([1], "z = ReduceMax <keepdims = 0> (x, w)"),
    "function": ([6], "z = local.f(x, w)"),
}


@pytest.mark.parametrize("place", ["initializer", "default", "constant"])
@pytest.mark.parametrize("operator", OF_EXTERNAL)
def test_external_data_that_shapes_depend_on(operator: str, place: str, tmp_path: Path, unsandboxed: None) -> None:
    values, line = OF_EXTERNAL[operator]
    made = parsed(
        f"""g (float[2,3] x) => (float[p,q] y) {{ {line} m = Max(z, z) y = Flatten(m) }}
        <domain: "local", opset_import: ["": 18]> f (p, q) => (r) {{ s = Reshape(p, q) r = Max(s) }}"""
    )
    weights = tensor("w", np.array(values, np.int64))
    move_data(weights, tmp_path / "w.bin")
    if place == "constant":
        constant = helper.make_node("Constant", [], ["w"], value=weights)
        made.graph.node.insert(0, constant)
    else:
        made.graph.initializer.append(weights)
    if place == "default":
        made.graph.input.append(value("w", (1,), TensorProto.INT64))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    report = check(tmp_path / "m.onnx")
    assert not report.broken
    assert not report.faults
    if place != "constant":
        assert rewrite(made).graph.initializer == made.graph.initializer


@pytest.mark.parametrize("place", ["initializer", "constant", "branch", "constant in a branch", "function"])
@pytest.mark.parametrize(("axes", "verdict"), [([1], "holds"), ([2], "broken"), ([1] * 600, "unknown")], ids=str)
def test_small_external_integers_are_read(
    axes: list[int], verdict: str, place: str, tmp_path: Path, unsandboxed: None
) -> None:
    """Test that only the tensor's bytes are read from a larger file, even if the length is given as 0 or omitted."""
    made = parsed("""g (bool c, float[2,3] x) => (y) { y = If (c) <
            then_branch = yes () => (float[p,q] t) { t = ReduceMax(x, w) }, else_branch = no () => (e) { e = Neg(x) }> }
        <domain: "local", opset_import: ["": 18]> f (p) => (r) { r = ReduceMax(p, w) }""")
    branch = made.graph.node[0].attribute[0].g
    if place == "function":
        made.graph.node[0].CopyFrom(helper.make_node("f", ["x"], ["y"], domain="local"))
    else:
        del made.functions[:]
    weights = tensor("w", np.array(axes, np.int64))
    move_data(weights, tmp_path / "w.bin", more=bytes(800))
    if place == "branch":
        weights.external_data.add(key="length", value="0")
    graph = branch if "branch" in place else made.functions[0] if place == "function" else made.graph
    if place in ("initializer", "branch"):
        graph.initializer.append(weights)
    else:
        graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=weights))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    assert finding(check(tmp_path / "m.onnx"), "axes.range").verdict == verdict


@pytest.mark.parametrize("since_version", [1, 11, 13, 18, 20])
@pytest.mark.parametrize(("axes", "verdict"), [(1, "holds"), (0, "broken")])
def test_axes_are_an_input_at_every_version_in_our_domain(
    axes: int, verdict: str, since_version: int, unsandboxed: None
) -> None:
    text = f"""<ir_version: 10, opset_import: ["maxops": 1]>
        g (float[2,3] x) => (float[2,1] y) <int64[1] axes = {{{axes}}}>
        {{ y = maxops.ReduceMax<since_version = {since_version}>(x, axes) }}"""
    (judged,) = check(parser.parse_model(text)).nodes
    verdicts = {each.clause.rpartition(".")[2]: each.verdict for each in judged.findings}
    assert (verdicts["inputs"], verdicts["keepdims"]) == ("holds", verdict)
