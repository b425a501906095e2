"""The base class of the libraries: candidates for a case, or UnsupportedError with a reason."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from maxops.bench.candidate import Candidate, UnsupportedError, Work


class Library:
    """A package. A subclass names it, and has the operators that it can do."""

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

    def candidates(self, work: Work) -> list[Candidate]:
        """Every candidate worth trying; the fastest correct one is timed."""
        if work.case.operator == "Max":
            return self.maximum(work)
        return self.reduce_max(work) if work.case.operator == "ReduceMax" else self.segment_max(work)

    def maximum(self, work: Work) -> list[Candidate]:
        """Element-wise maximum."""
        raise UnsupportedError("has no element-wise maximum")

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Maximum along axes."""
        raise UnsupportedError("has no maximum along axes")

    def segment_max(self, work: Work) -> list[Candidate]:
        """Maximum of segments."""
        raise UnsupportedError("has no maximum by ids")


def columns(work: Work) -> None:
    """Reject what no library of columns has."""
    flat(work)
    if work.case.dtype.name == "bfloat16":
        raise UnsupportedError("has no bfloat16")


def flat(work: Work) -> None:
    """Reject all but whole 1-D inputs of one shape."""
    shapes = {operand.shape for operand in work.case.operands}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise UnsupportedError("has 1-D columns of one length only")
    if any(operand.view != "whole" for operand in work.case.operands):
        raise UnsupportedError("has no strided arrays")
