"""Replaces the max operators of a model with custom operators of the domain `maxops`, which run on maxops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    helper,
    numpy_helper,
)

from maxops import spec
from maxops.counted import counted
from maxops.errors import ModelError
from maxops.onnx import nodes
from maxops.onnx.external import with_external_inputs, without_external
from maxops.onnx.inline import by_key, called, calls, fresh_name, inlined, label, means_the_same, with_given_reductions
from maxops.onnx.schemas import ATTRIBUTE_KINDS, DOMAIN, NEWEST, REFUSALS, SINCE_VERSION, VERSION, register
from maxops.onnx.structure import (
    FIRST_IR_WITH_OPSETS,
    FunctionKey,
    all_graphs,
    all_names,
    all_nodes,
    call_key,
    canonical,
    check_names,
    check_node_names,
    function_key,
    graphs_of,
    training_graphs,
    with_inner,
    with_open_sizes,
)
from maxops.spec import Spec

OPERATORS = (*NEWEST, "SegmentMax")
FIRST_IR_WITH_CONSTANT_INITIALIZERS = 4  # in earlier versions, every initializer must also be an input
FIRST_WITH_INTEGERS = 9  # the first operator set whose Constant may contain integers
FIRST_WITH_INTS = 12  # the first operator set whose Constant has `value_ints`


def rewrite(model: ModelProto) -> ModelProto:
    """Return a copy of a model in which the max operators are replaced by custom operators of the domain "maxops".

    >>> import onnx
    >>> text = '<ir_version: 8, opset_import: ["": 13]> f (int64[n] x, int64[n] y) => (int64[n] z) { z = Max(x, y) }'
    >>> node, = rewrite(onnx.parser.parse_model(text)).graph.node
    >>> node.domain, node.op_type, [(a.name, a.i) for a in node.attribute]
    ('maxops', 'Max', [('since_version', 13)])

    The max operators are Max, ReduceMax, and ScatterElements and ScatterND with the reduction "max". They are also
    replaced in subgraphs and functions. SegmentMax is already in the domain "maxops". Each node keeps the semantics of
    its version. If the axes of a ReduceMax are an attribute, they become an input. Functions with max operators are
    inlined if ONNX Runtime could not infer the types of their outputs. External data and training graphs are unchanged.

    Raises ModelError for an unsupported version, for inputs and attributes that the version lacks, and if
    `onnx.checker` rejects the result.
    """
    result = moved(model)
    check_valid(result, "the rewritten model")
    return result


def moved(model: ModelProto, *, inline_all: bool = False) -> ModelProto:
    """Rewrite a model like `rewrite`, but do not check the result. With `inline_all`, inline all functions."""
    register()
    model = with_given_reductions(canonical(model))
    result = deepcopy(model)
    check_names(result.graph, "the model")
    for graph in all_graphs(result):
        check_names(graph, "the model")
    functions = by_key(result)
    in_use = called(result)
    if inline_all:
        chosen = {*functions}
        functions = {key: functions[key] for key in in_use}
    opset = _opset(result.opset_import) if model.ir_version >= FIRST_IR_WITH_OPSETS else 1
    if _pin(result.graph.node, opset) and model.ir_version < FIRST_IR_WITH_OPSETS:
        result.ir_version = FIRST_IR_WITH_OPSETS
        result.opset_import.append(helper.make_opsetid("", 1))
    for function in functions.values():
        check_node_names(function.node, "the model")
        if _pin(function.node, _opset(function.opset_import)):
            _import(function)
    if not inline_all:
        chosen = _without_types(result)
    if any(node.domain == DOMAIN for holder in (result.graph, *result.functions) for node in with_inner(holder.node)):
        _import(result)
    if chosen:
        result = inlined(result, chosen)
    _give_axes(result, opset)
    _give_shapes(result)
    if not inline_all:
        _keep_for_training(result, model)
    return result


def check_valid(model: ModelProto, source: str) -> ModelProto:
    """Check a model with `onnx.checker`, and return it with inferred types. External data is not read.

    If the check fails, raise ModelError with a message that names the `source`.
    """
    model = with_open_sizes(model)
    try:
        onnx.checker.check_model(without_external(model))
        # the type inference that a full check would run, but with the shapes of external tensors
        return onnx.shape_inference.infer_shapes(with_external_inputs(model), check_type=True, strict_mode=True)
    except REFUSALS as error:
        said = " ".join(str(error).split())
        raise ModelError(f"onnx.checker rejects {source}: {said}") from error
    except (ValueError, EncodeError) as error:
        raise ModelError(
            f"{source} is too large to check ({error}); save it with its weights as external data: "
            "onnx.save(model, path, save_as_external_data=True)"
        ) from error


def inlined_functions(before: ModelProto, after: ModelProto) -> list[str]:
    """Return the names of the functions that the model `before` has, but the rewritten model `after` lacks."""
    left = {function_key(function) for function in after.functions}
    return [label(function_key(function)) for function in before.functions if function_key(function) not in left]


def counts(model: ModelProto) -> dict[str, int]:
    """Count the nodes of each operator in the `maxops` domain."""
    found = [node.op_type for node in all_nodes(model) if node.domain == DOMAIN]
    return {operator: found.count(operator) for operator in OPERATORS if operator in found}


def _pin(found: Iterable[NodeProto], opset: int | None) -> int:
    """Move max nodes to the `maxops` domain, where `since_version` states their version. Return the number of nodes."""
    pinned = 0
    for node in with_inner(found):
        if nodes.is_max(node):
            _pin_node(node, opset)
            pinned += 1
        elif node.domain == DOMAIN and onnx.defs.has(node.op_type, DOMAIN):
            _check(node)
    return pinned


def _pin_node(node: NodeProto, opset: int | None) -> None:
    """Move one node. Its axes remain an attribute, because axes in a function may be unknown until it is inlined."""
    where = nodes.label(node)
    row = _row(node.op_type, opset)
    if opset is None:
        raise ModelError(f"{where}: expected an operator set of the default ONNX domain in opset_import, got none")
    if row is None:
        raise ModelError(f"{where}: maxops does not support {node.op_type} in operator set {opset}")
    if len(node.output) != 1 or not node.input:
        has = f"{counted(len(node.input), 'input')} and {counted(len(node.output), 'output')}"
        raise ModelError(f"{where}: expected one or more inputs and one output, got {has}")
    if row.operator == "ReduceMax" and not row.axes_input and len(node.input) > 1:
        actual = len(node.input)
        raise ModelError(f"{where}: {row.name} takes one input, got {actual}", row.clause("inputs"))
    nodes.check_inputs(node, row, where)
    kept = [helper.make_attribute(SINCE_VERSION, row.version)]
    for number, attribute in enumerate(node.attribute):
        if any(attribute.name == other.name for other in node.attribute[:number]):
            raise ModelError(f"{where}: the attribute {attribute.name!r} appears twice")
        if attribute.name not in row.attributes:
            raise ModelError(f"{where}: {row.name} has no attribute {attribute.name!r}")
        expected = ATTRIBUTE_KINDS[attribute.name]
        if attribute.type != expected:
            actual, expected_kind = map(AttributeProto.AttributeType.Name, (attribute.type, expected))
            raise ModelError(f"{where}: the attribute {attribute.name!r} must have type {expected_kind}, got {actual}")
        if attribute.name != "consumed_inputs":
            kept.append(attribute)
    node.ClearField("attribute")
    node.attribute.extend(kept)
    node.domain = DOMAIN


def _check(node: NodeProto) -> None:
    """Reject unknown and invalid attributes of a `maxops` operator. Runtimes silently ignore unknown attributes."""
    known = onnx.defs.get_schema(node.op_type, VERSION, DOMAIN).attributes
    for attribute in node.attribute:
        where = f"{nodes.label(node)}: the attribute {attribute.name!r}"
        if attribute.name not in known:
            raise ModelError(f"{where} is unknown; the attributes are {', '.join(sorted(known))}")
        kinds = AttributeProto.AttributeType
        kind: Any = known[attribute.name].type  # onnx's type annotations do not declare it as an enum
        expected = kinds.Value(kind.name)
        if attribute.type != expected:
            raise ModelError(f"{where} must have type {kinds.Name(expected)}, got {kinds.Name(attribute.type)}")
        if attribute.name == "reduction" and attribute.s != b"max":
            raise ModelError(f"{where} must be 'max', got {attribute.s.decode(errors='backslashreplace')!r}")


def _without_types(model: ModelProto) -> set[FunctionKey]:
    """Return the functions that must be inlined for ONNX Runtime, and their callers.

    ONNX Runtime cannot infer the types of maxops nodes inside functions. Therefore, a function with a maxops node is
    kept only if all calls to it are in the main graph, and if their outputs are graph outputs with declared types.
    """
    functions = by_key(model)
    holding = {
        key for key, function in functions.items() if any(node.domain == DOMAIN for node in with_inner(function.node))
    }
    while more := {key for key in functions.keys() - holding if any(calls(functions[key].node, holding))}:
        holding |= more
    in_graph: defaultdict[FunctionKey, list[NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        in_graph[call_key(node)].append(node)
    inner = (inside for node in model.graph.node for _, graph in graphs_of(node) for inside in graph.node)
    chosen = {call_key(node) for node in calls(inner, holding)}
    for key in holding:
        callees = {call_key(node) for node in calls(functions[key].node, holding)}
        if callees or not _can_stay(functions[key], in_graph[key], model):
            chosen |= {key, *callees}
    return chosen


def _can_stay(function: FunctionProto, own_calls: list[NodeProto], model: ModelProto) -> bool:
    """Return whether onnx.checker and ONNX Runtime accept a function with maxops nodes.

    `own_calls` contains all calls to the function, which must be in the main graph.
    """
    declared = {value.name for value in model.graph.output if value.type.tensor_type.elem_type} | {""}
    axes = [found for node in with_inner(function.node) if (found := _axes(node)) is not None]
    return (
        all(declared.issuperset(node.output) for node in own_calls)
        and all(len(node.output) == len(function.output) for node in own_calls)
        and not any(any(graphs_of(node)) for node in function.node)
        and len({*function.input, *function.output}) == len(function.input) + len(function.output)
        and all(
            means_the_same(
                function, entry.domain, entry.version, more=["Constant"] if axes and not entry.domain else []
            )
            for entry in model.opset_import
        )
        and (not axes or _can_hold(axes, function, own_calls))
    )


def _can_hold(axes: list[AttributeProto], function: FunctionProto, own_calls: list[NodeProto]) -> bool:
    """Return whether Constant nodes in the body of a function can provide the axes of its nodes in every call."""
    expected = {attribute.ref_attr_name for attribute in axes} - {""}
    defaults = {attribute.name for attribute in function.attribute_proto}
    return (_opset(function.opset_import) or 0) >= (FIRST_WITH_INTS if expected else FIRST_WITH_INTEGERS) and all(
        expected <= defaults | {attribute.name for attribute in node.attribute} for node in own_calls
    )


def _axes(node: NodeProto) -> AttributeProto | None:
    """Return the axes attribute of a ReduceMax in the `maxops` domain, or None."""
    found = [attribute for attribute in node.attribute if attribute.name == "axes"]
    return found[0] if found and (node.domain, node.op_type) == (DOMAIN, "ReduceMax") else None


def _give_axes(model: ModelProto, opset: int | None) -> None:
    """Replace the axes attributes of ReduceMax nodes with inputs.

    Constant nodes provide the axes. In old operator sets, where a Constant can contain only floats, initializers
    provide them.
    """
    names = all_names(model)
    holders: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    for holder in holders:  # the list grows during the loop
        holders += [inner for node in holder.node for _, inner in graphs_of(node)]
    for holder in reversed(holders):  # subgraphs first, because the loop copies nodes together with their subgraphs
        before: dict[int, NodeProto] = {}
        for number, node in enumerate(holder.node):
            axes = _axes(node)
            if axes is None:
                continue
            name = fresh_name(f"{node.output[0]}_axes", names)
            if isinstance(holder, GraphProto) and (opset or 0) < FIRST_WITH_INTEGERS:
                holder.initializer.append(helper.make_tensor(name, TensorProto.INT64, [len(axes.ints)], axes.ints))
                model.ir_version = max(model.ir_version, FIRST_IR_WITH_CONSTANT_INITIALIZERS)
            else:
                before[number] = _constant(axes, name)
            node.input.append(name)
            node.attribute.remove(axes)
        if before:  # rebuild the list, because protobuf's repeated fields do not support insertion
            kept = [each for number, node in enumerate(holder.node) for each in (before.get(number), node) if each]
            copies = [NodeProto.FromString(node.SerializeToString()) for node in kept]
            del holder.node[:]
            holder.node.extend(copies)


def _give_shapes(model: ModelProto) -> None:
    """Declare missing output shapes of subgraphs, because ONNX Runtime cannot infer the shapes of maxops nodes."""
    if not any(any(graphs_of(node)) for node in model.graph.node):
        return
    try:
        inferred = onnx.shape_inference.infer_shapes(with_open_sizes(model))
    except (*REFUSALS, ValueError, EncodeError):  # keep the model unchanged
        return
    inner = [
        [graph for node in with_inner(each.graph.node) for _, graph in graphs_of(node)] for each in (model, inferred)
    ]
    for graph, known in zip(*inner, strict=True):
        for output, found in zip(graph.output, known.output, strict=True):
            if not output.type.tensor_type.HasField("shape") and found.type.tensor_type.HasField("shape"):
                output.type.CopyFrom(found.type)


def _keep_for_training(result: ModelProto, model: ModelProto) -> None:
    """Restore the inlined functions that the training graphs, which are not rewritten, still call."""
    before, left = by_key(model), by_key(result)
    waiting = [node for _, graph in training_graphs(result) for node in graph.node]
    while waiting:
        key = call_key(waiting.pop())
        if key in before and key not in left:
            left[key] = before[key]
            result.functions.append(before[key])
            waiting += with_inner(before[key].node)


def _constant(axes: AttributeProto, name: str) -> NodeProto:
    """Return a Constant node with the axes, or with a reference to a function's attribute that contains them."""
    if not axes.ref_attr_name:
        value = numpy_helper.from_array(np.array(axes.ints, np.int64))
        return helper.make_node("Constant", [], [name], value=value)
    node = helper.make_node("Constant", [], [name])
    node.attribute.add(name="value_ints", type=AttributeProto.INTS, ref_attr_name=axes.ref_attr_name)
    return node


def _row(operator: str, opset: int | None) -> Spec | None:
    """Return the specification of an operator in an operator set, or None if onnx or maxops does not support it."""
    row = None if opset is None else spec.in_opset(operator, opset)
    if opset is None or row is None or opset > onnx.defs.onnx_opset_version():
        return None
    return row if row.version == onnx.defs.get_schema(operator, opset, "").since_version else None


def _opset(imports: Iterable[OperatorSetIdProto]) -> int | None:
    versions = sorted({int(entry.version) for entry in imports if entry.domain in nodes.DOMAINS})
    if len(versions) > 1:
        raise ModelError(f"the model must import only one version of the default ONNX operator set, got {versions}")
    return versions[0] if versions else None


def _import(holder: ModelProto | FunctionProto) -> None:
    if not any(entry.domain == DOMAIN for entry in holder.opset_import):
        holder.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))
