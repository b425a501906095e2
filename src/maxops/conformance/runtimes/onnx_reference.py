"""Runs models on onnx's reference evaluator."""

from __future__ import annotations

from typing import ClassVar

from maxops.conformance import onnx_model
from maxops.conformance.case import Call
from maxops.conformance.runtimes.scripted import Scripted, fed_by_name


class OnnxReference(Scripted):
    """Runs models on the onnx package's reference evaluator, which uses NumPy."""

    name = "onnx-reference"
    package = "onnx"
    claims: ClassVar[frozenset[str]] = frozenset({"ONNX"})
    versioned = True

    def setup(self, call: Call) -> list[str]:
        """Return lines that create the model and its evaluator."""
        return [
            *onnx_model.lines(call),
            "from onnx.reference import ReferenceEvaluator",
            "evaluator = ReferenceEvaluator(model)",
        ]

    def answer(self, call: Call) -> list[str]:
        """Return the line that runs the evaluator."""
        return [f"actual = evaluator.run(None, {fed_by_name(call)})[0]"]
