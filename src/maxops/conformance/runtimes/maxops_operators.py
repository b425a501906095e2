"""Runs maxops itself: its operators in Python, with one runtime for each instruction set, and its models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from maxops import _native
from maxops.conformance import ir_model, onnx_model
from maxops.conformance.case import Call
from maxops.conformance.literal import literal
from maxops.conformance.runtimes.runtime import BrokenRuntimeError, require_no_constructs
from maxops.conformance.runtimes.scripted import Scripted, fed_by_name
from maxops.machine import installed


class _Maxops(Scripted):
    package = "maxops"
    versioned = True

    @property
    def version(self) -> str:
        """Return the package's version."""
        return own_version()


class MaxopsOperators(_Maxops):
    """Runs `maxops.operator` with the row's standard and version."""

    claims: ClassVar[frozenset[str]] = frozenset({"ONNX", "SONNX", "SONNX draft", "OpenVINO"})

    def __init__(self, isa: str) -> None:
        self.name: str = f"maxops:{isa}"
        self.isa = isa
        self.environment: Mapping[str, str] = {"MAXOPS_ISA": isa}
        self.opening: tuple[str, ...] = (f'import os; os.environ["MAXOPS_ISA"] = {isa!r}', "import maxops")

    def start(self) -> None:
        """Check that this process uses the instruction set. The package itself is always installed."""
        super().start()
        if _native.isa() != self.isa:
            raise BrokenRuntimeError(
                f"{self.name} requires a process with MAXOPS_ISA={self.isa}, but this process uses {_native.isa()}"
            )

    def setup(self, call: Call) -> list[str]:
        """Return lines that define the operator and the constants."""
        require_no_constructs(call)
        row = call.row
        return [
            f"operator = maxops.operator({row.standard!r}, {row.operator!r}, {row.version})",
            *(f"{name} = {literal(array)}" for name, array in call.constants.items()),
        ]

    def answer(self, call: Call) -> list[str]:
        """Return the line that calls the operator."""
        given = [each.name if each else "None" for each in call.inputs]
        return [f"actual = operator({', '.join([*given, *(f'{name}={value!r}' for name, value in call.attributes)])})"]


class MaxopsOnnx(_Maxops):
    """Runs ONNX models with `maxops.onnx.Backend`, and IRs with `maxops.openvino.load`."""

    name = "maxops:onnx"
    claims: ClassVar[frozenset[str]] = frozenset({"ONNX", "OpenVINO"})

    def setup(self, call: Call) -> list[str]:
        """Return lines that load and check the model."""
        if call.row.standard != "OpenVINO":
            return [*onnx_model.lines(call), "import maxops.onnx", "ready = maxops.onnx.Backend.prepare(model)"]
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


def own_version() -> str:
    """Return the version of maxops, or "unknown" if it is not installed."""
    return installed("maxops") or "unknown"
