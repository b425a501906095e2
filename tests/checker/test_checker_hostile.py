"""Hostile models: any broken model quickly results in a report or a single error."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import Message  # type: ignore[import-untyped]
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, parser
from onnx.backend.test.loader import DATA_DIR

from helpers.ir_models import reduce_net, saved, segment_net
from helpers.models import BAD_MODELS, FLOAT, MAX, BadModel, model, node, tensor, value
from helpers.official import official_cases
from maxops import errors
from maxops.checker import Report, check, sandbox

STANDARDS = [None, "onnx", "sonnx", "sonnx-draft", "openvino"]
# Errors that only a run detects: in other operators, in values that no max node reads, and in unread weights.
NOT_OURS = {
    "ir_version_too_new", "opset_too_new", "map_input", "sparse_initializer", "constant_sparse",
    "constant_string_that_is_not_text", "initializer_bool_of_two", "external_link_inside", "external_hard_link",
}  # fmt: skip


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the timeout of onnx, so that hanging models end soon."""
    monkeypatch.setattr(sandbox, "MAX_SECONDS", 1)
    monkeypatch.setattr(sandbox, "MAX_BYTES", 1 << 28)


def checked(path: Path, standard: str | None = None) -> Report | str:
    """Return the report, or the text of the single error. Any other outcome fails the test."""
    try:
        return check(path, standard)
    except errors.ModelError as error:
        return str(error)


@pytest.mark.parametrize("bad", [pytest.param(bad, id=bad.id) for bad in BAD_MODELS])
def test_broken_model(bad: BadModel, tmp_path: Path) -> None:
    path = bad.write(tmp_path)
    path = path / "model.onnx" if path.is_dir() else path
    actual = checked(path)
    if isinstance(actual, Report):
        assert actual.broken is (bad.id not in NOT_OURS)
        assert "secret!!" not in repr(actual)
    else:
        assert actual.startswith((f"{path}: ", f"{path} "))
        assert [word for word in bad.words if word not in actual] == []


def test_every_truncation(tmp_path: Path) -> None:
    whole = MAX.SerializeToString()
    path = tmp_path / "model.onnx"
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        actual = checked(path)
        assert isinstance(actual, Report) or str(path) in actual


# -------------------------------------------------------------------------------------------------- structure


def field(number: int, data: bytes) -> bytes:
    """Return a protobuf field of bytes, for models that the onnx package cannot build."""
    length, varint = len(data), b""
    while length > 127:
        varint += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + varint + bytes([length]) + data


def nested(depth: int) -> bytes:
    """Return a model of nested If nodes with a Max in the innermost one."""
    info = helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph([node("Max", ["x"], "y")], "g", [], [info]).SerializeToString()
    start = node("If", ["c"], "y").SerializeToString()
    ending = helper.make_graph([], "g", [], [info]).SerializeToString()
    for _ in range(depth):
        attribute = AttributeProto(name="then_branch", type=AttributeProto.GRAPH).SerializeToString() + field(6, graph)
        graph = field(1, start + field(5, attribute)) + ending
    whole = ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 18)])
    return bytes(whole.SerializeToString()) + field(7, graph)


def test_nested_graphs(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(nested(30))
    (judged,) = check(path).nodes
    assert judged.where.count("then_branch") == 30
    for depth in (33, 1000):
        path.write_bytes(nested(depth))
        with pytest.raises(errors.ModelError, match="graphs are nested too deeply"):
            check(path)


@pytest.mark.parametrize("size", [2**31, 2**63 - 1])
def test_sizes_beyond_all_bounds(size: int, quick: None) -> None:
    made = model(
        [node("Slice", ["x", "k", "k"], "s"), node("Max", ["s", "x"], "y")],
        ["x", value("k", (size,), TensorProto.INT64)],
        opset=18,
    )
    report = check(made)
    assert "shape inference" in " ".join(fault.message for fault in report.faults)
    assert len(report.nodes) == 1


def test_sizes_whose_product_overflows() -> None:
    report = check(model(MAX.graph.node, [value("x", (2**40, 2**40))]))
    assert [fault.message for fault in report.faults] == [
        f"'x' has too many elements: its sizes are ({2**40}, {2**40})"
    ]


def test_many_axes_take_little_memory_each() -> None:
    axes = np.arange(200_000) - 100_000
    made = model([node("ReduceMax", ["x"], "y", axes=axes.tolist())])
    tracemalloc.start()
    report = check(made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000_000
    assert report.broken


def test_names_that_are_no_text(tmp_path: Path) -> None:
    made = model([node("Max", ["x", "weights"], "y", "top")], initializers=[tensor("weights", np.zeros(4, np.float32))])
    for name in (b"top", b"weights", b"graph", b"Max"):
        path = tmp_path / "model.onnx"
        path.write_bytes(made.SerializeToString().replace(name, b"\xff" * len(name)))
        assert check(path).broken is (name != b"graph")


def test_names_inside_functions_that_are_no_text(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 18, "local": 1]> g (float[2] a) => (y) { y = local.f <keep = 0> (a) }
        <domain: "local", opset_import: ["": 18]> f <keep> (input) => (r) {
            middle = ReduceMax <keepdims: int = @keep> (input) r = Max(middle) }"""
    whole = parser.parse_model(text).SerializeToString()
    for name in (b"input", b"middle", b"keepdims", b"keep", b"local"):
        path = tmp_path / "model.onnx"
        path.write_bytes(whole.replace(name, b"\xff" * len(name)))
        assert isinstance(check(path), Report)


# ------------------------------------------------------------------------------------------- official models


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_official_models_break_nothing(step: int, unsandboxed: None) -> None:
    """Test all models that contain "Max", with each standard, and every `step`-th of the others."""
    seen = 0
    models = {case.name: case.model for case in official_cases() if case.model is not None}
    assert len(models) > 1000
    for number, (name, made) in enumerate(models.items()):
        if number % step and b"Max" not in made.SerializeToString():
            continue
        report = check(made)
        assert [each for each in report.findings if each.verdict == "broken"] == [], name
        seen += len(report.nodes)
        for standard in STANDARDS[1:] if report.nodes else []:
            assert isinstance(check(made, standard), Report), name
    assert seen > 100


def test_official_files_break_nothing(unsandboxed: None) -> None:
    paths = sorted(Path(DATA_DIR).rglob("model.onnx"))
    assert len(paths) > 50
    for path in paths:
        assert not check(path).broken, path


# --------------------------------------------------------------------------------------------------- fuzzing

RICH = """<ir_version: 9, opset_import: ["": 18, "local": 1, "maxops": 1]>
g (bool c, float[2] a, float[n] b, int64[3] k, int64 trip, float[6,7] x) => (float[2] y, z, seg) {
    s = Shape(a)  q = Sqrt(a)  rs = Reshape(x, s)
    y = If (c) <then_branch = yes () => (t) { t = Max(q, b) },
                else_branch = no () => (e) { e = local.f <keep = 1> (a, b) }>
    ax = Constant <value_ints = [1]> ()
    z = Loop (trip, , a) <body = l (int64 i, bool cin, xx) => (cin, mm) { mm = Max(xx, a) }>
    w = ReduceMax(x, ax)
    ids = Constant <value_ints = [0,0,1,1,2,2]> ()
    seg = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids)
    cs = ConstantOfShape(s)  sl = Slice(x, k, k)  r = Range(trip, trip, trip) }
<domain: "local", opset_import: ["": 18, "local": 1]> f <keep> (p, q) => (r) {
    m = ReduceMax <keepdims: int = @keep> (p)  n = local.h(m, q)  r = Neg(n) }
<domain: "local", opset_import: ["": 18]> h (p, q) => (r) { m = Max(p, q)  r = Neg(m) }"""
NAMES = [
    *("", "a", "b", "x", "m", "Max", "ReduceMax", "SegmentMax"),
    *("maxops", "local", "f", "h", "If", "axes", "keepdims"),
]
NUMBERS = [0, 1, -1, 2, 7, 18, 99, 2**31, 2**62, -(2**63)]


def messages(start: Any) -> Iterator[Any]:
    waiting = [start]
    while waiting:
        message = waiting.pop()
        yield message
        for _, held in message.ListFields():
            many = held if hasattr(held, "__len__") and not isinstance(held, (str, bytes, Message)) else [held]
            waiting += [each for each in many if isinstance(each, Message)]


def mutate(made: ModelProto, choose: random.Random) -> None:
    """Clear, duplicate, swap or overwrite one field somewhere in the model."""
    every = [*messages(made)]
    message = choose.choice(every)
    field = choose.choice(message.DESCRIPTOR.fields)
    if choose.random() < 0.3:
        message.ClearField(field.name)
    elif field.message_type is not None:
        same = [each for each in every if each.DESCRIPTOR is field.message_type]
        # as bytes, because a message that contains itself crashes protobuf
        other = choose.choice(same).SerializeToString() if same else b""
        target = getattr(message, field.name)
        (target.add() if field.is_repeated else target).ParseFromString(other)
    else:
        odd: dict[int, list[Any]] = {
            field.TYPE_STRING: NAMES,
            field.TYPE_BYTES: [b"", b"\xff", b"zero", bytes(8)],
            field.TYPE_ENUM: [0, 1, 2, 5, 7],
            field.TYPE_FLOAT: [1.5],
        }
        choices = odd.get(field.type, NUMBERS)
        try:
            if field.is_repeated:
                getattr(message, field.name).append(choose.choice(choices))
            else:
                setattr(message, field.name, choose.choice(choices))
        except ValueError:  # the number is too large for the field
            message.ClearField(field.name)


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Change, remove and duplicate bytes."""
    spoiled = bytearray(data)
    for _ in range(choose.randint(1, 3)):
        at, kind = choose.randrange(len(spoiled)), choose.randrange(4)
        if kind < 2:
            spoiled[at] = choose.randrange(256)
        elif kind == 2:
            del spoiled[at : at + choose.randint(1, 40)]
        else:
            spoiled[at:at] = spoiled[at : at + choose.randint(1, 40)]
    return bytes(spoiled)


def spoiled_onnx(folder: Path, choose: random.Random) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(spoil(parser.parse_model(RICH).SerializeToString(), choose))
    return path


def mutated_onnx(folder: Path, choose: random.Random) -> Path:
    made = parser.parse_model(RICH)
    for _ in range(choose.randint(1, 5)):
        mutate(made, choose)
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def spoiled_ir(folder: Path, choose: random.Random) -> Path:
    text = choose.choice([reduce_net(8), segment_net('fill_mode="zero"', (5,), count=True, out=(4,))])
    return saved(folder, spoil(text.encode(), choose), np.array([-1]).tobytes())


@pytest.mark.parametrize("count", [50, pytest.param(300, marks=pytest.mark.release)])
@pytest.mark.parametrize("make", [spoiled_onnx, mutated_onnx, spoiled_ir], ids=lambda make: make.__name__)
def test_fuzz(make: Callable[[Path, random.Random], Path], count: int, tmp_path: Path, quick: None) -> None:
    """Test that the outcome is a report or an error of maxops for any input."""
    seen = Counter[str]()
    for seed in itertools.count():
        if seed >= count and len(seen) > 1:
            break
        choose = random.Random(seed)
        try:
            actual = checked(make(tmp_path, choose), choose.choice(STANDARDS))
            seen["error" if isinstance(actual, str) else "broken" if actual.broken else "report"] += 1
            for judged in () if isinstance(actual, str) else actual.nodes:
                expected = [] if judged.row is None else [clause.id for clause in judged.row.clauses]
                assert [each.clause for each in judged.findings] == expected
        except Exception as error:
            error.add_note(f"of the seed {seed}")
            raise


def test_the_fuzzer_finds_a_checker_that_fails(tmp_path: Path) -> None:
    """Test that fuzzing detects the fault of a checker that assumes an input for every Max."""

    def fails(seed: int) -> bool:
        made = onnx.load(mutated_onnx(tmp_path, random.Random(seed)), load_external_data=False)
        return any(isinstance(each, NodeProto) and each.op_type == "Max" and not each.input for each in messages(made))

    assert any(map(fails, range(3000)))
