"""The rules for the clauses of Max in ONNX, SONNX and the SONNX draft."""

from __future__ import annotations

from maxops import sizes
from maxops.checker.facts import Invalid, Known, Node, shape
from maxops.checker.rules_common import Rule, count, one_type, output_shape, value
from maxops.checker.ruling import Ruling, broken, holds, unknown
from maxops.plan import MOST_INPUTS
from maxops.spec import MAX_13, Spec

BASED_ON, BASED_ON_OPSET = MAX_13, 13  # the base of SONNX's Max


def _shape(node: Node, row: Spec) -> Ruling:
    """Check the shapes of the inputs and the output, because ONNX has one clause for both."""
    if row.broadcast == "none":
        return _same(node)
    inputs = _broadcastable(node, row)
    if inputs.verdict == "broken":
        return inputs
    output = _broadcast_output(node, row)
    return output if output.verdict == "broken" or inputs.verdict == "holds" else inputs


def _same(node: Node) -> Ruling:
    """Check that all shapes are equal, because ONNX's Max does not broadcast before version 8."""
    inputs = node.distinct_inputs
    if not inputs:
        return unknown("there are no inputs")
    first = inputs[0]
    for known in inputs:
        if sizes.equal(known.dims, first.dims) is False:
            return broken(f"{known} and {first} differ in shape; Max does not support broadcasting before version 8")
    output = output_shape(node, first.dims, "all inputs have the shape")
    if output.verdict != "holds":
        return output
    for known in inputs[1:]:
        if sizes.equal(known.dims, first.dims) is None:
            return unknown(f"it is unknown whether {known} and {first} have the same shape")
    return output


def _broadcastable(node: Node, row: Spec) -> Ruling:
    inputs = node.distinct_inputs
    if not inputs:
        return unknown("there are no inputs")
    found = sizes.broadcast([known.dims for known in inputs])
    if found.conflicts:
        return broken(f"axis {found.conflicts[0]} does not broadcast: {_sizes(inputs, found.conflicts[0])}")
    for known in inputs:
        if known.dims is None:
            return unknown(f"the rank of {known.name!r} is unknown")
    if found.open:
        return unknown(f"it is unknown whether axis {found.open[0]} broadcasts: {_sizes(inputs, found.open[0])}")
    return holds(f"the inputs broadcast to {shape(found.dims)}")


def _broadcast_output(node: Node, row: Spec) -> Ruling:
    found = sizes.broadcast([known.dims for known in node.distinct_inputs])
    if found.conflicts or not node.inputs:
        return unknown("the inputs do not broadcast, so the output has no valid shape")
    return output_shape(node, found.dims, "the inputs broadcast to")


def _zero_size(node: Node, row: Spec) -> Ruling:
    inputs = node.distinct_inputs
    found = sizes.broadcast([known.dims for known in inputs])
    if found.zero_with_one:
        axis = found.zero_with_one[0]
        return broken(f"size 1 is broadcast against size 0 along axis {axis}: {_sizes(inputs, axis)}")
    for known in inputs:
        if known.dims is None:
            return unknown(f"the rank of {known.name!r} is unknown")
    if found.perhaps_zero_with_one:
        axis = found.perhaps_zero_with_one[0]
        return unknown(f"size 1 may be broadcast against size 0 along axis {axis}: {_sizes(inputs, axis)}")
    return holds("size 1 is not broadcast against size 0 along any axis")


def _explicit(node: Node, row: Spec) -> Ruling:
    for known in _values(node):
        if not known.declared:
            return broken(f"the type of {known.name!r} is only inferred; add it with onnx.shape_inference.infer_shapes")
    return holds("the model declares the type of every input and output")


def _dense(node: Node, row: Spec) -> Ruling:
    for known in _values(node):
        if known.sparse or known.written_sparse:
            return broken(f"{known.name!r} is {'' if known.sparse else 'stored as '}a sparse tensor")
    for known in node.distinct_inputs:
        if known.dtype is None:
            return unknown(f"the type of {known.name!r} is unknown")
    return holds("every tensor is dense")


def _static(node: Node, row: Spec) -> Ruling:
    opened = [known for known in _values(node) if not sizes.is_static(known.dims)]
    for known in opened:
        if known.declared:
            return broken(f"{known.shape_in_words}, which is not static")
    for known in opened:
        return unknown(f"{known.shape_in_words}, as far as it can be inferred")
    return holds("every size is static")


def _converted(node: Node, row: Spec) -> Ruling:
    inputs = node.distinct_inputs
    for known in inputs:
        if known.dtype is None:
            return unknown(f"the type of {known.name!r} is unknown")
        if known.dtype is not inputs[0].dtype and known.dtype != inputs[0].dtype:
            first = inputs[0]
            return broken(
                f"{known.name!r} is {known.dtype}, but {first.name!r} is {first.dtype}, so one of them would have to "
                "be converted"
            )
    return holds("all inputs have the same type") if inputs else unknown("there are no inputs")


def _opset(node: Node, row: Spec) -> Ruling:
    if node.opset is None:
        return broken("the model must import exactly one operator set for the node")
    if not node.opset.removeprefix("-").isdecimal():
        return unknown(f"{node.opset} is not an operator set of ONNX")
    if int(node.opset) < BASED_ON_OPSET:
        return broken(f"the model imports operator set {node.opset}, but {row.standard} is based on {BASED_ON.name}")
    return holds(f"operator set {node.opset}")


def _consumed(node: Node, row: Spec) -> Ruling:
    given = node.attributes.get("consumed_inputs")
    return broken(given.text) if isinstance(given, Invalid) else holds("ignored")


def _values(node: Node) -> list[Known]:
    return [*node.distinct_inputs, *node.outputs]


def _sizes(inputs: list[Known], axis: int) -> str:
    """Describe at most three inputs, one for each size along an axis. Every unknown size counts as a different size."""
    shown: dict[object, str] = {}
    for known in inputs:
        if known.dims is not None:
            size = known.dims[axis] if -axis <= len(known.dims) else 1
            shown.setdefault(object() if size is None else size, f"{known.name!r} {shape(known.dims)}")
    return ", ".join([*shown.values()][:3])


RULES: dict[str, Rule] = {
    **dict.fromkeys(("inputs", "L"), lambda node, row: count(node, 1, MOST_INPUTS, len(node.inputs))),
    "T": lambda node, row: one_type(node.inputs, node.outputs, row),
    "GR1": _dense,
    "GR2": _explicit,
    "GR3": _converted,
    "GR4": lambda node, row: holds("Max has no attributes or optional inputs, so it has no defaults"),
    "static": _static,
    "opset": _opset,
    "shape": _shape,
    "C1": _broadcastable,
    "C2": _broadcast_output,
    "zero-size": _zero_size,
    "value": value,
    "NaN": value,
    "nan": value,
    "consumed_inputs": _consumed,
}
