"""ONNX models that contain maxops operators, and SegmentMax as an ONNX operator: custom, and portable."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import InferenceError
from typer.testing import CliRunner

import maxops as mo
from helpers.bits import STORED, Array, assert_same_bits, fast_reduce_max, mixed
from helpers.official import official_cases
from maxops import errors, ops, spec
from maxops import onnx as mx
from maxops.cli.app import app
from maxops.dtypes import BOOL, FLOAT32, DType
from maxops.model import Other
from maxops.onnx.schemas import SEGMENT_MAX as ROW
from maxops.onnx.structure import all_nodes
from maxops.onnx.tensors import shape_of
from maxops.plan import FILL_MODES
from maxops.typing import FillMode

OPSET_18 = '<ir_version: 8, opset_import: ["": 18]> '
WITH_OURS = '<ir_version: 8, opset_import: ["": 18, "maxops": 1]> '
TYPES = {"float32": "float", "float64": "double"}

EXPANDED = [
    case
    for case in official_cases()
    if case.name.endswith("_expanded")
    and case.model is not None
    and {node.op_type for node in all_nodes(case.model)} & {"Max", "ReduceMax"}
]


def name_of(dtype: DType) -> str:
    return TYPES.get(dtype.onnx, dtype.onnx)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in EXPANDED])
def test_official_cases_that_use_our_operators(case: Any) -> None:
    evaluator = ReferenceEvaluator(case.model, new_ops=mx.reference_ops())
    assert case.data_sets
    for inputs, outputs in case.data_sets:
        names = [value.name for value in case.model.graph.input]
        with np.errstate(all="ignore"):
            got = evaluator.run(None, dict(zip(names, inputs, strict=False)))
        for result, expected in zip(got, outputs, strict=True):
            np.testing.assert_allclose(result, expected, rtol=case.rtol, atol=case.atol)


def test_there_are_official_cases() -> None:
    assert len(EXPANDED) >= 20
    used = {node.op_type for case in EXPANDED if case.model is not None for node in all_nodes(case.model)}
    assert used >= {"Max", "ReduceMax"}


@pytest.mark.parametrize(
    "row",
    [row for row in spec.ALL if row.operator in ("Max", "ReduceMax") and row.standard == "ONNX"],
    ids=lambda row: row.name,
)
def test_every_version_in_the_evaluator(row: spec.Spec) -> None:
    assert row.version is not None
    a, b = mixed(FLOAT32, (3, 4), 1), mixed(FLOAT32, (3, 4), 2)
    body = {"Max": "y = Max(a, b)", "ReduceMax": "y = ReduceMax <keepdims = 0> (a)"}[row.operator]
    text = (
        f'<ir_version: 8, opset_import: ["": {row.version}]> g (float[3,4] a, float[3,4] b) => (float y) {{ {body} }}'
    )
    with np.errstate(all="ignore"):
        (got,) = ReferenceEvaluator(parser.parse_model(text), new_ops=mx.reference_ops()).run(None, {"a": a, "b": b})
    assert_same_bits(got, mo.maximum(a, b) if row.operator == "Max" else mo.reduce_max(a, keepdims=False))


def test_axes_by_attribute_and_by_input() -> None:
    data = mixed(FLOAT32, (3, 4), 3)
    for opset, body in (
        (13, "y = ReduceMax <axes = [-1], keepdims = 0> (x)"),
        (18, "k = Constant <value_ints = [1]> () y = ReduceMax <keepdims = 0> (x, k)"),
    ):
        text = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[3,4] x) => (float[3] z) {{ {body} }}'
        model = parser.parse_model(text.replace(" }", " z = Identity(y) }"))
        (got,) = ReferenceEvaluator(model, new_ops=mx.reference_ops()).run(None, {"x": data})
        assert_same_bits(got, fast_reduce_max(data, (1,), False))


def test_inside_a_subgraph_and_a_function() -> None:
    text = """<ir_version: 9, opset_import: ["": 18, "local": 1]>
    g (bool c, float[2] a, float[2] b) => (float[2] y) {
        y = If (c) <then_branch = yes () => (float[2] t) { t = Max(a, b) },
                    else_branch = no () => (float[2] e) { e = local.lower(a, b) }>
    }
    <domain: "local", opset_import: ["": 18]> lower (p, q) => (r) { m = Max(p, q) r = Neg(m) }"""
    a, b = np.array([-0.0, np.nan], np.float32), np.array([0.0, 1], np.float32)
    loaded = mx.from_proto(parser.parse_model(text))
    got = loaded.run({"c": np.array(True), "a": a, "b": b})["y"]
    assert_same_bits(got, mo.maximum(a, b))
    got = loaded.run({"c": np.array(False), "a": a, "b": b})["y"]
    assert_same_bits(got[:1], np.array([-0.0], np.float32))
    places = {place.operator: (place.nodes, place.runs_on) for place in loaded.placements}
    assert places["Max"] == (2, "maxops")
    assert places["If"] == (1, "onnx's reference evaluator")
    assert next(iter(places)) == "Max"


def test_our_operators_in_a_function() -> None:
    """Test that maxops's kernels run, because onnx's own ones preserve the bits of a NaN."""
    text = """<ir_version: 9, opset_import: ["": 18, "local": 1]> g (float[1] a, float[1] b) => (float[1] y)
        { y = local.outer(a, b) }
    <domain: "local", opset_import: ["": 18]> inner (p, q) => (r) { r = Max(p, q) }
    <domain: "local", opset_import: ["": 18, "local": 1]> outer (p, q) => (r) { r = local.inner(p, q) }"""
    odd = np.array([0xFFC00123], np.uint32).view(np.float32)
    model = parser.parse_model(text)
    assert_same_bits(mx.from_proto(model).run({"a": odd, "b": odd})["y"], mo.maximum(odd, odd))
    (plain,) = ReferenceEvaluator(model).run(None, {"a": odd, "b": odd})
    assert np.asarray(plain).tobytes() == odd.tobytes()


def test_what_the_command_says(tmp_path: Path) -> None:
    text = OPSET_18 + "g (float[n] a, float[n] b) => (float[n] y) { m = Max(a, b) y = Abs(m) }"
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    np.save(tmp_path / "a.npy", np.array([-3, 1], np.float32))
    np.save(tmp_path / "b.npy", np.array([-5, np.nan], np.float32))
    words = ["run", str(tmp_path / "m.onnx"), *(f"--input={name}={tmp_path / name}.npy" for name in "ab")]
    result = CliRunner().invoke(app, [*words, "--on", "onnx"])
    assert result.exit_code == 0, result.output
    lines = [re.sub(r"[│\s]+", " ", line).strip() for line in result.output.splitlines()]
    assert "Max 1 maxops" in lines
    assert "Abs 1 onnx's reference evaluator" in lines


def test_a_failure_names_the_node_and_who_ran_it() -> None:
    text = OPSET_18 + "g (float[n] a, float[m] b) => (float[k] y) { t = Max(a, a) y = Add(t, b) }"
    loaded = mx.from_proto(parser.parse_model(text), "some.onnx")
    words = r"^some\.onnx: node \(Add\) with output 'y' failed on onnx's reference evaluator: TypeError: .*Add"
    with pytest.raises(errors.ModelError, match=words):
        loaded.run({"a": np.array([1, 2], np.float32), "b": np.array([1, 2, 3], np.float32)})


@pytest.mark.parametrize("operator", ["Max(a, a)", "Relu(a)"])
@pytest.mark.parametrize(
    "act", [mx.from_proto, lambda made: mx.Backend.prepare(made).model], ids=["from_proto", "Backend.prepare"]
)
def test_sizes_of_minus_one_are_open(act: Callable[[onnx.ModelProto], mx.Model], operator: str) -> None:
    made = parser.parse_model(OPSET_18 + f"g (float[n, 2] a) => (float[m, 2] y) {{ y = {operator} }}")
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    with pytest.warns(
        UserWarning, match=r"(input 'a'|output 'y') has a size of -1, which is read as an unknown size: "
    ) as caught:
        loaded = act(made)
    assert [each.filename for each in caught] == [__file__] * 2
    assert loaded.inputs[0].dims == (None, 2)
    data = np.ones((3, 2), np.float32)
    assert_same_bits(loaded.run({"a": data})["y"], data)


def test_a_model_of_another_domain_alone() -> None:
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.5)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
    assert mx.from_proto(made).run({"x": np.array([0.25, 1], np.float32)})["y"].tolist() == [0, 1]


@pytest.mark.parametrize("is_inner", [False, True])
@pytest.mark.parametrize(
    ("b", "clause", "kind"),
    [("float", "Max-8.shape", errors.ShapeError), ("double", "Max-8.T", errors.DTypeError)],
)
def test_an_error_names_the_node_and_the_clause(b: str, clause: str, kind: type[Exception], is_inner: bool) -> None:
    """Test an error that onnx passes on, and a TypeError, which onnx replaces once for each node around it."""
    body = "t = Max(a, b)"
    if is_inner:
        body = f"""c = Constant <value = bool {{1}}> () t = If (c) <
            then_branch = g1 () => (float[k] t1) {{ {body.replace("t =", "t1 =")} }},
            else_branch = g2 () => (float[k] t2) {{ t2 = Identity(a) }}>"""
    head = f'<ir_version: 8, opset_import: ["": 11]> g (float[n] a, {b}[m] b) => (float[k] y)'
    loaded = mx.from_proto(parser.parse_model(f"{head} {{ {body} y = Abs(t) }}"), "some.onnx")
    given = {"a": np.array([1, 2], np.float32), "b": np.array([1, 2, 3], np.dtype(b if b == "double" else "f4"))}
    name = "t1" if is_inner else "t"
    with pytest.raises(kind, match=rf"^some\.onnx: node \(Max\) with output '{name}': .*\[ONNX\.{clause}\]$"):
        loaded.run(given)


# ------------------------------------------------------------------------------------------------- SegmentMax


def segments(dtype: DType, mode: FillMode, *, count: bool, ids: str = "int64") -> onnx.ModelProto:
    more, third = (f", {ids} k", ", k") if count else ("", "")
    head = WITH_OURS + f"g ({name_of(dtype)}[n,m] x, {ids}[n] ids{more})"
    body = f'{{ y = maxops.SegmentMax <fill_mode = "{mode}"> (x, ids{third}) }}'
    return parser.parse_model(f"{head} => ({name_of(dtype)}[s,m] y) {body}")


def both_ways(model: onnx.ModelProto) -> Callable[[dict[str, Array]], list[Any]]:
    """Return a function that runs a model with maxops's kernels and with only standard operators."""
    loaded, portable = mx.from_proto(model), ReferenceEvaluator(mx.portable(model))

    def run(inputs: dict[str, Array]) -> list[Any]:
        with np.errstate(all="ignore"):
            return [loaded.run(inputs)["y"], *portable.run(None, inputs)]

    return run


def run_all(model: onnx.ModelProto, inputs: dict[str, Array]) -> list[Any]:
    return both_ways(model)(inputs)


@pytest.mark.parametrize("mode", FILL_MODES)
@pytest.mark.parametrize("dtype", [dtype for dtype in STORED if dtype is not BOOL], ids=str)
def test_segment_max_both_ways(dtype: DType, mode: FillMode) -> None:
    mx.register()
    data = mixed(dtype, (40, 3), 4, nans=0.1)
    random = np.random.default_rng(5)
    of_each_form: list[list[int | None]] = [[None], [0, 1, 20, 45]]
    for counts in of_each_form:
        model = segments(dtype, mode, count=counts != [None])
        onnx.checker.check_model(model, full_check=True)
        onnx.checker.check_model(mx.portable(model), full_check=True)
        run = both_ways(model)
        every = np.sort(random.integers(0, 25, 40)), np.arange(40), np.zeros(40, np.int64)
        for ids, count in product(every, counts):
            inputs = {"x": data, "ids": ids} | ({} if count is None else {"k": np.array(count)})
            expected = mo.segment_max(data, ids, count, fill_mode=mode)
            for got in run(inputs):
                assert_same_bits(got, expected)


def test_segment_max_without_rows_and_with_narrow_ids() -> None:
    for rows in (0, 3):
        data, ids = np.ones((rows, 2), np.float32), np.zeros(rows, np.int32)
        for got in run_all(segments(FLOAT32, "ZERO", count=False, ids="int32"), {"x": data, "ids": ids}):
            assert_same_bits(got, mo.segment_max(data, ids, fill_mode="ZERO"))


def test_zeros_of_both_signs() -> None:
    data = np.array([[-0.0], [0.0], [-0.0], [-0.0], [0.0], [-0.0]], np.float32)
    ids = np.array([0, 0, 1, 1, 2, 2])
    for got in run_all(segments(FLOAT32, "ZERO", count=False), {"x": data, "ids": ids}):
        assert_same_bits(got, np.array([[0.0], [-0.0], [0.0]], np.float32))


def test_the_reference_evaluator_can_be_imported_after_the_operators_are_registered() -> None:
    """Test without importing the rest of `maxops.onnx`, which imports the evaluator as well."""
    code = (
        "import sys, types, maxops; package = sys.modules['maxops.onnx'] = types.ModuleType('maxops.onnx')\n"
        "package.__path__ = [f'{maxops.__path__[0]}/onnx']\n"
        "from maxops.onnx.schemas import register; register()\n"
        "import onnx.reference"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_shape_inference() -> None:
    mx.register()
    text = (
        WITH_OURS
        + """g (float[6,7] x, int64[6] ids) => (float[s,t] y)
    { k = Constant <value_int = 4> () y = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids, k) }"""
    )
    inferred = onnx.shape_inference.infer_shapes(parser.parse_model(text), strict_mode=True, data_prop=True)
    assert [dim.dim_value for dim in inferred.graph.output[0].type.tensor_type.shape.dim][1] == 7


@pytest.mark.parametrize(
    ("inputs", "attribute", "message"),
    [
        ("float x, int64[n] ids", '<fill_mode = "ZERO">', "got a scalar"),
        ("float[n] x, int64[n,1] ids", '<fill_mode = "ZERO">', "1-D"),
        ("float[3] x, int64[4] ids", '<fill_mode = "ZERO">', r"one id per row of data \(3\), got 4"),
        ("float[n] x, int64[n] ids", '<fill_mode = "NONE">', "got 'NONE'"),
    ],
)
def test_what_inference_refuses(inputs: str, attribute: str, message: str) -> None:
    mx.register()
    text = WITH_OURS + f"g ({inputs}) => (float[k] y) {{ y = maxops.SegmentMax {attribute} (x, ids) }}"
    with pytest.raises(InferenceError, match=message):
        onnx.shape_inference.infer_shapes(parser.parse_model(text), strict_mode=True)


def test_what_the_checker_refuses() -> None:
    mx.register()
    for text in (
        "g (float[n] x, int64[n] ids) => (float[k] y) { y = maxops.SegmentMax (x, ids) }",
        'g (bool[n] x, int64[n] ids) => (bool[k] y) { y = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids) }',
        'g (float[n] x, int8[n] ids) => (float[k] y) { y = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids) }',
    ):
        model = parser.parse_model(WITH_OURS + text)
        with pytest.raises((onnx.checker.ValidationError, InferenceError)):
            onnx.checker.check_model(model, full_check=True)


def test_the_portable_form_says_what_it_needs() -> None:
    old = segments(FLOAT32, "ZERO", count=False)
    old.opset_import[0].version = 17
    with pytest.raises(errors.ModelError, match="requires operator set 18"):
        mx.portable(old)
    with pytest.raises(errors.ModelError, match="fill_mode"):
        mx.segment_max_node("x", "ids", "y", fill_mode="NONE")


@pytest.mark.parametrize("opset", range(18, onnx.defs.onnx_opset_version() + 1))
@pytest.mark.parametrize("count", [False, True], ids=["without num_segments", "num_segments"])
def test_the_portable_form_in_each_operator_set(count: bool, opset: int) -> None:
    inputs = {"x": np.array([[1], [3], [2]], np.float32), "ids": np.array([0, 0, 2])}
    inputs |= {"k": np.array(4)} if count else {}
    expected = mo.segment_max(inputs["x"], inputs["ids"], 4 if count else None, fill_mode="LOWEST")
    for dtype in ROW.dtypes:
        model = segments(dtype, "LOWEST", count=count)
        model.opset_import[0].version = opset
        onnx.checker.check_model(mx.portable(model), full_check=True)
        if dtype is FLOAT32:
            (plain,) = ReferenceEvaluator(mx.portable(model)).run(None, inputs)
            assert_same_bits(plain, expected)


def test_the_portable_form_of_a_model_that_has_portable_nodes() -> None:
    model = mx.portable(segments(FLOAT32, "ZERO", count=False))
    model.graph.node.append(mx.segment_max_node("y", "j", "z", fill_mode="ZERO"))
    model.graph.node.append(mx.segment_max_node("y", "j", "low", fill_mode="LOWEST"))
    model.graph.input.append(helper.make_tensor_value_info("j", onnx.TensorProto.INT64, ["s"]))
    model.graph.output.extend(
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, "uv") for name in ("z", "low")
    )
    portable = mx.portable(model)
    assert [each.name for each in portable.functions] == ["SegmentMax_float32_ZERO", "SegmentMax_float32_LOWEST"]
    inputs = {"x": np.array([[1], [3], [2]], np.float32), "ids": np.array([0, 0, 2]), "j": np.array([0, 0, 0])}
    assert mx.from_proto(portable).run(inputs)["z"].tolist() == [[3]]
    assert mx.portable(portable) == portable


def test_a_model_from_the_builder() -> None:
    node = mx.segment_max_node("x", "ids", "y", "k", fill_mode="lowest", name="peaks")
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info("x", onnx.TensorProto.INT8, ["n"]),
            helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["n"]),
            helper.make_tensor_value_info("k", onnx.TensorProto.INT64, []),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, ["s"])],
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("maxops", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    for got in run_all(model, {"x": np.array([3, -4], np.int8), "ids": np.array([0, 2]), "k": np.array(4)}):
        assert_same_bits(got, np.array([3, -128, -4, -128], np.int8))


def test_the_row_is_the_one_of_the_plain_function() -> None:
    """Test that `maxops.SegmentMax` and OpenVINO's operator are the same."""
    assert ROW is spec.find("OpenVINO", "SegmentMax", 16)
    assert ops.operator("OpenVINO", "SegmentMax", 16).clauses == ROW.clauses


# --------------------------------------------------------------------------------------- types of other operators

STRINGS = """<ir_version: 9, opset_import: ["": 20]> g (string[n] a, float[n] x, complex64[n] c)
    => (string[n] b, float[n] y, complex64[n] d) { b = StringConcat(a, a) y = Max(x, x) d = Identity(c) }"""


def test_inputs_and_outputs_of_types_that_no_max_takes(tmp_path: Path) -> None:
    loaded = mx.from_proto(parser.parse_model(STRINGS), "m.onnx")
    assert list(map(str, loaded.inputs)) == ["'a': string (n,)", "'x': float32 (n,)", "'c': complex64 (n,)"]
    given = {"a": np.array(["x", "é"]), "x": np.array([1, 2], np.float32), "c": np.array([1j, 2], np.complex64)}
    got = loaded.run(given)
    assert got["b"].tolist() == ["xx", "éé"]
    assert got["d"].tolist() == [1j, 2]
    with pytest.raises(
        errors.ModelInputError, match=r"input 'a' has dtype float32; the model expects 'a': string \(n,\)"
    ):
        loaded.run(given | {"a": given["x"]})
    with pytest.raises(errors.ModelInputError, match=r"input 'x' has dtype <U1; the model expects 'x': float32 \(n,\)"):
        loaded.run(given | {"x": given["a"]})
    onnx.save(parser.parse_model(STRINGS), tmp_path / "m.onnx")
    words = ["run", str(tmp_path / "m.onnx"), "--on", "onnx", "--parents", "--output", str(tmp_path / "out")]
    for name, array in given.items():
        np.save(tmp_path / f"{name}.npy", array)
        words += ["--input", f"{name}={tmp_path / name}.npy"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.stderr
    assert "xx, éé" in result.stdout
    assert np.load(tmp_path / "out" / "b.npy").tolist() == ["xx", "éé"]


def test_data_sets_of_types_that_no_max_takes(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(STRINGS), tmp_path / "model.onnx")
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    floats, complexes = np.array([1, 2], np.float32), np.array([1j, 2], np.complex64)
    for name, arrays in (
        ("input", [np.array(["x", "é"], object), floats, complexes]),
        ("output", [np.array(["xx", "éé"], object), floats, complexes]),
    ):
        for number, array in enumerate(arrays):
            (folder / f"{name}_{number}.pb").write_bytes(
                numpy_helper.from_array(array, "acx"[number]).SerializeToString()
            )
    words = ["run", str(tmp_path), "--on", "onnx"]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, "3 of 3 outputs agree bit for bit" in result.stdout) == (0, True)
    words += [f"--input={name}={folder}/input_{number}.pb" for number, name in enumerate("axc")]
    assert "xx, éé" in CliRunner().invoke(app, words).stdout


@pytest.mark.parametrize("kind", ["string", "int4", "float8e4m3fn"])
def test_a_default_of_a_type_that_no_max_takes(kind: str, on: Other) -> None:
    made = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[n] x, {kind}[2] s) => (float[n] y, float[2] z)
        {{ y = Max(x, x) z = Cast <to = 1> (s) }}"""
    )
    values: Any = [b"1", b"-2"] if kind == "string" else [1, -2]
    declared = made.graph.input[1].type.tensor_type
    made.graph.initializer.append(helper.make_tensor("s", declared.elem_type, [2], values))
    loaded = mx.from_proto(made, on=on)
    assert loaded.run({"x": np.ones(1, np.float32)})["z"].tolist() == [1, -2]
    declared.shape.dim[0].dim_value = 1
    with pytest.raises(errors.ModelError, match=rf"'s' is \w+ \(2,\), but the input is declared as 's': {kind}"):
        mx.from_proto(made, on=on)


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize("condition", ["", "yes"])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_loops(rank: int, condition: str, trips: int, on: Other) -> None:
    """Test scan outputs of each rank, and loops without a condition, which onnx's own evaluator gets wrong."""
    sizes, axes = ["[1]", "[1, 2]", "[1, 2, 2]"][rank], ["0, 1", "0", ""][rank]
    scan = f"axes = Constant <value_ints = [{axes}]> () s = ReduceMax <keepdims = 0> (w, axes)"
    scanned = "float" if rank == 0 else f"float{sizes.replace('1, ', '')}"
    made = parser.parse_model(
        OPSET_18
        + f"""g (float[2, 2] x, int64 n) => (float[2, 2] y, float{sizes.replace("1", "k")} z) {{
        yes = Constant <value = bool {{1}}> ()
        y, z = Loop <body = b (int64 i, bool c, float[2, 2] v) => (bool d, float[2, 2] w, {scanned} s) {{
            d = Identity(c)  w = Add(v, x)  {scan if rank < 2 else "s = Identity(w)"} }}> (n, {condition}, x) }}"""
    )
    x = np.array([[1, 2], [3, 4]], np.float32)
    got = mx.from_proto(made, on=on).run({"x": x, "n": np.array(trips)})
    assert_same_bits(got["y"], x * np.float32(trips + 1))
    last = [np.float32(4), x[1], x][rank]  # the maximum over the first 2 - rank axes
    expected = np.array([last * np.float32(number + 2) for number in range(trips)], np.float32)
    assert_same_bits(got["z"], expected.reshape(trips, *last.shape))


@pytest.mark.parametrize("kind", ["bfloat16", "float8e4m3fn", "float8e5m2", "int4", "uint4"])
@pytest.mark.parametrize("shape", [(3,), (), (0, 2), (3, 1)], ids=str)
def test_types_that_numpy_lacks_on_onnxruntime(kind: str, shape: tuple[int, ...]) -> None:
    pytest.importorskip("onnxruntime")
    number = TensorProto.DataType.Value(kind.upper())
    made = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g ({kind} a, float x) => ({kind} b, float c, float y)
        {{ y = Max(x, x) b = Cast <to = {number}> (x) c = Cast <to = 1> (a) }}"""
    )
    for info in (*made.graph.input, *made.graph.output):
        info.type.tensor_type.shape.CopyFrom(shape_of(shape))
    x = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    a = x.astype(helper.tensor_dtype_to_np_dtype(number))
    got = mx.from_proto(made, on="onnxruntime").run({"x": x, "a": a})
    assert (got["b"].dtype, got["b"].shape) == (a.dtype, shape)
    assert got["b"].tobytes() == a.tobytes()
    assert_same_bits(got["c"], a.astype(np.float32))


def test_a_default_that_onnxruntime_fixes_is_compared_by_value() -> None:
    pytest.importorskip("onnxruntime")
    made = parser.parse_model(
        """<ir_version: 3, opset_import: ["": 8]> g (string[2] s, float[n] x) => (string[2] t, float[n] y)
        <string[2] s = {"a", "bc"}> { t = Identity(s) m = Max(x, x) y = Abs(m) }"""
    )
    loaded, x = mx.from_proto(made, on="onnxruntime"), np.ones(1, np.float32)
    words = ["".join(each) for each in (["a"], ["b", "c"])]  # other objects than those of the default
    for given in (np.array(words, object), np.array(words)):
        assert loaded.run({"s": given, "x": x})["t"].tolist() == ["a", "bc"]
    with pytest.raises(
        errors.ModelInputError, match="input 's' has a default, which ONNX Runtime treats as a constant"
    ):
        loaded.run({"s": np.array(["a", "bd"], object), "x": x})


@pytest.mark.parametrize(("name", "where"), [("m", "node 'm' (Max)"), ("", "node (Max)")])
def test_a_broken_clause_is_the_same_error_on_each_evaluator(name: str, where: str) -> None:
    pytest.importorskip("onnxruntime")
    made = parser.parse_model(OPSET_18 + "g (float[n] a, float[m] b) => (float[k] z) { y = Max(a, b) z = Abs(y) }")
    made.graph.node[0].name = name
    given = {"a": np.zeros(2, np.float32), "b": np.zeros(3, np.float32)}
    for on in get_args(Other):
        with pytest.raises(errors.ShapeError, match=f"^model: {re.escape(where)}.*: Max-13 input 1 has shape") as found:
            mx.from_proto(made, on=on).run(given)
        assert found.value.clause == "ONNX.Max-13.shape"


OF_SEQUENCES = (
    OPSET_18
    + """
g (seq(float[n]) s, int64 at, float[m] a) => (float[k] y, seq(float[n]) z) {
    t = SequenceAt(s, at) y = Max(t, a) z = SequenceInsert(s, y) }"""
)
OF_OPTIONALS = (
    OPSET_18
    + """
g (optional(float[n]) o, float[n] a) => (bool h, float[n] y) { h = OptionalHasElement(o) y = Max(a) }"""
)


def test_sequences_are_lists(on: Other) -> None:
    loaded = mx.from_proto(parser.parse_model(OF_SEQUENCES), on=on)
    assert str(loaded.inputs[0]) == "'s': sequence of float32 (n,)"
    s = [np.array([1, 2], np.float32), np.array([3], np.float32)]
    at, a = np.array(0), np.array([0, 5], np.float32)
    got = loaded.run({"s": s, "at": at, "a": a})
    assert_same_bits(got["y"], np.array([1, 5], np.float32))
    assert [each.tolist() for each in got["z"]] == [[1, 2], [3], [1, 5]]
    assert not any(np.shares_memory(one, other) for one in got["z"] for other in s)
    assert loaded.run(["z"], {"s": tuple(s), "at": at, "a": a})[0][1].tolist() == [3]
    for wrong, said in (
        (s[0], "must be a list of arrays, got ndarray; the model expects 's': sequence of float32"),
        (None, "must be a list of arrays, got NoneType"),
        ([np.array([1.0])], r"input 's\[0\]' has dtype float64"),
        ([s[0], s[1][None]], r"input 's\[1\]' has rank 2"),
    ):
        with pytest.raises(errors.ModelInputError, match=said):
            loaded.run({"s": wrong, "at": at, "a": a})


def test_an_optional_is_an_array_or_none(on: Other) -> None:
    loaded = mx.from_proto(parser.parse_model(OF_OPTIONALS), on=on)
    a = np.array([1, 2], np.float32)
    assert [value.name for value in loaded.required] == ["a"]
    assert loaded.run({"o": a, "a": a})["h"].item() is True
    assert loaded.run({"o": None, "a": a})["h"].item() is False
    assert loaded.run({"a": a})["h"].item() is False
    with pytest.raises(errors.ModelInputError, match="input 'o' has rank 0"):
        loaded.run({"o": np.float32(1), "a": a})


def test_maps_are_refused() -> None:
    made = parser.parse_model(OF_SEQUENCES)
    element = made.graph.input[0].type.sequence_type.elem_type
    element.map_type.key_type = TensorProto.INT64
    element.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(errors.ModelError, match="input 's' is a sequence of a map; maxops supports dense tensors, and"):
        mx.from_proto(made)


def test_sequences_on_the_command_line(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(OF_SEQUENCES), tmp_path / "model.onnx")
    np.savez(tmp_path / "s.npz", np.array([1, 2], np.float32), np.array([3], np.float32))
    np.save(tmp_path / "at.npy", np.array(0))
    np.save(tmp_path / "a.npy", np.array([0, 5], np.float32))
    given = [f"--input={name}={tmp_path / name}.{kind}" for name, kind in (("s", "npz"), ("at", "npy"), ("a", "npy"))]
    out = ["--output", str(tmp_path / "out"), "--parents"]
    result = CliRunner().invoke(app, ["run", str(tmp_path / "model.onnx"), *given, *out])
    assert result.exit_code == 0, result.output
    written = {path.name: np.load(path).tolist() for path in (tmp_path / "out").iterdir()}
    assert written == {"y.npy": [1, 5], "z[0].npy": [1, 2], "z[1].npy": [3], "z[2].npy": [1, 5]}
    result = CliRunner().invoke(app, ["run", str(tmp_path / "model.onnx"), *given, "--against", "onnx-reference"])
    assert "--against supports only tensors, but the model has 's': sequence of float32 (n,)" in result.stderr


def run_model(folder: Path, text: str, *words: str, files: Mapping[str, Any]) -> Any:
    """Run `maxops run` on a model with arrays as .npy files, or lists of arrays as .npz files."""
    onnx.save(parser.parse_model(OPSET_18 + text), folder / "model.onnx")
    for name, given in files.items():
        np.savez(folder / name, *given) if isinstance(given, list) else np.save(folder / name, given)
    return CliRunner().invoke(app, ["run", str(folder / "model.onnx"), *words])


SAME = "g (seq(float[n]) s) => (seq(float[n]) z) { z = Identity(s) }"


def test_mistakes_with_sequences_are_told(tmp_path: Path) -> None:
    one, two = [np.array([1], np.float32)], [np.array([1], np.float32), np.array([2, 3], np.float32)]
    files = {"one.npz": one, "two.npz": two, "none.npz": [], "x.npy": one[0]}
    given = f"--input=s={tmp_path}/two.npz"
    for words, said in (
        ([given, f"--input=s={tmp_path}/one.npz"], "input 's' is specified twice"),
        ([f"--input=s={tmp_path}/x.npy"], "input 's': sequence of float32 (n,) requires a .npz file of its arrays"),
        ([given, "--output", "-"], "stdout can receive only one array, got 2"),
    ):
        result = run_model(tmp_path, SAME, *words, files=files)
        assert (result.exit_code, said in result.stderr) == (2, True), result.output
    result = run_model(tmp_path, SAME, f"--input=s={tmp_path}/none.npz", files=files)
    assert "z: empty\n" in result.stdout
    result = run_model(tmp_path, SAME, given, "--format", "json", files=files)
    assert [each["output"] for each in json.loads(result.stdout)["runs"][0]["outputs"]] == ["z[0]", "z[1]"]
    drawn = run_model(tmp_path, SAME, "--seed", "1", "--size", "n=7", "--format", "json", files=files)
    assert [each["shape"] for each in json.loads(drawn.stdout)["runs"][0]["outputs"]] == [[7]] * 3


def test_outputs_of_sequences_and_optionals_replace_no_input(tmp_path: Path) -> None:
    x = np.array([1, 2], np.float32)
    text = "g (optional(float[n]) z) => (optional(float[n]) y) { y = Identity(z) }"
    words = [f"--input=z={tmp_path}/y.npy", "--output", str(tmp_path)]
    result = run_model(tmp_path, text, *words, files={"y.npy": x})
    assert "y.npy is also an input; pass --overwrite" in result.stderr
    text = "g (float[n] a, float[n] b) => (seq(float[n]) z) { z = SequenceConstruct(a, b) }"
    words = [f"--input=a={tmp_path}/a.npy", f"--input=b={tmp_path}/z[1].npy", "--output", str(tmp_path)]
    result = run_model(tmp_path, text, *words, files={"a.npy": x, "z[1].npy": x})
    assert "z[1].npy is also an input; pass --overwrite" in result.stderr
    text = "g (float[n] a) => (optional(float[n]) z) { z = Optional(a) }"
    for on in ("onnx", "onnxruntime"):
        result = run_model(tmp_path, text, f"--input=a={tmp_path}/a.npy", "--on", on, files={})
        assert re.search(r"│ z +│ float32 │ \(2,\) +│ 1\.0, 2\.0", result.stdout), result.output


def test_inputs_of_another_byte_order(on: Other) -> None:
    text = "g (seq(float[n]) s, float[n] a) => (float[n] y, float[n] z) { i = Constant<value_int = 0>() "
    made = parser.parse_model(OPSET_18 + text + "t = SequenceAt(s, i) y = Abs(t) u = Abs(a) z = Max(u) }")
    swapped = np.array([1, -2], np.dtype(np.float32).newbyteorder())
    for result in mx.from_proto(made, on=on).run({"s": [swapped], "a": swapped}).values():
        assert_same_bits(result, np.array([1, 2], np.float32))


def test_data_sets_of_sequences_are_compared_to_their_ends(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(OPSET_18 + SAME), tmp_path / "model.onnx")
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()

    def run_on(given: bytes, expected: bytes) -> Any:
        (folder / "input_0.pb").write_bytes(given)
        (folder / "output_0.pb").write_bytes(expected)
        return CliRunner().invoke(app, ["run", str(tmp_path)])

    x, y = np.array([1], np.float32), np.array([2], np.float32)
    one, two = (numpy_helper.from_list(each).SerializeToString() for each in ([x], [x, y]))
    assert run_on(two, two).exit_code == 0
    longer = run_on(two, one)
    assert (longer.exit_code, "DIFFERS: expected nothing, got float32 (1,)" in longer.stdout) == (1, True)
    shorter = run_on(one, two)
    assert (shorter.exit_code, "DIFFERS: expected float32 (1,), got nothing" in shorter.stdout) == (1, True)
    assert "is empty, not a SequenceProto file" in run_on(b"", two).stderr
    assert "is not a SequenceProto file" in run_on(numpy_helper.from_array(x).SerializeToString(), two).stderr


@pytest.mark.parametrize("kind", ["sequence", "optional"])
def test_data_sets_of_sequences_and_optionals(kind: str, tmp_path: Path) -> None:
    """Test data sets as in onnx's own operator tests."""
    from onnx.backend.test.case.node import collect_testcases  # noqa: PLC0415

    names = {"sequence": "test_sequence_insert_at_back", "optional": "test_optional_has_element_empty_optional_input"}
    case: Any = next(each for each in collect_testcases("") if each.name == names[kind])
    onnx.save(case.model, tmp_path / "model.onnx")
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    for way, values, declared in zip(
        ("input", "output"), case.data_sets[0], (case.model.graph.input, case.model.graph.output), strict=True
    ):
        for number, (each, info) in enumerate(zip(values, declared, strict=True)):
            if info.type.HasField("sequence_type"):
                message = numpy_helper.from_list(each, info.name)
            elif info.type.HasField("optional_type"):
                message = numpy_helper.from_optional(each, info.name)
            else:
                message = numpy_helper.from_array(np.asarray(each), info.name)
            (folder / f"{way}_{number}.pb").write_bytes(message.SerializeToString())
    result = CliRunner().invoke(app, ["run", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert re.search(r"^\d of \d outputs? agree", result.stdout, re.MULTILINE)


def test_an_output_of_another_shape_than_declared_is_a_warning() -> None:
    """Test models with other operators, whose declared shapes may be wrong. In all other models, they are enforced."""
    text = OPSET_18 + "g (float[n] x) => (float[n] y) { t = Max(x, x) y = Unsqueeze(t, t) }"
    made = parser.parse_model(text.replace("Unsqueeze(t, t)", "Unsqueeze(t, axes)"))
    made.graph.initializer.append(numpy_helper.from_array(np.array([0]), "axes"))
    inputs = {"x": np.ones(2, np.float32)}
    runs: list[Callable[[Any], Any]] = [mx.from_proto(made).run, mx.Backend.prepare(made).run]
    for run in runs:
        with pytest.warns(
            UserWarning, match=r"declares output 'y': float32 \(n,\), but its nodes return .* \(1, 2\)"
        ) as caught:
            run(inputs)
        assert [each.filename for each in caught] == [__file__]
