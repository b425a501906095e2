"""Writes a call as an ONNX model in the ONNX text format: one node in the model constructs that the call names.

Both the kit and its scripts parse the model from this text. The text may contain integer constants, but not float
constants, because the text format would change their bits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from onnx import ModelProto, numpy_helper, parser

from maxops import dtypes
from maxops.conformance.case import Call, Construct
from maxops.conformance.literal import literal
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.dtypes import DType
from maxops.plan import Array

IR_VERSION = 8  # the first version with local functions; every runtime supports it
OUTPUT = "y"
LOCAL = "local"  # the domain of local functions


def model(call: Call) -> ModelProto:
    """Return the model. Raise NotApplicableError for a call that ONNX cannot express."""
    made = parser.parse_model(text(call))
    made.producer_name = "maxops conform"
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in call.constants.items())
    return made


def lines(call: Call) -> list[str]:
    """Return lines of a script that assign the model to `model`."""
    tensors = [
        f"model.graph.initializer.append(onnx.numpy_helper.from_array({literal(array)}, {name!r}))"
        for name, array in call.constants.items()
        if not _is_text(array)
    ]
    source = text(call, integer_constants=True)
    return ["import onnx, onnx.parser", f"model = onnx.parser.parse_model({source!r})", *tensors]


def text(call: Call, *, integer_constants: bool = False) -> str:
    """Return the model as text, without constants by default."""
    if call.row.standard != "ONNX":
        raise NotApplicableError(f"an ONNX model cannot contain {call.row.standard} {call.row.operator}")
    functions: list[str] = []
    nodes = _nodes(call, call.within, OUTPUT, functions)
    fed = ", ".join(f"{_type(each.dtype, each.dims)} {each.name}" for each in call.fed)
    integers = [_constant(*each) for each in call.constants.items() if integer_constants and _is_text(each[1])]
    constants = f" <{', '.join(integers)}>" if integers else ""
    head = f"<ir_version: {IR_VERSION}, opset_import: [{_opsets(call, local=bool(functions))}]>"
    return " ".join([f"{head} case ({fed}) => ({_output(call, OUTPUT)}){constants} {{ {nodes} }}", *functions])


def _nodes(call: Call, within: tuple[Construct, ...], output: str, functions: list[str]) -> str:
    """Return the nodes that compute the operator's result as `output`, inside these constructs."""
    if not within:
        attributes = ", ".join(_attribute(name, value) for name, value in call.attributes)
        inputs = ", ".join(each.name if each else '""' for each in call.inputs)
        return f"{output} = {call.row.operator}{f'<{attributes}>' if attributes else ''}({inputs})"
    construct, inner = within[0], within[1:]
    if construct == "If":  # the operator is in both branches
        branches = [
            f"{name}_branch = {name} () => ({_output(call, f'{name}_{output}')}) "
            f"{{ {_nodes(call, inner, f'{name}_{output}', functions)} }}"
            for name in ("then", "else")
        ]
        return f"{output} = If<{', '.join(branches)}>(flag)"
    if construct == "Loop":  # the operator is in the body, and before the loop in case of zero iterations
        carried = _output(call, "before"), _output(call, f"in_{output}")
        head = f"body (int64 trip, bool go, {carried[0]}) => (bool going, {carried[1]})"
        body = f"{{ going = Identity(go) {_nodes(call, inner, f'in_{output}', functions)} }}"
        start = _nodes(call, inner, f"start_{output}", functions)
        return f"{start} {output} = Loop<body = {head} {body}>(trips, flag, start_{output})"
    nodes = _nodes(call, inner, OUTPUT, functions)
    name = f"function_{len(functions)}"
    operands = ", ".join(each.name for each in (*call.inputs, *call.controls) if each is not None)
    head = f'<domain: "{LOCAL}", opset_import: [{_opsets(call, local="function" in inner)}]>'
    functions.append(f"{head} {name} ({operands}) => ({OUTPUT}) {{ {nodes} }}")
    return f"{output} = {LOCAL}.{name}({operands})"


def _opsets(call: Call, *, local: bool) -> str:
    return f'"": {call.row.version}' + (f', "{LOCAL}": 1' if local else "")


def _output(call: Call, name: str) -> str:
    """Return an output with its type. Empty brackets mean an unknown rank."""
    declared = f"{_type(call.dtype)}[]" if call.rank is None else _type(call.dtype, [None] * call.rank)
    return f"{declared} {name}"


def _type(dtype: DType, sizes: Sequence[int | None] = ()) -> str:
    """Return a type with its sizes in brackets. A scalar has no brackets."""
    if dtype == dtypes.REAL:
        raise NotApplicableError("ONNX has no type for real numbers")
    return dtype.onnx + (f"[{','.join('?' if size is None else str(size) for size in sizes)}]" if sizes else "")


def _constant(name: str, array: Array) -> str:
    dtype = dtypes.of(array.dtype)
    assert dtype is not None
    return f"{_type(dtype, array.shape)} {name} = {{{', '.join(str(int(item)) for item in array.flat)}}}"


def _is_text(array: Array) -> bool:
    return array.dtype.kind in "iub"


def _attribute(name: str, value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"{name}=[{', '.join(map(_item, value))}]" if value else f"{name}: ints = []"
    return f"{name}={_item(value)}"


def _item(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return repr(value)
    raise NotApplicableError(f"cannot write an attribute of type {type(value).__name__} as text")
