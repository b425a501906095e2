"""ONNX Runtime with maxops operators: their bits and errors, anywhere in a model."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import cycle, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, parser

import maxops as mo
from helpers import models
from helpers.bits import Array, assert_same_bits, fast_maximum, fast_reduce_max, mixed
from maxops import dtypes, errors, reference, spec
from maxops import onnx as mx
from maxops.dtypes import DType
from maxops.onnx.schemas import INDEX_TYPES
from maxops.onnx.tensors import DTYPES

ort = pytest.importorskip("onnxruntime")
maxops_onnxruntime = pytest.importorskip("maxops.onnxruntime")

NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
MAX_TYPES, REDUCE_TYPES = spec.MAX_13.dtypes, spec.REDUCE_MAX_20.dtypes
Model = onnx.ModelProto


def run(model: Model, inputs: dict[str, Array], **arguments: Any) -> list[Array]:
    """Return all outputs bit for bit, by IO binding, because ONNX Runtime's `run` does not support bfloat16."""
    session = maxops_onnxruntime.session(model, **arguments)
    return bound(session, inputs)


def plainly(model: Model, inputs: dict[str, Array]) -> object:
    return maxops_onnxruntime.session(model).run(None, inputs)


def bound(session: Any, inputs: dict[str, Array]) -> list[Array]:
    binding = session.io_binding()
    values = []
    for name, array in inputs.items():
        dtype = dtypes.of(array.dtype)
        assert dtype is not None
        values.append(np.ascontiguousarray(array))
        binding.bind_input(name, "cpu", 0, NUMBERS[dtype], list(array.shape), values[-1].ctypes.data)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    session.run_with_iobinding(binding)
    return [as_array(value) for value in binding.get_outputs()]


def as_array(value: Any) -> Array:
    """Return the value's memory as an array, because its `numpy` method does not support bfloat16."""
    dtype, shape = DTYPES[value.element_type()], tuple(value.shape())
    size = prod(shape) * dtype.numpy.itemsize
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(bytearray(data), dtype.numpy).reshape(shape)


def max_model(dtype: DType, shapes: list[tuple[int, ...]], opset: int = 13) -> Model:
    names, element = [f"x{number}" for number in range(len(shapes))], NUMBERS[dtype]
    inputs = [models.value(name, [None] * len(shape), element) for name, shape in zip(names, shapes, strict=True)]
    output = models.value("y", [None] * max(map(len, shapes)), element)
    return models.model([models.node("Max", names, "y")], inputs, [output], opset=opset)


# ------------------------------------------------------------------------------------------------------ Max


THREE = [(3, 1, 5), (4, 1), (1, 1, 5)]
SHAPES: list[list[tuple[int, ...]]] = [
    [(17,), (17,)],
    [(130,)] * 3,
    [(), ()],
    [(2, 3), ()],
    [(0, 3), (1, 3)],
    [(4,)],
    [(1, 2, 1, 2, 1, 2, 1, 2), (2, 1, 2, 1, 2, 1, 2, 1)],
    [(2000, 3), (3,)],
]


@pytest.mark.parametrize(
    ("dtype", "shapes"),
    [*((dtype, THREE) for dtype in MAX_TYPES), *((dtypes.FLOAT32, shapes) for shapes in SHAPES)],
    ids=str,
)
def test_max(dtype: DType, shapes: list[tuple[int, ...]]) -> None:
    arrays = [mixed(dtype, shape, number) for number, shape in enumerate(shapes)]
    (got,) = run(max_model(dtype, shapes), {f"x{number}": array for number, array in enumerate(arrays)})
    assert_same_bits(got, reference.maximum(*arrays))


def test_max_of_many_inputs() -> None:
    arrays = [mixed(dtypes.INT64, (5,), number) for number in range(300)]
    (got,) = run(max_model(dtypes.INT64, [(5,)] * 300), {f"x{number}": array for number, array in enumerate(arrays)})
    assert_same_bits(got, fast_maximum(*arrays))


def test_a_large_max_on_several_threads() -> None:
    shape = (3_000_001,)
    a, b = mixed(dtypes.FLOAT32, shape, 1), mixed(dtypes.FLOAT32, shape, 2)
    (got,) = run(max_model(dtypes.FLOAT32, [shape] * 2), {"x0": a, "x1": b})
    assert_same_bits(got, mo.maximum(a, b))


def test_integers_above_32_bits() -> None:
    """Test integers for which onnxruntime 1.31.1 itself computed 1."""
    model = max_model(dtypes.INT64, [(4,)] * 2)
    inputs: dict[str, Array] = {"x0": np.full(4, 3_000_000_000), "x1": np.ones(4, np.int64)}
    assert run(model, inputs)[0].tolist() == [3_000_000_000] * 4


# ------------------------------------------------------------------------------------------------ ReduceMax


@pytest.mark.parametrize(
    ("dtype", "keepdims", "axes"),
    [
        *((dtype, number % 2, (0, 2)) for number, dtype in enumerate(REDUCE_TYPES)),
        *product([dtypes.FLOAT32], [0, 1], [None, (), (0,), (-1,), (2, 1, 0)]),
    ],
    ids=str,
)
def test_reduce_max(dtype: DType, keepdims: int, axes: tuple[int, ...] | None) -> None:
    data = mixed(dtype, (3, 4, 5), 1)
    inputs: dict[str, Array] = {"x": data}
    more = ""
    if axes is not None:
        inputs["axes"] = np.array(axes, np.int64)
        more = ", int64[a] axes"
    text = (
        f'<ir_version: 10, opset_import: ["": 20]> g ({dtype.onnx}[a,b,c] x{more}) => ({dtype.onnx} y) '
        f"{{ y = ReduceMax <keepdims = {keepdims}> (x{', axes' if axes is not None else ''}) }}"
    )
    (got,) = run(parser.parse_model(text), inputs)
    assert_same_bits(got, fast_reduce_max(data, axes or (0, 1, 2), bool(keepdims)))


@pytest.mark.parametrize("row", [row for row in spec.ALL if row.operator == "ReduceMax"], ids=lambda row: row.name)
@pytest.mark.parametrize("negative", [False, True], ids=["positive", "negative"])
def test_every_version_of_reduce_max(row: spec.Spec, negative: bool) -> None:
    axis = -1 if negative else 1
    by = f"k = Constant <value = int64[1] {{{axis}}}> () y = ReduceMax (x, k)"
    if not row.axes_input:
        by = f"y = ReduceMax <axes = [{axis}]> (x)"
    text = f'<ir_version: 10, opset_import: ["": {row.version}]> g (float[a,b] x) => (float[a,c] y) {{ {by} }}'
    model = parser.parse_model(text)
    data = mixed(dtypes.FLOAT32, (3, 4), 1)
    if negative and not row.negative_axes:
        with pytest.raises(Exception, match=r"\[ONNX\.ReduceMax-1\.axes\.range\]"):
            run(model, {"x": data})
    else:
        assert_same_bits(run(model, {"x": data})[0], fast_reduce_max(data, (1,), True))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (2,) * 12], ids=str)
def test_reduce_max_of_odd_shapes(shape: tuple[int, ...]) -> None:
    text = '<ir_version: 10, opset_import: ["": 20]> g (float x) => (float y) { y = ReduceMax <keepdims = 0> (x) }'
    model = parser.parse_model(text)
    model.graph.input[0].type.tensor_type.shape.Clear()
    for size in shape:
        model.graph.input[0].type.tensor_type.shape.dim.add().dim_value = size
    data = mixed(dtypes.FLOAT32, shape, 1)
    assert_same_bits(run(model, {"x": data})[0], mo.reduce_max(data, keepdims=False))


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (0, 4)], ids=str)
@pytest.mark.parametrize("dtype", [dtypes.FLOAT32, dtypes.INT8], ids=str)
def test_noop_with_empty_axes(dtype: DType, shape: tuple[int, ...]) -> None:
    text = (
        f'<ir_version: 10, opset_import: ["": 18]> g ({dtype.onnx}[a,b] x, int64[k] axes) => ({dtype.onnx}[a,b] y) '
        "{ y = ReduceMax <noop_with_empty_axes = 1> (x, axes) }"
    )
    data = mixed(dtype, shape, 1)
    assert_same_bits(run(parser.parse_model(text), {"x": data, "axes": np.array([], np.int64)})[0], data)
    (got,) = run(parser.parse_model(text), {"x": data, "axes": np.array([0])})
    assert_same_bits(got, fast_reduce_max(data, (0,), True))


# ----------------------------------------------------------------------------------------------- SegmentMax


def ours(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], output: onnx.ValueInfoProto) -> Model:
    """Return a model of operators of the maxops domain."""
    made = models.model(nodes, inputs, [output], opset=18)
    made.opset_import.add(domain="maxops", version=1)
    return made


def segment_model(dtype: DType, mode: str, ids: DType, count: DType | None, rank: int = 2) -> Model:
    data, output = (models.value(name, [None] * rank, NUMBERS[dtype]) for name in "xy")
    inputs = [data, models.value("ids", [None], NUMBERS[ids])]
    if count is not None:
        inputs.append(models.value("k", [], NUMBERS[count]))
    node = mx.segment_max_node("x", "ids", "y", "" if count is None else "k", fill_mode=mode)
    return ours([node], inputs, output)


IDS = [0, 0, 2, 2, 2, 5]


@pytest.mark.parametrize(
    ("mode", "dtype", "ids", "count"),
    [
        (*case, *types)
        for case, types in zip(
            product(["ZERO", "lowest"], spec.SEGMENT_MAX_16.dtypes),
            cycle(product(INDEX_TYPES, [None, *INDEX_TYPES])),
            strict=False,
        )
    ],
    ids=str,
)
def test_segment_max(mode: str, dtype: DType, ids: DType, count: DType | None) -> None:
    data = mixed(dtype, (6, 5), 1)
    given = np.array(IDS, ids.numpy)
    session = maxops_onnxruntime.session(segment_model(dtype, mode, ids, count))
    for segments in (None,) if count is None else (0, 2, 6, 9):
        inputs: dict[str, Array] = {"x": data, "ids": given}
        if segments is not None and count is not None:
            inputs["k"] = np.array(segments, count.numpy)
        (got,) = bound(session, inputs)
        expected = IDS[-1] + 1 if segments is None else segments
        assert_same_bits(got, reference.segment_max(data, given, expected, mode.upper()))


@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize("count", INDEX_TYPES, ids=str)
def test_of_num_segments_its_own_bytes_are_read(count: DType, width: int) -> None:
    inputs: dict[str, Array] = {"x": mixed(dtypes.FLOAT32, (3, width), 1), "ids": np.array([0, 0, 2])}
    inputs["k"] = np.array([9, 4, 9], count.numpy)[1:2].reshape(())
    (got,) = run(segment_model(dtypes.FLOAT32, "ZERO", dtypes.INT64, count), inputs)
    assert_same_bits(got, reference.segment_max(inputs["x"], inputs["ids"], 4, "ZERO"))


def test_segment_max_without_rows() -> None:
    inputs: dict[str, Array] = {"x": np.zeros((0, 3), np.float32), "ids": np.zeros(0, np.int64)}
    (got,) = run(segment_model(dtypes.FLOAT32, "ZERO", dtypes.INT64, None), inputs)
    assert_same_bits(got, np.zeros((0, 3), np.float32))


# ---------------------------------------------------------------------------------------------------- errors


def segment_error(ids: list[int], count: int | None = None) -> Callable[[], object]:
    inputs = {"x": mixed(dtypes.FLOAT32, (len(ids), 2), 1), "ids": np.array(ids)}
    if count is not None:
        inputs["k"] = np.array(count)
    model = segment_model(dtypes.FLOAT32, "ZERO", dtypes.INT64, None if count is None else dtypes.INT64)
    return lambda: plainly(model, inputs)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (segment_error([0, 2, 1]), r"got 1 after 2 at position 2 \[OpenVINO\.SegmentMax-16\.ids\]"),
        (segment_error([-1, 2, 2]), r"got -1 at position 0 \[OpenVINO\.SegmentMax-16\.ids\]"),
        *(
            (
                segment_error([0, 1], count),
                rf"num_segments must be non-negative, got {count} .*\[OpenVINO\.SegmentMax-16\.num_segments\]",
            )
            for count in (-1, -3)
        ),
        (segment_error([0, 1], 2**62), r"GiB of memory \[OpenVINO\.SegmentMax-16\.shape\]"),
        (segment_error([0, 2**63 - 1]), r"\[OpenVINO\.SegmentMax-16\.shape\]"),
        (
            lambda: plainly(
                max_model(dtypes.FLOAT32, [(2,), (3,)]), {"x0": np.zeros(2, np.float32), "x1": np.zeros(3, np.float32)}
            ),
            r"does not broadcast .*\[ONNX\.Max-13\.shape\]",
        ),
        (
            lambda: plainly(
                max_model(dtypes.FLOAT32, [(2,), (1,)], opset=6),
                {"x0": np.zeros(2, np.float32), "x1": np.zeros(1, np.float32)},
            ),
            r"version 6 does not broadcast.*\[ONNX\.Max-6\.shape\]",
        ),
        (
            lambda: plainly(max_model(dtypes.INT8, [(2,), (2,)], opset=8), {"x0": np.zeros(2, np.int8)}),
            r"Max-8 .* has unsupported dtype int8; .*\[ONNX\.Max-8\.T\]",
        ),
    ],
)
def test_errors_name_the_clause(act: Callable[[], object], words: str) -> None:
    with pytest.raises(Exception, match=words) as caught:
        act()
    assert type(caught.value).__module__.startswith("onnxruntime")


@pytest.mark.parametrize("axes", [[2], [-3], [0, 0]], ids=str)
def test_axes_that_are_wrong(axes: list[int]) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 18]> g (float[a,b] x, int64[k] axes) => (float[a,b] y) '
        "{ y = ReduceMax (x, axes) }"
    )
    with pytest.raises(Exception, match=r"\[ONNX\.ReduceMax-18\.axes"):
        plainly(parser.parse_model(text), {"x": np.zeros((2, 2), np.float32), "axes": np.array(axes)})


def test_an_unknown_version() -> None:
    model = max_model(dtypes.FLOAT32, [(2,)])
    moved = mx.rewrite(model)
    moved.graph.node[0].attribute[0].i = 7
    with pytest.raises(Exception, match="ONNX Max has no version 7"):
        ort.InferenceSession(moved.SerializeToString(), maxops_onnxruntime.register(ort.SessionOptions()))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"keepdims": 2}, r"keepdims must be True, False, 1 or 0, got 2 .*\[ONNX\.ReduceMax-20\.keepdims\]"),
        (
            {"noop_with_empty_axes": 5},
            r"noop_with_empty_axes must be .*, got 5 .*\[ONNX\.ReduceMax-20\.noop_with_empty_axes\]",
        ),
        ({"since_version": 13, "noop_with_empty_axes": 1}, "ReduceMax-13 has no attribute noop_with_empty_axes"),
    ],
    ids=str,
)
def test_attributes_that_are_wrong(attributes: dict[str, Any], words: str) -> None:
    node = models.node("ReduceMax", ["x"], "y", domain="maxops", **attributes)
    model = ours([node], [models.value("x", [None])], models.value("y", [None]))
    with pytest.raises(Exception, match=words):
        maxops_onnxruntime.session(model)


def test_a_fill_mode_with_more_behind_a_zero_byte() -> None:
    model = segment_model(dtypes.FLOAT32, "ZERO", dtypes.INT64, None)
    model.graph.node[0].attribute[0].s = b"ZERO\0LOWEST"
    with pytest.raises(Exception, match=r"fill_mode must be 'ZERO' or 'LOWEST', got 'ZERO\\x00LOWEST'"):
        plainly(model, {"x": np.zeros((1, 1), np.float32), "ids": np.array([0])})


@pytest.mark.parametrize("model", [b"no model", "no model"], ids=["bytes", "file"])
def test_what_is_no_model(model: bytes | str, tmp_path: Path) -> None:
    if isinstance(model, str):
        (tmp_path / "m.onnx").write_text(model)
    with pytest.raises(errors.ModelError, match="truncated or not an ONNX model"):
        maxops_onnxruntime.session(model if isinstance(model, bytes) else tmp_path / "m.onnx")


def test_a_session_goes_on_after_an_error() -> None:
    session = maxops_onnxruntime.session(segment_model(dtypes.FLOAT32, "ZERO", dtypes.INT64, None))
    good: dict[str, Array] = {"x": np.array([[1], [2]], np.float32), "ids": np.array([0, 1])}
    for _ in range(3):
        with pytest.raises(Exception, match="must be non-decreasing"):
            session.run(None, good | {"ids": np.array([1, 0])})
        assert session.run(None, good)[0].tolist() == [[1], [2]]


# ------------------------------------------------------------------------------------------- whole models

LOOP = """<ir_version: 9, opset_import: ["": 13]>
g (int64 n, float[2] a, float[k,2] rows) => (float[2] y, float[k,1] all) {
    yes = Constant <value = bool {1}> ()
    y, all = Loop (n, yes, a)
        <body = one (int64 i, bool go, float[2] so_far) => (bool on, float[2] best, float[1] each) {
        on = Identity(go)
        row = Gather(rows, i)
        best = Max(so_far, row)
        each = ReduceMax <axes = [0], keepdims = 1> (best)
    }>
}"""


def test_inside_a_loop() -> None:
    """Test a Loop. test_model_functions.py tests other nested graphs and functions."""
    rows, a = mixed(dtypes.FLOAT32, (7, 2), 1), mixed(dtypes.FLOAT32, (2,), 2)
    best, each = maxops_onnxruntime.session(parser.parse_model(LOOP)).run(
        None, {"n": np.array(7), "a": a, "rows": rows}
    )
    so_far = [mo.maximum(a, *rows[: count + 1]) for count in range(7)]
    assert_same_bits(best, so_far[-1])
    assert_same_bits(each, np.stack([mo.reduce_max(row) for row in so_far]))


def test_options_that_are_used_again() -> None:
    options = ort.SessionOptions()
    arrays: dict[str, Array] = {f"x{number}": mixed(dtypes.FLOAT32, (3,), number) for number in range(2)}
    for _ in range(2):
        (got,) = bound(maxops_onnxruntime.session(max_model(dtypes.FLOAT32, [(3,)] * 2), options), arrays)
        assert_same_bits(got, fast_maximum(*arrays.values()))
    assert maxops_onnxruntime.register(options) is options


def test_arguments_reach_the_session() -> None:
    """Test `sess_options` and the other arguments of `InferenceSession`."""
    options = ort.SessionOptions()
    options.add_session_config_entry("maxops.test", "kept")
    model = max_model(dtypes.FLOAT32, [(3,)] * 2)
    made = maxops_onnxruntime.session(model, options, providers=["CPUExecutionProvider"])
    assert made.get_providers() == ["CPUExecutionProvider"]
    assert made.get_session_options().get_session_config_entry("maxops.test") == "kept"
    with pytest.warns(UserWarning, match="NoSuchProvider"):
        maxops_onnxruntime.session(model, providers=["NoSuchProvider"])


@pytest.mark.parametrize("in_file", [True, False], ids=["file", "bytes"])
def test_a_folder_of_external_data_is_of_one_session(in_file: bool, tmp_path: Path) -> None:
    """Test that the entry in the caller's options is restored. Without one, an empty entry remains."""
    options = ort.SessionOptions()
    name = "session.model_external_initializers_file_folder_path"
    options.add_session_config_entry(name, "of the user")
    model = max_model(dtypes.FLOAT32, [(3,)] * 2).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(model)
    maxops_onnxruntime.session(tmp_path / "m.onnx" if in_file else model, options)
    assert options.get_session_config_entry(name) == "of the user"
    (tmp_path / "w.bin").write_bytes(np.array([1, 2, 3, 4], np.float32).tobytes())
    (tmp_path / "e.onnx").write_bytes(models.external(location="w.bin").SerializeToString())
    maxops_onnxruntime.session(tmp_path / "e.onnx", options)
    assert options.get_session_config_entry(name) == "of the user"
    options = ort.SessionOptions()
    maxops_onnxruntime.session(tmp_path / "e.onnx", options)
    assert options.get_session_config_entry(name) == ""
    # A model in bytes has no folder.
    with pytest.raises(Exception, match=r"External data path|model_path must not be empty"):
        maxops_onnxruntime.session((tmp_path / "e.onnx").read_bytes(), options)


def test_external_data_causes_no_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Test that no entry is set twice, because ONNX Runtime would warn on stderr."""
    (tmp_path / "w.bin").write_bytes(np.array([1, 2, 3, 4], np.float32).tobytes())
    model = models.external(location="w.bin")
    model.graph.node.add(op_type="Neg", input=[model.graph.output[0].name], output=["n"])  # for ONNX Runtime
    (tmp_path / "e.onnx").write_bytes(model.SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path.resolve()))
    for _ in range(2):
        mx.load(tmp_path / "e.onnx", on="onnxruntime")
        maxops_onnxruntime.session(tmp_path / "e.onnx")
        maxops_onnxruntime.session(tmp_path / "e.onnx", options)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("start", "stop"), [(0, 90_000), (1, 90_001), (0, 10)], ids=["in place", "beside", "short"])
def test_an_output_that_the_caller_binds(start: int, stop: int) -> None:
    """Test that results are written directly, and correctly if the output overlaps an input."""
    memory, other = mixed(dtypes.FLOAT32, (90_001,), 1), mixed(dtypes.FLOAT32, (90_001,), 2)
    a, b, out = memory[: stop - start], other[: stop - start], memory[start:stop]
    expected = mo.maximum(a, b)
    session = maxops_onnxruntime.session(max_model(dtypes.FLOAT32, [a.shape] * 2))
    binding = session.io_binding()
    for name, array in (("x0", a), ("x1", b)):
        binding.bind_input(name, "cpu", 0, TensorProto.FLOAT, list(a.shape), array.ctypes.data)
    binding.bind_output("y", "cpu", 0, TensorProto.FLOAT, list(out.shape), out.ctypes.data)
    session.run_with_iobinding(binding)
    assert_same_bits(out, expected)


@pytest.mark.parametrize("dtype", [dtypes.UINT8, dtypes.INT64], ids=str)
@pytest.mark.parametrize("operator", ["Max", "ReduceMax", "SegmentMax"])
def test_an_output_anywhere_in_the_memory_of_the_inputs(operator: str, dtype: DType) -> None:
    text = (
        f'<ir_version: 10, opset_import: ["": 20]> g ({dtype.onnx}[n] x, int64[k] axes) => ({dtype.onnx}[1] y) '
        "{ y = ReduceMax (x, axes) }"
    )
    model, other, expected = {
        "Max": (max_model(dtype, [(3,)] * 2), np.array([2, 1, 3], dtype.numpy), [3, 1, 3]),
        "ReduceMax": (parser.parse_model(text), np.array([0]), [3]),
        "SegmentMax": (segment_model(dtype, "ZERO", dtypes.INT64, None, 1), np.array([0, 0, 1]), [3, 2]),
    }[operator]
    session = maxops_onnxruntime.session(model)
    inputs = [(24, np.array([3, 1, 2], dtype.numpy)), (48, other)]
    start, out = np.zeros(96, np.uint8), np.array(expected, dtype.numpy)
    for place, array in inputs:
        start[place : place + array.nbytes] = array.view(np.uint8)
    for place in range(0, start.nbytes - out.nbytes + 1, out.itemsize):
        memory, result, binding = start.copy(), start.copy(), session.io_binding()
        for node, (at, array) in zip(session.get_inputs(), inputs, strict=True):
            binding.bind_input(node.name, "cpu", 0, array.dtype, array.shape, memory.ctypes.data + at)
        binding.bind_output("y", "cpu", 0, out.dtype, out.shape, memory.ctypes.data + place)
        session.run_with_iobinding(binding)
        result[place : place + out.nbytes] = out.view(np.uint8)
        assert memory.tobytes() == result.tobytes(), place


def test_from_many_threads_at_once() -> None:
    a, b = mixed(dtypes.FLOAT32, (200_000,), 1), mixed(dtypes.FLOAT32, (200_000,), 2)
    options = ort.SessionOptions()
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 2
    text = """<ir_version: 8, opset_import: ["": 13]> g (float[n] a, float[n] b) => (float[n] y) {
        p = Max(a, b) q = Max(b, a) y = Max(p, q) }"""
    session = maxops_onnxruntime.session(parser.parse_model(text), options)
    results: list[Array] = []
    workers = [
        threading.Thread(target=lambda: results.append(session.run(None, {"a": a, "b": b})[0])) for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 8
    for result in results:
        assert_same_bits(result, mo.maximum(a, b))


@pytest.mark.parametrize("dtype", MAX_TYPES, ids=str)
def test_a_moved_model_runs_elsewhere(dtype: DType) -> None:
    """Test a model on onnx's reference evaluator and with `maxops run`. onnx.checker must accept it."""
    model = mx.rewrite(max_model(dtype, [(3,), (3,)]))
    mx.register()
    onnx.checker.check_model(model, full_check=True)
    arrays = {f"x{number}": mixed(dtype, (3,), number) for number in range(2)}
    assert_same_bits(mx.from_proto(model).run(arrays)["y"], fast_maximum(*arrays.values()))


def test_a_model_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that pipes are supported, and that a file that changes while it is loaded is one model."""
    path, opened, original = tmp_path / "m.onnx", list[Path](), Path.open
    onnx.save(
        parser.parse_model('<ir_version: 8, opset_import: ["": 13]> f (float[n] x) => (float[n] y) { y = Abs (x) }'),
        path,
    )

    def counted(self: Path, *args: Any) -> Any:
        opened.append(self)
        return original(self, *args)

    monkeypatch.setattr(Path, "open", counted)
    loaded = mx.load(path, on="onnxruntime")
    assert opened == [path]
    assert loaded.run({"x": np.array([-2], np.float32)})["y"].tolist() == [2]


@pytest.mark.exhaustive  # takes seconds, mostly for file I/O
def test_more_than_two_gigabytes(tmp_path: Path) -> None:
    """Test weights in an external file, larger than the limit of a protobuf message."""
    size = 2**31 + 64
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(size)
        file.seek(size - 1)
        file.write(b"\x07")
    weights = TensorProto(name="w", data_type=TensorProto.UINT8, dims=[size], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="weights.bin")
    x, y = (models.value(name, [1], TensorProto.UINT8) for name in "xy")
    nodes = [models.node("ReduceMax", ["w"], "m", keepdims=1), models.node("Max", ["x", "m"], "y")]
    model = models.model(nodes, [x], [y], [weights])
    path = tmp_path / "large.onnx"
    path.write_bytes(model.SerializeToString())
    assert maxops_onnxruntime.session(path).run(None, {"x": np.array([3], np.uint8)})[0].tolist() == [7]


def test_a_model_and_its_data_that_are_links(tmp_path: Path) -> None:
    """Test links as in Hugging Face's cache, where the files have other names."""
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    (there / "data").write_bytes(np.array([1, 2, 3, 4], np.float32).tobytes())
    (there / "model").write_bytes(models.external(location="w.bin").SerializeToString())
    (here / "w.bin").symlink_to(there / "data")
    (here / "m.onnx").symlink_to(there / "model")
    (got,) = maxops_onnxruntime.session(here / "m.onnx").run(None, {"x": np.array([9, -9, 9, -9], np.float32)})
    assert_same_bits(got, np.array([9, 2, 9, 4], np.float32))
    model = models.external(location="w.bin")
    model.graph.node.add(op_type="Abs", input=["x"], output=["more"])  # so that ONNX Runtime runs the model
    (there / "model").write_bytes(model.SerializeToString())
    loaded = mx.load(here / "m.onnx", on="onnxruntime")
    assert_same_bits(loaded.run({"x": np.array([9, -9, 9, -9], np.float32)})["y"], got)


@pytest.mark.parametrize("inside", [False, True], ids=["called", "called-in-a-function"])
def test_a_function_with_the_name_of_a_contrib_operator(inside: bool) -> None:
    """Test that ONNX Runtime, which prefers its own operators to functions, never changes a result silently."""
    calls = "z = own.outer(x)" if inside else "z = com.microsoft.{name}(x)"
    outer = (
        '<domain: "own", opset_import: ["": 18, "com.microsoft": 1]> outer (x) => (z) { z = com.microsoft.{name}(x) }'
    )
    text = '<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1, "own": 1]> f (float[n] x) => (float[n] y) '
    text += f"{{ {calls} y = Max(z, z) }} {outer * inside}"
    text += '<domain: "com.microsoft", opset_import: ["": 18]> {name} (a) => (b) { b = Neg(a) }'
    x = np.array([-1, 2], np.float32)
    made = {name: parser.parse_model(text.replace("{name}", name)) for name in ("Own", "Gelu")}
    assert_same_bits(mx.from_proto(made["Own"], on="onnxruntime").run({"x": x})["y"], -x)
    for each in made.values():
        assert_same_bits(mx.from_proto(each, on="onnx").run({"x": x})["y"], -x)
    said = (
        r"com\.microsoft\.Gelu is both a function of the model and an operator of onnxruntime .*; rename the function"
    )
    with pytest.raises(errors.ModelError, match=said):
        mx.from_proto(made["Gelu"], on="onnxruntime")


def test_a_build_of_onnxruntime_that_does_not_list_its_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxops.onnxruntime import evaluated  # noqa: PLC0415  (it needs onnxruntime)

    monkeypatch.delattr(ort.capi.onnxruntime_pybind11_state, "get_all_operator_schema")
    monkeypatch.setattr(evaluated, "_operators", evaluated._operators.__wrapped__)
    assert evaluated._operators() == frozenset()


# ------------------------------------------------------------------------------------------ a runtime that fails

STAND_IN = """
import signal, sys
from types import SimpleNamespace
import numpy as np
from maxops import _native
from maxops.onnxruntime import node as nodes
from fake_onnxruntime import FLOAT32, INT64, Runtime, Tensor, tensor
runtime = Runtime()
data, ids = np.array([[1, 5], [7, 2]], np.float32), np.array([0, 1])
"""

REGISTERED = """
runtime.newest = 15
assert runtime.register() == (1, "maxops requires onnxruntime 1.21 or newer") and runtime.asked == [16, 1]
runtime.newest, failed = 16, []
while True:
    runtime.calls, runtime.fails_at = 0, len(failed)
    status = runtime.register()
    if status is None:
        break
    failed.append(status[1])
adding = len(failed) - 2
assert failed == ["create_domain fails", *["add_operator fails"] * adding, "add_domain fails"] and adding > 50
runtime.operators.clear()
assert runtime.register() is None and runtime.operators == []  # one set of them for all sessions
"""

# The failing function returns the status, and everything allocated before is released.
EACH_FAILS = """
assert runtime.register() is None
def run(name, *inputs, **attributes):
    with runtime.node(name, **attributes) as compute:
        failed = []
        while True:
            runtime.calls, runtime.fails_at = 0, len(failed)
            result = compute(*inputs)
            runtime.fails_at = None
            if not isinstance(result, tuple):
                return result.tolist(), failed
            assert result[0] == 9 and result[1].endswith(" fails"), result
            failed.append(result[1].removesuffix(" fails"))
ONE = ["input", "tensor_info", "element_type", "rank", "dimensions", "tensor_data"]
OUTPUT = ["output", *ONE[1:]]
whole = tensor(data), tensor(ids)
assert run("Max", whole[0]) == (data.tolist(), ["input_count", *ONE, *OUTPUT])
assert run("ReduceMax", whole[0]) == ([[7]], ["input_count", *ONE, *OUTPUT])
assert run("SegmentMax", *whole, fill_mode=b"ZERO") == (data.tolist(), ["input_count", *ONE * 2, *OUTPUT])
# an output over the inputs is the planner's to fill, which asks for it once more
runtime.given_output = data[:1]
assert run("ReduceMax", whole[0], tensor(ids[:1])) == ([[7, 5]], ["input_count", *ONE * 2, *OUTPUT * 2])
runtime.given_output = data
expected = [[7, 5], [7, 2]]
assert run("SegmentMax", *whole, fill_mode=b"ZERO") == (expected, ["input_count", *ONE * 2, *OUTPUT * 2])
runtime.given_output, failed = None, []
for runtime.fails_at in range(6):
    runtime.calls = 0
    failed.append(runtime.create("SegmentMax", fill_mode=b"ZERO")[1])
assert failed == [None] * 5 + [(9, "attribute_string fails")], failed  # of the others it means that there is none
"""

INPUTS = """
assert runtime.register() is None
whole, indices = tensor(data), tensor(ids)
def expect(name, *inputs, says, code=2, **attributes):
    with runtime.node(name, **attributes) as compute:
        got = compute(*inputs)
    assert got[0] == code and got[1].endswith(says), got
zero = {"fill_mode": b"ZERO"}
expect("Max", whole, None, says="[ONNX.Max-13.T]")
expect("Max", whole, Tensor((1,) * 65), says="the rank of a tensor exceeds NumPy's limit of 64")
expect("ReduceMax", None, says="[ONNX.ReduceMax-20.T]")
expect("ReduceMax", whole, tensor(ids[None]), says="[ONNX.ReduceMax-20.axes]")
expect("ReduceMax", whole, Tensor((2**59,), INT64), code=1, says="maxops: out of memory")
expect("SegmentMax", None, indices, **zero, says="[OpenVINO.SegmentMax-16.T]")
expect("SegmentMax", whole, None, **zero, says="[OpenVINO.SegmentMax-16.inputs]")
expect("SegmentMax", tensor(np.zeros((), np.float32)), indices, **zero, says="[OpenVINO.SegmentMax-16.data]")
for wrong in (ids[None], ids[:, None], ids[:1], np.array(2), np.array([0, 1, 1])):
    expect("SegmentMax", whole, tensor(wrong), **zero, says="[OpenVINO.SegmentMax-16.ids.shape]")
expect("SegmentMax", whole, indices, indices, **zero, says="[OpenVINO.SegmentMax-16.num_segments]")
expect("SegmentMax", whole, indices, says="[OpenVINO.SegmentMax-16.fill_mode]")
expect("SegmentMax", Tensor((2**40,) * 2), tensor(np.array(0)), **zero, says="larger than the maximum possible size.")
with runtime.node("SegmentMax", **zero) as compute:
    assert compute(whole, indices, None).tolist() == data.tolist()
    assert compute(tensor(data[:0]), tensor(ids[:0])).tolist() == []
with runtime.node("ReduceMax", noop_with_empty_axes=1) as compute:
    assert compute(whole).tolist() == data.tolist()
    assert compute(tensor(data[:0])).shape == (0, 2)
_native.set_largest_output(7)
TOO_LARGE = "the size is larger than the 7 bytes of memory of this machine"
expect("Max", whole, whole, code=1, says=f"{TOO_LARGE} [ONNX.Max-13.shape]")
expect("ReduceMax", whole, tensor(ids[:1]), code=1, says=f"{TOO_LARGE} [ONNX.ReduceMax-20.value]")
expect("ReduceMax", whole, noop_with_empty_axes=1, code=1, says="maxops: out of memory")
expect("SegmentMax", whole, indices, **zero, code=1, says=f"{TOO_LARGE} [OpenVINO.SegmentMax-16.shape]")
"""

# Valid calls do not need Python, whose lock other threads may hold.
VALID = """
assert runtime.register() is None
class Node(SimpleNamespace):
    def __call__(self, *inputs):
        raise AssertionError("asked")
right = nodes.prepare
nodes.prepare = lambda *arguments: Node(**vars(right(*arguments)))
def run(name, *inputs, **attributes):
    with runtime.node(name, **attributes) as compute:
        got = compute(*map(tensor, inputs))
    return got if isinstance(got, tuple) else got.tolist()
assert run("Max", data, data[::-1].copy(), since_version=6) == [[7, 5], [7, 5]]
assert run("Max", data, data[1], np.array(6, np.float32)) == [[7, 6], [7, 6]]
assert run("ReduceMax", data) == [[7]]
assert run("ReduceMax", data, ids[:0], keepdims=0) == 7
assert run("ReduceMax", data, ids[::-1].copy(), keepdims=0) == 7
assert run("ReduceMax", data, -ids[1:]) == [[5], [7]]
assert run("ReduceMax", data, ids[1:], keepdims=0, since_version=1) == [5, 7]
assert run("ReduceMax", data, ids[:0], noop_with_empty_axes=1) == data.tolist()
assert run("ReduceMax", data, ids[:1], noop_with_empty_axes=1) == [[7, 5]]
for mode, fill in (b"ZERO", 0), (b"LOWEST", float(np.finfo(np.float32).min)):
    assert run("SegmentMax", data, ids * 2, fill_mode=mode) == [[1, 5], [fill] * 2, [7, 2]]
    assert run("SegmentMax", data, ids, np.array(1), fill_mode=mode) == [[1, 5]]
    assert run("SegmentMax", data, ids, np.array(3), fill_mode=mode) == [*data.tolist(), [fill] * 2]
"""

# Replacements of the code between the runtime and the planner: all errors become statuses.
PLANNERS = """
assert runtime.register() is None
class Node(SimpleNamespace):
    def __call__(self, *inputs):
        if isinstance(self.gives, BaseException):
            raise self.gives
        return self.gives
KNOWN = {"keepdims": True, "broadcasts": True, "negative_axes": True, "noop_with_empty_axes": False, "fill_mode": None}
right = nodes.prepare
def given(gives, *inputs, name="Max"):
    nodes.prepare = lambda *_: Node(gives=gives, **KNOWN)
    with runtime.node(name) as compute:
        return compute(*inputs)
class Textless(Exception):
    def __str__(self):
        raise self
whole = tensor(data)
NO_ARRAY = 1, "maxops: the planner returned no array of the dtype of the data"
assert given(data, whole, None).tolist() == data.tolist()
assert given(data[:0], whole, None).shape == (0, 2)
for wrong in (data.tolist(), data.T, data.astype(np.float64)):
    assert given(wrong, whole, None) == NO_ARRAY
assert given(data, None, name="ReduceMax") == NO_ARRAY
assert given(Textless(), whole, None) == (1, "maxops failed without an error message")
assert given(Exception(), whole, None) == (1, "maxops failed without an error message")
assert given(TypeError("\\ud800"), whole, None) == (2, "maxops failed without an error message")
assert given(MemoryError(), whole, None) == (1, "maxops: out of memory")
interrupts = []  # Python is told of it again: a status is no KeyboardInterrupt
signal.signal(signal.SIGINT, lambda *_: interrupts.append("again"))
assert given(KeyboardInterrupt(), whole, None) == (1, "interrupted") and interrupts == ["again"]
_native.set_largest_output(4)
assert given(data, whole, None) == (1, "maxops: out of memory")
for lacking in KNOWN:
    nodes.prepare = lambda *_: SimpleNamespace(**{name: value for name, value in KNOWN.items() if name != lacking})
    _, status = runtime.create("Max")
    assert status is not None and status[0] == 1 and lacking in status[1], status
sys.modules[nodes.__name__] = None
_, status = runtime.create("Max")
assert status is not None and status[0] == 1 and "maxops.onnxruntime.node" in status[1], status
"""

STOPPED = """
assert runtime.register() is None
def stop(_, frame):
    if frame.f_code.co_name not in ("compute", "<module>"):  # a callback, whose exceptions ctypes swallows: later
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        return
    raise TimeoutError("stopped")
signal.signal(signal.SIGALRM, stop)
large = tensor(np.ones(1 << 24, np.float32))
with runtime.node("Max") as compute:
    for _ in range(20):  # it may come before the call, or after
        result = None
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            result = compute(*[large] * 400)  # a second, or a good part of one
            if isinstance(result, tuple) and result == (1, "stopped"):
                break
            signal.pause()
        except TimeoutError:
            pass
    else:
        raise AssertionError(f"never stopped: {result}")
"""

# The process finalizes the interpreter before it ends a session.
OUTLIVED = """
import ctypes
assert runtime.register() is None
kernel, status = runtime.create("Max")
assert status is None
ctypes.CDLL(None).__cxa_atexit(ctypes.c_void_p(runtime.operator.destroy), kernel, None)
"""


@pytest.mark.parametrize(
    "code",
    [REGISTERED, EACH_FAILS, INPUTS, VALID, PLANNERS, STOPPED, OUTLIVED],
    ids=["registered", "each fails", "inputs", "valid", "planners", "stopped", "outlived"],
)
def test_what_a_runtime_may_answer(code: str) -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", STAND_IN + code]
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


AT_EXIT = """
import os, sys, threading, time
import numpy as np, onnx
import maxops.onnxruntime
text = '<ir_version: 8, opset_import: ["": 13]> g (float[n] a) => (float[n] y) { y = Max(' + ", ".join("a" * 60) + ") }"
session = maxops.onnxruntime.session(onnx.parser.parse_model(text))
size = 20_000_000
a, y, binding = np.full(size, 3, np.float32), np.zeros(size, np.float32), session.io_binding()
binding.bind_input("a", "cpu", 0, 1, [size], a.ctypes.data)
binding.bind_output("y", "cpu", 0, 1, [size], y.ctypes.data)
run = session._sess.run_with_iobinding, (binding._iobinding, None)  # which imports nothing
class Last:
    held = run, a, y, sys.argv[1], time.sleep, os.write
    def __del__(self):
        (run, inputs), _, y, where, sleep, write = self.held
        if where == "here":
            run(*inputs)
        while y[-1] != 3:
            sleep(0.01)
        sleep(0.2)  # in which another thread goes on
        write(1, b"ended")
last = Last()
if sys.argv[1] == "elsewhere":
    threading.Thread(target=run[0], args=run[1], daemon=True).start()
    while y[0] != 3:
        time.sleep(0.001)
"""


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_the_interpreter_ends_while_a_session_runs(where: str) -> None:
    """Test the end on the main thread and on others, where unwinding the runtime's frames would abort the process."""
    command = [sys.executable, "-c", AT_EXIT, where]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended", "")
