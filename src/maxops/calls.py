"""One request to an operator: what was asked, as it was spelled, and the row of the spec table that it is judged by.

Its fields are the parameters of the row of a plain function (a test compares them). What each means, the planner says;
all that lies between hands the whole request on.

Named tuples: they never change, as a frozen dataclass, and take a quarter of its time to make (0.35 us against 1.5 for
SegmentMax, where a whole call of a small tensor takes 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from maxops import spec
from maxops.counted import counted
from maxops.errors import AttributeValueError, InputCountError
from maxops.spec import Spec

Function = Callable[[str, Any], Any]  # of a name for messages and a value


class MaxCall(NamedTuple):
    """A call of Max."""

    inputs: Sequence[Any]
    out: Any = None
    ties: Any = "even"
    nan: Any = "propagate"
    row: Spec = spec.MAXIMUM

    @property
    def dim(self) -> None:
        """No axis is named."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """The types of the arrays, by which the engine is found."""
        return tuple([type(value) for value in self.inputs])

    @property
    def arrays(self) -> list[tuple[str, Any]]:
        """The arrays, Python scalars among them, with their names."""
        return [(f"input {number}", value) for number, value in enumerate(self.inputs)]

    def map(self, array: Function, scalar: Function | None = None, **changes: Any) -> MaxCall:
        """The call with its arrays replaced by a function's results, and with other changes."""
        return self._replace(inputs=tuple([array(name, value) for name, value in self.arrays]), **changes)


class ReduceCall(NamedTuple):
    """A call of ReduceMax."""

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
        """The types of the arrays, by which the engine is found."""
        return (type(self.data),)

    @property
    def arrays(self) -> list[tuple[str, Any]]:
        """The arrays, with their names."""
        return [("data", self.data)]

    @property
    def scalars(self) -> list[tuple[str, Any]]:
        """The scalars of the data's type that are given, with their names."""
        return [] if self.initial is None else [("initial", self.initial)]

    def map(self, array: Function | None = None, scalar: Function | None = None, **changes: Any) -> ReduceCall:
        """The call with its array and scalars replaced by functions' results, and with other changes."""
        return self._replace(**_mapped(self, array, scalar), **changes)


class SegmentCall(NamedTuple):
    """A call of SegmentMax."""

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
        """The types of the arrays, by which the engine is found."""
        return (type(self.data), type(self.segment_ids), type(self.offsets))

    @property
    def arrays(self) -> list[tuple[str, Any]]:
        """The arrays that are given, with their names."""
        named = [("data", self.data), ("segment_ids", self.segment_ids), ("offsets", self.offsets)]
        return [(name, value) for name, value in named if value is not None]

    @property
    def scalars(self) -> list[tuple[str, Any]]:
        """The scalars of the data's type that are given, with their names."""
        named = [("fill_value", self.fill_value), ("initial", self.initial)]
        return [(name, value) for name, value in named if value is not None]

    def map(self, array: Function | None = None, scalar: Function | None = None, **changes: Any) -> SegmentCall:
        """The call with its arrays and scalars replaced by functions' results, and with other changes."""
        return self._replace(**_mapped(self, array, scalar), **changes)


class ScatterCall(NamedTuple):
    """A call of ONNX's ScatterElements or ScatterND, which no plain function has."""

    data: Any
    indices: Any
    updates: Any
    axis: Any = 0
    reduction: Any = "none"
    out: Any = None
    row: Spec = spec.SCATTER_ND_18

    @property
    def arrays(self) -> list[tuple[str, Any]]:
        """The arrays, with their names."""
        return [("data", self.data), ("indices", self.indices), ("updates", self.updates)]


def _mapped(call: ReduceCall | SegmentCall, array: Function | None, scalar: Function | None) -> dict[str, Any]:
    mapped = {} if array is None else {name: array(name, value) for name, value in call.arrays}
    if scalar is not None:
        mapped |= {name: scalar(name, value) for name, value in call.scalars}
    return mapped


Call = MaxCall | ReduceCall | SegmentCall


def of_node(row: Spec, inputs: Sequence[Any], attributes: Mapping[str, Any], out: Any = None) -> Call | ScatterCall:
    """The call of an operator as its standard has it: inputs by position, attributes by name."""
    check_attributes(row, attributes)
    named: dict[str, Any] = {**attributes, "out": out, "row": row}
    if row.operator == "Max":
        return MaxCall(inputs, out, row=row)  # consumed_inputs of version 1: accepted, ignored
    if row.operator == "SegmentMax":
        if not 2 <= len(inputs) <= 3:
            raise InputCountError(
                f"{row.name} got {counted(len(inputs), 'input')}; it takes 2 or 3: data, segment_ids and num_segments",
                row.clause("inputs"),
            )
        return SegmentCall(*inputs, **named)
    if row.is_scatter:
        if len(inputs) != 3:
            raise InputCountError(
                f"{row.name} got {counted(len(inputs), 'input')}; it takes 3: data, indices and updates",
                row.clause("inputs"),
            )
        return ScatterCall(*inputs, **named)
    if not 1 <= len(inputs) <= 1 + row.axes_input:
        takes = "1 or 2: data and axes" if row.axes_input else "1: data; axes is an attribute, as in axes=[0]"
        raise InputCountError(f"{row.name} got {counted(len(inputs), 'input')}; it takes {takes}", row.clause("inputs"))
    return ReduceCall(*inputs, **named)


_ORDINALS = ("first", "second", "third")


def check_attributes(row: Spec, attributes: Iterable[str]) -> None:
    """Raise for an attribute that an operator does not have."""
    for name in attributes:
        if name in row.attributes:
            continue
        if name in (inputs := [each for each, _ in row.inputs]):
            number = inputs.index(name)
            raise AttributeValueError(
                f"{row.name} has no attribute {name!r}: it is the {_ORDINALS[number]} input; give it by position: "
                f"operator({', '.join(inputs[: number + 1])})",
                row.clause("inputs"),
            )
        listed = ", ".join(row.attributes) or "none"
        raise AttributeValueError(f"{row.name} has no attribute {name!r}; its attributes are: {listed}")


# What other libraries call a parameter, or have in place of one; of each plain function.
INSTEAD = {
    "maximum": {
        "where": "np.where(where, maxops.maximum(a, b), ...) selects elements",
        "dtype": "convert an input, as in .astype(...)",
        "skipna": "nan='ignore' skips NaN",
    },
    "reduce_max": {
        "keepdim": "it is called keepdims",
        "dtype": "convert the data, as in .astype(...)",
        "where": "replace what to leave out by the lowest value, of floats as np.where(where, data, -np.inf)",
        "skipna": "nan='ignore' skips NaN",
    },
    "segment_max": {
        "src": "it is called data",
        "index": "it is called segment_ids",
        "indptr": "it is called offsets",
        "ptr": "it is called offsets",
        "indices": "it is called offsets, which end with the number of rows",
        "dim_size": "it is called num_segments",
        "ngroups": "it is called num_segments",
        "fill": "it is called fill_value",
        "indices_are_sorted": "it is called sorted",
        "mode": "it is called out_of_range, 'error' or 'drop'",
        "skipna": "nan='ignore' skips NaN",
    },
}


def explain_argument(function: str, name: str) -> None:
    """Raise for an argument that a plain function does not have; with what another library's name is called here.

    >>> explain_argument("reduce_max", "keepdim")
    Traceback (most recent call last):
        ...
    TypeError: reduce_max() has no argument 'keepdim': it is called keepdims
    """
    if instead := INSTEAD.get(function, {}).get(name):
        raise TypeError(f"{function}() has no argument {name!r}: {instead}")
