"""Loads OpenVINO IR files, and checks them.

defusedxml parses the XML, and rejects entities, DTDs and external references. The message of each error names the file
and, if possible, the layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from os import PathLike
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import parse

from maxops.dtypes import DType
from maxops.errors import ModelError
from maxops.model import Model, OtherType, Step, Value, identity
from maxops.openvino import layers
from maxops.openvino.layers import Layer, Port
from maxops.openvino.weights import Weights
from maxops.plan import Array

VERSIONS = ("10", "11")


class IRWarning(UserWarning):
    """Warns about syntax in an IR file that maxops accepts, but that OpenVINO does not write."""


def load(path: str | PathLike[str]) -> Model:
    """Load an IR from its .xml file, and check it. Weights are read from the .bin file with the same name.

    >>> import numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> port = '<port id="{}"><dim>2</dim></port>'
    >>> parameter = '<layer id="{0}" name="{1}" type="Parameter"><data shape="2" element_type="f32"/><output>' \\
    ...     + port.format(0) + '</output></layer>'
    >>> text = '<net version="11"><layers>' + parameter.format(0, "a") + parameter.format(1, "b") \\
    ...     + '<layer id="2" name="m" type="Maximum"><input>' + port.format(0) + port.format(1) + '</input><output>' \\
    ...     + port.format(2) + '</output></layer><layer id="3" name="y" type="Result"><input>' + port.format(0) \\
    ...     + '</input></layer></layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>' \\
    ...     + '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>' \\
    ...     + '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>'
    >>> path = Path(folder.name) / "model.xml"
    >>> _ = path.write_text(text)
    >>> load(path).run({"a": np.float32([1, -0.0]), "b": np.float32([-1, 0.0])})
    {'y': array([1., 0.], dtype=float32)}
    >>> folder.cleanup()

    Supported layers are Parameter, Const, Maximum, ReduceMax, SegmentMax and Result. SegmentMax has the attribute
    `fill_mode`, which OpenVINO writes, or `empty_segment_value`, which OpenVINO's documentation uses. The name
    `empty_segment_value` causes an IRWarning. When the model runs, arrays must have the shapes and types of the
    Parameters. An unknown size matches any size.

    Raises ModelError for other layers and malformed files, and AttributeValueError for invalid attributes of
    SegmentMax.
    """
    path = Path(path)
    source = str(path)
    root = parse_net(path, source)
    found = _layers(root, source)
    sources: dict[Port, Port] = {}  # the output port that feeds each input port
    for edge in root.findall("edges/edge"):
        add_edge(edge, found, sources, source)
    weights = Weights(path.with_suffix(".bin"))
    constants: dict[str, Array] = {}
    inputs: dict[str, Value] = {}  # keyed by layer id
    outputs: dict[str, Value] = {}
    steps: list[Step] = []
    made: dict[Port, str] = {}  # the name of the value at each output port
    types: dict[str, DType | OtherType] = {}  # the types of these values, by name
    for layer in in_order(found, sources, source):
        where = f"{source}: {layer}"
        fed = [made[sources[layer.id, port]] for port in layers.input_ports(layer, sources, where)]
        if layer.type == "Result":
            start = sources[layer.id, next(iter(layer.inputs))]
            sizes = found[start[0]].outputs[start[1]]
            outputs[layer.id] = layers.result(layer, types[fed[0]], sizes, where)
            steps.append(Step(str(layer), (fed[0],), outputs[layer.id].name, identity))
            continue
        port = layers.output_port(layer, where)
        name = made[layer.id, port] = f"{layer.id}:{port}"
        if layer.type == "Parameter":
            value = inputs[layer.id] = layers.parameter(layer, where)
            types[name] = value.dtype
            steps.append(Step(str(layer), (value.name,), name, identity))
        elif layer.type == "Const":
            constants[name] = layers.constant(layer, weights, where)
            types[name] = layers.dtype(layer, where)
        else:
            types[name] = types[fed[0]]
            said: list[str] = []
            steps.append(Step(str(layer), tuple(fed), name, layers.compute(layer, where, said.append)))
            for text in said:
                warnings.warn(text, IRWarning, stacklevel=2)
    # the file determines the order, as in OpenVINO
    takes, gives = (tuple(values[name] for name in found if name in values) for values in (inputs, outputs))
    for values, kind in ((takes, "Parameters"), (gives, "Results")):
        if len({value.name for value in values}) < len(values):
            raise ModelError(f"{source}: {kind} must have distinct names, got {', '.join(map(str, values))}")
    if not outputs:
        raise ModelError(f"{source}: the model has no Result layer, so it has no outputs")
    return Model(source, 0, takes, gives, constants, tuple(steps))


def parse_net(path: Path, source: str) -> Element:
    """Parse an IR file, and return its <net> element. Raise ModelError if the file is not an IR."""
    try:
        root: Element | None = parse(path, forbid_dtd=True, forbid_entities=True, forbid_external=True).getroot()
    except OSError as error:
        raise ModelError(f"{source} cannot be read: {error.strerror}") from error
    except ParseError as error:
        raise ModelError(f"{source} is not well-formed XML: {error}") from error
    except DefusedXmlException as error:
        raise ModelError(
            f"{source} declares a document type or entities, which are not allowed in an IR: {error!r}"
        ) from error
    except (LookupError, ValueError) as error:  # an unknown encoding
        raise ModelError(f"{source} cannot be read: {error}") from error
    if root is None or root.tag != "net":
        raise ModelError(f"{source} is not an IR: the root element is not <net>")
    version = layers.identifier(root.get("version", ""))
    if version not in VERSIONS:
        written = version if version.isascii() and version.isdecimal() else repr(version) if version else "none"
        raise ModelError(f"{source}: the IR version must be {' or '.join(VERSIONS)}, got {written:.20}")
    return root


def _layers(root: Element, source: str) -> dict[str, Layer]:
    found: dict[str, Layer] = {}
    for element in root.findall("layers/layer"):
        layer = layers.read(element, source)
        layers.check_type(layer, source)
        layers.check_version(layer, f"{source}: {layer}")
        layers.check_precisions(layer, f"{source}: {layer}")
        if layer.id in found:
            raise ModelError(f"{source}: {layer}: the id {layer.id!r} appears twice")
        found[layer.id] = layer
    if not found:
        raise ModelError(f"{source}: the IR has no layers")
    return found


def add_edge(edge: Element, found: Mapping[str, Layer], sources: dict[Port, Port], source: str) -> None:
    """Add an edge to `sources`. Reject an edge whose ports do not exist, and a second edge to the same port."""
    ends = {name: layers.identifier(edge.get(name, "")) for name in ("from-layer", "from-port", "to-layer", "to-port")}
    words = " ".join(f'{name}="{value}"' for name, value in ends.items())
    start, end = (ends["from-layer"], ends["from-port"]), (ends["to-layer"], ends["to-port"])
    for (layer, port), ports in ((start, "outputs"), (end, "inputs")):
        if layer not in found:
            raise ModelError(f"{source}: the edge {words} refers to the layer {layer!r}, which does not exist")
        if port not in getattr(found[layer], ports):
            raise ModelError(
                f"{source}: the edge {words} refers to a port that is not in the {ports} of {found[layer]}"
            )
    if end in sources:
        raise ModelError(f"{source}: the edge {words} leads to a port of {found[end[0]]} that already has an edge")
    sources[end] = start


def in_order(found: Mapping[str, Layer], sources: Mapping[Port, Port], source: str) -> list[Layer]:
    """Return the layers in topological order."""
    graph: dict[str, set[str]] = {name: set() for name in found}
    for (layer, _), (feeder, _) in sources.items():
        graph[layer].add(feeder)
    try:
        return [found[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        circle = " -> ".join(str(found[name]) for name in error.args[1])
        raise ModelError(f"{source}: the graph has a cycle: {circle}") from error
