"""`torch.onnx.export` of programs that call maxops: standard operators, with equal bits on maxops and onnxruntime."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from maxops import errors
from maxops.calls import MaxCall, ReduceCall, SegmentCall

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
onnx_ir = pytest.importorskip("onnx_ir")

import maxops.onnx  # noqa: E402 - after the skips
from maxops.engines.torch import memory, schemas  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of torch and onnxscript during export
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:# The axis name. rows will not be used:UserWarning"),
]

ROWS = torch.export.Dim("rows")
X = torch.ones(2, 3)
IDS, OTHER_IDS = torch.tensor([0, 0, 2]), torch.tensor([0, 1, 1, 3, 3])


def _float(*shape: int) -> Any:
    """Return floats, some of them infinite or zeros of both signs."""
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf")])
    values = torch.randn(*shape).flatten()
    values[::3] = special.repeat(len(values))[: len(values[::3])]
    return values.reshape(shape)


def _exported(function: Callable[..., Any], *example: Any, dynamic: bool = False) -> Any:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *arguments: Any) -> Any:
            return function(*arguments)

    sizes = ({0: ROWS},) * len(example)
    program = torch.onnx.export(
        Module().eval(),
        example,
        dynamo=True,
        verbose=False,
        dynamic_shapes=(sizes,) if dynamic else None,
        custom_translation_table=mo.onnx.torch_translations(),
    )
    return program.model_proto


def _operators(model: Any) -> set[str]:
    return {f"{node.domain}.{node.op_type}".lstrip(".") for node in model.graph.node}


def _everything(a: Any, b: Any, ids: Any) -> Any:
    return (
        mo.maximum(a, b, 0.5),
        mo.maximum(a),
        mo.reduce_max(a, 1),
        mo.reduce_max(a, (0, -1), keepdims=False),
        mo.reduce_max(a, keepdims=False, initial=0.5),
        mo.reduce_max(a, noop_with_empty_axes=True),
        mo.segment_max(a, ids, fill_mode="ZERO"),
        mo.segment_max(a, ids, 4, fill_mode="LOWEST"),
        mo.segment_max(a, ids, a.shape[0] + 1, fill_mode="zero", check_ids=False),
    )


def test_an_exported_program_runs_on_maxops_and_onnxruntime() -> None:
    """Test any number of rows. onnxruntime needs `portable`, because SegmentMax is an operator of maxops."""
    runtime = pytest.importorskip("onnxruntime")
    model = _exported(_everything, _float(3, 4), _float(3, 4), IDS, dynamic=True)
    onnx.checker.check_model(model, full_check=True)
    ours = {"Max", "ReduceMax", "maxops.SegmentMax"}
    assert ours <= _operators(model) <= ours | {"Identity", "Shape", "Squeeze", "Add"}  # Add is for a.shape[0] + 1
    loaded = mo.onnx.from_proto(model)
    session = runtime.InferenceSession(mo.onnx.portable(model).SerializeToString())
    zeros = _float(5, 4), _float(5, 4), OTHER_IDS
    # onnxruntime's ScatterND returns +0 for a segment of only -0: see docs/integrations/onnx.md
    others = zeros[0] + 0.0, zeros[1] + 0.0, OTHER_IDS
    for run, given in (
        (lambda feed: loaded.run(feed).values(), zeros),
        (lambda feed: session.run(None, feed), others),
    ):
        feed = {value.name: tensor.numpy() for value, tensor in zip(loaded.inputs, given, strict=True)}
        for part, expected in zip(run(feed), _everything(*given), strict=True):
            assert_same_bits(part, expected.numpy())


def _as_numpy(tensor: Any) -> Any:
    return np.array(memory.view(tensor))


def test_types() -> None:
    """Test each type with a scalar that no other type represents exactly."""

    def function(a: Any, b: Any, c: Any, d: Any) -> Any:
        return mo.maximum(a, 7), mo.maximum(b, 0.1), mo.maximum(c, 2**53 + 1), mo.reduce_max(d, 1)

    numbers = torch.tensor([[1, 9], [0, 3]])
    example = numbers.bfloat16(), numbers.double(), numbers, numbers.bool()
    model = mo.onnx.from_proto(_exported(function, *example))
    feed = {value.name: _as_numpy(tensor) for value, tensor in zip(model.inputs, example, strict=True)}
    for part, expected in zip(model.run(feed).values(), function(*example), strict=True):
        assert_same_bits(part, _as_numpy(expected))


def _value(dtype: str) -> Any:
    return onnx_ir.Value(type=onnx_ir.TensorType(onnx_ir.DataType[dtype]))


X_TYPE, IDS_TYPE = _value("FLOAT"), _value("INT64")
SEGMENTS = SegmentCall(X_TYPE, IDS_TYPE, 3, "ZERO")
# name -> a call with values of a graph, and the text of the error.
REFUSED: dict[str, tuple[Any, str]] = {
    "indices": (ReduceCall(X_TYPE, [1], return_indices=True), "ReduceMax-18 does not support return_indices in ONNX"),
    "ignoring-nan": (MaxCall([X_TYPE, X_TYPE], nan="ignore"), "Max-13 does not support nan in ONNX"),
    "rows-ignoring-nan": (ReduceCall(X_TYPE, [1], nan="ignore"), "ReduceMax-18 does not support nan in ONNX"),
    "segments-ignoring-nan": (SEGMENTS._replace(nan="ignore"), "SegmentMax-16 does not support nan in ONNX"),
    "max-of-bool": (MaxCall([X_TYPE, _value("BOOL")]), "Max-13 input 1 must be one of "),
    "reduce_max-of-int16": (ReduceCall(_value("INT16")), "ReduceMax-18 data must be one of "),
    "initial-of-bool": (ReduceCall(_value("BOOL"), initial=_value("BOOL")), "Max-13 data must be one of "),
    "segments-in-any-order": (
        SEGMENTS._replace(sorted=False, return_empty=True),
        "SegmentMax-16 does not support sorted, return_empty in ONNX",
    ),
    "segments-dropped": (
        SEGMENTS._replace(out_of_range="drop", return_indices=True),
        "SegmentMax-16 does not support out_of_range, return_indices in ONNX",
    ),
    "ids-of-int8": (
        SEGMENTS._replace(segment_ids=_value("INT8")),
        "SegmentMax-16 segment_ids must be one of int32, int64, got int8",
    ),
    "offsets": (
        SegmentCall(X_TYPE, offsets=IDS_TYPE, num_segments=3, initial=X_TYPE),
        "SegmentMax-16 does not support offsets, initial in ONNX",
    ),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_onnx_does_not_have_is_refused(call: str) -> None:
    request, words = REFUSED[call]
    arguments = (
        (request.inputs, request.ties, request.nan) if isinstance(request, MaxCall) else schemas.arguments(request)
    )
    with pytest.raises((errors.ModelError, errors.DTypeError), match=re.escape(words)):
        _translation(request.row.name)(*arguments)


def test_a_scalar_of_data_is_refused() -> None:
    with pytest.raises(errors.ModelError, match="maximum input 1 is known only at run time"):
        _translation("scalar")(X_TYPE, X_TYPE, "maximum", "input 1", "input 0")


def _translation(name: str) -> Callable[..., Any]:
    return mo.onnx.torch_translations()[getattr(torch.ops.maxops, name).default]


def test_a_refusal_is_an_error_of_the_export() -> None:
    with pytest.raises(torch.onnx.errors.OnnxExporterError) as error:
        _exported(lambda a: mo.reduce_max(a, 1, return_indices=True), X)
    assert "ReduceMax-18 does not support return_indices in ONNX" in str(error.value)


@pytest.mark.filterwarnings("ignore::UserWarning")  # from the deprecated exporter
@pytest.mark.parametrize("dynamo", [False, True], ids=["by-a-trace", "by-a-program"])
def test_without_the_table_nothing_is_exported(dynamo: bool, tmp_path: Any) -> None:
    """Test that the export fails instead of storing the result of the example as a constant."""

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, a: Any) -> Any:
            return mo.maximum(a, a[0])

    with pytest.raises(torch.onnx.errors.OnnxExporterError, match=r"maxops(::|\.)maximum"):
        torch.onnx.export(Module().eval(), (X,), tmp_path / "model.onnx", dynamo=dynamo, verbose=False)
