"""Static facts about the max nodes of a model, in one form for every model format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from maxops.dtypes import DType
from maxops.plan import Array
from maxops.sizes import Dims, text
from maxops.spec import Spec

# An attribute whose value a function's caller sets, where no caller is known.
OPEN: Final = object()


@dataclass(frozen=True)
class Invalid:
    """An attribute that is there but invalid, and the message that says why."""

    text: str


@dataclass(frozen=True)
class Known:
    """The known facts about a value. `dtype` is a row of ours, the name of another type, or None; an unknown rank is
    None.

    ``declared`` says that the model writes its type, ``constant`` is its value where that is small and in the model.
    A dense tensor may still be written as a sparse one: ``written_sparse``.
    """

    name: str
    dtype: DType | str | None = None
    dims: Dims | None = None
    declared: bool = False
    sparse: bool = False
    written_sparse: bool = False
    constant: Array | None = None

    def __str__(self) -> str:
        kind = "of unknown type" if self.dtype is None else str(self.dtype)
        return f"{self.name!r} ({'sparse ' if self.sparse else ''}{kind}, {shape(self.dims)})"

    @property
    def shape_in_words(self) -> str:
        """Its known shape, as a sentence."""
        return (
            f"{self.name!r} is {shape(None)}"
            if self.dims is None
            else f"{self.name!r} has the shape {shape(self.dims)}"
        )


@dataclass(frozen=True)
class Node:
    """A max node as written, and the row that judges it; without a row, `note` says why there is none.

    ``inputs`` holds None for an input that is left out, ``opset`` is the operator set if the model
    names it: of ONNX a number.
    """

    where: str
    operator: str
    inputs: tuple[Known | None, ...]
    outputs: tuple[Known, ...]
    attributes: Mapping[str, Any]
    row: Spec | None
    note: str = ""
    opset: str | None = None

    def input(self, number: int) -> Known | None:
        """The input of this number, or None if it is left out."""
        return self.inputs[number] if number < len(self.inputs) else None

    @property
    def distinct_inputs(self) -> list[Known]:
        """The inputs that are there, each once though it may be read twice."""
        return list({id(known): known for known in self.inputs if known is not None}.values())

    @property
    def output(self) -> Known | None:
        """The first output."""
        return self.outputs[0] if self.outputs else None


def shape(dims: Dims | None) -> str:
    """A shape in words."""
    return "of unknown rank" if dims is None else text(dims)
