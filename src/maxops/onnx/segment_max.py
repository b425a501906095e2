"""Creates SegmentMax in ONNX models: as a custom operator of maxops, or as a function of standard operators."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

from maxops.dtypes import DType
from maxops.errors import ModelError
from maxops.onnx.inline import by_key
from maxops.onnx.rewrite import check_valid
from maxops.onnx.schemas import DOMAIN, register
from maxops.onnx.schemas import SEGMENT_MAX as ROW
from maxops.onnx.structure import canonical, function_key
from maxops.onnx.tensors import DTYPES, NUMBERS
from maxops.plan import FILL_MODES

NAME = ROW.operator
PORTABLE_OPSET = 18  # the first operator set in which ScatterND has the reduction "max"


def segment_max_node(
    data: str,
    segment_ids: str,
    output: str,
    num_segments: str = "",
    *,
    fill_mode: str,
    name: str = "",
) -> NodeProto:
    """Create a maxops.SegmentMax node from the names of its inputs and output.

    >>> node = segment_max_node("data", "ids", "highest", fill_mode="LOWEST")
    >>> node.domain, node.op_type, list(node.input)
    ('maxops', 'SegmentMax', ['data', 'ids'])

    A model with this node must import the operator set ("maxops", 1). Raises ModelError for an invalid fill mode.
    """
    _check_fill_mode(fill_mode)
    inputs = [data, segment_ids, *([num_segments] if num_segments else [])]
    return helper.make_node(NAME, inputs, [output], name=name or None, domain=DOMAIN, fill_mode=fill_mode)


def segment_max_function(dtype: DType, fill_mode: str, *, num_segments: bool) -> FunctionProto:
    """Return an ONNX function of standard operators that computes SegmentMax for one dtype.

    >>> from maxops import dtypes
    >>> segment_max_function(dtypes.FLOAT32, "ZERO", num_segments=False).name
    'SegmentMax_float32_ZERO'

    With `num_segments`, the function has an input for the number of segments. On onnx's reference evaluator, its
    results are bit-identical to those of maxops for all valid segment ids. On other runtimes, the results of ScatterND
    and Where may differ. See docs/integrations/onnx.md. Raises ModelError for another dtype or fill mode.
    """
    if not isinstance(dtype, DType):
        raise ModelError(f"the dtype must be one of maxops.dtypes, such as maxops.dtypes.FLOAT32, got {dtype!r}")
    _check_fill_mode(fill_mode)
    return _Body(dtype, fill_mode.upper(), num_segments).function()


def _check_fill_mode(fill_mode: object) -> None:
    if not isinstance(fill_mode, str) or fill_mode.upper() not in FILL_MODES:
        raise ModelError(
            f"{NAME} fill_mode must be {' or '.join(FILL_MODES)}, got {fill_mode!r}", ROW.clause("fill_mode")
        )


class _Body:
    """Builds the nodes of the function that `segment_max_function` returns."""

    def __init__(self, dtype: DType, fill_mode: str, num_segments: bool) -> None:
        self._dtype, self._fill_mode, self._has_count = dtype, fill_mode, num_segments
        self._nodes: list[NodeProto] = []

    def function(self) -> FunctionProto:
        ids = self._add("Cast", "segment_ids", to=TensorProto.INT64)
        count = self._count(ids)
        # the ids are sorted, so a slice from the start contains all ids that are less than count
        kept = self._add("Cast", self._add("Less", ids, count), to=TensorProto.INT64)
        start, stop = self._integers([0]), self._add("ReduceSum", kept, keepdims=1)
        ids, data = self._add("Slice", ids, start, stop), self._add("Slice", "data", start, stop)
        row = self._add("Shape", "data", start=1)
        shape = self._add("Concat", count, row, axis=0)
        rows = self._add("Unsqueeze", ids, self._integers([1]))

        highest = self._scatter(self._filled(self._bits(self._dtype.lowest_bits), shape), rows, data)
        if self._dtype.kind == "float":
            highest = self._with_zeros_and_nans(highest, data, rows, shape)

        # True for each segment that has rows, with a shape that broadcasts over the other axes
        ones = self._filled(self._integers([1]), self._add("Shape", ids))
        present = self._scatter(self._filled(self._integers([0]), count), rows, ones)
        rank = self._add("Shape", row)
        whole = self._add("Concat", count, self._filled(self._integers([1]), rank), axis=0)
        filled = self._add("Reshape", self._add("Cast", present, to=TensorProto.BOOL), whole)
        fill = self._dtype.lowest_finite_bits if self._fill_mode == "LOWEST" else 0
        self._add("Where", filled, highest, self._bits(fill), output="output")

        inputs = ["data", "segment_ids", *(["num_segments"] if self._has_count else [])]
        ending = "" if not self._has_count else "_n"
        return helper.make_function(
            DOMAIN,
            f"{NAME}_{self._dtype}_{self._fill_mode}{ending}",
            inputs,
            ["output"],
            self._nodes,
            [helper.make_opsetid("", PORTABLE_OPSET)],
        )

    def _count(self, ids: str) -> str:
        if self._has_count:
            return self._add("Reshape", self._add("Cast", "num_segments", to=TensorProto.INT64), self._integers([1]))
        # prepend -1, so that the count is 0 if there are no ids
        last = self._add("ReduceMax", self._add("Concat", self._integers([-1]), ids, axis=0), keepdims=1)
        return self._add("Add", last, self._integers([1]))

    def _with_zeros_and_nans(self, highest: str, data: str, rows: str, shape: str) -> str:
        """Correct zeros and NaNs, because ScatterND ignores the sign of zeros, and some runtimes ignore NaN."""
        zero, nan = self._bits(0), self._bits(self._dtype.nan_bits)
        minus_zero = self._bits(1 << self._dtype.bits - 1)
        is_plus_zero = self._add(
            "And", self._add("Equal", data, zero), self._add("Greater", self._add("Reciprocal", data), zero)
        )
        zeros = self._add("Where", self._seen(is_plus_zero, rows, shape), zero, minus_zero)
        highest = self._add("Where", self._add("Equal", highest, zero), zeros, highest)
        return self._add("Where", self._seen(self._add("IsNaN", data), rows, shape), nan, highest)

    def _seen(self, where: str, rows: str, shape: str) -> str:
        """Return the logical OR of a condition over the rows of each segment."""
        found = self._add("Cast", where, to=TensorProto.INT64)
        return self._add(
            "Cast", self._scatter(self._filled(self._integers([0]), shape), rows, found), to=TensorProto.BOOL
        )

    def _add(self, op_type: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{op_type}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op_type, inputs, [output], **attributes))
        return output

    def _integers(self, values: list[int]) -> str:
        return self._add("Constant", value_ints=values)

    def _bits(self, bits: int) -> str:
        """Return a scalar of the dtype from its bits, because a conversion from float could change a NaN's bits."""
        size = self._dtype.numpy.itemsize
        tensor = TensorProto(data_type=NUMBERS[self._dtype], raw_data=bits.to_bytes(size, "little"))
        return self._add("Constant", value=tensor)

    def _filled(self, value: str, shape: str) -> str:
        return self._add("Expand", value, shape)

    def _scatter(self, start: str, rows: str, updates: str) -> str:
        return self._add("ScatterND", start, rows, updates, reduction="max")


def portable(model: ModelProto) -> ModelProto:
    """Return a copy of a model in which functions of standard operators replace maxops.SegmentMax in the main graph.

    >>> import onnx
    >>> text = '<ir_version: 8, opset_import: ["": 18, "maxops": 1]> peaks (float[n] x, int64[n] ids) => (float[k] y) '
    >>> model = onnx.parser.parse_model(text + '{ y = maxops.SegmentMax <fill_mode = "ZERO"> (x, ids) }')
    >>> [node.op_type for node in portable(model).graph.node]
    ['SegmentMax_float32_ZERO']

    Raises ModelError if the dtype of a node's data is unknown, if the model's operator set is older than 18, or if
    `onnx.checker` rejects the model.
    """
    register()
    model = canonical(model)
    inferred = check_valid(model, "the model")
    types = {value.name: value.type for value in (*inferred.graph.input, *inferred.graph.value_info)}
    types |= {value.name: value.type for value in inferred.graph.output}
    constants = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    result = deepcopy(model)
    functions: dict[str, FunctionProto] = {}
    for node in result.graph.node:
        if (node.domain, node.op_type) != (DOMAIN, NAME):
            continue
        where = f"{NAME} with output {node.output[0]!r}"
        number = constants.get(node.input[0]) or types.get(node.input[0], TypeProto()).tensor_type.elem_type
        if number not in DTYPES:
            raise ModelError(f"{where}: the portable form requires the dtype of {node.input[0]!r}, which is unknown")
        mode = _fill_mode(node, where)
        function = segment_max_function(DTYPES[number], mode, num_segments=len(node.input) > 2 and bool(node.input[2]))
        functions[function.name] = function
        node.op_type = function.name
        node.ClearField("attribute")
    opset = next((entry for entry in result.opset_import if not entry.domain), None)
    if functions and (opset is None or opset.version < PORTABLE_OPSET):
        actual = "none" if opset is None else str(opset.version)
        raise ModelError(
            f"the portable form requires operator set {PORTABLE_OPSET} or newer, got {actual}; convert the model with "
            "onnx.version_converter"
        )
    defined = by_key(result)
    for function in functions.values():
        # use the model's operator set, because onnx.checker may reject a function with a different one
        if opset is not None:
            function.opset_import[0].version = opset.version
        if function_key(function) not in defined:
            result.functions.append(function)
    return result


def _fill_mode(node: NodeProto, where: str) -> str:
    modes = [attribute for attribute in node.attribute if attribute.name == "fill_mode"]
    mode = (
        modes[0].s.decode(errors="backslashreplace").upper() if modes and modes[0].type == AttributeProto.STRING else ""
    )
    if mode not in FILL_MODES:
        raise ModelError(f"{where}: fill_mode must be {' or '.join(FILL_MODES)}, got {mode!r}", ROW.clause("fill_mode"))
    return mode
