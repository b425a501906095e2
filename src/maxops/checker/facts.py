"""Static facts about the max nodes of a model, in one form for every model format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from maxops.dtypes import DType
from maxops.plan import Array
from maxops.sizes import Dims, text
from maxops.spec import Spec

# The value of an attribute that the caller of a function sets, if the caller is unknown.
OPEN: Final = object()


@dataclass(frozen=True)
class Invalid:
    """An attribute that is present but invalid, with a message that gives the reason."""

    text: str


@dataclass(frozen=True)
class Known:
    """The known facts about a value. `dtype` is a maxops dtype, the name of a type that maxops lacks, or None.

    ``dims`` is None for an unknown rank. ``declared`` says whether the model declares the type. ``constant`` is the
    value of a small constant in the model. ``written_sparse`` says whether a dense tensor is stored as a sparse tensor.
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
        """Describe the known shape in a sentence."""
        return f"{self.name!r} is {shape(None)}" if self.dims is None else f"{self.name!r} has shape {shape(self.dims)}"


@dataclass(frozen=True)
class Node:
    """A max node with the spec that judges it; without a spec, `note` gives the reason.

    ``inputs`` contains None for an omitted input. ``opset`` is the operator set if the model names it; in ONNX it is a
    number.
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
        """Return the input with this number, or None if it is omitted."""
        return self.inputs[number] if number < len(self.inputs) else None

    @property
    def distinct_inputs(self) -> list[Known]:
        """Return the present inputs, each once even if the node reads it twice."""
        return list({id(known): known for known in self.inputs if known is not None}.values())

    @property
    def output(self) -> Known | None:
        """The first output, or None."""
        return self.outputs[0] if self.outputs else None


def shape(dims: Dims | None) -> str:
    """Describe a shape."""
    return "of unknown rank" if dims is None else text(dims)
