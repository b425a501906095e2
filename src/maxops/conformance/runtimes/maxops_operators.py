"""maxops itself: its operators as Python calls them, on one instruction set each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from maxops import _native
from maxops.conformance.case import Call
from maxops.conformance.literal import literal
from maxops.conformance.runtimes.runtime import BrokenRuntimeError, require_no_constructs
from maxops.conformance.runtimes.scripted import Scripted
from maxops.machine import installed


class MaxopsOperators(Scripted):
    """`maxops.operator` of the row's standard and version."""

    package = "maxops"
    claims: ClassVar[frozenset[str]] = frozenset({"ONNX", "SONNX", "SONNX draft", "OpenVINO"})
    versioned = True

    def __init__(self, isa: str) -> None:
        self.name: str = f"maxops:{isa}"
        self.isa = isa
        self.environment: Mapping[str, str] = {"MAXOPS_ISA": isa}
        self.opening: tuple[str, ...] = (f'import os; os.environ["MAXOPS_ISA"] = {isa!r}', "import maxops")

    def start(self) -> None:
        """Check that this process has the instruction set; maxops itself is installed."""
        super().start()
        if _native.isa() != self.isa:
            raise BrokenRuntimeError(
                f"{self.name} needs a process with MAXOPS_ISA={self.isa}; this one has {_native.isa()}"
            )

    @property
    def version(self) -> str:
        """The package's version."""
        return own_version()

    def setup(self, call: Call) -> list[str]:
        """The operator, and the constants."""
        require_no_constructs(call)
        row = call.row
        return [
            f"operator = maxops.operator({row.standard!r}, {row.operator!r}, {row.version})",
            *(f"{name} = {literal(array)}" for name, array in call.constants.items()),
        ]

    def answer(self, call: Call) -> list[str]:
        """A call."""
        given = [each.name if each else "None" for each in call.inputs]
        return [f"actual = operator({', '.join([*given, *(f'{name}={value!r}' for name, value in call.attributes)])})"]


def own_version() -> str:
    """The version of maxops; a source tree that is not installed has none."""
    return installed("maxops") or "unknown"
