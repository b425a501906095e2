"""What every peer's file offers: a class that gives ways to do a case, or refuses with a reason."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from maxops.bench.way import RefusedError, Way, Work


class Peer:
    """A package at work. A subclass names it, and has the operators that it can do."""

    name: ClassVar[str]
    module_name: ClassVar[str] = ""  # if it is not the name

    def __init__(self, threads: int) -> None:
        self.module: Any = import_module(self.module_name or self.name)
        self.set_threads(threads)

    def set_threads(self, threads: int) -> None:
        """Make the package use so many threads, where its environment has not done that."""

    @property
    def version(self) -> str:
        """The package's version."""
        module = import_module(self.name)
        return str(getattr(module, "__version__", ""))

    def ways(self, work: Work) -> list[Way]:
        """Every way worth trying; the fastest that is right is the one that is timed."""
        if work.case.operator == "Max":
            return self.maximum(work)
        return self.reduce_max(work) if work.case.operator == "ReduceMax" else self.segment_max(work)

    def maximum(self, work: Work) -> list[Way]:
        """Element-wise maximum."""
        raise RefusedError("has no element-wise maximum")

    def reduce_max(self, work: Work) -> list[Way]:
        """Maximum along axes."""
        raise RefusedError("has no maximum along axes")

    def segment_max(self, work: Work) -> list[Way]:
        """Maximum of segments."""
        raise RefusedError("has no maximum by ids")


def flat(work: Work) -> None:
    """Refuse all but whole 1-D inputs of one shape."""
    shapes = {operand.shape for operand in work.case.operands}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise RefusedError("has 1-D columns of one length only")
    if any(operand.view != "whole" for operand in work.case.operands):
        raise RefusedError("has no strided arrays")
