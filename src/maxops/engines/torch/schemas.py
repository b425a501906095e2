"""The schemas of the operators in torch, and the conversion of calls to and from the arguments of the operators.

The arguments of an operator are those fields of a call that torch must know, with torch's types. Python scalars and
NumPy arrays in a call become tensors.
"""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Any

from maxops import spec
from maxops.calls import ReduceCall, SegmentCall
from maxops.spec import Spec

_KINDS = {
    "array": "Tensor",
    "indices": "Tensor?",
    "count": "SymInt?",
    "axes": "int[]?",
    "flag": "bool",
    "choice": "str?",
    "scalar": "Tensor?",
}


def _fields(row: Spec, *first: str) -> dict[str, str]:
    """Return the schema type of each field that torch must know. Exported programs rely on the order of the fields."""
    kinds = {
        each.name: "str" if each.kind == "choice" and each.default is not None else _KINDS[each.kind]
        for each in row.parameters
        if each.kind in _KINDS and not each.alias_of
    }
    return {name: kinds.pop(name) for name in first} | kinds


MAXIMUM = {"tensors": "Tensor[]", "ties": "str", "nan": "str"}
REDUCE_MAX = _fields(
    spec.REDUCE_MAX, "data", "axes", "keepdims", "noop_with_empty_axes", "initial", "return_indices", "ties"
)
SEGMENT_MAX = _fields(
    spec.SEGMENT_MAX,
    "data",
    "segment_ids",
    "offsets",
    "num_segments",
    "fill_mode",
    "check_ids",
    "sorted",
    "out_of_range",
    "initial",
    "return_indices",
    "return_empty",
    "ties",
)
LATER = {"fill_value", "nan"}  # these have defaults, because older exported programs do not pass them


def schema(fields: dict[str, str], results: int) -> str:
    """Return the schema of an operator that returns `results` tensors."""
    defaults = {name: f"={json.dumps(SegmentCall._field_defaults[name])}".replace("null", "None") for name in LATER}
    listed = ", ".join(f"{kind} {name}{defaults.get(name, '')}" for name, kind in fields.items())
    return f"({listed}) -> ({', '.join(['Tensor'] * results)})"


def _maker(request: Any, fields: dict[str, str]) -> Any:
    """Return a function that builds a call from the operator's arguments, with defaults for the other fields."""
    defaults = request._field_defaults
    order = itemgetter(*map([*fields, *defaults].index, request._fields))
    rest = tuple(defaults.values())
    missing = tuple(map(defaults.get, fields))
    return lambda inputs: request._make(order(inputs + missing[len(inputs) :] + rest))


_reduce, _segment = _maker(ReduceCall, REDUCE_MAX), _maker(SegmentCall, SEGMENT_MAX)
_REDUCE_FIELDS = tuple(map(ReduceCall._fields.index, REDUCE_MAX))
_SEGMENT_FIELDS = tuple(map(SegmentCall._fields.index, SEGMENT_MAX))


def reduce_call(*inputs: Any) -> ReduceCall:
    """Build a ReduceMax call from the operator's arguments, or from other values in the same order."""
    call: ReduceCall = _reduce(inputs)
    return call


def segment_call(*inputs: Any) -> SegmentCall:
    """Build a SegmentMax call from the operator's arguments, like `reduce_call`."""
    call: SegmentCall = _segment(inputs)
    return call


def arguments(call: ReduceCall | SegmentCall) -> tuple[Any, ...]:
    """Return the operator's arguments for a call."""
    fields = _REDUCE_FIELDS if isinstance(call, ReduceCall) else _SEGMENT_FIELDS
    return tuple([call[field] for field in fields])


def is_identity(call: ReduceCall) -> bool:
    """Return whether a ReduceMax call returns the data itself."""
    return bool(call.noop_with_empty_axes) and not call.axes
