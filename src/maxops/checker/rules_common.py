"""Rules that several operators share: types, numbers of inputs, attributes, and output shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxops import sizes
from maxops.checker.facts import OPEN, Invalid, Known, Node, shape
from maxops.checker.ruling import Ruling, at_run_time, broken, holds, unknown
from maxops.counted import counted
from maxops.dtypes import DType
from maxops.sizes import Dims
from maxops.spec import Spec

Rule = Callable[[Node, Spec], Ruling]


def value(node: Node, row: Spec) -> Ruling:
    """Return the ruling on clauses about the output's values, which are known only at run time."""
    return at_run_time("values are known only at run time")


def one_type(inputs: Sequence[Known | None], outputs: Sequence[Known], row: Spec) -> Ruling:
    """Check that all inputs and outputs have one supported type. Outputs without a declared type are valid."""
    given = [known for known in inputs if known is not None]
    typed = [known for known in (*given, *outputs) if known.dtype is not None]
    for known in typed:
        if known.dtype not in row.dtypes:
            return broken(f"{known.name!r} must be one of {', '.join(map(str, row.dtypes))}, got {known.dtype}")
        if known.dtype is not typed[0].dtype:
            return broken(
                f"{known.name!r} is {known.dtype}, but {typed[0].name!r} is {typed[0].dtype}; all must have the "
                "same type"
            )
        # SONNX has a separate clause for sparse tensors, and its draft has none
        if known.sparse and not row.standard.startswith("SONNX"):
            return broken(f"{known.name!r} must be a dense tensor, got a sparse tensor")
    for known in given:
        if known.dtype is None:
            return unknown(f"the type of {known.name!r} is unknown")
    return holds(f"{typed[0].dtype}") if given else unknown("there are no inputs")


def ranked_data(node: Node, row: Spec) -> Ruling:
    """Check that the first input, data, has rank 1 or more."""
    data = node.input(0)
    if data is None or data.dims is None:
        return unknown("the rank of data is unknown")
    return (
        holds(f"rank {len(data.dims)}")
        if data.dims
        else broken(f"data must have rank 1 or more, but {data.name!r} is a scalar")
    )


def listed_type(known: Known, types: Sequence[DType]) -> Ruling:
    """Check that a value is a dense tensor with one of these types."""
    if known.dtype is None:
        return unknown(f"the type of {known.name!r} is unknown")
    if known.dtype not in types or known.sparse:
        kind = f"{'sparse ' if known.sparse else ''}{known.dtype}"
        return broken(f"{known.name!r} must be {' or '.join(map(str, types))}, got {kind}")
    return holds(f"{known.name!r} is {known.dtype}")


def count(node: Node, fewest: int, most: int, required: int) -> Ruling:
    """Check the number of inputs, and that none of the first `required` inputs is omitted."""
    given = len(node.inputs)
    if not fewest <= given <= most:
        expected = counted(most, "input") if fewest == most else f"{fewest} to {most} inputs"
        return broken(f"expected {expected}, got {given}")
    for number, known in enumerate(node.inputs[:required]):
        if known is None:
            return broken(f"input {number} is required, but its name is empty")
    return holds(f"inputs: {given}")


def attribute(node: Node, name: str, default: Any, subject: str = "") -> Any:
    """Return the value of an attribute, or a ruling if the value is invalid or unknown."""
    given = node.attributes.get(name, default)
    if given is OPEN:
        return unknown(f"{subject or f'{name} is'} set by the caller of the function")
    return broken(given.text) if isinstance(given, Invalid) else given


def flag(node: Node, name: str) -> Ruling | int:
    """Return the value of an attribute that must be 0 or 1, or a ruling if the value is invalid or unknown."""
    given = attribute(node, name, 1 if name == "keepdims" else 0)
    if isinstance(given, Ruling):
        return given
    return int(given) if given in (0, 1) else broken(f"{name} must be 0 or 1, got {given!r}")


def output_shape(node: Node, made: Dims | None, why: str) -> Ruling:
    """Check that the output's declared shape is compatible with `made`, the shape that follows from the inputs."""
    output = node.output
    if made is None:
        return unknown("the expected shape of the output is unknown")
    if output is None or (allowed := sizes.admits(output.dims, made)):
        return holds(f"{why} {shape(made)}")
    text = f"{output.shape_in_words}, but {why} {shape(made)}"
    return unknown(text) if allowed is None else broken(text)
