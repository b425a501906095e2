"""Requests, which contain the arguments of a call as the caller passed them, and the specification of the operator.

The fields of a request are `row` (a row of the table in `maxops.spec`), and the parameters of `maxops.maximum`,
`maxops.reduce_max` or `maxops.segment_max`. A test compares them with these functions. The planner (`maxops.plan`)
checks a request, and returns a request with checked values.

Requests are named tuples. Named tuples are immutable like frozen dataclasses, but four times as fast to create: 0.35 us
instead of 1.5 us for SegmentMax. A whole SegmentMax call on a small tensor takes 5 us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from maxops import spec
from maxops.errors import AttributeValueError, InputCountError
from maxops.spec import Spec

Function = Callable[[str, Any], Any]  # takes an argument's name, for error messages, and its value


class MaxCall(NamedTuple):
    """A request for Max, the element-wise maximum."""

    inputs: Sequence[Any]
    out: Any = None
    ties: Any = "even"
    nan: Any = "propagate"
    row: Spec = spec.MAXIMUM

    @property
    def dim(self) -> None:
        """Always None, because Max has no axes."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """The Python types of the arrays, which determine the engine."""
        return tuple([type(value) for value in self.inputs])

    @property
    def arrays(self) -> list[tuple[str, Any]]:
        """The names and values of the inputs, which are arrays or Python scalars. Error messages contain the names."""
        return [(f"input {number}", value) for number, value in enumerate(self.inputs)]

    def map(self, array: Function, scalar: Function | None = None, **changes: Any) -> MaxCall:
        """Return a new call in which `array(name, value)` replaces each input, and `changes` replace other fields."""
        return self._replace(inputs=tuple([array(name, value) for name, value in self.arrays]), **changes)


class ReduceCall(NamedTuple):
    """A request for ReduceMax, the maximum along axes."""

    data: Any
    axes: Any = None
    keepdims: Any = True
    noop_with_empty_axes: Any = False
    out: Any = None
    dim: Any = None
    initial: Any = None
    return_indices: Any = False
    ties: Any = "even"
    nan: Any = "propagate"
    row: Spec = spec.REDUCE_MAX

    @property
    def kinds(self) -> tuple[type, ...]:
        """The Python types of the arrays, which determine the engine."""
        return (type(self.data),)

    @property
    def arrays(self) -> list[tuple[str, Any]]:
        """The name and value of the array."""
        return [("data", self.data)]

    @property
    def scalars(self) -> list[tuple[str, Any]]:
        """The name and value of `initial`, if passed."""
        return [] if self.initial is None else [("initial", self.initial)]

    def map(self, array: Function | None = None, scalar: Function | None = None, **changes: Any) -> ReduceCall:
        """Return a new call in which `array(name, value)` replaces the data, and `scalar` replaces `initial`.

        `changes` replace other fields.
        """
        return self._replace(**_mapped(self, array, scalar), **changes)


class SegmentCall(NamedTuple):
    """A request for SegmentMax, the maximum of each segment of rows."""

    data: Any
    segment_ids: Any = None
    num_segments: Any = None
    fill_mode: Any = None
    fill_value: Any = None
    out: Any = None
    check_ids: Any = True
    offsets: Any = None
    sorted: Any = True
    out_of_range: Any = None
    axis: Any = 0
    dim: Any = None
    initial: Any = None
    return_indices: Any = False
    return_empty: Any = False
    ties: Any = "even"
    nan: Any = "propagate"
    row: Spec = spec.SEGMENT_MAX

    @property
    def kinds(self) -> tuple[type, ...]:
        """The Python types of the arrays, which determine the engine."""
        return (type(self.data), type(self.segment_ids), type(self.offsets))

    @property
    def arrays(self) -> list[tuple[str, Any]]:
        """The names and values of the arrays that were passed."""
        named = [("data", self.data), ("segment_ids", self.segment_ids), ("offsets", self.offsets)]
        return [(name, value) for name, value in named if value is not None]

    @property
    def scalars(self) -> list[tuple[str, Any]]:
        """The names and values of `fill_value` and `initial`, if passed."""
        named = [("fill_value", self.fill_value), ("initial", self.initial)]
        return [(name, value) for name, value in named if value is not None]

    def map(self, array: Function | None = None, scalar: Function | None = None, **changes: Any) -> SegmentCall:
        """Return a new call in which `array(name, value)` replaces each array, and `scalar` replaces each scalar.

        `changes` replace other fields.
        """
        return self._replace(**_mapped(self, array, scalar), **changes)


class ScatterCall(NamedTuple):
    """A request for ONNX's ScatterElements or ScatterND. maxops has no function of its own for these operators."""

    data: Any
    indices: Any
    updates: Any
    axis: Any = 0
    reduction: Any = "none"
    out: Any = None
    row: Spec = spec.SCATTER_ND_18

    @property
    def arrays(self) -> list[tuple[str, Any]]:
        """The names and values of the arrays."""
        return [("data", self.data), ("indices", self.indices), ("updates", self.updates)]


def _mapped(call: ReduceCall | SegmentCall, array: Function | None, scalar: Function | None) -> dict[str, Any]:
    mapped = {} if array is None else {name: array(name, value) for name, value in call.arrays}
    if scalar is not None:
        mapped |= {name: scalar(name, value) for name, value in call.scalars}
    return mapped


Call = MaxCall | ReduceCall | SegmentCall


def of_node(row: Spec, inputs: Sequence[Any], attributes: Mapping[str, Any], out: Any = None) -> Call | ScatterCall:
    """Return a request for an operator of a standard, given its inputs in order and its attributes by name."""
    check_attributes(row, attributes)
    named: dict[str, Any] = {**attributes, "out": out, "row": row}
    if row.operator == "Max":
        return MaxCall(inputs, out, row=row)  # consumed_inputs of version 1 is accepted and ignored
    if row.operator == "SegmentMax":
        if not 2 <= len(inputs) <= 3:
            raise InputCountError(
                f"{row.name} expects 2 or 3 inputs (data, segment_ids and, optionally, num_segments), "
                f"got {len(inputs)}",
                row.clause("inputs"),
            )
        return SegmentCall(*inputs, **named)
    if row.is_scatter:
        if len(inputs) != 3:
            raise InputCountError(
                f"{row.name} expects 3 inputs (data, indices and updates), got {len(inputs)}",
                row.clause("inputs"),
            )
        return ScatterCall(*inputs, **named)
    if not 1 <= len(inputs) <= 1 + row.axes_input:
        expected = "1 or 2 inputs (data and, optionally, axes)" if row.axes_input else "1 input (data)"
        hint = "" if row.axes_input else "; pass axes as an attribute, such as axes=[0]"
        raise InputCountError(f"{row.name} expects {expected}, got {len(inputs)}{hint}", row.clause("inputs"))
    return ReduceCall(*inputs, **named)


_ORDINALS = ("first", "second", "third")


def check_attributes(row: Spec, attributes: Iterable[str]) -> None:
    """Raise an error if the operator lacks any of the given attributes."""
    for name in attributes:
        if name in row.attributes:
            continue
        if name in (inputs := [each for each, _ in row.inputs]):
            number = inputs.index(name)
            raise AttributeValueError(
                f"{row.name} has no attribute {name!r}; pass it as the {_ORDINALS[number]} positional argument: "
                f"operator({', '.join(inputs[: number + 1])})",
                row.clause("inputs"),
            )
        listed = ", ".join(row.attributes) or "none"
        raise AttributeValueError(f"{row.name} has no attribute {name!r}; its attributes are: {listed}")


# Hints for keyword arguments of similar functions in other libraries, keyed by the name of the maxops function.
INSTEAD = {
    "maximum": {
        "where": "select elements with np.where(where, maxops.maximum(a, b), ...)",
        "dtype": "convert an input to this dtype",
        "skipna": "use nan='ignore'",
    },
    "reduce_max": {
        "dtype": "convert the data to this dtype",
        "where": "replace excluded elements with the lowest value, such as np.where(where, data, -np.inf)",
        "skipna": "use nan='ignore'",
    },
    "segment_max": {
        "src": "use data",
        "index": "use segment_ids",
        "indptr": "use offsets",
        "ptr": "use offsets",
        "indices": "use offsets, and append the number of rows",
        "dim_size": "use num_segments",
        "ngroups": "use num_segments",
        "fill": "use fill_value",
        "ids": "use segment_ids",
        "indices_are_sorted": "use sorted",
        "unique_indices": "omit it",
        "mode": "use out_of_range='error' or out_of_range='drop'",
        "skipna": "use nan='ignore'",
    },
}


def explain_argument(function: str, name: str) -> None:
    """Raise TypeError with a hint for a keyword argument of a similar function, or one whose name is misspelled.

    Do nothing for all other names.

    >>> explain_argument("reduce_max", "keepdim")
    Traceback (most recent call last):
        ...
    TypeError: reduce_max() got an unexpected keyword argument 'keepdim'; use keepdims
    """
    from difflib import get_close_matches  # noqa: PLC0415  (only errors need it)

    instead = INSTEAD[function].get(name)
    row = next(row for row in spec.PLAIN if row.operator == function)
    names = [each.name for each in row.parameters if each.kind != "arrays"]
    if instead is None and (near := get_close_matches(name, names, n=1, cutoff=0.8)):
        instead = f"use {near[0]}"
    if instead:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}; {instead}")
