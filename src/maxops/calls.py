"""One request to an operator: what was asked, as it was spelled, and the row of the spec table that it is judged by.

Its fields are the parameters of the row of a plain function. What each means, the planner says; all that lies between
hands the whole request on.

Named tuples: they never change, as a frozen dataclass, and take a quarter of its time to make (0.35 us against 1.5 for
SegmentMax, where a whole call of a small tensor takes 5).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from maxops import spec
from maxops.counted import counted
from maxops.errors import AttributeValueError, InputCountError
from maxops.spec import Spec

Function = Callable[[str, Any], Any]  # of a name for messages and a value
_C = TypeVar("_C")

if TYPE_CHECKING:

    class _Fields:
        """The fields of a request, which are known when it is imported: each may be anything."""

        row: Spec
        flags: ClassVar[tuple[str, ...]]
        _fields: ClassVar[tuple[str, ...]]
        _field_defaults: ClassVar[dict[str, Any]]

        def __init__(self, *values: Any, **named: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def _replace(self, **changes: Any) -> Self: ...
        @classmethod
        def _make(cls, values: Iterable[Any]) -> Self: ...
        def __getitem__(self, place: int) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...

else:
    _Fields = object


def _with_fields_of(row: Spec) -> Callable[[type[_C]], type[_C]]:
    """Make a class one of named tuples: a field for each parameter of a row, and the row. Its own members stay."""

    def make(body: type[_C]) -> type[_C]:
        fields = [each for each in row.parameters if not each.alias_of]
        defaults = [each.default for each in fields if each.kind not in ("array", "arrays")]
        names = [*(each.name for each in fields), "row"]
        make_fields: Any = namedtuple  # a type checker knows no names but literal ones
        made = make_fields(body.__name__, names, defaults=[*defaults, row], module=body.__module__)
        for name, member in vars(body).items():
            if name not in ("__dict__", "__weakref__", "__module__"):
                setattr(made, name, member)
        made.flags = tuple(each.name for each in fields if each.kind == "flag")
        return made  # type: ignore[no-any-return]

    return make


@_with_fields_of(spec.MAXIMUM)
class MaxCall(_Fields):
    """A call of Max."""

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
        """The call with a function's results in the place of its arrays, and with other changes."""
        return self._replace(inputs=tuple([array(name, value) for name, value in self.arrays]), **changes)


@_with_fields_of(spec.REDUCE_MAX)
class ReduceCall(_Fields):
    """A call of ReduceMax."""

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
        """The call with functions' results in the place of its array and scalars, and with other changes."""
        return self._replace(**_mapped(self, array, scalar), **changes)


@_with_fields_of(spec.SEGMENT_MAX)
class SegmentCall(_Fields):
    """A call of SegmentMax."""

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
        """The call with functions' results in the place of its arrays and scalars, and with other changes."""
        return self._replace(**_mapped(self, array, scalar), **changes)


def _mapped(call: ReduceCall | SegmentCall, array: Function | None, scalar: Function | None) -> dict[str, Any]:
    mapped = {} if array is None else {name: array(name, value) for name, value in call.arrays}
    if scalar is not None:
        mapped |= {name: scalar(name, value) for name, value in call.scalars}
    return mapped


Call = MaxCall | ReduceCall | SegmentCall


def of_node(row: Spec, inputs: Sequence[Any], attributes: Mapping[str, Any], out: Any = None) -> Call:
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
        return SegmentCall(*inputs[:3], **named)
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
