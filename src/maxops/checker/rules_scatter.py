"""The rules for the clauses of ScatterElements and ScatterND with the reduction "max"."""

from __future__ import annotations

import numpy as np

from maxops import sizes
from maxops.checker.facts import Node, shape
from maxops.checker.rules_common import Rule, attribute, count, listed_type, one_type, output_shape, ranked_data, value
from maxops.checker.ruling import Ruling, broken, holds, unknown
from maxops.counted import counted
from maxops.plan import Array
from maxops.sizes import Dims
from maxops.spec import SCATTER_ND_18, Spec


def _index_type(node: Node, row: Spec) -> Ruling:
    indices = node.input(1)
    return unknown("there are no indices") if indices is None else listed_type(indices, row.index_dtypes)


def _shapes(node: Node) -> tuple[Dims | None, Dims | None]:
    """Return the known shapes of data and of indices."""
    data, indices = node.input(0), node.input(1)
    return None if data is None else data.dims, None if indices is None else indices.dims


def _indices_shape(node: Node, row: Spec) -> Ruling:
    data, indices = _shapes(node)
    if indices is not None and not indices:
        return broken(f"indices must have rank 1 or more, got {node.input(1)}")
    if data is None or indices is None:
        return unknown("the ranks of data and indices are unknown")
    if row.has("axis"):
        same = len(data) == len(indices)
        text = f"{node.input(1)} and {node.input(0)} have {'the same rank' if same else 'different ranks'}"
        return holds(text) if same else broken(text)
    if not isinstance(indices[-1], int):
        return unknown("the size of the last axis of indices is unknown")
    text = f"{node.input(1)} indexes {counted(indices[-1], 'axis', 'axes')} of {node.input(0)}"
    return holds(text) if indices[-1] <= len(data) else broken(text)


def _indices_size(node: Node, row: Spec) -> Ruling:
    data, indices = _shapes(node)
    axis = _axis_number(node)
    if data is None or indices is None or len(data) != len(indices) or axis is None:
        return unknown("the shapes of data and indices, or axis, are unknown")
    text = f"indices {shape(indices)} and data {shape(data)}, with axis {axis}"
    fits = True
    for number, (size, room) in enumerate(zip(indices, data, strict=True)):
        if number == axis or size == room is not None or size == 0:
            continue
        if isinstance(size, int) and isinstance(room, int):
            if size > room:
                return broken(f"{text}: indices are larger than data along another axis")
        else:
            fits = False
    return holds(text) if fits else unknown(f"{text}: the size of another axis is unknown")


def _updates_shape(node: Node, row: Spec) -> Ruling:
    data, indices = _shapes(node)
    updates = node.input(2)
    if updates is None or updates.dims is None or indices is None:
        return unknown("the shapes of indices and updates are unknown")
    expected = indices
    if not row.has("axis"):
        if data is None or not indices or not isinstance(indices[-1], int) or indices[-1] > len(data):
            return unknown("the expected shape of updates depends on indices and data, which are unknown")
        expected = (*indices[:-1], *data[indices[-1] :])
    same = sizes.equal(updates.dims, expected)
    if same is None:
        return unknown(f"it is unknown whether {updates} has shape {shape(expected)}")
    return holds(f"{shape(expected)}") if same else broken(f"updates must have shape {shape(expected)}, got {updates}")


def _axis(node: Node, row: Spec) -> Ruling:
    given = attribute(node, "axis", 0)
    if isinstance(given, Ruling):
        return given
    data, _ = _shapes(node)
    if data is None:
        return unknown("the rank of data is unknown")
    is_valid = -len(data) <= given < len(data)
    text = f"axis {given} is {'in' if is_valid else 'out of'} range for data of rank {len(data)}"
    return holds(text) if is_valid else broken(text)


def _axis_number(node: Node) -> int | None:
    """Return the axis of ScatterElements as a non-negative integer, or None if the axis or the rank is not known."""
    given, (data, _) = node.attributes.get("axis", 0), _shapes(node)
    if not isinstance(given, int) or data is None or not -len(data) <= given < len(data):
        return None
    return given % len(data)


def _indices(node: Node, row: Spec) -> Ruling:
    known = node.input(1)
    if known is not None and known.dims is not None and 0 in known.dims:
        return holds("there are no indices")
    constant: Array | None = None if known is None else known.constant
    if constant is None or constant.dtype.kind != "i" or constant.ndim == 0:
        return unknown("indices are not a constant in the model")
    data, axis = _shapes(node)[0], _axis_number(node)
    rooms = _rooms(data, axis, constant, row)
    if rooms is None:
        return unknown("the sizes of the indexed axes of data are unknown")
    wrong = (constant < -rooms) | (constant >= rooms)
    if not wrong.any():
        return holds(f"all {constant.size} constant indices are in range")
    position = tuple(map(int, np.unravel_index(int(wrong.argmax()), constant.shape)))
    room = int(np.broadcast_to(rooms, constant.shape)[position])
    empty = "no index is valid, because the indexed axis of data has size 0"
    expected = f"indices must be between {-room} and {room - 1}" if room else empty
    return broken(f"{expected}, got {constant[position]} at position {position}")


def _rooms(data: Dims | None, axis: int | None, indices: Array, row: Spec) -> Array | None:
    """Return the sizes of data along the indexed axes, or None if they are unknown."""
    if data is None:
        return None
    if row.has("axis"):
        named = () if axis is None else data[axis : axis + 1]
    else:
        named = data[: indices.shape[-1]] if indices.ndim and indices.shape[-1] <= len(data) else ()
    if not named:
        return None
    return np.array(named, np.int64) if all(isinstance(size, int) for size in named) else None


def _reduction(node: Node, row: Spec) -> Ruling:
    """Check that the reduction is "max". In the default ONNX domain, nodes with other reductions are never read."""
    given = attribute(node, "reduction", "none")
    if isinstance(given, Ruling):
        return given
    return holds("max") if given == "max" else broken(f"reduction must be 'max', got {given!r}")


OF_ELEMENTS: dict[str, Rule] = {
    "inputs": lambda node, row: count(node, 3, 3, 3),
    "T": lambda node, row: one_type([node.input(0), node.input(2)], node.outputs, row),
    "data": ranked_data,
    "T_IDX": _index_type,
    "indices.shape": _indices_shape,
    "indices.size": _indices_size,
    "updates.shape": _updates_shape,
    "axis": _axis,
    "indices": _indices,
    "reduction": _reduction,
    "shape": lambda node, row: output_shape(node, _shapes(node)[0], "data has shape"),
    "copy": value,
    "value": value,
    "nan": value,
}
OF_ND = {short: rule for short, rule in OF_ELEMENTS.items() if SCATTER_ND_18.has(short)}
