"""The graphs of a model, and what makes each one at all: names that are text, nodes after those that they read from."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import NoReturn

from onnx import GraphProto, ModelProto, NodeProto

from maxops.errors import ModelError
from maxops.onnx import nodes


def graphs_of(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The graphs inside a node, such as the branches of an If, with the names of their attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield str(attribute.name), attribute.g
        for number, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{number}]", graph


def with_inner(outer: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """These nodes and all in the graphs inside them."""
    waiting = [*outer]
    while waiting:
        node = waiting.pop()
        yield node
        for _, graph in graphs_of(node):
            waiting += graph.node


def all_nodes(proto: ModelProto) -> Iterator[NodeProto]:
    """Every node of a model: of its graph, of graphs inside its nodes, and of its functions."""
    return with_inner([*proto.graph.node, *(node for function in proto.functions for node in function.node)])


def all_graphs(proto: ModelProto) -> list[GraphProto]:
    """The graph of a model, and those inside nodes, its functions' too."""
    return [proto.graph, *(graph for node in all_nodes(proto) for _, graph in graphs_of(node))]


def check_names(graph: GraphProto, source: str) -> None:
    """Refuse names that are not text: protobuf returns them as bytes."""
    _check_text([value.name for value in (*graph.input, *graph.output, *graph.initializer)], source)
    check_node_names(graph.node, source)


def check_node_names(found: Iterable[NodeProto], source: str) -> None:
    """The same, of nodes alone, such as a function's."""
    for node in found:
        _check_text([node.name, node.op_type, node.domain, *node.input, *node.output], source)
        for attribute in node.attribute:
            _check_text([attribute.name, attribute.ref_attr_name], f"{source}: {nodes.label(node)}")


def _check_text(names: Iterable[object], source: str) -> None:
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"{source}: holds a name that is not UTF-8: {name!r}")


def initial_names(graph: GraphProto) -> set[str]:
    """What a graph's nodes may read before any of them has run."""
    return (
        {value.name for value in graph.input}
        | {tensor.name for tensor in graph.initializer}
        | {sparse.values.name for sparse in graph.sparse_initializer}
    )


def check_unique(graph: GraphProto, source: str) -> None:
    """Refuse names that two inputs, two initializers or two nodes' outputs share."""
    made = [name for node in graph.node for name in node.output if name]
    for kind, names in (
        ("inputs", [value.name for value in graph.input]),
        ("initializers", [tensor.name for tensor in graph.initializer]),
        ("outputs of the graph", [value.name for value in graph.output]),
        ("nodes' outputs, inputs and initializers", [*initial_names(graph), *made]),
    ):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise ModelError(f"{source}: the name {name!r} appears twice among {kind}")
            seen.add(name)


def check_order(graph: GraphProto, source: str, outer: Container[str] = ()) -> None:
    """Nodes stand after those that make their inputs; `outer` holds the names that a subgraph sees around it.

    The onnx package's checker sees this too, but does not report why it fails.
    """
    makers = {name: node for node in graph.node for name in node.output}
    known = initial_names(graph) | {""}
    for node in graph.node:
        for name in node.input:
            if name not in known and name not in outer:
                _explain_unknown(makers, node, name, source)
        known.update(node.output)
    for value in graph.output:
        if value.name not in known and value.name not in outer:
            raise ModelError(f"{source}: output {value.name!r} is made by no node, and is not an input or initializer")


def _explain_unknown(makers: dict[str, NodeProto], node: NodeProto, name: str, source: str) -> NoReturn:
    where = f"{source}: {nodes.label(node)}"
    if name not in makers:
        raise ModelError(f"{where}: input {name!r} is made by no node, and is not an input or initializer of the graph")
    try:
        TopologicalSorter({made: maker.input for made, maker in makers.items()}).prepare()
    except CycleError as error:
        circle = " -> ".join(map(repr, error.args[1]))
        raise ModelError(f"{where}: the graph is cyclic: {circle}; nothing in it can come first") from error
    raise ModelError(
        f"{where}: input {name!r} is made only later, by {nodes.label(makers[name])}; nodes stand in topological order"
    )
