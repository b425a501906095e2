"""A call as an ONNX model: one node, its constants as initializers."""

from __future__ import annotations

from onnx import AttributeProto, ModelProto, helper, numpy_helper

from maxops import dtypes
from maxops.conformance.case import Call
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.dtypes import DType
from maxops.onnx.tensors import NUMBERS

IR_VERSION = 8  # the first with every type here, and old enough for every runtime
OUTPUT = "y"


def model(call: Call) -> ModelProto:
    """The model; raises NotApplicableError for what ONNX cannot say."""
    if call.row.standard != "ONNX":
        raise NotApplicableError(f"an ONNX model has no {call.row.standard} {call.row.operator}")
    assert call.row.version is not None
    node = helper.make_node(call.row.operator, [each.name if each else "" for each in call.inputs], [OUTPUT])
    node.attribute.extend(_attribute(name, value) for name, value in call.attributes)
    dims = None if call.rank is None else [None] * call.rank
    graph = helper.make_graph(
        [node],
        "case",
        [helper.make_tensor_value_info(each.name, element_type(each.dtype), each.dims) for each in call.fed],
        [helper.make_tensor_value_info(OUTPUT, element_type(call.dtype), dims)],
        [numpy_helper.from_array(array, name) for name, array in call.constants.items()],
    )
    opset = helper.make_opsetid("", call.row.version)
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="maxops conform")


def _attribute(name: str, value: object) -> AttributeProto:
    # an empty list does not show what it is a list of
    return helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value in ([], ()) else None)


def element_type(dtype: DType) -> int:
    """ONNX's number of a type."""
    if dtype == dtypes.REAL:
        raise NotApplicableError("ONNX has no type for real numbers")
    return NUMBERS[dtype]
