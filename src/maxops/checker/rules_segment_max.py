"""The rules for the clauses of SegmentMax."""

from __future__ import annotations

from collections.abc import Callable
from operator import gt, lt

import numpy as np

from maxops import sizes
from maxops.checker.facts import Known, Node
from maxops.checker.rules_common import Rule, attribute, count, listed_type, one_type, output_shape, ranked_data, value
from maxops.checker.ruling import Ruling, at_run_time, broken, holds, unknown
from maxops.counted import counted
from maxops.plan import FILL_MODES, Array
from maxops.spec import Spec


def _index_type(node: Node, row: Spec) -> Ruling:
    rulings = [listed_type(known, row.index_dtypes) for known in node.inputs[1:3] if known is not None]
    for verdict in ("broken", "unknown", "holds"):
        for ruling in rulings:
            if ruling.verdict == verdict:
                return ruling
    return unknown("there are no segment_ids")


def _ids_shape(node: Node, row: Spec) -> Ruling:
    data, ids = node.input(0), node.input(1)
    if ids is None or ids.dims is None:
        return unknown("the rank of segment_ids is unknown")
    if len(ids.dims) != 1:
        return broken(f"segment_ids must be 1-D, got {ids}")
    if data is None or not data.dims:
        return unknown("the size of the first axis of data is unknown")
    same = sizes.equal(ids.dims, data.dims[:1])
    if same is None:
        return unknown(f"it is unknown whether {ids} has one id for each row of {data}")
    return (
        holds(f"there is one id for each row of {data.name!r}")
        if same
        else broken(f"segment_ids must have one id for each row of {data}, got {ids}")
    )


def _ids(node: Node, row: Spec) -> Ruling:
    known = node.input(1)
    if known is not None and known.dims == (0,):
        return holds("there are no ids")
    ids = _integers(known)
    if ids is None:
        return unknown("segment_ids are not a constant in the model")
    flat = np.ravel(ids)
    if (negative := np.flatnonzero(flat < 0)).size:
        return broken(f"segment_ids must not be negative, got {flat[negative[0]]} at position {negative[0]}")
    if (down := np.flatnonzero(flat[1:] < flat[:-1])).size:
        at = int(down[0]) + 1
        return broken(f"segment_ids must be non-decreasing, got {flat[at]} after {flat[at - 1]} at position {at}")
    return holds(f"all {flat.size} constant ids are non-negative and sorted")


def _num_segments(node: Node, row: Spec) -> Ruling:
    known = node.input(2)
    if known is None:
        return holds("num_segments is omitted")
    if known.dims:
        return broken(f"num_segments must be a scalar, got {known}")
    number = _integers(known)
    if number is None or number.size != 1:
        return unknown("num_segments is not a constant in the model")
    return (
        broken(f"num_segments must not be negative, got {number.item()}") if number.item() < 0 else holds(str(number))
    )


def _default(node: Node, row: Spec) -> Ruling:
    if node.input(2) is not None:
        return holds("num_segments is present")
    ids = _integers(node.input(1))
    if ids is None or not ids.size:
        return unknown("the number of segments depends on the ids, which are unknown")
    made = int(ids.max()) + 1
    output = node.output
    if output is None or not output.dims or sizes.equal(output.dims[:1], (made,)) is None:
        return unknown("the size of the first axis of the output is unknown")
    text = f"{output.name!r} has {_segments(output.dims[0])}; the ids require {made}"
    return holds(text) if output.dims[0] == made else broken(text)


def _segments(size: sizes.Size) -> str:
    return counted(size, "segment") if isinstance(size, int) else f"{size} segments"


def _no_ids(node: Node, row: Spec) -> Ruling:
    if node.input(2) is not None:
        return holds("num_segments is present")
    ids, output = node.input(1), node.output
    if ids is None or not ids.dims or not isinstance(ids.dims[0], int):
        return unknown("it is unknown whether there are ids")
    if ids.dims[0] > 0:
        return holds("there are ids")
    if output is None or not output.dims or not isinstance(output.dims[0], int):
        return unknown("the size of the first axis of the output is unknown")
    text = f"there are no ids, and {output.name!r} has {_segments(output.dims[0])}"
    return broken(f"{text}, but must have 0") if output.dims[0] else holds(text)


def _against_ids(node: Node, applies: Callable[[int, int], bool], word: str) -> Ruling:
    """Compare num_segments with max(segment_ids) + 1. `applies` is the comparison, and `word` describes it."""
    if node.input(2) is None:
        return holds("num_segments is omitted")
    number, ids = _integers(node.input(2)), _integers(node.input(1))
    if number is None or number.size != 1 or ids is None:
        return at_run_time(f"whether num_segments is {word} max(segment_ids) + 1 is known only at run time")
    if applies(number.item(), int(ids.max(initial=-1)) + 1):
        return at_run_time(f"num_segments is {word} max(segment_ids) + 1: the result is known only at run time")
    return holds(f"num_segments is not {word} max(segment_ids) + 1")


def _fill_mode(node: Node, row: Spec) -> Ruling:
    given = attribute(node, "fill_mode", None)
    if given is None:
        return broken("fill_mode is missing; set it to ZERO or LOWEST")
    if isinstance(given, Ruling):
        return given
    return holds(given) if given.upper() in FILL_MODES else broken(f"fill_mode must be ZERO or LOWEST, got {given!r}")


def _lowest(node: Node, row: Spec) -> Ruling:
    given = node.attributes.get("fill_mode")
    if isinstance(given, str) and given.upper() == "ZERO":
        return holds("fill_mode is ZERO")
    return at_run_time("the values of empty segments are known only at run time")


def _shape(node: Node, row: Spec) -> Ruling:
    data, number = node.input(0), node.input(2)
    if data is None or not data.dims:
        return unknown("the shape of data is unknown")
    given = _integers(number)
    segments = int(given.item()) if given is not None and given.size == 1 else None
    ruling = output_shape(node, (segments, *data.dims[1:]), "data and num_segments give")
    output = node.output
    rest = None if output is None or not output.dims else sizes.equal(output.dims[1:], data.dims[1:])
    if number is None and ruling.verdict == "unknown" and rest:
        return holds("all sizes after the first match data")  # the clause of the default covers the first size
    return ruling


def _integers(known: Known | None) -> Array | None:
    """Return the constant, or None if it is not an array of signed integers."""
    if known is None or known.constant is None or known.constant.dtype.kind != "i":
        return None
    return known.constant


RULES: dict[str, Rule] = {
    "inputs": lambda node, row: count(node, 2, 3, 2),
    "T": lambda node, row: one_type([node.input(0)], node.outputs, row),
    "data": ranked_data,
    "T_IDX": _index_type,
    "ids.shape": _ids_shape,
    "ids": _ids,
    "num_segments": _num_segments,
    "num_segments.default": _default,
    "num_segments.no_ids": _no_ids,
    "num_segments.smaller": lambda node, row: _against_ids(node, lt, "smaller than"),
    "num_segments.larger": lambda node, row: _against_ids(node, gt, "larger than"),
    "fill_mode": _fill_mode,
    "lowest": _lowest,
    "shape": _shape,
    "value": value,
    "nan": value,
}
