"""Check calls to ReduceMax, and return their plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from maxops import dtypes, shapes
from maxops.calls import ReduceCall
from maxops.errors import AttributeValueError, AxesError, EmptyReductionError
from maxops.plan.output import output_of
from maxops.plan.plan import Plan
from maxops.plan.values import array_of, dtype_of, flag, index_of, nan_rule, scalar_of
from maxops.shown import shown
from maxops.spec import Spec


def plan_reduce_max(call: ReduceCall, *, in_memory: bool = True) -> Plan[ReduceCall]:
    """Check a call to ReduceMax, and return its plan. If `in_memory` is False, the result may exceed the memory."""
    spec = call.row
    array = array_of(spec, "data", call.data)
    dtype = dtype_of(spec, "data", array)
    keeps = flag(spec, "keepdims", call.keepdims)
    noop = flag(spec, "noop_with_empty_axes", call.noop_with_empty_axes)
    indices = flag(spec, "return_indices", call.return_indices)
    nan = nan_rule(spec, call.nan)
    first = scalar_of(spec, "initial", call.initial, dtype)
    listed = _axes(spec, call.axes, array.ndim)
    identity = noop and not listed
    if identity and first is not None:
        raise AttributeValueError(
            f"{spec.name} initial cannot be combined with noop_with_empty_axes or axis=(), which reduce no axis",
            spec.clause("noop_with_empty_axes"),
        )
    taken = () if identity else listed or tuple(range(array.ndim))
    shape = array.shape if identity else shapes.reduced(array.shape, taken, keepdims=keeps)
    if dtype is dtypes.REAL and first is None and 0 in array.shape and prod(shape) > 0:
        raise EmptyReductionError(
            f"{spec.name} data of shape {array.shape} has no maximum, because rationals have no lowest value; "
            "pass initial=",
            spec.clause("empty"),
        )
    whole_out = output_of(spec, call.out, dtype, shape, "value", in_memory=in_memory)
    checked = ReduceCall(array, taken, keeps, identity, whole_out, call.dim, first, indices, call.ties, nan, spec)
    return Plan(dtype, shape, checked)


def _listed(spec: Spec, axes: object) -> Iterable[object]:
    """Return an iterable of the axes, given an integer, or a sequence or an array of integers."""
    if isinstance(axes, np.ndarray):
        axes = axes.view()  # a new object, whose shape and dtype no other thread can set
        alone = len(spec.index_dtypes) > 1 and axes.ndim == 0  # allowed by NumPy, but not by the standards
        if dtypes.of(axes.dtype) not in spec.index_dtypes or not (alone or axes.ndim == 1):
            expected = "integers" if len(spec.index_dtypes) > 1 else str(spec.index_dtypes[0])
            raise AxesError(
                f"{spec.name} axes must be a 1-D array of {expected}, got {axes.dtype} of shape {axes.shape}",
                spec.clause("axes"),
            )
        listed: list[object] = axes.reshape(-1).tolist()
        return listed
    is_text = isinstance(axes, (str, bytes, bytearray, memoryview))
    return axes if isinstance(axes, Sequence) and not is_text else (axes,)


def _axes(spec: Spec, axes: object, rank: int) -> tuple[int, ...]:
    """Return the axes as numbers in 0..r-1, or an empty tuple for None."""
    if axes is None:
        return ()
    result: list[int] = []
    for value in _listed(spec, axes):
        axis = index_of(value)
        if axis is None:
            raise AxesError(
                f"{spec.name} axes must be integers, got {shown(value)} of type {type(value).__name__}"
                + (
                    "; for xarray arrays, pass the names of dimensions as dim="
                    if isinstance(value, str) and spec.parameters
                    else ""
                ),
                spec.clause("axes"),
            )
        lowest = -rank if spec.negative_axes else 0
        if not lowest <= axis < rank:
            expected = f"must be between {lowest} and {rank - 1}" if rank else "must be empty"
            raise AxesError(
                f"{spec.name} axes {expected} for data of rank {rank}, got {shown(axis)}",
                spec.clause("axes.range"),
            )
        if axis % rank in result:
            raise AxesError(f"{spec.name} got axis {axis % rank} twice", spec.clause("axes.unique", "axes"))
        result.append(axis % rank)
    return tuple(result)
