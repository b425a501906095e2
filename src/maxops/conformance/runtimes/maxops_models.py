"""maxops as a runtime of models: its ONNX backend, its IR reader, and its operators in onnxruntime and openvino."""

from __future__ import annotations

from typing import ClassVar

from maxops.conformance import ir_model, onnx_text
from maxops.conformance.case import Call
from maxops.conformance.runtimes.maxops_operators import own_version
from maxops.conformance.runtimes.onnxruntime import OnnxRuntime
from maxops.conformance.runtimes.openvino import OpenVino
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.conformance.runtimes.scripted import Scripted, fed_by_name


class MaxopsOnnx(Scripted):
    """Runs ONNX models with `maxops.onnx.Backend`, and IRs with `maxops.openvino.load`."""

    name = "maxops:onnx"
    package = "maxops"
    claims: ClassVar[frozenset[str]] = frozenset({"ONNX", "OpenVINO"})
    versioned = True

    @property
    def version(self) -> str:
        """Return the package's version."""
        return own_version()

    def setup(self, call: Call) -> list[str]:
        """Return lines that load and check the model."""
        if call.row.standard != "OpenVINO":
            return [*onnx_text.lines(call), "import maxops.onnx", "ready = maxops.onnx.Backend.prepare(model)"]
        text, weights = ir_model.ir(call, one_line=True)
        return [
            "import maxops.openvino, pathlib, tempfile",
            "folder = tempfile.TemporaryDirectory()",
            'path = pathlib.Path(folder.name, "model.xml")',
            f"path.write_text({text!r})",
            f'path.with_suffix(".bin").write_bytes({weights!r})',
            "ready = maxops.openvino.load(path)",
            "folder.cleanup()",
        ]

    def answer(self, call: Call) -> list[str]:
        """Return the line that runs the model."""
        if call.row.standard == "OpenVINO":
            return [f'actual = ready.run({fed_by_name(call)})["y"]']
        return [f"actual = ready.run({fed_by_name(call)})[0]"]


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
