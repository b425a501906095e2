"""Models with ScatterElements and ScatterND: maxops runs nodes with the reduction "max", and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from onnx.reference import ReferenceEvaluator
from typer.testing import CliRunner

from helpers.bits import Array, assert_same_bits
from maxops import onnx as mx
from maxops import reference
from maxops.checker import check
from maxops.cli.app import app
from maxops.errors import AttributeValueError, IndicesError, ModelError

HEADER = '<ir_version: 8, opset_import: ["": 18, "own": 1]>'
X = np.array([[1, 2], [3, np.nan], [-0.0, 0]], np.float32)
PLACES = np.array([[-1, 0], [-1, 2]])
UPDATES = np.array([[np.nan, 5], [7, -0.0]], np.float32)
FEED = {"x": X, "i": PLACES, "u": UPDATES}
EXPECTED = reference.scatter_max(X, PLACES, UPDATES, 0)


def model(body: str, outputs: str = "float[n,m] y", more: str = "", opset: int = 18) -> Any:
    header = HEADER.replace("18", str(opset))
    return parser.parse_model(
        f"{header} g (float[n,m] x, int64[k,m] i, float[k,m] u) => ({outputs}) {{ {body} }} {more}"
    )


ALONE = 'y = ScatterElements <reduction = "max"> (x, i, u)'
BESIDE = ALONE + ' z = ScatterElements <reduction = "add"> (x, i, u) w = ScatterElements (x, i, u)'
OUTPUTS = "float[n,m] y, float[n,m] z, float[n,m] w"
IN_FUNCTION = ("y = own.larger (x, i, u)", '<domain: "own", opset_import: ["": 18]> larger (a, b, c) => (d) { d = '
               'ScatterElements <reduction = "max"> (a, b, c) }')  # fmt: skip


def test_a_model_of_scatters_alone_runs_without_another_evaluator() -> None:
    loaded = mx.from_proto(model(ALONE))
    assert loaded.placements == ()
    assert_same_bits(loaded.run(FEED)["y"], EXPECTED)
    with pytest.raises(
        IndicesError, match=r"^model: node \(ScatterElements\) with output 'y': .* got 9 at position \(0, 0\)"
    ):
        loaded.run(FEED | {"i": PLACES * 0 + 9})


def test_other_reductions_are_anothers(on: Any) -> None:
    loaded = mx.from_proto(model(BESIDE, OUTPUTS), on=on)
    ours, others = loaded.placements
    assert (ours.operator, ours.nodes, ours.runs_on) == ("ScatterElements", 1, "maxops")
    assert (others.operator, others.nodes) == ("ScatterElements", 2)
    assert on in others.runs_on
    found = loaded.run(FEED | {"i": PLACES[:1], "u": UPDATES[:1]})
    assert_same_bits(found["y"], reference.scatter_max(X, PLACES[:1], UPDATES[:1], 0))
    assigned, added = X.copy(), X.copy()
    for column, (row, update) in enumerate(zip(PLACES[0], UPDATES[0], strict=True)):
        assigned[row, column] = update
        added[row, column] += update
    np.testing.assert_array_equal(found["w"], assigned)
    np.testing.assert_array_equal(found["z"], added)


@pytest.mark.parametrize(
    ("body", "more"),
    [
        IN_FUNCTION,
        (
            "c = Constant <value_ints = [1]> () b = Cast <to = 9> (c) s = Squeeze (b) "
            f"y = If (s) <then_branch = t () => (float[n,m] y1) {{ {ALONE.replace('y =', 'y1 =')} }}, "
            "else_branch = e () => (float[n,m] y2) { y2 = Identity (x) }>",
            "",
        ),
        (ALONE.replace("x,", "a,") + " ", ""),
    ],
    ids=["function", "branch", "beside others"],
)
def test_inside_functions_and_branches(on: Any, body: str, more: str) -> None:
    body = body if "a, i" not in body or more else "a = Neg (x) " + body
    data = np.negative(X) if body.startswith("a = Neg") else X
    loaded = mx.from_proto(model(body, more=more), on=on)
    expected = reference.scatter_max(data, PLACES, UPDATES, 0)
    assert_same_bits(loaded.run(FEED)["y"], expected)


def test_slices_of_every_type(on: Any) -> None:
    for name, dtype in (("float16", np.float16), ("int8", np.int8), ("uint64", np.uint64), ("bool", np.bool)):
        text = f"{HEADER} g ({name}[n,2] x, int64[k,1] i, {name}[k,2] u) => ({name}[n,2] y) {{ "
        proto = parser.parse_model(
            text + 't = Identity (x) s = Shape (t) y = ScatterND <reduction = "max"> (t, i, u) }'
        )
        data = np.array([[0, 1], [1, 0], [0, 0]]).astype(dtype)
        places, updates = np.array([[0], [-1], [0]]), np.array([[1, 0], [0, 1], [0, 1]]).astype(dtype)
        loaded = mx.from_proto(proto, on=on)
        result = loaded.run({"x": data, "i": places, "u": updates})["y"]
        assert_same_bits(result, reference.scatter_max(data, places, updates))


def test_onnxruntimes_error_has_the_clause() -> None:
    session = pytest.importorskip("maxops.onnxruntime").session(model(ALONE))
    with pytest.raises(
        Exception, match=r"indices must be between -3 and 2 .* got 9 at position \(0, 0\).*ScatterElements-18.indices"
    ):
        session.run(None, FEED | {"i": PLACES * 0 + 9})


def test_rewrite_moves_the_maxima_alone() -> None:
    rewritten = mx.rewrite(model(BESIDE, OUTPUTS))
    ours, *others = rewritten.graph.node
    assert (ours.domain, ours.op_type) == ("maxops", "ScatterElements")
    assert {each.name: helper.get_attribute_value(each) for each in ours.attribute} == {
        "since_version": 18,
        "reduction": b"max",
    }
    assert [node.domain for node in others] == ["", ""]
    again = mx.rewrite(rewritten)
    assert again == rewritten
    (got,) = ReferenceEvaluator(mx.rewrite(model(ALONE)), new_ops=mx.reference_ops()).run(None, FEED)
    assert_same_bits(got, EXPECTED)


def test_rewrite_refuses_an_attribute_of_another_kind() -> None:
    wrong = model(ALONE)
    wrong.graph.node[0].attribute.append(helper.make_attribute("axis", [0]))
    with pytest.raises(ModelError, match="the attribute 'axis' must have type INT, got INTS"):
        mx.rewrite(wrong)


def test_an_older_operator_set_has_no_maximum() -> None:
    with pytest.raises(ModelError, match=r'has the reduction "max" only in operator set 18 or newer.*operator set 16;'):
        mx.from_proto(model(ALONE, opset=16))


def test_backend() -> None:
    node = model(ALONE).graph.node[0]
    assert_same_bits(mx.Backend.run_node(node, [X, PLACES, UPDATES], opset_version=18)[0], EXPECTED)


def findings(proto: Any) -> dict[str, tuple[str, str]]:
    return {each.clause: (each.verdict, each.message) for each in check(proto).findings}


def test_check_judges_maxima_alone() -> None:
    found = findings(model(BESIDE, OUTPUTS))
    assert {clause.rsplit(".", 1)[0] for clause in found} >= {"ONNX.ScatterElements-18"}
    assert found["ONNX.ScatterElements-18.T"] == ("holds", "float32")
    assert len(check(model(BESIDE, OUTPUTS)).nodes) == 1
    assert not check(model("y = ScatterElements (x, i, u)")).nodes


def test_check_sees_constant_indices_out_of_range() -> None:
    text = f"{HEADER} g (float[3] x, float[2] u) => (float[3] y) {{ i = Constant <value_ints = [0, 3]> () {ALONE} }}"
    verdict, message = findings(parser.parse_model(text))["ONNX.ScatterElements-18.indices"]
    assert (verdict, message) == ("broken", "indices must be between -3 and 2, got 3 at position (1,)")
    verdict, _ = findings(parser.parse_model(text.replace("[0, 3]", "[0, 2]")))["ONNX.ScatterElements-18.indices"]
    assert verdict == "holds"
    moved = mx.rewrite(parser.parse_model(text))
    assert findings(moved)["ONNX.ScatterElements-18.indices"][0] == "broken"


def save(folder: Path, proto: Any, feed: dict[str, Array]) -> list[str]:
    onnx.save(proto, folder / "m.onnx")
    for name, array in feed.items():
        np.save(folder / f"{name}.npy", array)
    return [str(folder / "m.onnx"), *(part for name in feed for part in ("--input", f"{name}={folder / name}.npy"))]


def test_against_a_runtime(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    arguments = save(
        tmp_path, model("a = Neg (x) " + ALONE.replace("x,", "a,")), FEED | {"x": np.abs(X), "u": np.abs(UPDATES)}
    )
    done = CliRunner().invoke(app, ["run", *arguments, "--against", "onnxruntime"])
    assert "ScatterElements" in done.output
    assert done.exit_code in (0, 1)
    plain = save(
        tmp_path, model(ALONE), {"x": np.ones((2, 2), np.float32), "i": PLACES % 2, "u": np.zeros((2, 2), np.float32)}
    )
    done = CliRunner().invoke(app, ["run", *plain, "--against", "onnxruntime"])
    assert done.exit_code == 0, done.output


def test_check_of_a_file(tmp_path: Path) -> None:
    onnx.save(model(ALONE), tmp_path / "m.onnx")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "m.onnx"), "--format", "json"])
    (node,) = json.loads(done.stdout)["reports"][0]["nodes"]
    assert node["operator"] == "ScatterElements"
    done = CliRunner().invoke(app, ["check", str(tmp_path / "m.onnx"), "--standard", "sonnx"])
    assert "SONNX has no ScatterElements" in done.stdout


GIVEN = (
    '<domain: "own", opset_import: ["": 18]> scattered <kind> (a, b, c) => (d) { '
    "d = ScatterElements <reduction: string = @kind> (a, b, c) } "
    '<domain: "own", opset_import: ["": 18, "own": 1]> outer <kind> (a, b, c) => (d) { '
    "d = own.scattered <kind: string = @kind> (a, b, c) }"
)


@pytest.mark.parametrize("name", ["scattered", "outer"])
def test_a_reduction_that_a_functions_caller_gives(name: str, on: Any) -> None:
    body = f'y = own.{name} <kind = "max"> (x, i, u) z = own.{name} <kind = "add"> (x, i, u)'
    proto = model(body, "float[n,m] y, float[n,m] z", GIVEN)
    loaded = mx.from_proto(proto, on=on)
    assert_same_bits(loaded.run(FEED)["y"], EXPECTED)
    assert [(each.nodes, each.runs_on == "maxops") for each in loaded.placements] == [(1, True), (1, False)]
    assert [node.domain for node in mx.rewrite(proto).graph.node] == ["maxops", ""]


@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_our_domain_has_the_maximum_alone(operator: str) -> None:
    proto = mx.rewrite(model(ALONE.replace("ScatterElements", operator)))
    proto.graph.node[0].attribute[-1].s = b"add"
    assert findings(proto)[f"ONNX.{operator}-18.reduction"] == ("broken", "reduction must be 'max', got 'add'")
    with pytest.raises(ModelError, match="the attribute 'reduction' must be 'max', got 'add'"):
        mx.rewrite(proto)
    with pytest.raises(AttributeValueError, match=f"{operator}-18 reduction must be 'max', got 'add'"):
        ReferenceEvaluator(proto, new_ops=mx.reference_ops()).run(None, FEED)


def test_check_of_a_constant_without_axes() -> None:
    proto = model("c = Constant <value = int64 {7}> () " + ALONE.replace("i,", "c,"))
    found = findings(proto)
    assert found["ONNX.ScatterElements-18.indices.shape"][0] == "broken"
    assert found["ONNX.ScatterElements-18.indices"][0] == "unknown"
