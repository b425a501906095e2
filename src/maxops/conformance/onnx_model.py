"""Builds a call as an ONNX model: one node, constants as initializers, and the model constructs that the call names."""

from __future__ import annotations

from onnx import (
    AttributeProto,
    FunctionProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from maxops import dtypes
from maxops.conformance.case import Call, Construct
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.dtypes import DType
from maxops.onnx.tensors import NUMBERS

IR_VERSION = 8  # the first version with local functions; every runtime supports it
OUTPUT = "y"
LOCAL = "local"  # the domain of local functions


def model(call: Call) -> ModelProto:
    """Return the model; raise NotApplicableError for a call that ONNX cannot express."""
    if call.row.standard != "ONNX":
        raise NotApplicableError(f"an ONNX model cannot contain {call.row.standard} {call.row.operator}")
    assert call.row.version is not None
    functions: list[FunctionProto] = []
    graph = helper.make_graph(
        _nodes(call, call.within, OUTPUT, functions),
        "case",
        [helper.make_tensor_value_info(each.name, element_type(each.dtype), each.dims) for each in call.fed],
        [_output(call, OUTPUT)],
        [numpy_helper.from_array(array, name) for name, array in call.constants.items()],
    )
    return helper.make_model(
        graph,
        opset_imports=_opsets(call, local=bool(functions)),
        ir_version=IR_VERSION,
        producer_name="maxops conform",
        functions=functions,
    )


def _opsets(call: Call, *, local: bool) -> list[OperatorSetIdProto]:
    assert call.row.version is not None
    opsets = [helper.make_opsetid("", call.row.version)]
    return [*opsets, helper.make_opsetid(LOCAL, 1)] if local else opsets


def _output(call: Call, name: str) -> ValueInfoProto:
    dims = None if call.rank is None else [None] * call.rank
    return helper.make_tensor_value_info(name, element_type(call.dtype), dims)


def _nodes(call: Call, within: tuple[Construct, ...], output: str, functions: list[FunctionProto]) -> list[NodeProto]:
    """Return the nodes that compute the operator's result as `output`, inside these constructs."""
    if not within:
        node = helper.make_node(call.row.operator, [each.name if each else "" for each in call.inputs], [output])
        node.attribute.extend(_attribute(name, value) for name, value in call.attributes)
        return [node]
    construct, *rest = within
    inner = tuple(rest)
    if construct == "If":  # the operator is in both branches
        branches = {
            f"{name}_branch": helper.make_graph(
                _nodes(call, inner, f"{name}_{output}", functions), name, [], [_output(call, f"{name}_{output}")]
            )
            for name in ("then", "else")
        }
        return [helper.make_node("If", ["flag"], [output], **branches)]
    if construct == "Loop":  # the operator is in the body, and before the loop in case of zero iterations
        bool_type, int64_type = element_type(dtypes.BOOL), element_type(dtypes.INT64)
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["going"]), *_nodes(call, inner, f"in_{output}", functions)],
            "body",
            [
                helper.make_tensor_value_info("trip", int64_type, []),
                helper.make_tensor_value_info("go", bool_type, []),
                _output(call, "before"),
            ],
            [helper.make_tensor_value_info("going", bool_type, []), _output(call, f"in_{output}")],
        )
        start = _nodes(call, inner, f"start_{output}", functions)
        return [*start, helper.make_node("Loop", ["trips", "flag", f"start_{output}"], [output], body=body)]
    nodes = _nodes(call, inner, OUTPUT, functions)
    name = f"function_{len(functions)}"
    operands = [each.name for each in call.inputs if each is not None] + [each.name for each in call.controls]
    opsets = _opsets(call, local="function" in inner)
    functions.append(helper.make_function(LOCAL, name, operands, [OUTPUT], nodes, opsets))
    return [helper.make_node(name, operands, [output], domain=LOCAL)]


def _attribute(name: str, value: object) -> AttributeProto:
    # an empty list does not show the type of its elements
    return helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value in ([], ()) else None)


def element_type(dtype: DType) -> int:
    """Return ONNX's number for a type."""
    if dtype == dtypes.REAL:
        raise NotApplicableError("ONNX has no type for real numbers")
    return NUMBERS[dtype]
