"""Reads the nodes with max operators of an ONNX model, in its graph, training graphs, subgraphs, and functions."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

from maxops import spec
from maxops.checker import standards
from maxops.checker.facts import OPEN, Invalid, Node
from maxops.checker.onnx_faults import attribute_faults, graph_faults
from maxops.checker.onnx_functions import Functions, body, name_of
from maxops.checker.onnx_values import Value, contradictions, infer, values_of
from maxops.checker.report import MODEL, Finding
from maxops.checker.ruling import Verdict
from maxops.errors import ModelError, UnknownOperatorError
from maxops.onnx import nodes, schemas
from maxops.onnx.inline import ambiguous
from maxops.onnx.load import imported_opset, opset_of
from maxops.onnx.structure import (
    FIRST_IR_WITH_OPSETS,
    FunctionKey,
    all_dims,
    all_nodes,
    function_key,
    graphs_of,
    initial_names,
    shadowing_initializers,
    training_graphs,
    with_inner,
)
from maxops.spec import Spec

SEGMENT_MAX = schemas.SEGMENT_MAX.operator
# Calls of a function with the same types and attributes are checked once. This is the limit on different calls, beyond
# which only the first call of each function is checked.
MAX_CALLS = 1000

Scope = ChainMap[str, Value]


class _Visible:
    """The names that a node's subgraph can read: names of outer graphs, and names that are defined before the node."""

    def __init__(self, outer: Container[str], positions: Mapping[str, int], position: int) -> None:
        self._outer, self._positions, self._position = outer, positions, position

    def __contains__(self, name: object) -> bool:
        return self._positions.get(name, self._position) < self._position or name in self._outer  # type: ignore[call-overload]


@dataclass(frozen=True)
class _Opset:
    """The ONNX operator set of a model or function.

    If the operator set is unknown, ``number`` is None, and ``fault`` gives the reason. ``written`` is the imported
    version as text, or None if the model does not import exactly one version.
    """

    number: int | None
    fault: str
    written: str | None


@dataclass(frozen=True)
class _Graph:
    """A graph that is still to be read.

    ``inferred`` is the graph with inferred types. ``outer`` contains the values of outer graphs, and ``visible``
    contains those names of outer graphs that the graph may read. For the body of a function, ``inputs`` contains the
    inputs of a call, and ``outputs`` contains the outputs whose types the caller declares.
    """

    path: str
    graph: GraphProto
    inferred: GraphProto
    outer: Scope
    opset: _Opset
    visible: Container[str] = ()
    inputs: Mapping[str, Value] = field(default_factory=dict)
    outputs: Mapping[str, Value] = field(default_factory=dict)
    in_function: bool = False
    is_training_step: bool = False
    seen_before: bool = False


@dataclass(frozen=True)
class _Call:
    """A function call whose body is still to be read. An omitted input is None.

    `attributes` is None if the caller is unknown.
    """

    path: str
    key: FunctionKey
    inputs: tuple[Value | None, ...] = ()
    outputs: tuple[Value, ...] = ()
    attributes: Mapping[str, AttributeProto] | None = None

    def given(self, function: FunctionProto) -> dict[str, Value]:
        """Return the inputs that the call does not omit, by name."""
        pairs = zip(function.input, self.inputs, strict=False)
        return {name: value for name, value in pairs if value is not None}

    def body(self, function: FunctionProto, ir_version: int) -> ModelProto:
        """Return the function's nodes as a model, with the call's attributes, and without inputs."""
        omitted = () if self.attributes is None else {*function.input} - self.given(function).keys()
        return body(function, self.attributes, ir_version, omitted)


def read_nodes(proto: ModelProto, folder: Path | None, standard: str | None) -> tuple[list[Node], list[Finding]]:
    """Return the max nodes, with the known facts about their inputs and outputs, and the faults of the model."""
    reader = _Reader(proto, folder, standard)
    reader.run()
    return reader.nodes, reader.faults


class _Reader:
    def __init__(self, proto: ModelProto, folder: Path | None, standard: str | None) -> None:
        self.nodes: list[Node] = []
        self.faults: list[Finding] = []
        self._proto, self._folder, self._standard = proto, folder, standard
        self._functions = Functions(proto)
        self._waiting: list[_Graph | _Call] = []
        self._calls: set[tuple[object, ...]] = set()
        self._called: set[FunctionKey] = set()
        self._entered: dict[FunctionKey, _Opset] = {}
        self._inferences, self._stem = count(), "unk__"
        while any(str(dim.dim_param).startswith(self._stem) for dim in all_dims(proto)):
            self._stem += "_"
        self._has_nodes = any(map(_is_max, all_nodes(proto)))

    def run(self) -> None:
        proto, functions = self._proto, self._functions
        if functions.fault:
            self._fault("functions", functions.fault, "broken" if functions.recursive else "unknown")
        if not proto.HasField("graph"):
            self._fault("model", "the model has no graph")
        if proto.ir_version < FIRST_IR_WITH_OPSETS and proto.opset_import:
            self._fault(
                "model", f"the model imports operator sets, which IR version {proto.ir_version} does not support"
            )
        for info in proto.graph.input:
            form = info.type.WhichOneof("value")
            if form is None or (form == "tensor_type" and not info.type.tensor_type.elem_type):
                self._fault("graph", f"the input {info.name!r} has no type")
        for key, times in Counter(map(function_key, proto.functions)).items():
            if times > 1:
                self._fault(f"function {name_of(key)}", f"the function is defined {times} times")
        for key in functions.ambiguous:
            self._fault(f"function {name_of(key)}", ambiguous(key), "unknown")
        for function in proto.functions:
            for attribute in function.attribute_proto:
                where = f"the default of the attribute {attribute.name!r}"
                for fault in attribute_faults(attribute, where, self._folder):
                    self._fault(f"function {name_of(function_key(function))}", fault)
        graphs = [proto.graph, *(graph for _, graph in training_graphs(proto))]
        users = [node for graph in graphs for node in graph.node]
        opset = self._opset("model", proto.opset_import, users, lambda: opset_of(proto, ""))
        inferred = self._inferred_graph("graph", proto.graph)
        self._waiting.append(_Graph("graph", proto.graph, inferred, Scope(), opset))
        self._drain()
        self._train(opset, Scope(values_of(proto.graph, inferred)))
        why = "" if functions.fault else ", which is never called"
        while alone := self._not_entered():
            self._waiting.extend(_Call(f"function {name_of(key)}{why}", key) for key in alone)
            self._drain()

    def _not_entered(self) -> list[FunctionKey]:
        """Return the functions that have not been read.

        If calls can be followed, exclude the functions that another returned function calls.
        """
        functions, found, called = self._functions, [], set(self._entered)
        for key in functions.callers_first:
            if key not in called:
                found.append(key)
                if not functions.fault:
                    called.update(map(function_key, functions.needed(key)))
        return found

    def _train(self, opset: _Opset, main: Scope) -> None:
        """Read the training graphs. Training steps can read values of the main graph, but initializations cannot."""
        for path, graph in training_graphs(self._proto):
            joined, outer = GraphProto(), Scope()
            if path.endswith("algorithm"):
                joined.CopyFrom(self._proto.graph)
                outer = main
            joined.MergeFrom(graph)
            whole = self._inferred_graph(path, joined)
            infos = [info for info in (*whole.value_info, *whole.output, *whole.input) if info.name not in outer]
            own = whole.node[len(whole.node) - len(graph.node) :]
            inferred = GraphProto(node=own, value_info=infos)
            self._waiting.append(_Graph(path, graph, inferred, outer, opset, outer, is_training_step=bool(outer)))
            self._drain()

    def _inferred_graph(self, path: str, graph: GraphProto) -> GraphProto:
        """Return a graph of the model with inferred types and shapes."""
        proto, functions = self._proto, () if self._functions.fault else self._proto.functions
        whole = ModelProto(
            ir_version=proto.ir_version, opset_import=proto.opset_import, graph=graph, functions=functions
        )
        return self._inferred(path, graph, infer([(lambda: whole, self._prefix())])[0])

    def _prefix(self) -> str:
        """Return an unused prefix for the dimension names that shape inference generates."""
        return f"{self._stem}{next(self._inferences)}_"

    def _inferred(self, path: str, graph: GraphProto, found: GraphProto | ModelError) -> GraphProto:
        """Return the result of shape inference or, if inference failed, report the error and return the graph."""
        if isinstance(found, ModelError):
            self._fault(path, str(found), "unknown")
            return graph
        return found

    def _drain(self) -> None:
        while self._waiting:
            tasks, self._waiting = self._waiting, []
            calls = [task for task in tasks if isinstance(task, _Call)]
            # one subprocess infers the types of all calls; types are required only if the model has max nodes
            found = iter(
                infer((partial(self._body_with_types, call), self._prefix()) for call in calls)
                if self._has_nodes
                else ()
            )
            for task in tasks:
                if isinstance(task, _Graph):
                    self._go_through(task)
                else:
                    self._enter(task, next(found, None))

    def _fault(self, where: str, message: str, verdict: Verdict = "broken") -> None:
        finding = Finding(where, MODEL, verdict, message)
        if finding not in self.faults[-1:]:  # for example, several tensors may need the same missing file
            self.faults.append(finding)

    # ------------------------------------------------------------------------------------------------ graphs

    def _go_through(self, task: _Graph) -> None:
        graph, ir_version = task.graph, self._proto.ir_version
        if not task.seen_before:
            for fault in graph_faults(
                graph, task.visible, self._folder, ir_version, returns_outer=task.is_training_step
            ):
                self._fault(task.path, fault)
            for text in shadowing_initializers(graph, task.visible):
                self._fault(task.path, text, "unknown")
        values = values_of(graph, task.inferred)
        values |= task.inputs
        for name, called in task.outputs.items():
            own = values.get(name, Value())
            values[name] = called if own.type is None else replace(own, declared=True, written=called.written)
        scope = task.outer.new_child(values)
        partners = task.inferred.node if len(task.inferred.node) == len(graph.node) else graph.node
        positions = dict.fromkeys(initial_names(graph), -1)
        judged: set[str] = set()
        for position, (node, partner) in enumerate(zip(graph.node, partners, strict=True)):
            where = f"{task.path} / {nodes.label(node)}"
            key = self._functions.called_by(node)
            operator = node.op_type if _is_max(node) else None
            if key is not None:
                self._call(where, key, node, scope)
            elif operator is not None:
                self.nodes.append(self._node(where, operator, node, scope, task))
                if self.nodes[-1].row is not None:
                    judged.update(node.output)
            inner = dict(graphs_of(partner))
            for name, subgraph in graphs_of(node):
                self._waiting.append(
                    _Graph(
                        f"{where} {name}",
                        subgraph,
                        inner.get(name, subgraph),
                        scope,
                        task.opset,
                        _Visible(task.visible, positions, position),
                        in_function=task.in_function,
                        seen_before=task.seen_before,
                    )
                )
            for name in node.output:
                positions.setdefault(name, position)
        for name, text in contradictions(graph, values):
            if name not in judged:  # the nodes' clauses cover their outputs
                self._fault(task.path, text)

    def _call(self, where: str, key: FunctionKey, node: NodeProto, scope: Scope) -> None:
        function = self._functions.by_key[key]
        for kind, given, known in (
            ("inputs", node.input, function.input),
            ("outputs", node.output, function.output),
        ):
            if len(given) > len(known):
                self._fault(
                    where, f"the call has {len(given)} {kind}, but the function {name_of(key)} has {len(known)}"
                )
        if self._functions.fault:
            return
        inputs = tuple(scope.get(name, Value()).without_large_tensor() if name else None for name in node.input)
        outputs = tuple(value if (value := scope.get(name, Value())).declared else Value() for name in node.output)
        attributes = {attribute.name: attribute for attribute in node.attribute}
        call = (
            key,
            tuple(value and value.fingerprint for value in inputs),
            tuple(value.fingerprint for value in outputs),
            *sorted(attribute.SerializeToString() for attribute in node.attribute),
        )
        if call in self._calls:
            return
        if len(self._calls) >= MAX_CALLS and key in self._called:
            self._fault(
                where, f"not judged, because the model has more than {MAX_CALLS} different function calls", "unknown"
            )
            return
        self._calls.add(call)
        self._called.add(key)
        self._waiting.append(_Call(where, key, inputs, outputs, attributes))

    def _body_with_types(self, call: _Call) -> ModelProto:
        """Return a model of a function's body with the types and constants of a call, and the functions it calls."""
        function = self._functions.by_key[call.key]
        model = call.body(function, self._proto.ir_version)
        if not self._functions.fault:
            model.functions.extend(self._functions.needed(call.key))
        for name, value in call.given(function).items():
            if isinstance(name, str) and value.type is not None:
                model.graph.input.add(name=name).type.CopyFrom(value.type)
            if isinstance(name, str) and value.tensor is not None:
                model.graph.initializer.add().CopyFrom(value.tensor)
                model.graph.initializer[-1].name = name
        return model

    def _enter(self, call: _Call, found: GraphProto | ModelError | None) -> None:
        """Add a function's body to the queue, with the types that are inferred from a call."""
        function = self._functions.by_key[call.key]
        seen_before = call.key in self._entered
        if not seen_before:
            self._entered[call.key] = self._opset(
                call.path,
                function.opset_import,
                function.node,
                lambda: imported_opset(function.opset_import, ""),
            )
        graph = call.body(function, self._proto.ir_version).graph
        inferred = graph if found is None else self._inferred(call.path, graph, found)
        given = {name: Value() for name in function.input} | call.given(function)
        for name in function.input:
            if isinstance(name, str):
                graph.input.add(name=name)
        for name in function.output:
            if isinstance(name, str):
                graph.output.add(name=name)
        made = zip(function.output, call.outputs, strict=False)
        self._waiting.append(
            _Graph(
                call.path,
                graph,
                inferred,
                Scope(),
                self._entered[call.key],
                inputs=given,
                outputs={name: value for name, value in made if value.declared},
                in_function=True,
                seen_before=seen_before,
            )
        )

    # ------------------------------------------------------------------------------------------------- nodes

    def _opset(
        self,
        where: str,
        imports: Iterable[OperatorSetIdProto],
        users: Iterable[NodeProto],
        find: Callable[[], int],
    ) -> _Opset:
        """Return the imported version of the default ONNX domain. Report domains that nodes use without an import."""
        imports, users = list(imports), list(with_inner(users))
        imported = {entry.domain for entry in imports} | {""}  # the default domain is checked below
        for node in users:
            if node.domain not in imported:
                imported.add(node.domain)
                self._fault(
                    where,
                    f"no operator set of the domain {node.domain!r} is imported, but {nodes.label(node)} requires it",
                )
        written = {entry.version for entry in imports if not entry.domain}
        named = str(min(written)) if len(written) == 1 else None
        try:
            return _Opset(find(), "", named)
        except ModelError as error:
            text = str(error).removeprefix(": ")
            if written or any(not node.domain for node in users):
                # a model that requires a newer onnx package may be valid
                self._fault(where, text, "unknown" if "update the onnx package" in text else "broken")
            return _Opset(None, text, named)

    def _row(self, node: NodeProto, operator: str, opset: _Opset) -> tuple[Spec | None, str]:
        """Return the specification to check a node against, or None and the reason."""
        own = schemas.SEGMENT_MAX.standard if operator == SEGMENT_MAX else "ONNX"
        standard = self._standard or own
        if standard != "ONNX" or own != "ONNX":
            return standards.unversioned(standard, operator)
        if node.domain == schemas.DOMAIN:
            return _row_of_ours(node, operator)
        if opset.number is None:
            return None, f"the version is unknown: {opset.fault}"
        try:
            return nodes.row_of(operator, opset.number, "the model"), ""
        except ModelError as error:
            return None, str(error)

    def _node(self, where: str, operator: str, node: NodeProto, scope: Scope, task: _Graph) -> Node:
        row, note = self._row(node, operator, task.opset)
        # convert each value once, even if the node reads it several times
        read = {
            name: scope.get(name, Value()).known(name, with_constant=number > 0 and operator != "Max")
            for name, number in {name: number for number, name in enumerate(node.input)}.items()
        }
        inputs = tuple(read[name] if name else None for name in node.input)
        outputs = tuple(scope.get(name, Value()).as_written().known(name, with_constant=False) for name in node.output)
        if len(node.output) != 1 or not node.output[0]:
            actual = "an empty name" if len(node.output) == 1 else len(node.output)
            self._fault(where, f"expected one output, got {actual}")
        opset = task.opset.written
        if node.domain == schemas.DOMAIN and operator != SEGMENT_MAX:  # these nodes state their version themselves
            own, why = _row_of_ours(node, operator)
            opset = None if own is None else str(own.version)
            if own is None:
                # a newer release of maxops may support a newer version
                is_open = (given := _version_of(node)) is OPEN or given > schemas.NEWEST[operator].version
                self._fault(where, why, "unknown" if is_open else "broken")
        attributes = self._attributes(where, operator, node, task)
        return Node(where, operator, inputs, outputs, attributes, row, note, opset)

    def _attributes(self, where: str, operator: str, node: NodeProto, task: _Graph) -> dict[str, Any]:
        if node.domain == schemas.DOMAIN:
            own, _ = (schemas.SEGMENT_MAX, "") if operator == SEGMENT_MAX else _row_of_ours(node, operator)
        else:
            own = spec.in_opset(operator, task.opset.number or 0)
        found: dict[str, Any] = {}
        for attribute in node.attribute:
            name, kind = attribute.name, schemas.ATTRIBUTE_KINDS.get(attribute.name)
            if name in found:
                self._fault(where, f"the attribute {name!r} appears twice")
            is_version = name == schemas.SINCE_VERSION and node.domain == schemas.DOMAIN
            if own is not None and name not in own.attributes and not is_version:
                self._fault(where, f"{own.name} has no attribute {name!r}")
            if attribute.ref_attr_name:
                found[name] = OPEN
                if not task.in_function:
                    self._fault(where, f"{name!r} refers to a function attribute, but the node is not in a function")
            elif kind is None:
                found[name] = Invalid(f"no max operator has an attribute {name!r}")
            elif attribute.type != kind:
                expected = AttributeProto.AttributeType.Name(kind)
                found[name] = Invalid(f"{name} must have type {expected}, got {_kind_name(attribute)}")
            elif kind == AttributeProto.STRING:
                found[name] = attribute.s.decode(errors="backslashreplace")
            else:
                found[name] = attribute.i if kind == AttributeProto.INT else tuple(attribute.ints)
        return found


def _is_max(node: NodeProto) -> bool:
    ours = node.domain == schemas.DOMAIN and node.op_type in (*schemas.NEWEST, SEGMENT_MAX)
    return ours or nodes.is_max(node)


def _row_of_ours(node: NodeProto, operator: str) -> tuple[Spec | None, str]:
    """Return the ONNX specification that a node of the `maxops` domain follows, or None and the reason.

    In this domain, the axes of ReduceMax are an input in every version.
    """
    version = _version_of(node)
    if version is OPEN:
        return None, "the version is set by the caller of the function"
    try:
        row = schemas.row(operator, version)
    except UnknownOperatorError as error:
        return None, str(error)
    names = tuple(name for name in row.attributes if name not in ("axes", "consumed_inputs"))
    return replace(row, axes_input=operator == "ReduceMax", attributes=names), ""


def _version_of(node: NodeProto) -> Any:
    """Return a node's `since_version`: a number, OPEN if the caller of a function sets it, or None if it is omitted."""
    given = [attribute for attribute in node.attribute if attribute.name == schemas.SINCE_VERSION]
    return (OPEN if given[0].ref_attr_name else given[0].i) if given else None


def _kind_name(attribute: AttributeProto) -> str:
    known = attribute.type in AttributeProto.AttributeType.values()
    return AttributeProto.AttributeType.Name(attribute.type) if known else f"number {attribute.type}"
