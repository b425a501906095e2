"""Describes the nodes with max operators ("max nodes") of a model, independently of the model's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from maxops.dtypes import DType
from maxops.plan import Array
from maxops.sizes import Dims, text
from maxops.spec import Spec

# Replaces the value of an attribute in a function if the caller sets the value, but the caller is unknown.
OPEN: Final = object()


@dataclass(frozen=True)
class Invalid:
    """Replaces the value of an invalid attribute. The text gives the reason."""

    text: str


@dataclass(frozen=True)
class Known:
    """The known facts about an input or output of a node.

    ``dtype`` is a maxops dtype, the name of a type that maxops does not support, or None if the type is unknown.
    ``dims`` is None if the rank is unknown. ``declared`` is True if the model declares the type. ``constant`` is the
    array of a small constant in the model. ``written_sparse`` is True if a dense tensor is stored as a sparse tensor.
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
        """The known shape in words, such as "'x' has shape (2, n)"."""
        return f"{self.name!r} is {shape(None)}" if self.dims is None else f"{self.name!r} has shape {shape(self.dims)}"


@dataclass(frozen=True)
class Node:
    """A max node, and the specification to check it against.

    ``row`` is the specification. It is None if there is none, and ``note`` then gives the reason. ``inputs`` contains
    None for each omitted input. ``opset`` is the operator set that the model states for the node: a number in ONNX, and
    a name such as "opset1" in OpenVINO.
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
        """Return the input at an index, or None if it is omitted."""
        return self.inputs[number] if number < len(self.inputs) else None

    @property
    def distinct_inputs(self) -> list[Known]:
        """The inputs that are not omitted, without duplicates."""
        return list({id(known): known for known in self.inputs if known is not None}.values())

    @property
    def output(self) -> Known | None:
        """The first output, or None if the node has no outputs."""
        return self.outputs[0] if self.outputs else None


def shape(dims: Dims | None) -> str:
    """Return a shape as text, such as "(2, n)"."""
    return "of unknown rank" if dims is None else text(dims)
