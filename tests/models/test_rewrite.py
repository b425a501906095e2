"""Rewriting models to the maxops domain: the written models, and the errors."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, parser
from typer.testing import CliRunner

import maxops as mo
from helpers import models
from helpers.bits import assert_same_bits, mixed
from maxops import errors
from maxops import onnx as mx
from maxops.checker import check
from maxops.cli.app import app
from maxops.dtypes import FLOAT32
from maxops.onnx import external
from maxops.onnx.rewrite import counts
from maxops.onnx.structure import all_nodes

TWO = """<ir_version: 8, opset_import: ["": 13]> g (float[2,3] x) => (float[2] y) {
    m = Max(x, x) y = ReduceMax <axes = [-1], keepdims = 0> (m) }"""
IN_A_FUNCTION = """<ir_version: 9, opset_import: ["": 13, "local": 1]> g (float[2,3] x) => (float[2] y) {
    y = local.peaks <over = [1]> (x) }
<domain: "local", opset_import: ["": 13]> peaks <over> (a) => (b) {
    b = ReduceMax <axes: ints = @over, keepdims = 0> (a) }"""


def moved(text: str) -> ModelProto:
    return mx.rewrite(parser.parse_model(text))


def test_the_given_model_stays_as_it_is() -> None:
    model = parser.parse_model(TWO)
    before = model.SerializeToString()
    mx.rewrite(model)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("rewritten", [mx.rewrite, mx.portable])
def test_a_size_of_minus_one_is_open(rewritten: Callable[[ModelProto], ModelProto]) -> None:
    """Test that a size of -1 is unknown. onnx's inference would use the number."""
    model = parser.parse_model(TWO.replace("m = Max(x, x)", "f = Flatten <axis = 0> (x) m = Max(f, f)"))
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_value = -1
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 1
    inner = model.graph.value_info.add(name="f")
    inner.type.CopyFrom(helper.make_tensor_type_proto(1, [1, 6]))
    assert rewritten(model).graph.input == model.graph.input


def test_nodes_and_axes() -> None:
    model = moved(TWO)
    assert [(node.domain, node.op_type) for node in model.graph.node] == [
        ("maxops", "Max"),
        ("", "Constant"),
        ("maxops", "ReduceMax"),
    ]
    assert counts(model) == {"Max": 1, "ReduceMax": 1}
    assert {entry.domain: entry.version for entry in model.opset_import} == {"": 13, "maxops": 1}
    data = mixed(FLOAT32, (2, 3), 1)
    assert_same_bits(mx.from_proto(model).run({"x": data})["y"], mo.reduce_max(data, (1,), keepdims=False))


def test_axes_that_a_function_is_given() -> None:
    model = moved(IN_A_FUNCTION)
    (function,) = model.functions
    assert [node.op_type for node in function.node] == ["Constant", "ReduceMax"]
    assert {entry.domain for entry in function.opset_import} == {"", "maxops"}
    data = mixed(FLOAT32, (2, 3), 1)
    (got,) = mx.ReferenceEvaluator(model).run(None, {"x": data})
    assert_same_bits(got, mo.reduce_max(data, (1,), keepdims=False))


def test_a_name_that_is_taken() -> None:
    text = TWO.replace("m = Max(x, x)", "y_axes = Max(x, x)").replace("(m)", "(y_axes)")
    assert moved(text).graph.node[1].output[0] == "y_axes_"


def test_what_onnx_infers_of_a_moved_model() -> None:
    mx.register()
    text = """<ir_version: 8, opset_import: ["": 13]> g (float[4,1,n] x, float[3,1] z)
        => (float[a,b,n] y, float[d,e,n] w)
        { y = Max(x, z) w = ReduceMax <axes = [1]> (y) }"""
    inferred = onnx.shape_inference.infer_shapes(moved(text), strict_mode=True, data_prop=True)
    shapes = [
        [dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in inferred.graph.output
    ]
    assert shapes == [[4, 3, "n"], [4, 1, "n"]]


@pytest.mark.parametrize(
    "text",
    [
        TWO,
        TWO.replace("axes = [-1]", "axes = [2]"),
        TWO.replace("13]", "1]").replace("axes = [-1]", "axes = [-1]"),
        TWO.replace("13]", "6]")
        .replace("Max(x, x)", "Max(x, y1)")
        .replace("float[2,3] x", "float[2,3] x, float[3] y1"),
    ],
    ids=["right", "axis out of range", "negative axis", "no broadcasting"],
)
def test_the_checker_judges_a_moved_model_as_it_judged_it_before(text: str) -> None:
    def message(model: ModelProto) -> set[str]:
        return {finding.clause for finding in check(model).findings if finding.verdict == "broken"}

    assert message(parser.parse_model(text)) == message(moved(text))
    assert bool(message(moved(text))) is (text != TWO)


def test_nothing_to_move() -> None:
    text = '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) { y = Abs(x) }'
    assert moved(text) == parser.parse_model(text)


def test_before_operator_sets_had_names() -> None:
    model = models.model([helper.make_node("Max", ["x", "x"], ["y"])], ir_version=3, opset=1)
    model.ir_version = 2
    del model.opset_import[:]
    result = mx.rewrite(model)
    assert result.ir_version == 3
    assert {entry.domain: entry.version for entry in result.opset_import} == {"": 1, "maxops": 1}
    assert result.graph.node[0].attribute[0].i == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TWO.replace("axes = [-1]", "axes = 1"), "'axes' must have type INTS, got INT"),
        (TWO.replace("keepdims = 0", 'keepdims = "no"'), "'keepdims' must have type INT, got STRING"),
        (TWO.replace("keepdims = 0", "noop_with_empty_axes = 1"), "ReduceMax-13 has no attribute"),
        (
            TWO.replace('"": 13', '"other": 13'),
            r": expected an operator set of the default ONNX domain in opset_import, got none$",
        ),
        (TWO.replace('"": 13', '"": 13, "ai.onnx": 18'), r"got \[13, 18\]"),
        (TWO.replace('"": 13', '"": 999'), "does not support .* in operator set 999"),
        (TWO.replace("(m)", "(m, m)"), r"ReduceMax-13 takes one input, got 2 \[ONNX\.ReduceMax-13\.inputs\]"),
        (TWO.replace("keepdims = 0", "axes = [0]"), "the attribute 'axes' appears twice"),
    ],
    ids=["axes", "keepdims", "of another version", "no operator set", "two", "unknown", "inputs", "twice"],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(errors.ModelError, match=words):
        moved(text)


def test_a_node_without_an_output() -> None:
    model = parser.parse_model(TWO)
    del model.graph.node[1].output[:]
    with pytest.raises(
        errors.ModelError, match="expected one or more inputs and one output, got 1 input and 0 outputs"
    ):
        mx.rewrite(model)


def test_a_required_input_that_is_omitted() -> None:
    model = parser.parse_model(TWO)
    model.graph.node[0].input[1] = ""
    with pytest.raises(errors.InputCountError, match=r"input 1 of Max-13 is required.*\[ONNX\.Max-13\.inputs\]"):
        mx.rewrite(model)


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        ("axes = [0]", "'axes' is unknown; the attributes are keepdims, noop_with_empty_axes, since_version"),
        ("keepdims = 0.0", "'keepdims' must have type INT, got FLOAT"),
    ],
)
def test_a_node_that_is_ours_already_and_wrong(attribute: str, words: str) -> None:
    text = TWO.replace('"": 13', '"": 13, "maxops": 1').replace("= ReduceMax", "= maxops.ReduceMax")
    with pytest.raises(errors.ModelError, match=words):
        moved(text.replace("axes = [-1], keepdims = 0", attribute))


def test_a_name_that_is_taken_inside() -> None:
    text = """<ir_version: 9, opset_import: ["": 13]> g (bool c, float[2,3] x) => (float[2,1] y, float[1] z) {
        y = ReduceMax <axes = [1]> (x)
        z = If (c) <then_branch = a () => (float[1] y_axes) <float[1] y_axes = {1}> { },
                    else_branch = b () => (float[1] e) { e = Constant <value = float[1] {2}> () }> }"""
    model = moved(text)
    assert model.graph.node[0].output[0] == "y_axes_"
    mx.register()
    onnx.checker.check_model(model, full_check=True)


def test_what_else_a_node_holds() -> None:
    model = parser.parse_model(TWO)
    node = model.graph.node[1]
    node.domain, node.doc_string = "ai.onnx", "what it is for"
    node.metadata_props.add(key="from", value="torch")
    after = mx.rewrite(model).graph.node[2]
    assert (after.domain, after.doc_string, after.metadata_props[0].value) == ("maxops", "what it is for", "torch")


@pytest.mark.parametrize(
    ("text", "name"),
    [(TWO, b"ReduceMax"), (TWO, b"keepdims"), (IN_A_FUNCTION, b"ReduceMax"), (IN_A_FUNCTION, b"over")],
    ids=["operator", "attribute", "operator in a function", "attribute of a function"],
)
def test_names_that_are_no_text(text: str, name: bytes) -> None:
    data = parser.parse_model(text).SerializeToString().replace(name, b"\xff" + name[1:])
    with pytest.raises(errors.ModelError, match="not UTF-8"):
        mx.rewrite(ModelProto.FromString(data))


# --------------------------------------------------------------------------------------------- the command


def rewritten(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["rewrite", "--parents", *map(str, words)])
    return result.exit_code, result.output + result.stderr


def with_weights(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "w.bin").write_bytes(np.array([1, 2, 3, 4], np.float32).tobytes())
    path = folder / "model.onnx"
    path.write_bytes(models.external(location="w.bin").SerializeToString())
    return path


def test_the_command(tmp_path: Path) -> None:
    path, out = with_weights(tmp_path / "in"), tmp_path / "out" / "moved.onnx"
    code, text = rewritten(path, out)
    assert (code, f"{out}: 1 Max node in domain maxops" in text.splitlines()) == (0, True)
    assert sorted(file.name for file in out.parent.iterdir()) == ["moved.onnx", "w.bin"]
    x = np.array([9, -9, 9, -9], np.float32)
    assert_same_bits(mx.load(out).run({"x": x})["y"], np.array([9, 2, 9, 4], np.float32))
    assert rewritten(path, out)[0] == 0  # a second time, with the same data in place
    (out.parent / "w.bin").write_bytes(b"other")
    assert "already exists and differs" in rewritten(path, out)[1]


def test_data_is_compared_by_its_bytes(tmp_path: Path) -> None:
    """Test that data with the same length and time, but other bytes, counts as different."""
    path, out = with_weights(tmp_path / "in"), tmp_path / "out"
    out.mkdir()
    (out / "w.bin").write_bytes(bytes(16))
    for place in (path.parent, out):
        os.utime(place / "w.bin", (1, 1))
    code, text = rewritten(path, out / "moved.onnx")
    assert (code, "already exists and differs" in text) == (2, True)
    assert (out / "w.bin").read_bytes() == bytes(16)


@pytest.mark.parametrize(("call", "file"), [("cmp", "out/w.bin"), ("open", "in/w.bin")])
def test_data_that_cannot_be_read(call: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that copying does not begin if the data cannot be read."""
    path, out = with_weights(tmp_path / "in"), tmp_path / "out"
    if call == "cmp":
        out.mkdir()
        (out / "w.bin").write_bytes((path.parent / "w.bin").read_bytes())

    def fails(*words: object, **_: object) -> None:
        raise OSError(5, "Input/output error", str(words[0]))

    monkeypatch.setattr(filecmp if call == "cmp" else Path, call, fails)
    found = external.files(onnx.load(path, load_external_data=False), path, "m")
    with pytest.raises(errors.MaxopsError, match=f"{re.escape(str(tmp_path / file))} cannot be .*Input/output error"):
        external.copies(found, out)


def test_what_is_copied_is_what_is_not_there(tmp_path: Path) -> None:
    found = {}
    for name in ("same.bin", "parts/new.bin", "linked.bin"):
        found[name] = tmp_path / "in" / name
        found[name].parent.mkdir(parents=True, exist_ok=True)
        found[name].write_bytes(name.encode())
    out = tmp_path / "out"
    out.mkdir()
    shutil.copyfile(found["same.bin"], out / "same.bin")
    (out / "linked.bin").hardlink_to(found["linked.bin"])
    assert external.copies(found, out) == {out / "parts/new.bin": found["parts/new.bin"]}


def test_in_the_same_folder_nothing_is_copied(tmp_path: Path) -> None:
    path = with_weights(tmp_path)
    assert rewritten(path, tmp_path / "moved.onnx")[0] == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.onnx", "moved.onnx", "w.bin"]


def test_a_model_and_its_data_that_are_links(tmp_path: Path) -> None:
    path, here = with_weights(tmp_path / "there"), tmp_path / "here"
    here.mkdir()
    for name in ("model.onnx", "w.bin"):
        (here / name).symlink_to(path.parent / name)
    out = tmp_path / "out"
    assert rewritten(here / "model.onnx", out / "moved.onnx")[0] == 0
    assert not (out / "w.bin").is_symlink()
    assert (out / "w.bin").read_bytes() == (path.parent / "w.bin").read_bytes()


def test_nothing_is_left_of_a_copy_that_was_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = with_weights(tmp_path / "in"), tmp_path / "out"

    def broken_off(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", broken_off)
    assert rewritten(path, out / "moved.onnx")[0] != 0
    assert not out.exists()


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("../w.bin", "inside the model's folder"),
        ("/etc/hostname", "inside the model's folder"),
        ("../{folder}/w.bin", "inside the model's folder"),
        ("parts/../../{folder}/w.bin", "inside the model's folder"),
        ("{folder}/../../w.bin", "inside the model's folder"),
        ("gone.bin", "not a file"),
        ("", "inside the model's folder"),
    ],
)
def test_data_elsewhere(tmp_path: Path, location: str, words: str) -> None:
    path = with_weights(tmp_path / "in")
    path.write_bytes(models.external(location=location.format(folder="in")).SerializeToString())
    before = sorted(tmp_path.rglob("*"))
    for out in (path.parent / "moved.onnx", tmp_path / "out" / "moved.onnx"):
        code, text = rewritten(path, out)
        assert code == 2
        assert words in text
        assert sorted(tmp_path.rglob("*")) == before


def test_a_location_that_leaves_a_folder_inside_is_the_file_that_it_leads_to(tmp_path: Path) -> None:
    path, out = with_weights(tmp_path / "in"), tmp_path / "out" / "moved.onnx"
    (path.parent / "parts").mkdir()
    path.write_bytes(models.external(location="parts/../w.bin").SerializeToString())
    assert rewritten(path, out)[0] == 0
    assert sorted(file.name for file in out.parent.iterdir()) == ["moved.onnx", "w.bin"]


@pytest.mark.parametrize("link", ["parts", "parts/w.bin"])
def test_a_link_that_leads_out_of_the_folder_is_not_followed(link: str, tmp_path: Path) -> None:
    path = with_weights(tmp_path / "in")
    path.write_bytes(models.external(location="parts/w.bin").SerializeToString())
    (path.parent / "parts").mkdir()
    (path.parent / "w.bin").rename(path.parent / "parts/w.bin")
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    (out / link).parent.mkdir(parents=True)
    (out / link).symlink_to(elsewhere / "w.bin" if link.endswith("bin") else elsewhere)
    code, text = rewritten(path, out / "moved.onnx")
    assert (code, "resolves to a path outside" in text) == (2, True)
    assert list(elsewhere.iterdir()) == []
    assert not (out / "moved.onnx").exists()


def test_mistakes(tmp_path: Path) -> None:
    path = with_weights(tmp_path)
    assert "is also an input" in rewritten(path, path)[1]
    assert "is a data file of the model" in rewritten(path, path.parent / "w.bin")[1]
    assert "is reserved for data of the model" in rewritten(path, tmp_path / "other" / "w.bin")[1]
    assert not (tmp_path / "other").exists()
    assert "cannot be read" in rewritten(tmp_path / "none.onnx", tmp_path / "o.onnx")[1]
    (tmp_path / "short.onnx").write_bytes(path.read_bytes()[:20])
    assert "truncated or not an ONNX model" in rewritten(tmp_path / "short.onnx", tmp_path / "o.onnx")[1]
    onnx.save(
        parser.parse_model('<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) { y = Abs(x) }'),
        path,
    )
    assert "no max nodes in domain maxops" in rewritten(path, tmp_path / "o.onnx")[1]
    assert [node.domain for node in all_nodes(onnx.load(tmp_path / "o.onnx"))] == [""]
