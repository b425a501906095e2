"""Calls as text: ONNX's text format, IRs, and arrays in Python. Each text has the meaning of the call."""

from __future__ import annotations

import base64
import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import maxops.openvino
from conformance_calls import plain
from helpers.bits import STORED, of_words
from maxops import dtypes, spec
from maxops.conformance import ir_model, onnx_model
from maxops.conformance.case import Call, Input
from maxops.conformance.literal import literal
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.dtypes import DType
from maxops.errors import AttributeValueError
from maxops.plan import Array

KNOWN = {"np": np, "ml_dtypes": ml_dtypes, "Fraction": Fraction}


def telling(dtype: DType) -> Array:
    """Return values with distinctive bits: zeros, infinities, NaNs with payloads, subnormals and limits."""
    if dtype.kind == "bool":
        return np.array([True, False])
    top = 1 << dtype.bits - 1
    words = [0, 1, 3, top - 1, top, top + 1, 2 * top - 1]
    if dtype.kind == "float":
        words += [dtype.infinity_bits, dtype.lowest_bits, dtype.nan_bits, dtype.lowest_finite_bits]
    return of_words(dtype, words)


# ------------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize("shape", ["row", "column", "one", "scalar", "nothing"])
@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_literals_keep_every_bit(dtype: DType, shape: str) -> None:
    array = telling(dtype)
    finite = array[np.isfinite(array.astype(np.float64))]
    laid = {
        "row": array,
        "column": array.reshape(-1, 1),
        "one": finite[-1:],
        "scalar": finite[-1].reshape(()),
        "nothing": array[:0].reshape(0, 3),
    }[shape]
    made = eval(literal(laid), dict(KNOWN))
    assert (made.dtype, made.shape, made.tobytes()) == (laid.dtype, laid.shape, laid.tobytes())


def test_literals_are_short_where_they_can_be() -> None:
    assert literal(np.array([0.1, -0.0, -np.inf], np.float32)) == "np.array([0.1, -0.0, -np.inf], np.float32)"
    assert literal(np.array(7)) == "np.array(7, np.int64)"


@pytest.mark.parametrize("shape", ["runs", "runs-in-rows", "rows", "blocks", "signs"])
@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_large_literals_are_short_and_keep_every_bit(dtype: DType, shape: str) -> None:
    array = telling(dtype)
    large = {
        "runs": np.repeat(array, 100),
        "runs-in-rows": np.repeat(array, 100).reshape(-1, 50),
        "rows": np.tile(array, (200, 1)),
        "blocks": np.tile(np.tile(array, (3, 1)), (50, 1, 1)),
        "signs": np.repeat(array[[0, -1, 0]], [700, 1, 299]),
    }[shape]
    text = literal(large)
    assert len(text) < 800
    made = eval(text, dict(KNOWN))
    assert (made.dtype, made.shape, made.tobytes()) == (large.dtype, large.shape, large.tobytes())


def test_a_large_array_of_neither_is_spelled_out() -> None:
    array = np.arange(100, dtype=np.int16)
    assert literal(array) == f"np.array({array.tolist()}, np.int16)"


def random_bits(dtype: DType, *shape: int) -> Array:
    rng = np.random.default_rng(sum(shape))
    high = 1 if dtype.kind == "bool" else (1 << dtype.bits) - 1
    return rng.integers(0, high, shape, dtype.word, endpoint=True).view(dtype.numpy)


@pytest.mark.parametrize("shape", [(4096,), (4097,), (64, 64), (17, 241), (5, 30, 30)], ids=str)
@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_arrays_of_any_bits_are_spelled_out_or_compressed(dtype: DType, shape: tuple[int, ...]) -> None:
    array = random_bits(dtype, *shape)
    text = literal(array)
    assert ("zlib" in text) == (array.size > 4096)
    if array.size > 4096:
        assert len(text) < 1.4 * array.nbytes + 300
        assert max(map(len, text.split())) <= 160  # parts between which a line may break
    made = eval(text, KNOWN | {"base64": base64, "zlib": zlib})
    assert (made.dtype, made.shape, made.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert made.flags.writeable


STEPS = {
    "ones": np.arange(5000),
    "pairs": np.arange(5000) // 2,
    "triples from 30": np.arange(30 * 3, 5090) // 3,
    "from below 0": np.arange(-100, 4900),
    "pairs from below 0": np.arange(-100, 4900) // 2,
    "the last is another": np.append(np.arange(4999), 7),
    "the first is another": np.append(7, np.arange(4999)),
    "one is missing": np.delete(np.arange(5001), 3000),
    "all but one": np.append(np.zeros(4999, np.int64), 1) + np.arange(5000) % 2 * 2,
    "backwards": np.arange(5000)[::-1],
    "twos": np.arange(0, 10_000, 2),
    "pairs and the rest": np.append(np.arange(4000) // 2, np.arange(2000, 3000)),
    "from the middle of a pair": np.arange(1, 5001) // 2,
    "rows": np.arange(5000).reshape(50, 100),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("dtype", [each for each in STORED if each.bits >= 16 and each.kind != "bool"], ids=str)
def test_numbers_in_steps_keep_every_bit(dtype: DType, name: str) -> None:
    array = STEPS[name].astype(dtype.numpy)
    text = literal(array)
    is_short = dtype.kind != "float" and name in ("ones", "pairs", "triples from 30", "from below 0")
    if is_short and (dtype.kind == "int" or "below" not in name):
        assert len(text) < 60
    made = eval(text, KNOWN | {"base64": base64, "zlib": zlib})
    assert (made.dtype, made.shape, made.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_numbers_in_steps_read_as_somebody_would_write_them() -> None:
    assert literal(np.arange(5000)) == "np.arange(0, 5000)"
    assert literal(np.arange(9, 5000) // 3) == "np.arange(9, 5000) // 3"
    assert literal(np.arange(10, 5000, dtype=np.uint32) // 2) == "(np.arange(10, 5000) // 2).astype(np.uint32)"


@pytest.mark.parametrize(("size", "text"), [(64, "np.array([0, "), (65, "np.repeat(np.array([0], np.int8), [65])")])
def test_a_few_equal_elements_are_spelled_out(size: int, text: str) -> None:
    assert literal(np.zeros(size, np.int8)).startswith(text)


@pytest.mark.parametrize(("runs", "repeats"), [(32, True), (33, False)])
def test_few_runs_are_told_by_their_lengths(runs: int, repeats: bool) -> None:
    array = np.repeat(np.arange(runs, dtype=np.int8), 3)
    assert literal(array).startswith("np.repeat" if repeats else "np.array")
    assert (eval(literal(array), dict(KNOWN)) == array).all()


def test_literals_of_rationals() -> None:
    array = np.array([[Fraction(1, 3)], [2]], object)
    made = eval(literal(array), dict(KNOWN))
    assert (made.shape, made.tolist()) == ((2, 1), array.tolist())


def test_other_types_have_no_literal() -> None:
    with pytest.raises(TypeError, match="cannot write an array of dtype complex64 as text"):
        literal(np.zeros(1, np.complex64))


# ---------------------------------------------------------------------------------------------- ONNX's text


def of(row: spec.Spec, *inputs: Input | None, rank: int | None = 1, **attributes: Any) -> Call:
    return Call(row, inputs, tuple(attributes.items()), rank)


X = Input("x", dtypes.FLOAT32, (None, 3))
CALLS = {
    "scalars": of(spec.MAX_8, Input("x", dtypes.FLOAT64, ()), rank=0),
    "open-rank-of-the-output": of(spec.MAX_8, X, Input("z", dtypes.FLOAT32, (2, None)), rank=None),
    "consumed-inputs": of(spec.MAX_1, X, consumed_inputs=[0, 0], rank=2),
    "axes-attribute": of(spec.REDUCE_MAX_13, X, axes=[-1, 0], keepdims=0, rank=0),
    "no-axes-in-the-attribute": of(spec.REDUCE_MAX_13, X, axes=[], rank=2),
    "constant-axes": of(spec.REDUCE_MAX_20, X, Input("axes", dtypes.INT64, (1,), np.array([-1])), rank=2),
    "no-constant-axes": of(spec.REDUCE_MAX_20, X, Input("axes", dtypes.INT64, (0,), np.array([], int)), rank=2),
    "fed-axes": of(spec.REDUCE_MAX_20, X, Input("axes", dtypes.INT64, (None,)), noop_with_empty_axes=1, rank=2),
    "left-out-axes": of(spec.REDUCE_MAX_20, X, None, keepdims=1, rank=2),
    "left-out-data": of(spec.REDUCE_MAX_20, X, None, Input("z", dtypes.INT64, (1,))),
    "unknown-attribute": of(spec.MAX_13, X, Input("z", dtypes.FLOAT32, ()), mode="ze\"ro", alpha=0.5, rank=2),
} | {
    f"constant-{dtype}": of(spec.MAX_13, Input("x", dtype, (None,)), Input("c", dtype, (2,), telling(dtype)[:2]))
    for dtype in spec.MAX_13.dtypes
}  # fmt: skip


def parts(model: onnx.ModelProto) -> dict[str, Any]:
    """Return the content of a model, except its name and how its tensors are stored."""
    (node,) = model.graph.node
    return {
        "version": (model.ir_version, [(each.domain, each.version) for each in model.opset_import]),
        "node": (node.op_type, list(node.input), list(node.output)),
        "attributes": [onnx.helper.get_node_attr_value(node, each.name) for each in node.attribute],
        "kinds": [(each.name, each.type) for each in node.attribute],
        "inputs": [each.SerializeToString() for each in model.graph.input],
        "outputs": [each.SerializeToString() for each in model.graph.output],
        "tensors": [
            (each.name, each.data_type, array.shape, array.tobytes())
            for each in model.graph.initializer
            for array in [numpy_helper.to_array(each)]
        ],
    }


def by_onnx(call: Call) -> onnx.ModelProto:
    """Build the model of a call with onnx's own helpers."""
    types = {
        name: onnx.helper.np_dtype_to_tensor_dtype(dtype.numpy) for name, dtype in dtypes.BY_NAME.items() if dtype.onnx
    }
    node = onnx.helper.make_node(call.row.operator, [each.name if each else "" for each in call.inputs], ["y"])
    for name, value in call.attributes:
        kind = onnx.AttributeProto.INTS if value == [] else None
        node.attribute.append(onnx.helper.make_attribute(name, value, attr_type=kind))
    described: list[tuple[str, DType, Any]] = [(each.name, each.dtype, each.dims) for each in call.fed]
    described.append(("y", call.dtype, None if call.rank is None else (None,) * call.rank))
    *inputs, output = (
        onnx.helper.make_tensor_value_info(name, types[str(dtype)], dims) for name, dtype, dims in described
    )
    tensors = [numpy_helper.from_array(array, name) for name, array in call.constants.items()]
    graph = onnx.helper.make_graph([node], "case", inputs, [output], tensors)
    return onnx.helper.make_model(
        graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", call.row.version or 0)]
    )


@pytest.mark.parametrize("name", CALLS)
def test_the_text_is_the_model(name: str) -> None:
    here: dict[str, Any] = dict(KNOWN)
    exec("\n".join(onnx_model.lines(CALLS[name])), here)
    assert parts(here["model"]) == parts(onnx_model.model(CALLS[name])) == parts(by_onnx(CALLS[name]))


def test_another_model_is_told_from_it() -> None:
    """Test that the comparison of models can fail."""
    first, second = CALLS["constant-axes"], of(spec.REDUCE_MAX_20, X, Input("axes", dtypes.INT64, (1,), np.array([0])))
    assert parts(onnx_model.model(first)) != parts(onnx_model.model(second))


def test_the_text_is_short() -> None:
    call, _, _ = plain("Max", dtypes.INT64)
    assert onnx_model.lines(call) == [
        "import onnx, onnx.parser",
        'model = onnx.parser.parse_model(\'<ir_version: 8, opset_import: ["": 13]> '
        "case (int64[?] a, int64[?] b) => (int64[?] y) { y = Max(a, b) }')",
    ]


# ------------------------------------------------------------------------------------------------------ IRs

CONSTANT = Input("num_segments", dtypes.INT32, (), np.array(4, np.int32))


def segments(dtype: DType, *more: Input, **attributes: Any) -> Call:
    data = Input("data", dtype, (None, 2))
    return Call(spec.SEGMENT_MAX_16, (data, Input("ids", dtypes.INT32, (None,)), *more), tuple(attributes.items()))


@pytest.mark.parametrize("dtype", spec.SEGMENT_MAX_16.dtypes, ids=str)
def test_our_reader_and_openvino_read_the_ir(dtype: DType, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    text, weights = ir_model.ir(segments(dtype, CONSTANT, fill_mode="ZERO"))
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_bytes(weights)
    feed = {"data": np.array([[1, 2], [4, 3]]).astype(dtype.numpy), "ids": np.array([1, 3], np.int32)}
    expected = np.array([[0, 0], [1, 2], [0, 0], [4, 3]]).astype(dtype.numpy)
    assert maxops.openvino.load(tmp_path / "model.xml").run(feed)["y"].tobytes() == expected.tobytes()
    model = openvino.Core().read_model(text.encode(), openvino.Tensor(np.frombuffer(weights, np.uint8)))
    node = next(each for each in model.get_ops() if each.get_type_name() == "SegmentMax")
    assert node.get_output_partial_shape(0) == openvino.PartialShape([4, 2])
    openvino.serialize(model, tmp_path / "written.xml", tmp_path / "written.bin")
    assert ports(text) == ports((tmp_path / "written.xml").read_text())


def ports(text: str) -> list[tuple[str | None, str | None, int]]:
    """Return the type of each layer, and the type and rank of each of its ports."""
    layers = ElementTree.fromstring(text).findall("layers/layer")
    return [
        (layer.get("type"), port.get("precision"), len(port.findall("dim")))
        for layer in layers
        for port in layer.iter("port")
    ]


def test_an_ir_says_what_the_call_says() -> None:
    for mode in ("ZERO", "lowest", "sideways"):
        assert f'<data fill_mode="{mode}" />' in ir_model.ir(segments(dtypes.FLOAT32, fill_mode=mode))[0]
    assert "fill_mode" not in ir_model.ir(segments(dtypes.FLOAT32))[0]
    assert '<data other="1" />' in ir_model.ir(segments(dtypes.FLOAT32, other=1))[0]


def test_what_an_ir_leaves_out_is_refused_where_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(ir_model.ir(segments(dtypes.FLOAT32))[0])
    with pytest.raises(AttributeValueError, match="got neither"):
        maxops.openvino.load(tmp_path / "model.xml")


def test_an_ir_cannot_say_everything() -> None:
    ids = Input("ids", dtypes.INT32, (None,))
    with pytest.raises(NotApplicableError, match="an IR cannot contain ONNX Max-13"):
        ir_model.ir(CALLS["constant-float32"])
    with pytest.raises(NotApplicableError, match="an IR can omit only trailing inputs"):
        ir_model.ir(of(spec.SEGMENT_MAX_16, X, None, ids, fill_mode="ZERO"))
    with pytest.raises(NotApplicableError, match="no type for real numbers"):
        ir_model.ir(of(spec.SEGMENT_MAX_16, Input("data", dtypes.REAL, (None,)), ids, fill_mode="ZERO"))
    assert "num_segments" not in ir_model.ir(of(spec.SEGMENT_MAX_16, X, ids, None, fill_mode="ZERO"))[0]
