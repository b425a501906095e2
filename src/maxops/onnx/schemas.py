"""The schemas of the custom operators in the ONNX domain `maxops`.

The domain contains SegmentMax, which ONNX lacks, and ONNX's max operators, for models that run in runtimes whose own
max operators are incorrect. `register` registers the operators with the onnx package, so that its checker and its shape
inference accept them.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import onnx
import onnx.reference.op_run  # import before `register`: fails if two domains define the same operator
from onnx import AttributeProto, TensorProto, TypeProto, numpy_helper
from onnx.checker import ValidationError
from onnx.defs import OpSchema, SchemaError
from onnx.shape_inference import InferenceError
from onnx.version_converter import ConvertError

from maxops import sizes, spec
from maxops.dtypes import DType
from maxops.onnx.tensors import dims_of, shape_of
from maxops.plan import FILL_MODES, Array
from maxops.shapes import reduced
from maxops.spec import Spec

DOMAIN = "maxops"
VERSION = 1
SEGMENT_MAX = spec.SEGMENT_MAX_16
INDEX_TYPES = SEGMENT_MAX.index_dtypes
NEWEST = {row.operator: row for row in (spec.MAX_13, spec.REDUCE_MAX_20, spec.SCATTER_ELEMENTS_18, spec.SCATTER_ND_18)}
_ORIGINALS = {operator: onnx.defs.get_schema(operator, row.version or 0, "") for operator, row in NEWEST.items()}
# This attribute of a node states the version of ONNX's operator that the node follows. The default is the newest.
SINCE_VERSION = "since_version"
# The types of the operators' attributes.
ATTRIBUTE_KINDS = {
    "consumed_inputs": AttributeProto.INTS,
    "axes": AttributeProto.INTS,
    "keepdims": AttributeProto.INT,
    "noop_with_empty_axes": AttributeProto.INT,
    "axis": AttributeProto.INT,
    "reduction": AttributeProto.STRING,
    "fill_mode": AttributeProto.STRING,
    SINCE_VERSION: AttributeProto.INT,
}
# The exceptions that onnx's C++ code raises for invalid models. Any of its functions may raise any of these exceptions,
# because the functions call each other.
REFUSALS = (ValidationError, InferenceError, SchemaError, ConvertError, RuntimeError, UnicodeDecodeError)

Parameter = OpSchema.FormalParameter
Option = OpSchema.FormalParameterOption
Attribute = OpSchema.Attribute


def register() -> None:
    """Register the operators of the domain `maxops` with the onnx package. Repeated calls have no effect.

    >>> register()
    >>> onnx.defs.get_schema("SegmentMax", 1, "maxops").since_version
    1
    """
    inference = {"Max": _infer_max, "ReduceMax": _infer_reduce_max, "SegmentMax": _infer_segment_max}
    for row in (*NEWEST.values(), SEGMENT_MAX):
        if not onnx.defs.has(row.operator, DOMAIN):
            schema = _segment_max() if row is SEGMENT_MAX else _of_onnx(row)
            schema.set_type_and_shape_inference_function(inference.get(row.operator, _infer_scatter))
            onnx.defs.register_schema(schema)


def since(operator: str | bytes, opset: int, domain: str | bytes) -> int:
    """Return the version of an operator in an operator set, or 0 if the onnx package does not define it.

    Also returns 0 for an operator set that is below 1 or too large for a C int, and for a name that is not UTF-8.
    Protobuf returns these names as bytes.

    >>> since("Max", 17, ""), since("Max", 2**40, ""), since("SegmentMax", 17, "")
    (13, 0, 0)
    """
    if isinstance(operator, bytes) or isinstance(domain, bytes) or not 0 < opset < 2**31:
        return 0
    if domain == DOMAIN:
        register()
    if not onnx.defs.has(operator, opset, domain):
        return 0
    return int(onnx.defs.get_schema(operator, opset, domain).since_version)


def row(operator: str, since_version: int | None) -> Spec:
    """Return the specification that an operator of the domain `maxops` follows.

    This is OpenVINO's SegmentMax-16, or a version of ONNX's operator. A `since_version` of None selects the newest
    version. Raises UnknownOperatorError for a version that ONNX lacks.
    """
    if operator == SEGMENT_MAX.operator:
        return SEGMENT_MAX
    return NEWEST[operator] if since_version is None else spec.find("ONNX", operator, since_version)


def _type_strings(types: tuple[DType, ...]) -> list[str]:
    return [f"tensor({dtype.onnx})" for dtype in types]


def _of_onnx(row: Spec) -> OpSchema:
    """Return the schema of an ONNX operator for the domain `maxops`.

    It has an additional attribute for the version and, for scatters, only the reduction "max".
    """
    original = _ORIGINALS[row.operator]
    types = {"T": row.dtypes, "Tind": row.index_dtypes}
    version = onnx.helper.make_attribute(SINCE_VERSION, row.version)
    attributes = original.attributes | {
        SINCE_VERSION: Attribute(SINCE_VERSION, version, f"The version of ONNX's {row.operator} that the node follows.")
    }
    if "reduction" in attributes:
        attributes["reduction"] = Attribute("reduction", OpSchema.AttrType.STRING, "max", required=True)
    return OpSchema(
        row.operator,
        DOMAIN,
        VERSION,
        f"ONNX's {row.operator}, with the inputs of its newest version.",
        inputs=original.inputs,
        outputs=original.outputs,
        type_constraints=[
            (each.type_param_str, _type_strings(types[each.type_param_str]), each.description)
            for each in original.type_constraints
        ],
        attributes=[*attributes.values()],
    )


def _segment_max() -> OpSchema:
    return OpSchema(
        "SegmentMax",
        DOMAIN,
        VERSION,
        "The maximum of each segment of sorted rows, as specified by OpenVINO's SegmentMax-16.",
        inputs=[
            Parameter("data", "T", "Rank 1 or more."),
            Parameter("segment_ids", "T_IDX", "The segment of each row of data: non-negative and sorted."),
            Parameter(
                "num_segments", "T_NUM", "A scalar; max(segment_ids) + 1 by default.", param_option=Option.Optional
            ),
        ],
        outputs=[Parameter("output", "T", "The shape of data, with num_segments as the size of the first axis.")],
        type_constraints=[
            ("T", _type_strings(SEGMENT_MAX.dtypes), "Numeric types."),
            ("T_IDX", _type_strings(INDEX_TYPES), "Types of ids."),
            ("T_NUM", _type_strings(INDEX_TYPES), "Types of num_segments."),
        ],
        attributes=[
            Attribute(
                "fill_mode", OpSchema.AttrType.STRING, "The value of empty segments: ZERO or LOWEST.", required=True
            )
        ],
    )


# ------------------------------------------------------------------------------------- type and shape inference


def _infer_scatter(context: Any) -> None:
    """Set the output's type and shape to those of data."""
    if (data := context.get_input_type(0)) is not None:
        context.set_output_type(0, data)


def _infer_max(context: Any) -> None:
    """Infer the output's type, and its shape by broadcasting the known shapes of the inputs."""
    given = [context.get_input_type(number) for number in range(context.get_num_inputs())]
    if None in given:  # the type is unknown, as for the outputs of unknown operators
        return
    result = TypeProto()
    result.tensor_type.elem_type = given[0].tensor_type.elem_type
    types = [each.tensor_type for each in given]
    # do not raise an error if shapes do not broadcast, because it would end the inference of the whole model
    common = sizes.broadcast([dims_of(tensor.shape) if tensor.HasField("shape") else None for tensor in types]).dims
    if common is not None:
        result.tensor_type.shape.CopyFrom(shape_of(common))
    context.set_output_type(0, result)


def _infer_reduce_max(context: Any) -> None:
    """Infer the output's type and, if the axes are known, its shape."""
    data = context.get_input_type(0)
    if data is None:
        return
    result = TypeProto()
    result.tensor_type.elem_type = data.tensor_type.elem_type
    axes = _known_axes(context)
    dims = dims_of(data.tensor_type.shape)
    rank = len(dims)
    if data.tensor_type.HasField("shape") and axes is not None and all(-rank <= axis < rank for axis in axes):
        taken = {axis % rank for axis in axes}
        if not axes and not _integer(context, "noop_with_empty_axes", 0):
            taken = set(range(rank))
        keeps = bool(_integer(context, "keepdims", 1))
        result.tensor_type.shape.CopyFrom(shape_of(reduced(dims, taken, keepdims=keeps)))
    context.set_output_type(0, result)


def _known_axes(context: Any) -> list[int] | None:
    attribute = context.get_attribute("axes")  # `rewrite` keeps the attribute in functions until they are inlined
    if attribute is not None:
        return None if attribute.ref_attr_name else list(attribute.ints)
    if context.get_num_inputs() < 2 or not context.has_input(1):
        return []
    known = context.get_input_data(1)
    array = None if known is None else _array(known)
    return None if array is None or array.dtype.kind != "i" else array.reshape(-1).tolist()


def _integer(context: Any, name: str, default: int) -> int:
    attribute = context.get_attribute(name)
    return default if attribute is None else int(attribute.i)


def _infer_segment_max(context: Any) -> None:
    """Infer the output's type and shape from the input `data`.

    The size of the first axis is unknown unless `num_segments` is a constant.
    """
    mode = context.get_attribute("fill_mode")
    text = "" if mode is None else mode.s.decode(errors="backslashreplace")
    if mode is not None and text.upper() not in FILL_MODES:
        raise InferenceError(f"SegmentMax fill_mode must be {' or '.join(FILL_MODES)}, got {text!r}")
    if context.get_input_type(0) is None:
        return
    data = deepcopy(context.get_input_type(0))
    if data.tensor_type.HasField("shape"):
        dims = data.tensor_type.shape.dim
        if not dims:
            raise InferenceError("SegmentMax data must have rank 1 or more, got a scalar")
        ids = TypeProto.Tensor() if context.get_input_type(1) is None else context.get_input_type(1).tensor_type
        if ids.HasField("shape") and len(ids.shape.dim) != 1:
            raise InferenceError(f"SegmentMax segment_ids must be 1-D, got rank {len(ids.shape.dim)}")
        if ids.HasField("shape") and ids.shape.dim[0].HasField("dim_value") and dims[0].HasField("dim_value"):
            rows, given = dims[0].dim_value, ids.shape.dim[0].dim_value
            if rows != given:
                raise InferenceError(f"SegmentMax segment_ids must have one id per row of data ({rows}), got {given}")
        dims[0].Clear()
        if context.get_num_inputs() > 2 and context.has_input(2):
            known = context.get_input_data(2)
            if known is not None and (segments := _segments(known)) is not None:
                dims[0].dim_value = segments
    context.set_output_type(0, data)


def _segments(known: TensorProto) -> int | None:
    """Return the value of num_segments, or None if the constant is invalid or external."""
    array = _array(known)
    if array is None or array.shape != () or array.dtype.kind != "i" or array.item() < 0:
        return None
    return int(array.item())


def _array(known: TensorProto) -> Array | None:
    """Return the array of a constant, or None if its data is external or malformed."""
    if known.data_location == TensorProto.EXTERNAL:
        return None
    try:
        return numpy_helper.to_array(known)
    except (ValueError, ValidationError):
        return None
