"""Runs models on onnxruntime's CPU execution provider, with its own operators or with those of maxops."""

from __future__ import annotations

from typing import ClassVar

from maxops import dtypes
from maxops.conformance import onnx_model
from maxops.conformance.case import Call, Feed
from maxops.conformance.runtimes.maxops_operators import own_version
from maxops.conformance.runtimes.scripted import Scripted, fed_by_name

BFLOAT16 = 16  # ONNX's number for the type
OPTIONS = [
    "options = onnxruntime.SessionOptions()",
    "options.intra_op_num_threads, options.log_severity_level = 1, 4",
    # the arena reuses memory, which would hide uninitialized results
    "options.enable_cpu_mem_arena = options.enable_mem_pattern = False",
]
MANY_ELEMENTS = 10_000  # from this size, runtimes use threads
THREADED = [OPTIONS[0], "options.log_severity_level = 4", OPTIONS[2]]


class OnnxRuntime(Scripted):
    """Runs models on onnxruntime, with a separate session for each model."""

    name = "onnxruntime"
    claims: ClassVar[frozenset[str]] = frozenset({"ONNX"})
    versioned = True

    def setup(self, call: Call) -> list[str]:
        """Return lines that create the model and its session."""
        return [
            *onnx_model.lines(call),
            "import ctypes, onnxruntime" if call.dtype == dtypes.BFLOAT16 else "import onnxruntime",
            *(THREADED if call.elements >= MANY_ELEMENTS else OPTIONS),
            self.session("model.SerializeToString()"),
        ]

    def session(self, model: str) -> str:
        """Return the line that creates the session."""
        return f'session = onnxruntime.InferenceSession({model}, options, providers=["CPUExecutionProvider"])'

    def script(self, call: Call, feed: Feed) -> list[str]:
        """Return lines without the kit's options. A fault that needs these options counts as not reproduced."""
        lines = super().script(call, feed)
        return [line.replace(", options", "") for line in lines if line not in (*OPTIONS, *THREADED)]

    def answer(self, call: Call) -> list[str]:
        """Return lines that run the session. For bfloat16, which `run` does not support, they use OrtValues."""
        if call.dtype != dtypes.BFLOAT16:
            return [f"actual = session.run(None, {fed_by_name(call)})[0]"]
        values = [
            f"onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type({each.name}.view(np.uint16), {BFLOAT16})"
            if each.dtype == dtypes.BFLOAT16
            else f"onnxruntime.OrtValue.ortvalue_from_numpy({each.name})"
            for each in call.fed
        ]
        named = ", ".join(f"{each.name!r}: {value}" for each, value in zip(call.fed, values, strict=True))
        return [
            f"values = {{{named}}}",
            "found = session.run_with_ort_values(None, values)[0]",
            "size = 2 * int(np.prod(found.shape()))",
            'bits = ctypes.string_at(found.data_ptr(), size) if size else b""',
            "actual = np.frombuffer(bits, ml_dtypes.bfloat16).reshape(found.shape())",
        ]


class MaxopsOnnxRuntime(OnnxRuntime):
    """Runs models on onnxruntime with the operators of maxops, through `maxops.onnxruntime.session`."""

    name = "maxops:onnxruntime"
    package = "onnxruntime"

    @property
    def version(self) -> str:
        """Return the versions of both packages."""
        return f"{own_version()} in onnxruntime {self.module.__version__}"

    def session(self, model: str) -> str:
        """Return the line that creates the session."""
        del model  # the session also accepts the unserialized model
        return "import maxops.onnxruntime; session = maxops.onnxruntime.session(model, options)"
