"""The operators as functions, and every version of every standard as a callable contract.

Results are always arrays, of rank 0 too: an operator's result is a tensor, whatever its rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from maxops import _native, dtypes, spec
from maxops.dtypes import DType
from maxops.engines import native, rational
from maxops.errors import AttributeValueError, InputCountError
from maxops.plan import MaxPlan, ReducePlan, SegmentPlan, plan_max, plan_reduce_max, plan_segment_max
from maxops.spec import Clause, Spec

Array = np.ndarray[Any, np.dtype[Any]]


class Engine(Protocol):
    """What an engine's module offers."""

    def maximum(self, plan: MaxPlan) -> Array: ...  # noqa: D102
    def reduce_max(self, plan: ReducePlan) -> Array: ...  # noqa: D102
    def segment_max(self, plan: SegmentPlan) -> Array: ...  # noqa: D102


def run(plan: MaxPlan | ReducePlan | SegmentPlan) -> Array:
    """Run a plan on the engine for its type."""
    engine: Engine = rational if plan.dtype is dtypes.REAL else native
    if isinstance(plan, MaxPlan):
        return engine.maximum(plan)
    if isinstance(plan, ReducePlan):
        return engine.reduce_max(plan)
    return engine.segment_max(plan)


# The docstrings below are those of the native entry points, which come here for all but plain, valid calls.


@_native.entry
def maximum(*arrays: Any, out: Array | None = None) -> Array:
    """Return the element-wise maximum of one or more arrays.

    >>> import numpy as np
    >>> import maxops as mo
    >>> mo.maximum(np.array([1.0, -0.0, np.nan]), np.array([3.0, 0.0, 1.0]))
    array([ 3.,  0., nan])
    >>> mo.maximum(np.array([[1], [5]], np.int8), np.array([2, 3], np.int8), 4)
    array([[4, 4],
           [5, 5]], dtype=int8)

    Args:
        arrays: one or more arrays or NumPy scalars of one type, of shapes that broadcast together. A Python scalar
            beside an array takes the array's type if that type holds its value exactly.
        out: an array for the result, of its shape and type. It may overlap the inputs.

    Returns:
        ``out``, or a new array of the broadcast shape; an array for rank 0 too.

    NaN absorbs, and a NaN result is always the quiet NaN without sign and payload; -0 < +0. The types are float16,
    bfloat16, float32, float64, the integers, bool, and object arrays of `fractions.Fraction` and int.

    Raises:
        InputCountError, DTypeError, ShapeError, OutputError, OutputTooLargeError: with the clause.

    Source: ONNX Max-13, on more types.
    """
    return run(plan_max(spec.MAXIMUM, arrays, out))


@_native.entry
def reduce_max(
    data: Any,
    axes: Any = None,
    keepdims: bool = True,
    noop_with_empty_axes: bool = False,
    out: Array | None = None,
) -> Array:
    """Return the maximum along axes, which are kept with size 1 unless told otherwise.

    >>> import numpy as np
    >>> import maxops as mo
    >>> x = np.array([[1, 5], [7, 2]], np.int32)
    >>> mo.reduce_max(x, axes=(-1,))
    array([[5],
           [7]], dtype=int32)
    >>> mo.reduce_max(x, axes=0, keepdims=False)
    array([7, 5], dtype=int32)
    >>> mo.reduce_max(np.zeros((0, 2), np.float32), axes=(0,))
    array([[-inf, -inf]], dtype=float32)

    Args:
        data: an array of any shape.
        axes: an integer, a sequence of integers or a 1-D int64 array, each in -r..r-1 and named once, where r is the
            rank. None or empty: all axes.
        keepdims: keep reduced axes, with size 1.
        noop_with_empty_axes: with no axes, return the data's own elements, bit for bit.
        out: an array for the result, of its shape and type. It may overlap the data.

    Returns:
        ``out``, or a new array; an array for rank 0 too. The maximum of an empty set is -Inf, the lowest integer, or
        False.

    Raises:
        DTypeError, AxesError, AttributeValueError, EmptyReductionError, OutputError, OutputTooLargeError: with the
        clause.

    Source: ONNX ReduceMax-20, on more types.
    """
    return run(plan_reduce_max(spec.REDUCE_MAX, data, axes, keepdims, noop_with_empty_axes, out))


@_native.entry
def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: Any = None,
    *,
    fill_mode: str | None = None,  # required: the planner's error says more than Python's own would
    out: Array | None = None,
    check_ids: bool = True,
) -> Array:
    """Return the maximum of each segment of rows, the segments being named by sorted ids.

    >>> import numpy as np
    >>> import maxops as mo
    >>> mo.segment_max(np.array([3.0, 1.0, -2.0]), np.array([0, 0, 2]), fill_mode="ZERO")
    array([ 3.,  0., -2.])
    >>> mo.segment_max(np.array([[1, 9], [4, 2]], np.int8), np.array([1, 1]), 3, fill_mode="LOWEST")
    array([[-128, -128],
           [   4,    9],
           [-128, -128]], dtype=int8)

    Args:
        data: an array of shape ``(n, *row)``.
        segment_ids: int32 or int64, of shape ``(n,)``, non-negative and never decreasing.
        num_segments: how many segments the result has. Ids past it are dropped; segments without ids are empty.
            None: the last id + 1, or 0 without ids.
        fill_mode: "ZERO" or "LOWEST", the lowest finite value: what empty segments hold. Required.
        out: an array for the result, of its shape and type. It may overlap the inputs.
        check_ids: False if the ids are known to be valid. If they are not, the result is wrong and nothing worse.

    Returns:
        ``out``, or a new array of shape ``(num_segments, *row)``.

    Raises:
        DTypeError, ShapeError, SegmentIdsError, NumSegmentsError, AttributeValueError, EmptyReductionError,
        OutputError, OutputTooLargeError: with the clause.

    Source: OpenVINO SegmentMax-16, on more types.
    """
    return run(plan_segment_max(spec.SEGMENT_MAX, data, segment_ids, num_segments, fill_mode, out, check_ids))


@dataclass(frozen=True)
class Operator:
    """One operator at one version of one standard: called, it takes what that version takes and no more.

    >>> import numpy as np
    >>> operator("ONNX", "Max", 8)(np.float32([1, 2]), np.float32([2, 1]))
    array([2., 2.], dtype=float32)
    """

    spec: Spec

    @property
    def standard(self) -> str:
        """The standard: "ONNX", "SONNX", "SONNX draft" or "OpenVINO"."""
        return self.spec.standard

    @property
    def name(self) -> str:
        """The operator, without its version."""
        return self.spec.operator

    @property
    def version(self) -> int | None:
        """The version, or None where the standard has no versions."""
        return self.spec.version

    @property
    def types(self) -> tuple[DType, ...]:
        """The element types that it takes."""
        return self.spec.dtypes

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """What its document says, a clause each."""
        return self.spec.clauses

    def __repr__(self) -> str:
        return f"<{self.standard} {self.spec.name}>"

    def __call__(self, *inputs: Any, out: Array | None = None, **attributes: Any) -> Array:
        """Run the operator: inputs by position, attributes by name, both as the document has them."""
        for name in attributes:
            if name not in self.spec.attributes:
                listed = ", ".join(self.spec.attributes) or "none"
                raise AttributeValueError(f"{self.spec.name} has no attribute {name!r}; its attributes are: {listed}")
        return _CALLS[self.spec.operator](self.spec, inputs, out, attributes)


def _call_max(row: Spec, inputs: tuple[Any, ...], out: Array | None, attributes: dict[str, Any]) -> Array:
    del attributes  # consumed_inputs of version 1: accepted, ignored
    return run(plan_max(row, inputs, out))


def _call_reduce_max(row: Spec, inputs: tuple[Any, ...], out: Array | None, attributes: dict[str, Any]) -> Array:
    most = 2 if row.axes_input else 1
    if not 1 <= len(inputs) <= most:
        takes = "1 or 2: data and axes" if row.axes_input else "1: data; axes is an attribute"
        raise InputCountError(f"{row.name} got {len(inputs)} inputs; it takes {takes}", row.clause("inputs"))
    axes = inputs[1] if len(inputs) == most == 2 else attributes.pop("axes", None)
    return run(plan_reduce_max(row, inputs[0], axes, out=out, **attributes))


def _call_segment_max(row: Spec, inputs: tuple[Any, ...], out: Array | None, attributes: dict[str, Any]) -> Array:
    if not 2 <= len(inputs) <= 3:
        raise InputCountError(
            f"{row.name} got {len(inputs)} inputs; it takes 2 or 3: data, segment_ids and num_segments",
            row.clause("inputs"),
        )
    data, ids, num_segments = (*inputs, None)[:3]
    return run(plan_segment_max(row, data, ids, num_segments, attributes.get("fill_mode"), out))


_CALLS = {"Max": _call_max, "ReduceMax": _call_reduce_max, "SegmentMax": _call_segment_max}


def operator(standard: str, name: str, version: int | None = None) -> Operator:
    """Return the operator of a standard at a version, as a callable that takes only what that version takes.

    >>> operator("ONNX", "ReduceMax", version=13)
    <ONNX ReduceMax-13>
    >>> operator("SONNX", "Max").clauses[0].id
    'SONNX.Max.L'

    Raises UnknownOperatorError, naming what there is.
    """
    return Operator(spec.find(standard, name, version))


def operators() -> tuple[Operator, ...]:
    """Return every operator of every standard and version, with its types and clauses.

    >>> len(operators())
    14
    """
    return tuple(map(Operator, spec.ALL))
