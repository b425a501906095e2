"""Rules that several operators share: types, counts, attributes, and the declared output."""

from __future__ import annotations

from collections.abc import Sequence

from maxops import sizes
from maxops.checker.facts import OPEN, Invalid, Known, Node, shape
from maxops.checker.ruling import Ruling, at_run_time, broken, holds, unknown
from maxops.counted import counted
from maxops.dtypes import DType
from maxops.sizes import Dims
from maxops.spec import Spec


def value(node: Node, row: Spec) -> Ruling:
    """Return the ruling on the clause of values, which are never known statically."""
    return at_run_time("is about values, which are known at run time only")


def one_type(inputs: Sequence[Known | None], outputs: Sequence[Known], row: Spec) -> Ruling:
    """Check that all types are equal and in the row. An output without a type gets the type of the inputs."""
    given = [known for known in inputs if known is not None]
    typed = [known for known in (*given, *outputs) if known.dtype is not None]
    for known in typed:
        if known.dtype not in row.dtypes:
            return broken(f"{known.name!r} is {known.dtype}; the types are {', '.join(map(str, row.dtypes))}")
        if known.dtype is not typed[0].dtype:
            return broken(
                f"{known.name!r} is {known.dtype}, but {typed[0].name!r} is {typed[0].dtype}; there is one type"
            )
        # SONNX has a clause of its own for it, and its draft none
        if known.sparse and not row.standard.startswith("SONNX"):
            return broken(f"{known.name!r} is a sparse tensor; the types are of dense ones")
    for known in given:
        if known.dtype is None:
            return unknown(f"the type of {known.name!r} is not known")
    return holds(f"{typed[0].dtype}") if given else unknown("there is no input whose type could be known")


def ranked_data(node: Node, row: Spec) -> Ruling:
    """Judge the clause that the first input, data, has rank 1 or more."""
    data = node.input(0)
    if data is None or data.dims is None:
        return unknown("the rank of data is not known")
    return holds(f"rank {len(data.dims)}") if data.dims else broken(f"{data.name!r} has rank 0; data has 1 or more")


def listed_type(known: Known, types: Sequence[DType]) -> Ruling:
    """Check that a value has one of these types."""
    if known.dtype is None:
        return unknown(f"the type of {known.name!r} is not known")
    if known.dtype not in types or known.sparse:
        kind = f"{'sparse ' if known.sparse else ''}{known.dtype}"
        return broken(f"{known.name!r} is {kind}; it is {' or '.join(map(str, types))}")
    return holds(f"{known.name!r} is {known.dtype}")


def count(node: Node, fewest: int, most: int, required: int) -> Ruling:
    """Check the number of inputs; the first `required` inputs are mandatory."""
    given = len(node.inputs)
    if not fewest <= given <= most:
        expected = str(most) if fewest == most else f"{fewest} to {most}"
        return broken(f"has {counted(given, 'input')}; it takes {expected}")
    for number, known in enumerate(node.inputs[:required]):
        if known is None:
            return broken(f"input {number} has an empty name, which leaves it out; it is not optional")
    return holds(f"inputs: {given}")


def flag(node: Node, name: str) -> Ruling | int:
    """Return the attribute (0 or 1), or the ruling if it is invalid."""
    given = node.attributes.get(name, {"keepdims": 1}.get(name, 0))
    if given is OPEN:
        return unknown(f"{name} is set by the function's caller")
    if isinstance(given, Invalid):
        return broken(given.text)
    if given not in (0, 1):
        return broken(f"{name} is {given!r}; it is 0 or 1")
    return int(given)


def output_shape(node: Node, made: Dims | None, why: str) -> Ruling:
    """Compare the output's declared shape with the shape that the inputs make."""
    output = node.output
    if made is None:
        return unknown("what shape the inputs make is not known")
    if output is None or (allowed := sizes.admits(output.dims, made)):
        return holds(f"{why} {shape(made)}")
    text = f"{output.shape_in_words}, but {why} {shape(made)}"
    return unknown(text) if allowed is None else broken(text)
