"""A library of functions: no models and no versions, only arrays and what its users write."""

from __future__ import annotations

from typing import ClassVar

from maxops import dtypes
from maxops.conformance.case import Call, Input
from maxops.conformance.literal import literal, type_text
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.conformance.runtimes.scripted import Scripted
from maxops.dtypes import DType


class Library(Scripted):
    """A subclass writes the lines of each operator that it has."""

    missing_types: ClassVar[frozenset[DType]] = frozenset({dtypes.REAL})

    def setup(self, call: Call) -> list[str]:
        """The constants."""
        if call.dtype in self.missing_types:
            raise NotApplicableError(f"{self.name} has no {call.dtype}")
        self.answer(call)  # whether there is one
        return [f"{name} = {literal(array)}" for name, array in call.constants.items()]

    def answer(self, call: Call) -> list[str]:
        """The operator's lines."""
        if call.row.operator == "Max":
            if not call.inputs:
                raise NotApplicableError("there is nothing to take the maximum of")
            return self.maximum(call, [_given(each).name for each in call.inputs])
        if call.row.operator == "ReduceMax":
            return self._reduce_max(call)
        return self._segment_max(call)

    def maximum(self, call: Call, names: list[str]) -> list[str]:
        """Lines for the element-wise maximum of arrays of these names."""
        raise NotApplicableError(f"{self.name} has no element-wise maximum")

    def reduce_max(self, call: Call, data: str, axis: str, keepdims: bool) -> list[str]:
        """Lines for the maximum along axes; `axis` is an expression for a tuple of them, or for None: all."""
        raise NotApplicableError(f"{self.name} has no maximum along axes")

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """Lines for the maximum by ids, which lie below `count`, an expression; `fill` is one for empty segments."""
        raise NotApplicableError(f"{self.name} has no maximum by ids")

    def _reduce_max(self, call: Call) -> list[str]:
        attributes = dict(call.attributes)
        data, axes = (*call.inputs, None)[:2]
        if attributes.get("noop_with_empty_axes"):
            raise NotApplicableError(f"{self.name} reduces or does not: it has no noop_with_empty_axes")
        if axes is None:
            axis = f"{tuple(attributes.get('axes', ())) or None}"
        elif axes.constant is not None:
            axis = f"{tuple(axes.constant.reshape(-1).tolist()) or None}"
        else:
            axis = f"tuple({axes.name}.tolist()) or None"
        return self.reduce_max(call, _given(data).name, axis, bool(attributes.get("keepdims", 1)))

    def _segment_max(self, call: Call) -> list[str]:
        data, ids, number = (_given(call.inputs[0]), _given(call.inputs[1]), (*call.inputs, None)[2])
        mode = str(dict(call.attributes).get("fill_mode")).upper()
        if mode not in ("ZERO", "LOWEST"):
            raise NotApplicableError(f"{self.name} has no fill_mode {mode!r}")
        fill = "0" if mode == "ZERO" else lowest_finite(call.dtype)
        count = f"int({ids.name}[-1]) + 1 if {ids.name}.size else 0" if number is None else f"int({number.name})"
        lines = [f"count = {count}"]
        if number is not None:  # there may be ids past it
            lines.append(f"inside = {ids.name} < count")
            lines.append(f"{data.name}, {ids.name} = {data.name}[inside], {ids.name}[inside]")
        return [*lines, *self.segment_max(call, data.name, ids.name, "count", fill)]


def _given(each: Input | None) -> Input:
    if each is None:
        raise NotApplicableError("a function's array cannot be left out")
    return each


def lowest_finite(dtype: DType) -> str:
    """An expression for the lowest finite value of a type."""
    if dtype.kind == "float":
        return f"{'ml_dtypes' if dtype == dtypes.BFLOAT16 else 'np'}.finfo({type_text(dtype)}).min"
    return "False" if dtype == dtypes.BOOL else f"np.iinfo({type_text(dtype)}).min"


def lowest(dtype: DType) -> str:
    """An expression for the lowest value of a type: what a maximum starts from."""
    return "-np.inf" if dtype.kind == "float" else lowest_finite(dtype)
