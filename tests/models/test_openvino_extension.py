"""maxops operators in compiled OpenVINO models: the bits of every dtype, dynamic shapes, saving, and clear errors."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxops.openvino
from helpers.bits import FLOATS, INTEGERS, Array, assert_same_bits, mixed
from maxops import dtypes, errors, ops, reference
from maxops.dtypes import DType
from maxops.openvino.calls import DTYPES

ov: Any = pytest.importorskip("openvino")
opset: Any = ov.opset16
passes: Any = pytest.importorskip("openvino.passes")
_is_marked = pytest.importorskip("maxops.openvino.rewriting")._is_marked

CORE = ov.Core()
NUMBERS = (*FLOATS, *INTEGERS)
NAMES = {dtype: name for name, dtype in DTYPES.items()}
IDS = np.array([0, 0, 2, 3, 3])


def type_of(dtype: DType) -> Any:
    return getattr(ov.Type, NAMES[dtype])


def registered() -> Any:
    """Return a Core with the operators of maxops."""
    core = ov.Core()
    maxops.openvino.register(core)
    return core


def rewritten(outputs: list[Any], inputs: list[Any]) -> Any:
    """Return a model with the operators of maxops."""
    return maxops.openvino.rewrite(ov.Model(outputs, inputs, "m"))


def parameter(name: str, shape: list[int], dtype: DType = dtypes.FLOAT32) -> Any:
    return opset.parameter(shape, type_of(dtype), name=name)


def constant(array: Array) -> Any:
    return ov.op.Constant(tensor(array))


def tensor(array: Array) -> Any:
    dtype = dtypes.of(array.dtype)
    assert dtype is not None
    made = ov.Tensor(type_of(dtype), list(array.shape))
    made.data.view(array.dtype)[...] = array
    return made


def array_of(made: Any) -> Array:
    return np.array(made.data).view(DTYPES[made.element_type.get_type_name()].numpy)


def compiled(model: Any, core: Any = None, **options: str) -> Callable[..., list[Array]]:
    request = (core or CORE).compile_model(model, "CPU", options).create_infer_request()

    def infer(*arrays: Array) -> list[Array]:
        request.infer([tensor(array) for array in arrays])
        return [array_of(made) for made in request.output_tensors]

    return infer


def run(model: Any, *arrays: Array, core: Any = None, **options: str) -> list[Array]:
    return compiled(model, core, **options)(*arrays)


def three(dtype: DType, open_shapes: bool) -> Any:
    """Return a model with each operator, on inputs and on other operators."""
    a = parameter("a", [-1, -1] if open_shapes else [5, 7], dtype)
    b = parameter("b", [-1] if open_shapes else [7], dtype)
    ids = parameter("ids", [-1] if open_shapes else [5], dtypes.INT64)
    top = opset.maximum(a, b)
    low = opset.segment_max(top, ids, fill_mode="LOWEST")
    padded = opset.segment_max(a, ids, opset.constant(np.int64(6)), fill_mode="ZERO")
    rows = opset.reduce_max(low, opset.constant(np.array([-1])), keep_dims=True)
    return ov.Model([top, low, padded, rows], [a, b, ids], "three")


def in_segments(data: Array, ids: Array, count: int | None = None, fill_mode: str = "LOWEST") -> Array:
    number = max(ids.tolist(), default=-1) + 1 if count is None else count
    return reference.segment_max(data, ids, number, fill_mode)


def reduced(data: Array, axes: tuple[int, ...], keepdims: bool = True) -> Array:
    return reference.reduce_max(data, tuple(axis % data.ndim for axis in axes), keepdims=keepdims)


def expected(a: Array, b: Array) -> list[Array]:
    top = reference.maximum(a, b)
    low = in_segments(top, IDS, fill_mode="LOWEST")
    padded = in_segments(a, IDS, 6, fill_mode="ZERO")
    return [top, low, padded, reduced(low, (-1,))]


def assert_all_same_bits(got: list[Array], expected: list[Array]) -> None:
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize(
    ("dtype", "open_shapes"),
    [*((dtype, True) for dtype in NUMBERS), (dtypes.FLOAT32, False), (dtypes.INT64, False)],
    ids=str,
)
def test_every_type_in_its_own_bits(dtype: DType, open_shapes: bool) -> None:
    a, b = mixed(dtype, (5, 7), 1, nans=0.1), mixed(dtype, (7,), 2, nans=0.1)
    model = maxops.openvino.rewrite(three(dtype, open_shapes))
    assert_all_same_bits(run(model, a, b, IDS), expected(a, b))


@pytest.mark.parametrize(
    ("dtype", "save"),
    [*((dtype, ov.save_model) for dtype in NUMBERS), (dtypes.FLOAT32, ov.serialize), (dtypes.INT64, ov.serialize)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_saved_and_loaded(tmp_path: Path, dtype: DType, save: Any) -> None:
    """Test saved models on a Core with the extension and with maxops's reader. Constants keep their bits."""
    data = parameter("data", [-1, 7], dtype)
    limit = mixed(dtype, (7,), 2)
    ids = parameter("ids", [-1], dtypes.INT32)
    low = opset.segment_max(opset.maximum(data, constant(limit)), ids, fill_mode="LOWEST")
    rows = opset.reduce_max(low, opset.constant(np.array([1])), keep_dims=True)
    rows.output(0).set_names({"rows"})
    path = tmp_path / "model.xml"
    save(maxops.openvino.rewrite(ov.Model([rows], [data, ids], "saved")), str(path))
    core = registered()
    loaded = core.read_model(path)
    assert loaded.output("rows").get_element_type() == type_of(dtype)
    array, int32_ids = mixed(dtype, (5, 7), 1), IDS.astype(np.int32)
    expected = reduced(in_segments(reference.maximum(array, limit), int32_ids, fill_mode="LOWEST"), (1,))
    assert_all_same_bits(run(loaded, array, int32_ids, core=core), [expected])
    (got,) = maxops.openvino.load(path).run({"data": array, "ids": int32_ids}).values()
    assert_same_bits(got, expected)


def test_a_fresh_process_loads_it(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ov.serialize(maxops.openvino.rewrite(three(dtypes.INT64, open_shapes=True)), str(path))
    a, b = mixed(dtypes.INT64, (5, 7), 1), mixed(dtypes.INT64, (7,), 2)
    np.savez(tmp_path / "in.npz", a=a, b=b, ids=IDS)
    code = (
        "import sys, numpy, openvino, maxops.openvino\n"
        "core = openvino.Core(); maxops.openvino.register(core); maxops.openvino.register(core)\n"
        "compiled = core.compile_model(sys.argv[1] + '/model.xml', 'CPU')\n"
        "got = compiled(dict(numpy.load(sys.argv[1] + '/in.npz')))\n"
        "numpy.savez(sys.argv[1] + '/out.npz', *[got[number] for number in range(4)])\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code, str(tmp_path)], check=True)
    made = np.load(tmp_path / "out.npz")
    assert_all_same_bits([made[name] for name in made.files], expected(a, b))


def test_without_registering_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ov.serialize(maxops.openvino.rewrite(three(dtypes.FLOAT32, open_shapes=False)), str(path))
    with pytest.raises(RuntimeError, match="unsupported opset: maxops"):
        ov.Core().read_model(path)


def test_only_a_model_is_rewritten() -> None:
    (x,) = inputs = [parameter("x", [2])]
    compiled_model = compiled(ov.Model([opset.maximum(x, x)], inputs, "m"))
    for given in (None, "model.xml", compiled_model):
        with pytest.raises(
            errors.ModelError, match=rf"an openvino\.Model, got {type(given).__name__}; read files with"
        ):
            maxops.openvino.rewrite(given)


def test_names_and_the_original_stay() -> None:
    a, b = parameter("a", [4]), parameter("b", [4])
    top = opset.maximum(a, b)
    top.set_friendly_name("the_top")
    top.output(0).set_names({"top", "highest"})
    model = ov.Model([top], [a, b], "m")
    ours = maxops.openvino.rewrite(model)
    assert {
        node.get_friendly_name(): node.get_type_info().version_id
        for node in ours.get_ops()
        if node.get_type_name() == "Maximum"
    } == {"the_top": "maxops"}
    assert ours.output("highest").names == {"top", "highest"}
    assert [port.any_name for port in ours.inputs] == ["a", "b"]
    assert top.get_type_info().version_id == "opset1"
    assert "maxops" not in {node.get_type_info().version_id for node in model.get_ops()}


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_between_operators_of_openvino(dtype: DType) -> None:
    """Test values that pass between operators of maxops and OpenVINO. maxops's operators are exact."""
    a, b = parameter("a", [4], dtype), parameter("b", [4], dtype)
    x, y = mixed(dtype, (4,), 1, nans=0.0), np.zeros(4, dtype.numpy)
    shared = constant(np.ones(4, dtype.numpy))
    exact = opset.maximum(a, b)
    chained = opset.maximum(exact, shared)
    theirs = opset.add(chained, shared)
    mixed_up = opset.maximum(opset.add(b, shared), b)  # 0 + 1, in any type
    reread = opset.add(a, b)
    original = ov.Model([exact, chained, theirs, mixed_up, reread], [a, b], "m")
    model = maxops.openvino.rewrite(maxops.openvino.rewrite(original))  # a second rewrite changes nothing
    infer = compiled(model)
    got = infer(x, y)
    top = reference.maximum(x, y)
    assert_same_bits(got[0], top)
    assert_same_bits(got[1], reference.maximum(top, np.ones(4, dtype.numpy)))
    assert_same_bits(got[3], np.ones(4, dtype.numpy))
    small = np.array([1, 2, 3, 4]).astype(dtype.numpy)
    got = infer(small, y)
    assert got[2].tolist() == [2, 3, 4, 5]
    assert got[4].tolist() == [1, 2, 3, 4]


def test_a_runtime_that_is_wrong() -> None:
    """Test the documented error of OpenVINO's Maximum in the version that the page names."""
    page = Path(__file__).resolve().parents[2] / "docs" / "integrations" / "openvino_extension.md"
    a, b = parameter("a", [1], dtypes.INT64), parameter("b", [1], dtypes.INT64)
    model = ov.Model([opset.maximum(a, b)], [a, b], "m")
    big, zero = np.array([2**40]), np.array([0])
    assert_all_same_bits(run(maxops.openvino.rewrite(model), big, zero), [big])
    (version,) = re.findall(
        r"OpenVINO ([0-9.]+)'s own Maximum of 2\*\*40\s+and 0 is 0", page.read_text(encoding="utf-8")
    )
    if ov.__version__.startswith(version):
        assert run(model, big, zero)[0].tolist() == [0]


def test_what_the_plugin_does_to_constants() -> None:
    """Test the documented change of subnormal constants, which affects only f32."""
    for dtype, kept in [
        (dtypes.FLOAT16, True),
        (dtypes.BFLOAT16, True),
        (dtypes.FLOAT32, False),
        (dtypes.FLOAT64, True),
    ]:
        x, tiny = parameter("x", [1], dtype), np.array([1], f"u{dtype.bits // 8}").view(dtype.numpy)
        model = rewritten([opset.maximum(x, constant(tiny))], [x])
        assert_all_same_bits(run(model, np.zeros(1, dtype.numpy)), [tiny if kept else np.zeros(1, dtype.numpy)])


def kept_by_no_shorter_type(shape: tuple[int, ...], seed: int) -> Array:
    """Return float32 numbers that neither float16 nor bfloat16 represents."""
    return np.random.default_rng(seed).integers(1 << 22, 1 << 23, shape).astype(np.float32) / np.float32(1 << 20)


def beside_openvino(x: Any) -> Any:
    """Return a model of maxops operators, followed by OpenVINO operators that are exact in any type."""
    limit = constant(kept_by_no_shorter_type((8,), 2))
    top = opset.maximum(x, limit)
    rows = opset.reduce_max(top, opset.constant(np.array([1])), keep_dims=True)
    low = opset.segment_max(x, opset.constant(np.array([0, 0, 1, 1, 2, 2, 2, 5])), fill_mode="ZERO")
    computed = opset.maximum(x, opset.gather(limit, opset.constant(np.arange(8)[::-1].copy()), opset.constant(0)))
    weights = opset.constant(np.eye(8, dtype=np.float32))
    half = opset.minimum(opset.matmul(x, weights, False, False), opset.constant(np.float32(0.5)))
    between = opset.matmul(opset.maximum(half, opset.constant(np.float32(0.25))), weights, False, False)
    return ov.Model([top, rows, low, computed, between, x], [x], "m")


def assert_beside_openvino(got: list[Array], x: Array) -> None:
    limit = kept_by_no_shorter_type((8,), 2)
    top = reference.maximum(x, limit)
    low = in_segments(x, np.array([0, 0, 1, 1, 2, 2, 2, 5]), fill_mode="ZERO")
    between = np.full((8, 8), 0.5, np.float32)
    assert_all_same_bits(got, [top, reduced(top, (1,)), low, reference.maximum(x, limit[::-1]), between, x])


@pytest.mark.parametrize("precision", ["f32", "bf16", "f16"])
def test_a_hint_of_precision_changes_no_bit_of_ours(precision: str) -> None:
    """Test that the plugin may compute other operators in the hinted type. The products here are exact in each."""
    model = maxops.openvino.rewrite(beside_openvino(parameter("x", [8, 8])))
    x = kept_by_no_shorter_type((8, 8), 1)
    assert_beside_openvino(run(model, x, INFERENCE_PRECISION_HINT=precision), x)


def test_all_that_ours_reads_and_gives_is_marked() -> None:
    """Test that inputs and outputs of maxops operators are marked. The effect of marks depends on the processor."""
    for dtype in NUMBERS:
        model = maxops.openvino.rewrite(three(dtype, open_shapes=True))
        assert all(map(_is_marked, model.get_ops())), dtype
    nodes = maxops.openvino.rewrite(beside_openvino(parameter("x", [8, 8]))).get_ordered_ops()
    plain = [node.get_type_name() for node in nodes if not _is_marked(node)]
    assert plain == ["Constant", "MatMul", "Constant", "Minimum", "MatMul", "Result"]


def test_what_converts_all_of_a_model_to_f16() -> None:
    """Test OpenVINO's pass to f16: operators of maxops keep their types, or raise an error."""
    x, array = parameter("x", [8, 8]), kept_by_no_shorter_type((8, 8), 1)
    manager = passes.Manager()
    manager.register_pass(passes.ConvertFP32ToFP16())
    top = opset.maximum(x, constant(kept_by_no_shorter_type((8,), 2)))
    model = rewritten([top, x], [x])
    manager.run_passes(model)
    assert_all_same_bits(run(model, array), [reference.maximum(array, kept_by_no_shorter_type((8,), 2)), array])
    y = parameter("y", [8, 8])
    between = opset.maximum(opset.abs(y), constant(np.ones(8, np.float32)))
    model = rewritten([between], [y])
    converted = "expected inputs of types f32, f32, got f16, f32: OpenVINO converted them"
    with pytest.raises(errors.DTypeError, match=converted):
        manager.run_passes(model)  # unlike the CPU plugin, it inserts no Convert before marked values


# --------------------------------------------------------------------------------------------- shapes and values


@pytest.mark.parametrize(
    ("shapes", "inferred", "given"),
    [
        ([[2, 3], [3]], "[2,3]", [(2, 3), (3,)]),
        ([[-1, 3], [2, 1]], "[2,3]", [(1, 3), (2, 1)]),
        ([[-1, 1], [1, -1]], "[?,?]", [(2, 1), (1, 3)]),
        ([[-1], [-1]], "[?]", [(1,), (4,)]),
        ([[], [-1]], "[?]", [(), (0,)]),
        ([[0, 1], [1, 5]], "[0,5]", [(0, 1), (1, 5)]),
        ([[], []], "[]", [(), ()]),
    ],
)
def test_broadcasting(shapes: list[list[int]], inferred: str, given: list[tuple[int, ...]]) -> None:
    a, b = parameter("a", shapes[0]), parameter("b", shapes[1])
    model = rewritten([opset.maximum(a, b)], [a, b])
    assert str(model.output(0).partial_shape) == inferred
    x, y = (mixed(dtypes.FLOAT32, shape, number) for number, shape in enumerate(given))
    assert_all_same_bits(run(model, x, y), [reference.maximum(x, y)])


@pytest.mark.parametrize("keep", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize(
    ("axes", "dropped", "kept"),
    [([0], "[3]", "[1,3]"), ([-1, 0], "[]", "[1,1]"), (1, "[?]", "[?,1]"), ([], "[?,3]", "[?,3]")],
    ids=["first", "both", "scalar", "none"],
)
def test_axes_that_are_a_constant(axes: Any, dropped: str, kept: str, keep: bool) -> None:
    x = parameter("x", [-1, 3])
    named = np.array(axes, np.int64)
    model = rewritten([opset.reduce_max(x, constant(named), keep)], [x])
    assert str(model.output(0).partial_shape) == (kept if keep else dropped)
    infer = compiled(model)
    for rows in (2, 0):
        data = mixed(dtypes.FLOAT32, (rows, 3), 1)
        expected = reduced(data, tuple(named.reshape(-1).tolist()), keep) if named.size else data
        assert_all_same_bits(infer(data), [expected])


def all_axes(x: Any, kind: DType = dtypes.INT64) -> Any:
    """Return axes computed from the data's rank, like OpenVINO's ONNX reader does for ReduceMax without axes."""
    rank = opset.squeeze(opset.shape_of(opset.shape_of(x, "i64"), NAMES[kind]), opset.constant(np.int32(0)))
    return opset.range(opset.constant(np.int32(0)), rank, opset.constant(np.int32(1)), output_type=NAMES[kind])


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (dtypes.FLOAT16, dtypes.INT32),
        (dtypes.FLOAT32, dtypes.INT64),
        (dtypes.INT64, dtypes.INT32),
        (dtypes.UINT8, dtypes.INT64),
    ],
    ids=str,
)
def test_axes_that_are_computed_from_the_rank(dtype: DType, kind: DType) -> None:
    x = parameter("x", [-1, -1], dtype)
    model = rewritten([opset.reduce_max(x, all_axes(x, kind), True)], [x])
    assert str(model.output(0).partial_shape) == "[1,1]"
    assert not [node for node in model.get_ops() if node.get_type_name() in ("Range", "Convert")]
    data = mixed(dtype, (2, 3), 1)
    assert_all_same_bits(run(model, data), [reduced(data, (0, 1))])


@pytest.mark.parametrize("saved", [False, True], ids=["in memory", "saved"])
def test_axes_that_become_known_after_the_rewrite(tmp_path: Path, saved: bool) -> None:
    x = opset.parameter(ov.PartialShape.dynamic(), np.float32, name="x")
    model = rewritten([opset.reduce_max(x, all_axes(x), True)], [x])
    core = ov.Core()
    if saved:
        ov.save_model(model, tmp_path / "model.xml")
        maxops.openvino.register(core)
        model = core.read_model(tmp_path / "model.xml")
    model.reshape([2, 3])
    data = mixed(dtypes.FLOAT32, (2, 3), 1)
    assert_all_same_bits(run(model, data, core=core), [reduced(data, (0, 1))])
    assert_all_same_bits(run(maxops.openvino.rewrite(model), data), [reduced(data, (0, 1))])


def test_axes_that_are_computed_are_checked() -> None:
    x = parameter("x", [4])
    axes = opset.concat([opset.range(*(constant(np.array(n)) for n in (0, 1, 1)), output_type="i64")] * 2, 0)
    with pytest.raises(errors.AxesError, match=r"\(ReduceMax\): .*got axis 0 twice"):
        rewritten([opset.reduce_max(x, axes, True)], [x])


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_constants_that_are_computed_and_an_input_that_goes_to_an_output(dtype: DType) -> None:
    """Test that the values keep their own type, not the plugin's, with floats that OpenVINO's Gather preserves.

    OpenVINO's ONNX reader replaces a ReduceMax without axes, with noop_with_empty_axes, by an Identity.
    """
    x, y, limit = parameter("x", [5], dtype), parameter("y", [-1], dtype), mixed(dtype, (5,), 1, nans=0.0)
    if dtype in FLOATS:
        limit = np.array([1.5, -2, 0, 96, -np.inf]).astype(dtype.numpy)
    transposed = opset.gather(constant(limit), opset.constant(np.arange(5)[::-1].copy()), opset.constant(np.int64(0)))
    outputs = [opset.maximum(x, transposed).output(0), y.output(0), opset.identity(opset.identity(y)).output(0)]
    model = rewritten(outputs, [x, y])
    data, other = mixed(dtype, (5,), 2, nans=0.0), mixed(dtype, (20,), 1)
    assert_all_same_bits(run(model, data, other), [reference.maximum(data, limit[::-1]), other, other])


@pytest.mark.parametrize("keep", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize("kind", [dtypes.INT32, dtypes.INT64], ids=str)
def test_axes_that_are_an_input(kind: DType, keep: bool) -> None:
    x, axes = parameter("x", [-1, 3]), parameter("axes", [1], kind)
    model = rewritten([opset.reduce_max(x, axes, keep)], [x, axes])
    assert str(model.output(0).partial_shape) == ("[?,?]" if keep else "[?]")
    data, infer = mixed(dtypes.FLOAT32, (4, 3), 1), compiled(model)
    for axis in (0, 1, -1):
        got = infer(data, np.array([axis], kind.numpy))
        assert_all_same_bits(got, [reduced(data, (axis,), keep)])


def test_auto_broadcast_none() -> None:
    a, b = parameter("a", [-1, 3]), parameter("b", [2, -1])
    model = rewritten([opset.maximum(a, b, "NONE")], [a, b])
    x, y, infer = mixed(dtypes.FLOAT32, (2, 3), 1), mixed(dtypes.FLOAT32, (2, 3), 2), compiled(model)
    assert_all_same_bits(infer(x, y), [reference.maximum(x, y)])
    with pytest.raises(RuntimeError, match="equal shapes with auto_broadcast 'none'"):
        infer(x[:1], y)


def segments(count: int | str | None = None, rows: int = -1, kind: DType = dtypes.INT64) -> Any:
    """Return a model of SegmentMax. `count` is num_segments: None, "input" or a constant."""
    data, ids = parameter("data", [rows, 2]), parameter("ids", [rows], kind)
    more = [parameter("count", [], dtypes.INT64)] if count == "input" else []
    third = [opset.constant(np.int64(count))] if isinstance(count, int) else more
    return ov.Model([opset.segment_max(data, ids, *third, fill_mode="LOWEST")], [data, ids, *more], "m")


@pytest.mark.parametrize("rows", [-1, 0, 5])
@pytest.mark.parametrize(
    ("count", "kind"),
    [
        (None, dtypes.INT32),
        (None, dtypes.INT64),
        (0, dtypes.INT32),
        (2, dtypes.INT64),
        (8, dtypes.INT32),
        ("input", dtypes.INT32),
        ("input", dtypes.INT64),
    ],
    ids=str,
)
def test_numbers_of_segments(count: int | str | None, kind: DType, rows: int) -> None:
    model = maxops.openvino.rewrite(segments(count, rows, kind))
    size = "?" if count in (None, "input") else count
    assert str(model.output(0).partial_shape) == f"[{size},2]"
    infer = compiled(model)
    for length in (0, 1, 5) if rows < 0 else (rows,):
        data, ids = mixed(dtypes.FLOAT32, (length, 2), 1), IDS[:length].astype(kind.numpy)
        number = 6 if isinstance(count, str) else count
        more = [np.array(number)] if count == "input" else []
        assert_all_same_bits(infer(data, ids, *more), [in_segments(data, ids, number, fill_mode="LOWEST")])


def test_ids_past_32_bits() -> None:
    """Test that ids are not truncated to 32 bits: the last one is dropped instead of becoming segment 0."""
    data, ids = mixed(dtypes.FLOAT32, (3, 2), 1), np.array([0, 1, 2**32])
    assert_all_same_bits(
        run(maxops.openvino.rewrite(segments(2)), data, ids), [in_segments(data, ids, 2, fill_mode="LOWEST")]
    )


def test_ids_that_are_a_constant() -> None:
    data = parameter("data", [-1, 2])
    model = rewritten([opset.segment_max(data, opset.constant(IDS), fill_mode="ZERO")], [data])
    assert str(model.output(0).partial_shape) == "[4,2]"
    array = mixed(dtypes.FLOAT32, (5, 2), 1)
    assert_all_same_bits(run(model, array), [in_segments(array, IDS, fill_mode="ZERO")])


# -------------------------------------------------------------------------------------------------------- errors


@pytest.fixture(scope="module", params=[3, -1], ids=["fixed", "open"])
def counted(request: pytest.FixtureRequest) -> Callable[..., list[Array]]:
    return compiled(maxops.openvino.rewrite(segments("input", request.param)))


@pytest.mark.parametrize(
    ("ids", "count", "message"),
    [
        ([-1, 0, 2], 4, r"must not be negative, got -1 at position 0 \[OpenVINO.SegmentMax-16.ids\]"),
        ([0, 1, -2], 4, "must not be negative, got -2 at position 2"),
        ([1, 0, 2], 4, "must be non-decreasing, got 0 after 1 at position 1"),
        ([0, 0, 2], -5, r"num_segments must be non-negative, got -5 \[OpenVINO.SegmentMax-16.num_segments\]"),
        ([0, 0, 2], 2**60, r"output of shape .* GiB of memory"),
    ],
)
def test_what_a_clause_forbids_is_an_error(
    counted: Callable[..., list[Array]], ids: list[int], count: int, message: str
) -> None:
    """Test the error, and that the next call succeeds."""
    data = np.zeros((3, 2), np.float32)
    with pytest.raises(RuntimeError, match=message):
        counted(data, np.array(ids), np.array(count))
    assert len(counted(data, np.array([0, 0, 2]), np.array(4))) == 1


def test_lengths_that_differ() -> None:
    with pytest.raises(RuntimeError, match=r"segment_ids must have shape .*, got \(2,\).*SegmentMax-16.ids.shape"):
        run(maxops.openvino.rewrite(segments()), np.zeros((3, 2), np.float32), np.array([0, 1]))


@pytest.mark.parametrize(("axes", "message"), [([0, 0], "got axis 0 twice"), ([5, 0], "data of rank 2, got 5")])
def test_wrong_axes(axes: list[int], message: str) -> None:
    x, named = parameter("x", [-1, 3]), parameter("axes", [-1], dtypes.INT64)
    model = rewritten([opset.reduce_max(x, named, True)], [x, named])
    with pytest.raises(RuntimeError, match=message):
        run(model, np.zeros((2, 3), np.float32), np.array(axes))


def test_an_error_that_the_clause_does_not_explain_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise errors.MaxopsError("of the core alone")

    request = CORE.compile_model(maxops.openvino.rewrite(segments()), "CPU").create_infer_request()
    monkeypatch.setattr(ops, "segment_max", fails)
    request.start_async([np.zeros((1, 2), np.float32), np.array([0])])
    with pytest.raises(RuntimeError, match="of the core alone"):
        request.wait()


def test_what_rewrite_refuses() -> None:
    a, b = parameter("a", [4]), parameter("b", [4])
    with pytest.raises(
        errors.AttributeValueError, match=r"\(Maximum\): Maximum auto_broadcast must be 'numpy' or 'none', got 'pdpd'"
    ):
        rewritten([opset.maximum(a, b, "PDPD")], [a, b])
    c = opset.parameter([4], ov.Type.f8e4m3, name="c")
    with pytest.raises(errors.DTypeError, match=r"must be of types .*, got f8e4m3, f8e4m3"):
        rewritten([opset.maximum(c, c)], [c])
    with pytest.raises(errors.OutputTooLargeError, match=r"\(SegmentMax\): SegmentMax-16 output of shape"):
        maxops.openvino.rewrite(segments(2**60))


def test_bool_is_no_number() -> None:
    data, ids = parameter("data", [3], dtypes.BOOL), parameter("ids", [3], dtypes.INT64)
    with pytest.raises(errors.DTypeError, match=r"\(SegmentMax\): SegmentMax-16 .*bool") as caught:
        rewritten([opset.segment_max(data, ids, fill_mode="ZERO")], [data, ids])
    assert caught.value.clause == "OpenVINO.SegmentMax-16.T"


@pytest.mark.parametrize("options", [{}, {"INFERENCE_NUM_THREADS": 1}], ids=["threads", "thread"])
def test_an_error_of_an_asynchronous_call(options: dict[str, int]) -> None:
    """Test the error on `wait`, because `infer` with one thread loses the errors of all operators."""
    model = CORE.compile_model(maxops.openvino.rewrite(segments()), "CPU", options)
    for _ in range(3):
        request = model.create_infer_request()
        request.start_async([np.zeros((1, 2), np.float32), np.array([-1])])
        with pytest.raises(RuntimeError, match=r"got -1 at position 0 \[OpenVINO.SegmentMax-16.ids\]"):
            request.wait()


def test_what_reads_nothing_of_ours_stays_as_it_is() -> None:
    """Test that Converts are inserted only for marked types, and that a second rewrite changes nothing."""
    a, b, c = (parameter(name, [4], dtypes.INT64) for name in "abc")
    top = opset.abs(opset.maximum(opset.abs(a), b))
    model = ov.Model([top, opset.abs(opset.abs(c))], [a, b, c], "m")
    for _ in range(2):
        model = maxops.openvino.rewrite(model)
        converts = [node for node in model.get_ordered_ops() if node.get_type_name() == "Convert"]
        sources = [node.input_value(0).get_node().get_type_name() for node in converts]
        assert sorted(sources) == ["Abs", "Maximum"]


def if_model(then: Any, otherwise: Any) -> Any:
    """Return a model whose If applies one of two operators to its input."""
    condition, x = opset.parameter([], ov.Type.boolean, name="condition"), parameter("x", [4])
    inner = [parameter(name, [4]) for name in ("inner", "other")]
    node = opset.if_op(condition.output(0))
    bodies = [ov.Model([make(each)], [each], "body") for make, each in zip((then, otherwise), inner, strict=True)]
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    node.set_input(x.output(0), *inner)
    return ov.Model([node.set_output(*(body.results[0] for body in bodies))], [condition, x], "m")


def loop_model(make: Any, kind: str) -> Any:
    """Return a model that applies an operator to its input in each iteration of a loop."""
    x, inner = parameter("x", [4]), parameter("inner", [4])
    if kind == "Loop":
        go_on = opset.constant(np.array(True))
        node = opset.loop(opset.constant(np.array(2)), opset.constant(np.array(True)))
        body = ov.Model([make(inner), go_on], [inner], "body")
        node.set_function(body)
        node.set_special_body_ports([-1, 1])
    else:
        node = opset.tensor_iterator()
        body = ov.Model([make(inner)], [inner], "body")
        node.set_body(body)
    node.set_merged_input(inner, x.output(0), body.results[0].output(0))
    return ov.Model([node.get_iter_value(body.results[0].output(0), -1)], [x], "m")


def twice(x: Any) -> Any:
    return opset.maximum(x, x)


BODIES: dict[str, Any] = {
    "then": (lambda make: if_model(make, opset.abs), "If"),
    "else": (lambda make: if_model(opset.abs, make), "If"),
    "Loop": (lambda make: loop_model(make, "Loop"), "Loop"),
    "TensorIterator": (lambda make: loop_model(make, "TensorIterator"), "TensorIterator"),
}


@pytest.mark.parametrize("place", BODIES)
def test_a_body_is_refused(place: str) -> None:
    """Test that a body is rejected only if it contains an operator of maxops."""
    make, kind = BODIES[place]
    with pytest.raises(errors.ModelError, match=rf"\(Maximum\) is in the body of .* \({kind}\)"):
        maxops.openvino.rewrite(make(twice))
    assert [node.get_type_name() for node in maxops.openvino.rewrite(make(opset.abs)).get_ops()].count(kind) == 1


def test_types_that_were_converted_are_refused(tmp_path: Path) -> None:
    """Test that 64-bit integers are never truncated silently."""
    path = tmp_path / "model.xml"
    ov.serialize(maxops.openvino.rewrite(three(dtypes.INT64, open_shapes=False)), str(path))
    text, marks = re.subn(
        r"<rt_info>\s*<attribute name=\"DisablePrecisionConversion\".*?</rt_info>", "", path.read_text(), flags=re.S
    )
    assert marks >= 3
    path.write_text(text)
    core = registered()
    with pytest.raises(RuntimeError, match=r"expected inputs of types i64, i64, got i32, i32: OpenVINO converted them"):
        core.compile_model(core.read_model(path), "CPU")


def test_a_file_without_fill_mode_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ov.serialize(maxops.openvino.rewrite(segments()), str(path))
    path.write_text(path.read_text().replace('fill_mode="lowest"', 'empty_segment_value="ZERO"'))
    core = registered()
    with pytest.raises(RuntimeError, match=r"fill_mode must be 'ZERO' or 'LOWEST', got ''"):
        core.read_model(path)


# -------------------------------------------------------------------------------------------------- many requests


def test_requests_at_once() -> None:
    a, b = parameter("a", [-1]), parameter("b", [-1])
    model = rewritten([opset.maximum(a, b)], [a, b])
    compiled = CORE.compile_model(model, "CPU", {"PERFORMANCE_HINT": "THROUGHPUT"})

    def work(seed: int) -> None:
        request, random = compiled.create_infer_request(), np.random.default_rng(seed)
        for _ in range(50):
            x, y = random.random((2, int(random.integers(1, 3000))), np.float32)
            request.infer([x.copy(), y.copy()])
            assert_same_bits(array_of(request.get_output_tensor()), np.maximum(x, y))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    requests = [compiled.create_infer_request() for _ in range(4)]
    for turn in range(20):
        pairs = [np.random.default_rng(turn).random((2, turn + 1), np.float32) for _ in requests]
        for request, (x, y) in zip(requests, pairs, strict=True):
            request.start_async([x.copy(), y.copy()])
        for request, (x, y) in zip(requests, pairs, strict=True):
            request.wait()
            assert_same_bits(array_of(request.get_output_tensor()), np.maximum(x, y))


def test_changing_shapes_leave_nothing_behind() -> None:
    """Test that OpenVINO's clones of operators for new shapes are freed."""
    request = CORE.compile_model(maxops.openvino.rewrite(segments()), "CPU").create_infer_request()

    def alive() -> int:
        for rows in range(1, 40):
            request.infer([np.zeros((rows, 2), np.float32), np.arange(rows)])
        # by type, because isinstance would load lazy objects of other packages, which warn
        return sum(issubclass(type(thing), ov.Op) for thing in gc.get_objects())

    assert alive() == alive()


def test_without_openvino_an_error_names_it() -> None:
    code = (
        "import sys; sys.modules['openvino'] = None\n"
        "import maxops.openvino\n"
        "try:\n    maxops.openvino.register(None)\nexcept ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "maxops.openvino.register, like rewrite, requires the package 'openvino', which is not installed: "
        'pip install "maxops[openvino]"'
    )


# ------------------------------------------------------------------------------------- shapes that are known early

RANGE = ov.Dimension(2, 6)
SHAPES: list[list[Any]] = [[-1, 3], [4, 3], [4, -1], [-1, -1], [4], [-1], [4, 2, -1], [RANGE, 3]]


def _sizes(shape: list[Any]) -> str:
    return str(ov.PartialShape(shape))


def _inferred(node: Any, parameters: list[Any]) -> tuple[str, str]:
    """Return the output shapes that OpenVINO's own operator and maxops's operator infer."""
    model = ov.Model([node.output(0)], parameters, "inferred")
    theirs, ours = (each.output(0).get_partial_shape() for each in (model, maxops.openvino.rewrite(model)))
    return str(theirs), str(ours)


@pytest.mark.parametrize("count", [None, "input", 0, 5])
@pytest.mark.parametrize("ids", [[-1], [4], [ov.Dimension(1, 5)]], ids=_sizes)
@pytest.mark.parametrize("data", SHAPES, ids=_sizes)
def test_the_shape_of_segment_max_is_inferred_as_openvino_does(data: list[Any], ids: list[Any], count: Any) -> None:
    given = [parameter("data", data), parameter("ids", ids, dtypes.INT64)]
    if count == "input":
        given.append(parameter("count", [], dtypes.INT64))
    more = [] if count is None else [given[2] if count == "input" else constant(np.array(count))]
    theirs, ours = _inferred(opset.segment_max(*given[:2], *more, fill_mode="zero"), given)
    assert ours == theirs


@pytest.mark.parametrize("keep", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize("axes", [[0], [-1], [], [0, 1], "one", "some", "scalar"], ids=str)
@pytest.mark.parametrize("data", SHAPES, ids=_sizes)
def test_the_shape_of_reduce_max_is_inferred_as_openvino_does(data: list[Any], axes: Any, keep: bool) -> None:
    if axes == [0, 1] and len(data) == 1:
        axes = [-1]
    given = [parameter("data", data)]
    if isinstance(axes, str):
        given.append(parameter("axes", {"one": [1], "some": [-1], "scalar": []}[axes], dtypes.INT64))
    of = given[1] if isinstance(axes, str) else constant(np.array(axes, np.int64))
    theirs, ours = _inferred(opset.reduce_max(given[0], of, keep), given)
    assert ours == theirs


PAIRS = [
    pytest.param(first, second, kind, id=f"{_sizes(first)}-{_sizes(second)}-{kind}")
    for kind, shapes in (("numpy", [*SHAPES, [-1, 1], [1, 3]]), ("none", SHAPES))
    for first in shapes
    for second in shapes
]


@pytest.mark.parametrize(("first", "second", "kind"), PAIRS)
def test_the_shape_of_maximum_is_inferred_as_openvino_does(first: list[Any], second: list[Any], kind: str) -> None:
    given = [parameter("first", first), parameter("second", second)]
    try:
        node = opset.maximum(*given, kind)
    except RuntimeError:  # incompatible shapes
        return
    theirs, ours = _inferred(node, given)
    # for two unknown sizes, maxops infers no relation
    are_open = all(len(shape) > 1 and shape[-2] in (-1, RANGE) for shape in (first, second))
    assert ours in (theirs, theirs.replace("2..6", "?") if are_open else theirs)
