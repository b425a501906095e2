"""Writes a call's ONNX model as short lines of Python for a script, in the ONNX text format."""

from __future__ import annotations

import json
from collections.abc import Sequence

from onnx import printer

from maxops.conformance import onnx_model
from maxops.conformance.case import Call, Input
from maxops.conformance.literal import literal
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.plan import Array


def lines(call: Call) -> list[str]:
    """Return lines that assign the model to `model`; raise NotApplicableError for a call that ONNX cannot express."""
    tensors = [
        f"model.graph.initializer.append(onnx.numpy_helper.from_array({literal(array)}, {name!r}))"
        for name, array in call.constants.items()
        if not (_is_text(array) or call.within)
    ]
    return ["import onnx, onnx.parser", f"model = onnx.parser.parse_model({text(call)!r})", *tensors]


def text(call: Call) -> str:
    """Return the model as text, without float initializers, because the text format would change their bits."""
    if call.row.standard != "ONNX":
        raise NotApplicableError(f"an ONNX model cannot contain {call.row.standard} {call.row.operator}")
    for each in call.inputs:
        if each is not None:
            onnx_model.element_type(each.dtype)  # raises for real numbers
    if call.within:  # such models have only integer constants
        return " ".join(printer.to_text(onnx_model.model(call)).split())
    fed = ", ".join(f"{_type(each)} {each.name}" for each in call.fed)
    attributes = ", ".join(_attribute(name, value) for name, value in call.attributes)
    node = f"{call.row.operator}{f'<{attributes}>' if attributes else ''}"
    inputs = ", ".join(each.name if each else '""' for each in call.inputs)
    output = f"{call.dtype.onnx}{_dims([None] * call.rank) if call.rank is not None else '[]'} {onnx_model.OUTPUT}"
    tensors = [
        f"{_type(each)} {each.name} = {{{', '.join(str(int(item)) for item in each.constant.reshape(-1))}}}"
        for each in call.inputs
        if each is not None and each.constant is not None and _is_text(each.constant)
    ]
    constants = f" <{', '.join(tensors)}>" if tensors else ""
    head = f'<ir_version: {onnx_model.IR_VERSION}, opset_import: ["": {call.row.version}]>'
    return f"{head} case ({fed}) => ({output}){constants} {{ {onnx_model.OUTPUT} = {node}({inputs}) }}"


def _is_text(array: Array) -> bool:
    return array.dtype.kind in "iub"


def _type(each: Input) -> str:
    return each.dtype.onnx + _dims(each.dims if each.constant is None else each.constant.shape)


def _dims(sizes: Sequence[int | None]) -> str:
    """Return sizes in brackets, or "" for a scalar, because empty brackets mean an unknown rank."""
    return f"[{','.join('?' if size is None else str(size) for size in sizes)}]" if sizes else ""


def _attribute(name: str, value: object) -> str:
    if isinstance(value, (list, tuple)):
        listed = ", ".join(map(_item, value))
        return f"{name}: ints = []" if not value else f"{name}=[{listed}]"
    return f"{name}={_item(value)}"


def _item(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return repr(value)
    raise NotApplicableError(f"cannot write an attribute of type {type(value).__name__} as text")
