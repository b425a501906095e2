"""Checks the nodes of a graph, and converts them to functions that run them on maxops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto
from onnx.checker import ValidationError
from onnx.onnx_cpp2py_export.checker import CheckerContext

from maxops import ops, spec
from maxops.errors import InputCountError, ModelError
from maxops.model import Step, identity
from maxops.onnx.schemas import since
from maxops.onnx.tensors import to_array
from maxops.plan import Array
from maxops.spec import SCATTERS, Spec

DOMAINS = ("", "ai.onnx")  # the two names of the default ONNX domain
OPERATORS = ("Max", "ReduceMax", "Constant", "Identity")
# The attributes of Constant that contain numbers, with the protobuf field of each value and the dtype of its array.
PLAIN_CONSTANTS: dict[str, tuple[str, type[np.float32 | np.int64]]] = {
    "value_float": ("f", np.float32),
    "value_floats": ("floats", np.float32),
    "value_int": ("i", np.int64),
    "value_ints": ("ints", np.int64),
}
_STRING_CONSTANTS = ("value_string", "value_strings")


def label(node: NodeProto) -> str:
    """Return a description of a node for messages: its operator and its name or, if it has no name, its output."""
    domain = f"{node.domain}." if node.domain else ""
    name = f"{node.name!r} " if node.name else ""
    made = "" if node.name or not node.output else f" with output {node.output[0]!r}"
    return f"node {name}({domain}{node.op_type}){made}"


def is_ours(node: NodeProto) -> bool:
    """Return whether `step` or `constant` supports the node."""
    return is_max(node) or (not node.domain and node.op_type in OPERATORS)


def is_max(node: NodeProto) -> bool:
    """Return whether a node is a max operator of the default ONNX domain: Max, ReduceMax, or a scatter with "max"."""
    if node.domain:
        return False
    if node.op_type in spec.SCATTERS:
        return any(each.name == "reduction" and each.s == b"max" for each in node.attribute)
    return node.op_type in ("Max", "ReduceMax")


def in_maxima(graph: GraphProto) -> set[str]:
    """Return the names of the inputs and outputs of max operators, and of their copies by Identity.

    The graph must be in topological order. Only these values must have types that maxops supports.
    """
    names = {name for node in graph.node if is_max(node) for name in (*node.input, *node.output)}
    copies = [{*node.input, *node.output} for node in graph.node if node.op_type == "Identity"]
    for pair in (*reversed(copies), *copies):
        if names & pair:
            names |= pair
    return names


def check(node: NodeProto, where: str, opset: int, ir_version: int) -> None:
    """Reject unsupported operators, and nodes that violate the schema of their operator."""
    if not is_ours(node):
        raise ModelError(
            f"{where}: unsupported operator; maxops runs {', '.join(OPERATORS[:-1])} and {OPERATORS[-1]} of the "
            f'default ONNX domain, and {" and ".join(SCATTERS)} with the reduction "max"; extract the part of the '
            "graph with these operators (onnx.utils.extract_model), or run the model in another runtime"
        )
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.name in seen:
            raise ModelError(f"{where}: the attribute {attribute.name!r} appears twice")
        if attribute.ref_attr_name:
            raise ModelError(
                f"{where}: {attribute.name!r} refers to a function attribute, but the node is not in a function"
            )
        seen.add(attribute.name)
    context = CheckerContext()
    context.ir_version = ir_version
    context.opset_imports = {"": opset}
    try:
        onnx.checker.check_node(node, context)
    except UnicodeDecodeError as error:
        raise ModelError(f"{where}: a name is not UTF-8: {error.object!r}") from error
    except ValidationError as error:
        # omit the text after the arrow, which describes the node again
        raise ModelError(f"{where}: {str(error).partition('==>')[0].strip()}") from error


def step(node: NodeProto, where: str, opset: int) -> Step:
    """Return the `Step` that runs a node. The node must be a max operator or an Identity that `check` accepts."""
    if node.op_type == "Identity":
        return Step(label(node), tuple(node.input), node.output[0], identity)
    row = row_of(node.op_type, opset, where)
    check_inputs(node, row, where)
    attributes = {attribute.name: _value(attribute) for attribute in node.attribute}
    operator = ops.Operator(row)
    return Step(label(node), tuple(node.input), node.output[0], partial(_run, operator, attributes))


def _run(operator: ops.Operator, attributes: dict[str, Any], inputs: Sequence[Array | None]) -> Any:
    """Run a node. Like `partial`, a function of a module can be pickled, but a lambda cannot."""
    return operator(*inputs, **attributes)


def check_inputs(node: NodeProto, row: Spec, where: str) -> None:
    """Reject a max operator that omits a required input. Only the axes of ReduceMax may be omitted."""
    optional = {1} if row.operator == "ReduceMax" else set()
    for number, name in enumerate(node.input):
        if not name and number not in optional:
            raise InputCountError(
                f"{where}: input {number} of {row.name} is required, but its name is empty",
                row.clause("inputs"),
            )


def _value(attribute: AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def row_of(operator: str, opset: int, where: str) -> Spec:
    """Return the specification of a max operator in an operator set."""
    row = spec.in_opset(operator, opset)
    newest = since(operator, opset, "")
    if row is None and operator in SCATTERS:
        raise ModelError(
            f'{where}: {operator} has the reduction "max" only in operator set 18 or newer, but the model imports '
            f"operator set {opset}; convert the model with onnx.version_converter"
        )
    if row is None or row.version != newest:
        raise ModelError(
            f"{where}: operator set {opset} has {operator}-{newest}, which this version of maxops does not support"
        )
    return row


def plain_constant(attribute: AttributeProto) -> Array:
    """Return the value of one of the attributes in `PLAIN_CONSTANTS` as an array."""
    field, dtype = PLAIN_CONSTANTS[attribute.name]
    return np.array(getattr(attribute, field), dtype)


def constant(node: NodeProto, where: str, folder: Path | None, *, any_type: bool = False) -> Array:
    """Return the value of a Constant node as a read-only array. `any_type` is as in `to_array`."""
    names = sorted(attribute.name for attribute in node.attribute)
    if len(names) != 1:
        actual = f"{len(names)}: {', '.join(names)}" if names else "none"
        raise ModelError(f"{where}: a Constant must have exactly one attribute, got {actual}")
    attribute: AttributeProto = node.attribute[0]
    if attribute.name == "value":
        return to_array(attribute.t, f"{where}: the value", folder, any_type=any_type)
    if attribute.name in _STRING_CONSTANTS:
        is_one = attribute.name == "value_string"
        strings = [attribute.s] if is_one else attribute.strings
        text = TensorProto(data_type=TensorProto.STRING, dims=[] if is_one else [len(strings)], string_data=strings)
        return to_array(text, f"{where}: the value", any_type=any_type)
    if attribute.name not in PLAIN_CONSTANTS:
        listed = ", ".join(["value", *PLAIN_CONSTANTS, *_STRING_CONSTANTS])
        raise ModelError(f"{where}: unsupported attribute {attribute.name!r}; supported attributes: {listed}")
    array = plain_constant(attribute)
    array.flags.writeable = False
    return array
