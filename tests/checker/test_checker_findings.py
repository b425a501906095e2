"""Findings from onnx.checker: when it runs, and how to interpret its errors."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, TensorProto, parser

from maxops.checker import onnx_checker
from maxops.errors import ModelError

pytestmark = pytest.mark.usefixtures("unsandboxed")

NEWEST = onnx.defs.onnx_opset_version()


def model(operator: str = "Max", *, ir_version: int = 10, size: int | str = 2, elem_type: str = "float") -> ModelProto:
    head = f'<ir_version: {ir_version}, opset_import: ["": 18]>'
    return parser.parse_model(f"{head} g (float[2] x) => ({elem_type}[{size}] y) {{ y = {operator}(x) }}")


def said(proto: ModelProto, *, full: bool = True) -> list[tuple[str, str]]:
    """Return the verdicts and messages."""
    found = onnx_checker.findings(proto, full=full)
    assert all((each.node, each.clause) == ("model", "model") for each in found)
    return [(each.verdict, each.message) for each in found]


def test_nothing_is_said_of_what_is_right() -> None:
    assert said(model()) == []


@pytest.mark.parametrize("full", [False, True])
def test_what_it_refuses_is_broken(full: bool) -> None:
    ((verdict, message),) = said(model("Nothing"), full=full)
    assert verdict == "broken"
    assert message.startswith("onnx.checker rejects the model: No Op registered for Nothing")
    assert "\n" not in message


@pytest.mark.parametrize("wrong", [{"size": 3}, {"elem_type": "int64"}], ids=str)
def test_types_are_inferred_only_if_asked(wrong: dict[str, str]) -> None:
    proto = model(**wrong)  # type: ignore[arg-type]
    assert said(proto, full=False) == []
    ((verdict, message),) = said(proto)
    assert verdict == "broken"
    assert "ShapeInferenceError" in message


@pytest.mark.parametrize("ir_version", [1, 2])
def test_inference_knows_no_model_before_operator_sets(ir_version: int) -> None:
    proto = model(ir_version=ir_version, size=3)
    del proto.opset_import[:]
    assert said(proto) == []
    assert [verdict for verdict, _ in said(model(ir_version=ir_version))] == ["broken"]  # the imports require version 3
    assert [verdict for verdict, _ in said(model(ir_version=3, size=3))] == ["broken"]


@pytest.mark.parametrize(
    ("change", "is_asked"),
    [
        ({"ir_version": onnx.IR_VERSION}, True),
        ({"ir_version": onnx.IR_VERSION + 1}, False),
        ({"": NEWEST}, True),
        ({"": NEWEST + 1}, False),
        ({"own": NEWEST + 1}, True),
        ({"own": 1, "": NEWEST + 1}, False),
        ({"": NEWEST + 1, "own": 1}, False),
        ({"function": NEWEST}, True),
        ({"function": NEWEST + 1}, False),
    ],
    ids=str,
)
def test_a_newer_model_is_not_judged(change: dict[str, int], is_asked: bool) -> None:
    proto = model("Nothing")
    del proto.opset_import[:]
    for domain, version in ({"": 18} | change).items():
        if domain == "ir_version":
            proto.ir_version = version
        elif domain == "function":
            function = proto.functions.add(domain="own", name="F")
            function.opset_import.add(domain="", version=version)
            proto.opset_import.add(domain="own", version=1)
        else:
            proto.opset_import.add(domain=domain, version=version)
    assert [verdict for verdict, _ in said(proto)] == ["broken"] * is_asked


@pytest.mark.parametrize("length", [473, 474, 475, 2000])
def test_long_refusals_are_cut(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_checker, "_refusal", lambda *_: "w" * length)
    ((_, message),) = said(model())
    assert message == "onnx.checker rejects the model: " + "w" * min(length, 500)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Inference error(s): (op_type:Max)", "broken"),
        ("Inference error(s): (op_type:F) Inference error(s): (op_type:Max)", "unknown"),
        ("Opset import for domain own in function op F", "unknown"),
        ("Inference error(s): (op_type:Reshape) Cannot parse data from external tensors.", "unknown"),
        ("Opset import for domain own in graph", "broken"),
        ("there is an Opset import for domain own in function op F", "broken"),
        ("in function op F", "broken"),
    ],
)
def test_what_a_refusal_shows(text: str, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_checker, "_refusal", lambda *_: text)
    assert said(model()) == [(verdict, f"onnx.checker rejects the model: {text}")]


def test_a_refusal_that_is_not_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_checker, "_refusal", lambda *_: "of \udcff")
    assert said(model()) == [("broken", "onnx.checker rejects the model: of ?")]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (onnx.checker.ValidationError("no"), "onnx.checker rejects the model: no"),
        (onnx.checker.ValidationError(), "onnx.checker rejects the model: ValidationError"),
        (onnx.shape_inference.InferenceError("no"), "onnx.checker rejects the model: no"),
    ],
    ids=repr,
)
def test_what_it_raises_is_its_refusal(error: Exception, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise error

    monkeypatch.setattr(onnx.checker, "check_model", raises)
    assert said(model()) == [("broken", words)]


@pytest.mark.parametrize("error", [KeyError("of onnx"), MemoryError("of onnx"), ModelError("of onnx")], ids=repr)
def test_what_else_it_raises_says_nothing_of_the_model(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise error

    monkeypatch.setattr(onnx.checker, "check_model", raises)
    ((verdict, message),) = said(model())
    assert verdict == "unknown"
    assert message.startswith(f"onnx.checker failed ({type(error).__name__}: ")


def test_weights_are_left_out_of_what_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that onnx.checker receives empty weights instead of large ones, and that inference receives their sizes."""
    proto = model()
    proto.graph.initializer.append(
        TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[100_000], raw_data=bytes(400_000))
    )
    assert said(proto) == said(proto, full=False) == []
    seen: dict[str, ModelProto] = {}

    def check(light: ModelProto) -> None:
        seen["light"] = light

    def infer(shaped: ModelProto, **options: bool) -> None:
        assert options == {"check_type": True, "strict_mode": True}
        seen["shaped"] = shaped

    monkeypatch.setattr(onnx.checker, "check_model", check)
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", infer)
    assert said(proto) == []
    weights = {name: each.graph.initializer[0] for name, each in seen.items()}
    assert {name: [*each.dims] for name, each in weights.items()} == {"light": [0], "shaped": [100_000]}
    assert not any(each.raw_data for each in weights.values())
    assert len(proto.graph.initializer[0].raw_data) == 400_000
