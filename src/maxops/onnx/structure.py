"""Iterates over the graphs, nodes, functions and names of a model, and checks that graphs are well formed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import NoReturn

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorShapeProto, TypeProto

from maxops.errors import ModelError
from maxops.onnx import nodes

# The second name of the default ONNX domain. In canonical form, a model uses only the first name, "".
ALIAS = "ai.onnx"
# Before IR version 3, models do not import an operator set, and use operator set 1.
FIRST_IR_WITH_OPSETS = 3

FunctionKey = tuple[str, str, str]  # domain, name, overload


def canonical(model: ModelProto) -> ModelProto:
    """Return a model in which the default ONNX domain is named "" everywhere. Copy the model only if it must change.

    >>> import onnx
    >>> text = '<ir_version: 8, opset_import: ["ai.onnx": 13]> f (float[n] x) => (float[n] y) { y = Max(x) }'
    >>> canonical(onnx.parser.parse_model(text)).opset_import[0].domain
    ''
    """
    if not isinstance(model, ModelProto):
        raise ModelError(
            f"the model must be an onnx.ModelProto, got {type(model).__name__}; read files with onnx.load, and "
            "bytes with onnx.load_from_string"
        )
    domains = chain(
        (entry.domain for holder in (model, *model.functions) for entry in holder.opset_import),
        (function.domain for function in model.functions),
        (node.domain for node in all_nodes(model)),
    )
    if ALIAS not in domains:
        return model
    result = deepcopy(model)
    for holder in (result, *result.functions):
        _name_imports(holder)
    for function in result.functions:
        if function.domain == ALIAS:
            function.domain = ""  # do not clear the field, because onnx.checker rejects a function without it
    for node in all_nodes(result):
        _name_domain(node)
    return result


def canonical_node(node: NodeProto) -> NodeProto:
    """Return a copy of a node with the default ONNX domain named "". Nodes in its subgraphs are unchanged."""
    result = deepcopy(node)
    _name_domain(result)
    return result


def _name_domain(node: NodeProto) -> None:
    if node.domain == ALIAS:
        node.ClearField("domain")


def _name_imports(holder: ModelProto | FunctionProto) -> None:
    """Replace each import of "ai.onnx" with an import of "" in the same version, without duplicates."""
    own = {entry.version for entry in holder.opset_import if entry.domain == ""}
    for index in reversed(range(len(holder.opset_import))):
        entry = holder.opset_import[index]
        if entry.domain != ALIAS:
            continue
        if entry.version in own:
            del holder.opset_import[index]
        else:
            own.add(entry.version)
            entry.domain = ""


def function_key(function: FunctionProto) -> FunctionKey:
    """Return the domain, name and overload of a function, which identify it in calls."""
    return function.domain, function.name, function.overload


def call_key(node: NodeProto) -> FunctionKey:
    """Return the key of the function that a node calls. If the model has no such function, the node is an operator."""
    return node.domain, node.op_type, node.overload


def graphs_of(holder: NodeProto | FunctionProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield the graphs inside a node, such as the branches of an If, each with the name of its attribute.

    For a function, yield the graphs in its default attributes.
    """
    for attribute in holder.attribute if isinstance(holder, NodeProto) else holder.attribute_proto:
        if attribute.HasField("g"):
            yield str(attribute.name), attribute.g
        for number, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{number}]", graph


def with_inner(outer: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes and, recursively, all nodes of the graphs inside them, such as the branches of an If."""
    waiting = [*outer]
    while waiting:
        node = waiting.pop()
        yield node
        for _, graph in graphs_of(node):
            waiting += graph.node


def training_graphs(model: ModelProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield each initialization and algorithm graph of a model's `training_info`, with its location."""
    for number, info in enumerate(model.training_info):
        for field in ("initialization", "algorithm"):
            if info.HasField(field):
                yield f"training_info[{number}] {field}", getattr(info, field)


def _outermost_graphs(model: ModelProto) -> list[GraphProto]:
    """Return the graphs that are not inside a node."""
    return [
        model.graph,
        *(graph for _, graph in training_graphs(model)),
        *(graph for function in model.functions for _, graph in graphs_of(function)),
    ]


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Yield every node of a model, including nodes in training graphs, functions and subgraphs."""
    holders = (*_outermost_graphs(model), *model.functions)
    return with_inner(node for holder in holders for node in holder.node)


def all_graphs(model: ModelProto) -> list[GraphProto]:
    """Return every graph of a model: the main graph, the training graphs, and the graphs inside nodes and functions."""
    return [*_outermost_graphs(model), *(graph for node in all_nodes(model) for _, graph in graphs_of(node))]


def all_names(model: ModelProto) -> set[str]:
    """Return the names of all values of a model, including values that are declared but not used."""
    names = {name for node in all_nodes(model) for name in (*node.input, *node.output)}
    for graph in all_graphs(model):
        names |= initial_names(graph)
        names |= {value.name for value in (*graph.output, *graph.value_info)}
        names |= {annotation.tensor_name for annotation in graph.quantization_annotation}
    for function in model.functions:
        names |= {*function.input, *function.output, *(value.name for value in function.value_info)}
    return names


def dims_in(info: TypeProto) -> Iterator[TensorShapeProto.Dimension]:
    """Yield the dimensions of a type, including those inside a sequence, an optional or a map."""
    form = info.WhichOneof("value")
    if form in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(info, form).shape.dim
    elif form in ("sequence_type", "optional_type"):
        yield from dims_in(getattr(info, form).elem_type)
    elif form == "map_type":
        yield from dims_in(info.map_type.value_type)


def with_open_sizes(model: ModelProto) -> ModelProto:
    """Return a model in which each size of -1 is replaced by an unknown size. Copy the model only if it must change.

    Some exporters write -1 for unknown sizes, but the onnx package treats -1 as a known size.
    """
    if all(dim.dim_value != -1 for dim in all_dims(model)):
        return model
    result = deepcopy(model)
    for dim in all_dims(result):
        if dim.dim_value == -1:
            dim.ClearField("dim_value")
    return result


def all_dims(model: ModelProto) -> Iterator[TensorShapeProto.Dimension]:
    """Return an iterator over the dimensions of all types that a model declares."""
    infos = [info for function in model.functions for info in function.value_info]
    for graph in all_graphs(model):
        infos += [*graph.input, *graph.output, *graph.value_info]
    types = [info.type for info in infos]
    for node in all_nodes(model):
        for attribute in node.attribute:
            types += [attribute.tp, *attribute.type_protos]
    return (dim for each in types for dim in dims_in(each))


def check_names(graph: GraphProto, source: str) -> None:
    """Reject names that are not UTF-8, which protobuf returns as bytes."""
    _check_text([value.name for value in (*graph.input, *graph.output, *graph.initializer)], source)
    check_node_names(graph.node, source)


def check_node_names(found: Iterable[NodeProto], source: str) -> None:
    """Reject names that are not UTF-8 in nodes, such as the nodes of a function."""
    for node in found:
        _check_text([node.name, node.op_type, node.domain, *node.input, *node.output], source)
        for attribute in node.attribute:
            _check_text([attribute.name, attribute.ref_attr_name], f"{source}: {nodes.label(node)}")


def _check_text(names: Iterable[object], source: str) -> None:
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"{source}: a name is not UTF-8: {name!r}")


def initial_names(graph: GraphProto) -> set[str]:
    """Return the names of a graph's inputs and initializers, which are available before any node runs."""
    return (
        {value.name for value in graph.input}
        | {tensor.name for tensor in graph.initializer}
        | {sparse.values.name for sparse in graph.sparse_initializer}
    )


def check_unique(graph: GraphProto, source: str) -> None:
    """Reject repeated names of inputs, initializers or graph outputs, and node outputs whose names are already used."""
    made = [name for node in graph.node for name in node.output if name]
    for kind, names in (
        ("inputs", [value.name for value in graph.input]),
        ("initializers", [tensor.name for tensor in graph.initializer]),
        ("outputs of the graph", [value.name for value in graph.output]),
        ("inputs, initializers and nodes' outputs", [*initial_names(graph), *made]),
    ):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise ModelError(f"{source}: the name {name!r} appears twice among {kind}")
            seen.add(name)


def check_order(graph: GraphProto, source: str, outer: Container[str] = (), *, returns_outer: bool = False) -> None:
    """Check that the nodes of a graph are in topological order.

    `outer` contains the names of values in outer graphs that the graph may read. With `returns_outer`, the graph may
    also return these values, as training steps do. onnx.checker also checks the order, but does not report why the
    check fails.
    """
    makers = {name: node for node in graph.node for name in node.output}
    known = initial_names(graph) | {""}
    for node in graph.node:
        for name in node.input:
            if name not in known and name not in outer:
                _explain_unknown(makers, node, name, source)
        known.update(node.output)
    for value in graph.output:
        if value.name in known or (returns_outer and value.name in outer):
            continue
        if value.name in outer:
            raise ModelError(
                f"{source}: output {value.name!r} is a value of an outer graph; a node of this graph must produce it"
            )
        raise ModelError(f"{source}: output {value.name!r} is not a graph input, an initializer or a node's output")


def shadowing_initializers(graph: GraphProto, outer: Container[str]) -> Iterator[str]:
    """Yield a description of each initializer of a subgraph that has the name of a value in an outer graph."""
    names = [tensor.name for tensor in graph.initializer] + [each.values.name for each in graph.sparse_initializer]
    for name in names:
        if name in outer:
            yield (
                f"the initializer {name!r} has the name of a value of an outer graph, and runtimes disagree on which "
                "of the two a node reads; rename one"
            )


def check_shadowing(graph: GraphProto, source: str, visible: set[str] | None = None) -> None:
    """Reject initializers of subgraphs that have the name of a value in an outer graph.

    `visible` contains the names of outer graphs. One set serves all graphs, because a copy for each would be slow.
    """
    visible = set() if visible is None else visible
    for text in shadowing_initializers(graph, visible):
        raise ModelError(f"{source}: {text}")
    own = initial_names(graph) - visible
    visible |= own
    for node in graph.node:
        for name, inner in graphs_of(node):
            check_shadowing(inner, f"{source}: {nodes.label(node)} {name}", visible)
        made = {*node.output} - visible
        visible |= made
        own |= made
    visible -= own


def _explain_unknown(makers: dict[str, NodeProto], node: NodeProto, name: str, source: str) -> NoReturn:
    where = f"{source}: {nodes.label(node)}"
    if name not in makers:
        raise ModelError(
            f"{where}: input {name!r} is not a graph input, an initializer or the output of an earlier node"
        )
    try:
        TopologicalSorter({made: maker.input for made, maker in makers.items()}).prepare()
    except CycleError as error:
        circle = " -> ".join(map(repr, error.args[1]))
        raise ModelError(f"{where}: the graph has a cycle: {circle}") from error
    raise ModelError(
        f"{where}: input {name!r} is produced later, by {nodes.label(makers[name])}; sort the nodes topologically"
    )
