"""The rules for the clauses of ReduceMax."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxops import dtypes, shapes
from maxops.checker.facts import Known, Node
from maxops.checker.rules_common import Rule, attribute, count, flag, listed_type, one_type, output_shape, value
from maxops.checker.ruling import Ruling, at_run_time, broken, holds, unknown
from maxops.counted import counted
from maxops.sizes import Dims
from maxops.spec import Spec


class _Axes(NamedTuple):
    """The axes of a node.

    ``given`` contains the axes, or is None if they are omitted or unknown. ``absent`` is True if the axes are omitted
    or empty. ``ruling`` gives the reason why they are unknown or invalid.
    """

    given: tuple[int, ...] | None = None
    absent: bool = False
    ruling: Ruling | None = None


def _axes_of(node: Node, row: Spec) -> _Axes:
    if row.axes_input:
        known = node.input(1)
        return _Axes(absent=True) if known is None else _axes_input(known)
    given = attribute(node, "axes", None, "the axes are")
    if isinstance(given, Ruling):
        return _Axes(ruling=given)
    return _Axes(absent=True) if given is None else _Axes(tuple(given), not given)


def _axes_input(known: Known) -> _Axes:
    typed = listed_type(known, [dtypes.INT64])
    if typed.verdict == "broken":
        return _Axes(ruling=typed)
    if known.dims is not None and len(known.dims) != 1:
        return _Axes(ruling=broken(f"axes must be 1-D, got {known}"))
    if known.dims == (0,):
        return _Axes((), True)
    if known.constant is None:
        return _Axes(ruling=unknown(f"the axes {known.name!r} are not a constant in the model"))
    given = tuple(np.ravel(known.constant).tolist())
    return _Axes(given, not given)


def _rank(node: Node) -> int | None:
    data = node.input(0)
    return None if data is None or data.dims is None else len(data.dims)


def _axes(node: Node, row: Spec) -> Ruling:
    axes = _axes_of(node, row)
    if axes.ruling is not None:
        return axes.ruling
    return holds("the node has no axes" if axes.given is None else counted(len(axes.given), "axis", "axes"))


def _axes_unique(node: Node, row: Spec) -> Ruling:
    """Check for repeated axes. The verdict is unknown, because ONNX does not specify whether axes may repeat."""
    axes = _axes_of(node, row)
    if axes.given is None:
        return holds("the node has no axes") if axes.ruling is None else unknown("the axes are unknown")
    rank = _rank(node)
    seen: set[int] = set()
    for axis in axes.given:
        normal = axis % rank if rank and -rank <= axis < rank else axis
        if normal in seen:
            return unknown(f"axis {normal} appears twice; ONNX does not specify whether axes may repeat")
        seen.add(normal)
    if rank is None and min(seen, default=0) < 0 <= max(seen, default=0):
        return unknown("whether two axes are the same depends on the rank, which is unknown")
    return holds("each axis appears once")


def _axes_range(node: Node, row: Spec) -> Ruling:
    axes, rank = _axes_of(node, row), _rank(node)
    if not axes.given and axes.ruling is None:
        return holds("the node has no axes")
    if axes.given is None:
        return unknown("the axes are unknown")
    low = min(axes.given)
    if low < 0 and not row.negative_axes:
        return broken(f"axis {low} is negative, but this version does not define negative axes")
    if rank is None:
        return unknown("the rank of the input is unknown")
    least = -rank if row.negative_axes else 0
    for axis in axes.given:
        if not least <= axis < rank:
            expected = f"axes must be between {least} and {rank - 1}" if rank else "a scalar has no axes"
            return broken(f"{expected}, got {axis}")
    return holds(f"the input has rank {rank}")


def _axes_default(node: Node, row: Spec) -> Ruling:
    axes = _axes_of(node, row)
    if axes.given:
        return holds("the node has axes")
    noop = _noop(node, row)
    if axes.absent and noop == 0:
        return output_shape(node, _expected(node, row), "reducing all axes gives")
    if axes.absent and noop == 1:
        return holds("noop_with_empty_axes is 1")
    return unknown("the axes are unknown" if not axes.absent else "noop_with_empty_axes is unknown")


def _noop_rule(node: Node, row: Spec) -> Ruling:
    noop, axes = _noop(node, row), _axes_of(node, row)
    if isinstance(noop, Ruling):
        return noop
    if axes.given or noop == 0:
        return holds("the node has axes" if axes.given else "noop_with_empty_axes is 0")
    if not axes.absent:
        return unknown("the axes are unknown")
    return output_shape(node, _expected(node, row), "without axes, the output has the input's shape")


def _noop(node: Node, row: Spec) -> Ruling | int:
    return flag(node, "noop_with_empty_axes") if "noop_with_empty_axes" in row.attributes else 0


def _keepdims(node: Node, row: Spec) -> Ruling:
    keeps = flag(node, "keepdims")
    if isinstance(keeps, Ruling):
        return keeps
    axes = _axes_of(node, row)
    # without axes, other clauses cover the output
    if axes.absent:
        return holds(f"keepdims is {keeps}")
    if axes.ruling is not None:
        return _keepdims_of_unknown_axes(node, row, keeps)
    ruling = output_shape(node, _expected(node, row), f"keepdims={keeps} gives")
    return holds(f"keepdims is {keeps}") if ruling.verdict == "unknown" else ruling


def _keepdims_of_unknown_axes(node: Node, row: Spec, keeps: int) -> Ruling:
    """Check that the declared rank of the output is possible for some choice of the unknown axes."""
    rank, output, axes = _rank(node), node.output, node.input(1) if row.axes_input else None
    if rank is None or output is None or output.dims is None:
        return holds(f"keepdims is {keeps}")
    least, most = (rank, rank) if keeps else (0, rank)
    number = axes.dims[0] if axes is not None and axes.dims is not None and len(axes.dims) == 1 else None
    if not keeps and isinstance(number, int):
        least, most = max(rank - number, 0), max(rank - 1, 0)  # rank - 1 if all axes are the same
    if least <= len(output.dims) <= most:
        return holds(f"keepdims is {keeps}")
    possible = f"rank {least}" if least == most else f"rank {least} to {most}"
    return broken(f"{output.shape_in_words}, but keepdims={keeps} gives {possible}")


def _reduced_axes(node: Node, row: Spec) -> tuple[int, ...] | None:
    """Return the axes as non-negative integers, or None if any axis is unknown or invalid."""
    axes, rank, noop = _axes_of(node, row), _rank(node), _noop(node, row)
    if rank is None or axes.ruling is not None or (axes.absent and isinstance(noop, Ruling)):
        return None
    if axes.absent:
        return () if noop == 1 else tuple(range(rank))
    given = axes.given or ()
    return tuple(axis % rank for axis in given) if all(-rank <= axis < rank for axis in given) else None


def _expected(node: Node, row: Spec) -> Dims | None:
    data, axes, keeps = node.input(0), _reduced_axes(node, row), flag(node, "keepdims")
    if _axes_of(node, row).absent and _noop(node, row) == 0 and keeps == 0:
        return ()  # the result is a scalar, whatever the rank of data
    if data is None or data.dims is None or axes is None:
        return None
    if not axes:
        return data.dims
    if isinstance(keeps, Ruling):
        return None
    return shapes.reduced(data.dims, axes, keepdims=bool(keeps))


def _empty(node: Node, row: Spec) -> Ruling:
    data, axes = node.input(0), _reduced_axes(node, row)
    if data is None or data.dims is None or axes is None:
        return unknown("without a known shape and valid axes, a reduced axis may have size 0")
    for axis in axes:
        size = data.dims[axis]
        if size == 0:
            return at_run_time(f"reduced axis {axis} has size 0; the result is known only at run time")
        if not isinstance(size, int):
            return unknown(f"reduced axis {axis} has unknown size {size or '?'}, which may be 0")
    return holds("no reduced axis has size 0")


RULES: dict[str, Rule] = {
    "inputs": lambda node, row: count(node, 1, 2 if row.axes_input else 1, 1),
    "T": lambda node, row: one_type([node.input(0)], node.outputs, row),
    "axes": _axes,
    "axes.unique": _axes_unique,
    "axes.range": _axes_range,
    "axes.default": _axes_default,
    "keepdims": _keepdims,
    "noop_with_empty_axes": _noop_rule,
    "value": value,
    "nan": value,
    "empty": _empty,
}
