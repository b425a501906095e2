"""A call of ScatterElements or ScatterND."""

from __future__ import annotations

import numpy as np

from maxops.calls import ScatterCall
from maxops.dtypes import DType
from maxops.errors import DTypeError, IndicesError, OutputTooLargeError, ShapeError
from maxops.plan.output import output_of
from maxops.plan.plan import Plan
from maxops.plan.segment import axis_of
from maxops.plan.values import Array, allocate, array_of, choice, dtype_of, index_dtype
from maxops.shapes import Shape
from maxops.spec import Spec


def plan_scatter_max(call: ScatterCall) -> Plan[ScatterCall]:
    """Plan a call. Indices of a plan are not negative; `axis` is None of ScatterND, whose indices name several axes."""
    spec = call.row
    choice(spec, "reduction", call.reduction, ("max",))
    data = array_of(spec, "data", call.data)
    dtype = dtype_of(spec, "data", data)
    if data.ndim == 0:
        raise ShapeError(f"{spec.name} data has rank 0; it needs rank 1 or more", spec.clause("data"))
    indices = array_of(spec, "indices", call.indices)
    index_dtype(spec, "indices", indices)
    updates = _updates(spec, call.updates, dtype)
    axis = axis_of(spec, call.axis, data.ndim) if spec.has("axis") else None
    sizes = _sizes_named(spec, data, indices) if axis is None else _size_along(spec, data, indices, axis)
    expected = indices.shape if axis is not None else (*indices.shape[:-1], *data.shape[len(sizes) :])
    if updates.shape != expected:
        follows = "that of indices" if axis is not None else f"by indices {indices.shape} and data {data.shape}"
        raise ShapeError(
            f"{spec.name} updates has shape {updates.shape}; it is {expected}, {follows}", spec.clause("updates.shape")
        )
    out = output_of(spec, call.out, dtype, data.shape, "shape")
    try:
        indices = allocate(_from_the_start, spec, indices, np.array(sizes, np.int64))
    except MemoryError as error:
        raise OutputTooLargeError(
            f"{spec.name} indices of shape {indices.shape}: {error}", spec.clause("shape")
        ) from error
    return Plan(dtype, data.shape, ScatterCall(data, indices, updates, axis, "max", out, spec))


def _updates(spec: Spec, value: object, dtype: DType) -> Array:
    updates = array_of(spec, "updates", value)
    if (found := dtype_of(spec, "updates", updates)) is not dtype:
        raise DTypeError(f"{spec.name} updates is {found}, but data is {dtype}; both have one type", spec.clause("T"))
    return updates


def _size_along(spec: Spec, data: Array, indices: Array, axis: int) -> Shape:
    """The size of the axis that ScatterElements' indices are of, once their shape is one that data has room for."""
    if indices.ndim != data.ndim:
        raise ShapeError(
            f"{spec.name} indices has shape {indices.shape}, but data has rank {data.ndim}; both have one rank",
            spec.clause("indices.shape"),
        )
    for number, (size, room) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if number != axis and size > room:
            raise ShapeError(
                f"{spec.name} indices has shape {indices.shape}, but data {data.shape}; along axis {number} it has at "
                f"most {room}",
                spec.clause("indices.size"),
            )
    return (data.shape[axis],)


def _sizes_named(spec: Spec, data: Array, indices: Array) -> Shape:
    """The sizes of the axes that ScatterND's indices are of."""
    if indices.ndim == 0 or indices.shape[-1] > data.ndim:
        raise ShapeError(
            f"{spec.name} indices has shape {indices.shape}; it has rank 1 or more, and a last size of at most "
            f"{data.ndim}, the rank of data",
            spec.clause("indices.shape"),
        )
    named: Shape = data.shape[: indices.shape[-1]]
    return named


def _from_the_start(spec: Spec, indices: Array, sizes: Array) -> Array:
    """Indices of int64 that count from the start; `sizes` has one size, or one for each place of the last axis."""
    wide = indices.astype(np.int64)
    wrong = (wide < -sizes) | (wide >= sizes)
    if wrong.any():
        position = tuple(map(int, np.unravel_index(int(wrong.argmax()), wide.shape)))
        size = int(np.broadcast_to(sizes, wide.shape)[position])
        expected = f"it is {-size} to {size - 1}" if size else "no index is valid"
        raise IndicesError(
            f"{spec.name} indices position {position} holds {int(wide[position])}; {expected}, because data has size "
            f"{size} there",
            spec.clause("indices"),
        )
    return np.where(wide < 0, wide + sizes, wide)
