"""Runs ONNX models and IRs on OpenVINO's CPU plugin, with its own operators or with those of maxops."""

from __future__ import annotations

from typing import ClassVar

from maxops import dtypes
from maxops.conformance import ir_model, onnx_model
from maxops.conformance.case import Call, Input
from maxops.conformance.literal import literal
from maxops.conformance.runtimes.maxops_operators import own_version
from maxops.conformance.runtimes.onnxruntime import MANY_ELEMENTS
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.conformance.runtimes.scripted import Scripted

# The plugin's inference precision for each type: at least as wide as the data, up to f32.
PRECISIONS = {dtypes.FLOAT16: "f16", dtypes.BFLOAT16: "bf16", dtypes.FLOAT32: "f32", dtypes.FLOAT64: "f32"}


class OpenVino(Scripted):
    """Runs models on OpenVINO, with a compiled model for each call and an infer request for each feed."""

    name = "openvino"
    claims: ClassVar[frozenset[str]] = frozenset({"ONNX", "OpenVINO"})
    versioned = True
    opening: tuple[str, ...] = ("import openvino", "core = openvino.Core()")

    @property
    def version(self) -> str:
        """Return the version without the build number."""
        return str(self.module.__version__).partition("-")[0]

    def setup(self, call: Call) -> list[str]:
        """Return lines that compile the model."""
        options = {} if call.elements >= MANY_ELEMENTS else {"INFERENCE_NUM_THREADS": 1}
        hints = {"INFERENCE_PRECISION_HINT": PRECISIONS[call.dtype]} if call.dtype in PRECISIONS else {}
        return [*self.model(call), f'compiled = core.compile_model(model, "CPU", {hints | options})']

    def model(self, call: Call) -> list[str]:
        """Return lines that assign the model to `model`."""
        if call.row.standard == "OpenVINO":
            return _built(call) or _read(call)
        return [
            *onnx_model.lines(call),
            "model = core.read_model(model.SerializeToString())",
        ]

    def answer(self, call: Call) -> list[str]:
        """Return lines that run the model, and copy the result from the request's memory.

        On one thread, `infer` of OpenVINO 2026.4.1 loses an error, and the next error ends the process. `wait` does not
        have this bug.
        """
        tensors = f"[{', '.join(map(_tensor, call.fed))}]"
        bits = ".view(ml_dtypes.bfloat16)" if call.dtype == dtypes.BFLOAT16 else ""
        return [
            "request = compiled.create_infer_request()",
            f"request.start_async(dict(enumerate({tensors})))",
            "request.wait()",
            f"actual = request.get_output_tensor().data{bits}.copy()",
        ]


class MaxopsOpenVino(OpenVino):
    """Runs models on openvino with the operators of maxops, through `maxops.openvino.rewrite`."""

    name = "maxops:openvino"
    package = "openvino"
    # not ONNX, because OpenVINO's reader accepts invalid attributes before `rewrite` sees the model
    claims: ClassVar[frozenset[str]] = frozenset({"OpenVINO"})

    @property
    def version(self) -> str:
        """Return the versions of both packages."""
        return f"{own_version()} in openvino {super().version}"

    def model(self, call: Call) -> list[str]:
        """Return lines that read and rewrite the model."""
        if call.row.is_scatter:  # OpenVINO's reader converts these to its own operators
            raise NotApplicableError(f"{self.name} has no {call.row.operator}")
        return [*super().model(call), "import maxops.openvino", "model = maxops.openvino.rewrite(model)"]


def _built(call: Call) -> list[str]:
    """Return lines that build SegmentMax with openvino's own functions, or no lines if the functions cannot do so."""
    mode = dict(call.attributes).get("fill_mode")
    if [name for name, _ in call.attributes] != ["fill_mode"] or mode not in ("ZERO", "LOWEST"):
        return []
    inputs = ir_model.present_inputs(call)
    fed = ", ".join(f"nodes[{number}]" for number, each in enumerate(inputs) if each.constant is None)
    return [
        "import openvino.opset16 as ops",
        f"nodes = [{', '.join(map(_node, inputs))}]",
        f"model = openvino.Model([ops.segment_max(*nodes, fill_mode={mode!r})], [{fed}])",
    ]


def _read(call: Call) -> list[str]:
    """Return lines that read the IR, with one XML tag in each line."""
    text, weights = ir_model.ir(call)
    weights_text = f"np.frombuffer(bytes.fromhex({weights.hex()!r}), np.uint8)" if weights else "np.empty(0, np.uint8)"
    lines = [f"    {each.strip()!r}" for each in text.splitlines()]
    return ["text = (", *lines, ")", f"model = core.read_model(text.encode(), openvino.Tensor({weights_text}))"]


def _node(each: Input) -> str:
    if each.constant is not None:
        return f"ops.constant({literal(each.constant)}{_type(each) if each.dtype == dtypes.BFLOAT16 else ''})"
    sizes = [-1 if size is None else size for size in each.dims]
    return f"ops.parameter({sizes}{_type(each)})"


def _type(each: Input) -> str:
    return f", openvino.Type.{ir_model.element_type(each.dtype)}"


def _tensor(each: Input) -> str:
    """Return an expression for a tensor that owns its memory. Data of type bfloat16 is passed as uint16 bits."""
    if each.dtype == dtypes.BFLOAT16:
        return f"openvino.Tensor({each.name}.view(np.uint16), {each.name}.shape, openvino.Type.bf16)"
    return f"openvino.Tensor({each.name})"
