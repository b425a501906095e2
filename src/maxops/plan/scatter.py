"""Check calls to ScatterElements and ScatterND, and return their plans."""

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
    """Check a call, and return its plan, in which indices are non-negative and the `axis` of ScatterND is None."""
    spec = call.row
    choice(spec, "reduction", call.reduction, ("max",))
    data = array_of(spec, "data", call.data)
    dtype = dtype_of(spec, "data", data)
    if data.ndim == 0:
        raise ShapeError(f"{spec.name} data must have rank 1 or more, got rank 0", spec.clause("data"))
    indices = array_of(spec, "indices", call.indices)
    index_dtype(spec, "indices", indices)
    updates = _updates(spec, call.updates, dtype)
    axis = axis_of(spec, call.axis, data.ndim) if spec.has("axis") else None
    sizes = _sizes_named(spec, data, indices) if axis is None else _size_along(spec, data, indices, axis)
    expected = indices.shape if axis is not None else (*indices.shape[:-1], *data.shape[len(sizes) :])
    if updates.shape != expected:
        others = "" if axis is not None else f" and data of shape {data.shape}"
        raise ShapeError(
            f"{spec.name} updates must have shape {expected} for indices of shape {indices.shape}{others}, "
            f"got {updates.shape}",
            spec.clause("updates.shape"),
        )
    out = output_of(spec, call.out, dtype, data.shape, "shape")
    try:
        indices = allocate(_from_the_start, spec, indices, np.array(sizes, np.int64))
    except MemoryError as error:
        raise OutputTooLargeError(
            f"{spec.name} cannot convert indices of shape {indices.shape}: {error}", spec.clause("shape")
        ) from error
    return Plan(dtype, data.shape, ScatterCall(data, indices, updates, axis, "max", out, spec))


def _updates(spec: Spec, value: object, dtype: DType) -> Array:
    updates = array_of(spec, "updates", value)
    if (found := dtype_of(spec, "updates", updates)) is not dtype:
        raise DTypeError(
            f"{spec.name} updates must have the same dtype as data ({dtype}), got {found}", spec.clause("T")
        )
    return updates


def _size_along(spec: Spec, data: Array, indices: Array, axis: int) -> Shape:
    """Check the shape of ScatterElements' indices, and return the size of the axis that the indices refer to."""
    if indices.ndim != data.ndim:
        raise ShapeError(
            f"{spec.name} indices must have the same rank as data ({data.ndim}), got shape {indices.shape}",
            spec.clause("indices.shape"),
        )
    for number, (size, room) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if number != axis and size > room:
            raise ShapeError(
                f"{spec.name} indices of shape {indices.shape} must have at most {room} elements along axis {number} "
                f"for data of shape {data.shape}",
                spec.clause("indices.size"),
            )
    return (data.shape[axis],)


def _sizes_named(spec: Spec, data: Array, indices: Array) -> Shape:
    """Check the shape of ScatterND's indices, and return the sizes of the axes that the indices refer to."""
    if indices.ndim == 0 or indices.shape[-1] > data.ndim:
        raise ShapeError(
            f"{spec.name} indices must have rank 1 or more, and their last axis must have at most {data.ndim} "
            f"elements (the rank of data), got shape {indices.shape}",
            spec.clause("indices.shape"),
        )
    named: Shape = data.shape[: indices.shape[-1]]
    return named


def _from_the_start(spec: Spec, indices: Array, sizes: Array) -> Array:
    """Return the indices as non-negative int64. `sizes` are the sizes of the axes that the indices refer to."""
    wide = indices.astype(np.int64)
    wrong = (wide < -sizes) | (wide >= sizes)
    if wrong.any():
        position = tuple(map(int, np.unravel_index(int(wrong.argmax()), wide.shape)))
        size = int(np.broadcast_to(sizes, wide.shape)[position])
        expected = f"be between {-size} and {size - 1}" if size else "be empty"
        raise IndicesError(
            f"{spec.name} indices must {expected} for an axis of size {size}, got {int(wide[position])} "
            f"at position {position}",
            spec.clause("indices"),
        )
    return np.where(wide < 0, wide + sizes, wide)
