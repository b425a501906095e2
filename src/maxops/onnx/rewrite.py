"""Max and ReduceMax of a model moved to our own domain, where a runtime that has our operators runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, helper, numpy_helper

from maxops import spec
from maxops.errors import ModelError
from maxops.onnx import nodes
from maxops.onnx.load import FIRST_IR_WITH_OPSETS
from maxops.onnx.schemas import DOMAIN, SINCE_VERSION, VERSION, register
from maxops.onnx.structure import all_graphs, all_nodes, check_names, check_node_names, graphs_of
from maxops.spec import Spec

OPERATORS = ("Max", "ReduceMax")
FLAGS = ("keepdims", "noop_with_empty_axes")
RepeatedNodes = Any  # protobuf's container, which has no public type


def rewrite(model: ModelProto) -> ModelProto:
    """A copy of a model with its Max and ReduceMax nodes in the domain "maxops", in subgraphs and functions too.

    >>> import onnx
    >>> text = '<ir_version: 8, opset_import: ["": 13]> f (int64[n] x, int64[n] y) => (int64[n] z) { z = Max(x, y) }'
    >>> node, = rewrite(onnx.parser.parse_model(text)).graph.node
    >>> node.domain, node.op_type, [(a.name, a.i) for a in node.attribute]
    ('maxops', 'Max', [('since_version', 13)])

    Each node keeps the meaning of the version that its operator set has; SegmentMax is in that domain already. A
    ReduceMax that has its axes as an attribute gets them as an input. External data stays where it is. Raises
    ModelError for a version that maxops does not know, and for inputs and attributes that the version does not have.
    """
    register()
    result = ModelProto()
    result.CopyFrom(model)
    names = {name for node in all_nodes(result) for name in (*node.input, *node.output)}
    for graph in all_graphs(result):
        check_names(graph, "the model")
        names |= {entry.name for entry in (*graph.initializer, *graph.input)}
        names |= {sparse.values.name for sparse in graph.sparse_initializer}
    mover = _Mover(names)
    opset = _opset(result.opset_import) if model.ir_version >= FIRST_IR_WITH_OPSETS else 1
    if mover.move(result.graph.node, opset):
        if model.ir_version < FIRST_IR_WITH_OPSETS:
            result.ir_version = FIRST_IR_WITH_OPSETS
            result.opset_import.append(helper.make_opsetid("", 1))
        _import(result)
    for function in result.functions:
        check_node_names(function.node, "the model")
        if mover.move(function.node, _opset(function.opset_import)):
            _import(function)
            _import(result)
    return result


def counts(model: ModelProto) -> dict[str, int]:
    """How many nodes of each of our operators a model holds in our domain."""
    found = [node.op_type for node in all_nodes(model) if node.domain == DOMAIN]
    return {operator: found.count(operator) for operator in (*OPERATORS, "SegmentMax") if operator in found}


class _Mover:
    """Moves the nodes of graphs; `names` are taken already."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def move(self, found: RepeatedNodes, opset: int | None) -> int:
        """Move nodes in place, those of graphs inside them too; how many were."""
        graphs = [found]
        for graph in graphs:  # which grows meanwhile
            graphs += [inner.node for node in graph for _, inner in graphs_of(node)]
        return sum(self._move(graph, opset) for graph in reversed(graphs))  # inner ones first: outer ones copy them

    def _move(self, graph: RepeatedNodes, opset: int | None) -> int:
        kept: list[NodeProto] = []
        moved = 0
        for node in graph:
            if node.domain in nodes.DOMAINS and node.op_type in OPERATORS:
                kept += self._moved(node, opset)
                moved += 1
            else:
                if node.domain == DOMAIN and onnx.defs.has(node.op_type, DOMAIN):
                    _check(node)
                kept.append(node)
        if len(kept) > len(graph):  # a protobuf field inserts nothing
            copies = [NodeProto.FromString(node.SerializeToString()) for node in kept]
            del graph[:]
            graph.extend(copies)
        return moved

    def _moved(self, node: NodeProto, opset: int | None) -> list[NodeProto]:
        """The node in our domain, after the constant that holds its axes if they were an attribute."""
        where = nodes.label(node)
        row = _row(node.op_type, opset)
        if row is None:
            raise ModelError(f"{where}: operator set {opset} has no {node.op_type} that maxops knows")
        if len(node.output) != 1 or not node.input:
            raise ModelError(
                f"{where}: has {len(node.input)} inputs and {len(node.output)} outputs; it makes one of some"
            )
        if row.operator == "ReduceMax" and not row.axes_input and len(node.input) > 1:
            actual = len(node.input)
            raise ModelError(f"{where}: has {actual} inputs; {row.name} has one, data", row.clause("inputs"))
        kept = [helper.make_attribute(SINCE_VERSION, row.version)]
        before: list[NodeProto] = []
        for number, attribute in enumerate(node.attribute):
            if any(attribute.name == other.name for other in node.attribute[:number]):
                raise ModelError(f"{where}: the attribute {attribute.name!r} appears twice")
            if attribute.name not in row.attributes:
                raise ModelError(f"{where}: has the attribute {attribute.name!r}, which {row.name} does not")
            expected = AttributeProto.INT if attribute.name in FLAGS else AttributeProto.INTS
            if attribute.type != expected:
                actual, expected_kind = map(AttributeProto.AttributeType.Name, (attribute.type, expected))
                raise ModelError(
                    f"{where}: the attribute {attribute.name!r} is of kind {actual}; it is {expected_kind}"
                )
            if attribute.name in FLAGS:
                kept.append(attribute)
            elif attribute.name == "axes":
                name = self._fresh(f"{node.output[0]}_axes")
                before.append(_constant(attribute, name))
                node.input.append(name)
        node.ClearField("attribute")
        node.attribute.extend(kept)
        node.domain = DOMAIN
        return [*before, node]

    def _fresh(self, name: str) -> str:
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _check(node: NodeProto) -> None:
    """Refuse attributes that a node in our domain does not have: a runtime would silently leave them out."""
    known = onnx.defs.get_schema(node.op_type, VERSION, DOMAIN).attributes
    for attribute in node.attribute:
        where = f"{nodes.label(node)}: the attribute {attribute.name!r}"
        if attribute.name not in known:
            raise ModelError(f"{where} is none of {', '.join(sorted(known))}")
        kinds = AttributeProto.AttributeType
        kind: Any = known[attribute.name].type  # onnx's own types do not say that it is an enum
        expected = kinds.Value(kind.name)
        if attribute.type != expected:
            raise ModelError(f"{where} is of kind {kinds.Name(attribute.type)}; it is {kinds.Name(expected)}")


def _constant(axes: AttributeProto, name: str) -> NodeProto:
    """A Constant of the axes, or of those that a function's caller gives."""
    if not axes.ref_attr_name:
        value = numpy_helper.from_array(np.array(axes.ints, np.int64))
        return helper.make_node("Constant", [], [name], value=value)
    node = helper.make_node("Constant", [], [name])
    node.attribute.add(name="value_ints", type=AttributeProto.INTS, ref_attr_name=axes.ref_attr_name)
    return node


def _row(operator: str, opset: int | None) -> Spec | None:
    """What an operator means in an operator set; None where onnx or this maxops is too old to know."""
    row = None if opset is None else spec.in_opset(operator, opset)
    if opset is None or row is None or opset > onnx.defs.onnx_opset_version():
        return None
    return row if row.version == onnx.defs.get_schema(operator, opset, "").since_version else None


def _opset(imports: Iterable[OperatorSetIdProto]) -> int | None:
    versions = sorted({int(entry.version) for entry in imports if entry.domain in nodes.DOMAINS})
    if len(versions) > 1:
        raise ModelError(f"the model imports the operator sets {versions} of one domain; it should be one")
    return versions[0] if versions else None


def _import(holder: ModelProto | FunctionProto) -> None:
    if not any(entry.domain == DOMAIN for entry in holder.opset_import):
        holder.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))
