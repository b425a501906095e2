"""Analyzes the functions of an ONNX model: the calls between them, and whether type inference can follow the calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from maxops.onnx.schemas import since
from maxops.onnx.structure import FunctionKey, call_key, function_key, training_graphs, with_inner

# Type inference processes a function's body once per call. If a model exceeds these limits, its functions are omitted.
MAX_NODES, MAX_DEPTH = 100_000, 64


class Functions:
    """The functions of a model, by key. If type inference cannot follow their calls, `fault` gives the reason.

    `ambiguous` contains the functions that have the name of an operator.
    """

    def __init__(self, proto: ModelProto) -> None:
        self.by_key: dict[FunctionKey, FunctionProto] = {
            function_key(function): function for function in proto.functions
        }
        versions: defaultdict[str, int] = defaultdict(int)
        for entry in (entry for holder in (proto, *proto.functions) for entry in holder.opset_import):
            versions[entry.domain] = max(versions[entry.domain], entry.version)
        # for these, runtimes run the operator
        self.ambiguous: list[FunctionKey] = [key for key in self.by_key if since(key[1], versions[key[0]], key[0])]
        self._needed: dict[FunctionKey, list[FunctionKey]] = {}
        self.recursive: bool = False
        self.callers_first: list[FunctionKey] = [*self.by_key]
        self.fault: str = self._fault([proto.graph, *(graph for _, graph in training_graphs(proto))])

    def called_by(self, node: NodeProto) -> FunctionKey | None:
        """Return the key of the function that a node calls, or None if the node is an operator."""
        key = call_key(node)
        return key if key in self.by_key and key not in self.ambiguous else None

    def needed(self, start: FunctionKey) -> list[FunctionProto]:
        """Return the functions that a function calls, directly or indirectly."""
        if start not in self._needed:
            found: dict[FunctionKey, None] = {}
            waiting = [start]
            while waiting:
                for key in self._calls(self.by_key[waiting.pop()].node):
                    if key not in found:
                        found[key] = None
                        waiting.append(key)
            self._needed[start] = [*found]
        return [self.by_key[key] for key in self._needed[start]]

    def _calls(self, nodes: Iterable[NodeProto]) -> list[FunctionKey]:
        return [key for node in with_inner(nodes) if (key := self.called_by(node)) is not None]

    def _fault(self, graphs: Iterable[GraphProto]) -> str:
        calls = {key: self._calls(function.node) for key, function in self.by_key.items()}
        try:
            order = [*TopologicalSorter(calls).static_order()]  # callees come first
        except CycleError as error:
            self.recursive = True
            return f"recursive functions are not allowed: {' -> '.join(map(name_of, error.args[1]))}"
        self.callers_first = order[::-1]
        size: dict[FunctionKey, int] = {}
        depth: dict[FunctionKey, int] = {}
        for key in order:
            size[key] = sum(1 for _ in with_inner(self.by_key[key].node)) + sum(size[inner] for inner in calls[key])
            depth[key] = 1 + max((depth[inner] for inner in calls[key]), default=0)
        whole = sum(size[key] for graph in graphs for key in self._calls(graph.node))
        deepest = max(depth.values(), default=0)
        if whole > MAX_NODES or deepest > MAX_DEPTH:
            return (
                f"the functions expand to {whole} nodes, nested {deepest} levels deep; the limits are {MAX_NODES} "
                f"nodes and {MAX_DEPTH} levels, so types are not inferred across function calls"
            )
        return ""


def name_of(key: FunctionKey) -> str:
    """Return the name of a function for messages, such as "domain.name"."""
    return ".".join(str(part) for part in key if part)


def body(
    function: FunctionProto,
    given: Mapping[str, AttributeProto] | None,
    ir_version: int,
    omitted: Collection[str] = (),
) -> ModelProto:
    """Return a model with a function's nodes, in which values replace the references to the function's attributes.

    The model has no inputs and outputs. `given` contains the attributes of a call, or is None if the call is unknown.
    For an unknown call, only default values replace references. Nodes also omit the inputs of the function that the
    call omits.
    """
    model = ModelProto(ir_version=ir_version, opset_import=function.opset_import)
    model.graph.node.extend(function.node)
    model.graph.value_info.extend(function.value_info)
    values = {attribute.name: attribute for attribute in function.attribute_proto} | dict(given or {})
    for node in with_inner(model.graph.node):
        if any(attribute.ref_attr_name for attribute in node.attribute):
            attributes = [*_with_values(node, values, keep=given is None)]
            del node.attribute[:]
            node.attribute.extend(attributes)
        for number, name in enumerate(node.input):
            if name in omitted:
                node.input[number] = ""
    return model


def _with_values(node: NodeProto, values: Mapping[str, AttributeProto], *, keep: bool) -> Iterator[AttributeProto]:
    """Yield a node's attributes, and replace references with their values. `keep` keeps references without a value."""
    for attribute in node.attribute:
        value = values.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if value is None and not keep:
            continue
        copy = deepcopy(attribute if value is None else value)
        if isinstance(attribute.name, str):  # a name that is not UTF-8 cannot be written, and is reported elsewhere
            copy.name = attribute.name
        yield copy
