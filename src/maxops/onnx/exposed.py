"""Adds the inputs and outputs of max operators to a model's outputs, so that maxops can check another runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from onnx import ModelProto, NodeProto, ValueInfoProto

from maxops.errors import MaxopsError, ModelError
from maxops.model import Step
from maxops.onnx import nodes
from maxops.onnx.external import check_external, follow_links
from maxops.onnx.inline import by_key, inlined
from maxops.onnx.load import opset_of, parse, read, take_data_in, to_bytes
from maxops.onnx.structure import with_inner
from maxops.onnx.tensors import to_array
from maxops.plan import Array
from maxops.spec import Spec


class Judged(NamedTuple):
    """A node with a max operator: the specification of its version, and the step that runs the node on maxops."""

    row: Spec
    step: Step


class Exposed(NamedTuple):
    """A serialized model whose outputs include the inputs and outputs of its max nodes.

    ``outputs`` contains the names of all outputs. ``nodes`` contains the max nodes outside of subgraphs, and
    ``constants`` contains the initializers that they read.
    """

    model: bytes
    outputs: tuple[str, ...]
    nodes: tuple[Judged, ...]
    constants: Mapping[str, Array]
    inside: int  # the number of max nodes in subgraphs, whose values cannot be outputs of the model


def expose(model: Path | bytes, source: str) -> Exposed:
    """Read a model, and add the inputs and outputs of its max nodes to its outputs.

    Raises ModelError for a model without max nodes outside of subgraphs.
    """
    proto = read(model) if isinstance(model, Path) else parse(model, source)
    folder = follow_links(proto, model) if isinstance(model, Path) else None
    if folder is not None:
        check_external(proto, source)
        take_data_in(proto, source, folder)
    try:
        proto = inlined(proto, by_key(proto)) if proto.functions else proto
    except MaxopsError as error:
        raise error.at(source) from error
    graph = proto.graph
    ours = [node for node in graph.node if nodes.is_max(node)]
    inside = sum(map(nodes.is_max, with_inner(graph.node))) - len(ours)
    if not ours:
        hidden = " outside of subgraphs, whose values runtimes do not expose" if inside else ""
        raise ModelError(f"{source}: the model has no max operator{hidden}; use --whole to compare its outputs")
    opset = opset_of(proto, source)
    judged = tuple(_judged(node, source, opset, proto) for node in ours)
    read_there = {name for each in judged for name in each.step.inputs if name}
    constants = {
        tensor.name: to_array(tensor, f"{source}: initializer {tensor.name!r}", folder)
        for tensor in graph.initializer
        if tensor.name in read_there
    }
    known = {*constants, *(value.name for value in graph.input), *(value.name for value in graph.output)}
    around = dict.fromkeys(name for each in judged for name in (*each.step.inputs, each.step.output) if name)
    graph.output.extend(ValueInfoProto(name=name) for name in around if name not in known)
    return Exposed(to_bytes(proto, source), tuple(value.name for value in graph.output), judged, constants, inside)


def _judged(node: NodeProto, source: str, opset: int, proto: ModelProto) -> Judged:
    where = f"{source}: {nodes.label(node)}"
    nodes.check(node, where, opset, proto.ir_version)
    return Judged(nodes.row_of(node.op_type, opset, where), nodes.step(node, where, opset))
