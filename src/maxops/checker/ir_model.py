"""Reads the nodes with max operators of an OpenVINO IR, including those in the bodies of layers such as Loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from maxops.checker import standards
from maxops.checker.facts import Invalid, Known, Node
from maxops.checker.report import MODEL, Finding
from maxops.dtypes import DType
from maxops.errors import AttributeValueError, MaxopsError, ModelError
from maxops.openvino import calls, ir, layers
from maxops.openvino.layers import Layer, Port
from maxops.openvino.weights import Weights, check_size
from maxops.plan import Array
from maxops.sizes import MAX_ELEMENTS, Dims, text
from maxops.spec import Spec

OPERATORS = {"Maximum": "Max", "ReduceMax": "ReduceMax", "SegmentMax": "SegmentMax"}
# Axes and num_segments are small constants. Larger constants are weights, which are not read.
LARGEST_READ = 4096  # bytes
MAX_NESTING = 100  # maximum depth of bodies, because the path of a body contains the names of all enclosing bodies


@dataclass
class _Net:
    """The layers of a net, or of a body in it.

    ``sources`` maps each input port to the output port that feeds it. ``values`` contains the known facts about each
    output port, and ``written`` contains the facts that the port declares.
    """

    path: str
    layers: dict[str, Layer] = field(default_factory=dict)
    sources: dict[Port, Port] = field(default_factory=dict)
    values: dict[Port, Known] = field(default_factory=dict)
    written: dict[Port, Known] = field(default_factory=dict)


def read_nodes(path: Path, standard: str | None) -> tuple[list[Node], list[Finding]]:
    """Return the max nodes, with the known facts about their inputs and outputs, and the faults of the model."""
    reader = _Reader(ir.parse_net(path, str(path)), Weights(path.with_suffix(".bin")), standard)
    reader.run()
    return reader.nodes, reader.faults


class _Reader:
    def __init__(self, root: Element, weights: Weights, standard: str | None) -> None:
        self.nodes: list[Node] = []
        self.faults: list[Finding] = []
        self._weights, self._standard = weights, standard
        # if a Parameter has an unknown rank, a port without sizes may have any rank; otherwise, it is a scalar
        self._any_rank = any(layers.is_any_rank(data.attrib) for data in root.iter("data"))
        self._waiting: deque[tuple[str, Element, int]] = deque([("net", root, 0)])

    def run(self) -> None:
        while self._waiting:
            path, element, depth = self._waiting.popleft()
            if depth > MAX_NESTING:
                self.faults.append(
                    Finding(path, MODEL, "unknown", f"bodies nested deeper than {MAX_NESTING} levels are not read")
                )
                continue
            net = _Net(path)
            self._read_layers(net, element, depth)
            for edge in element.findall("edges/edge"):
                with self._faults_at(path):
                    ir.add_edge(edge, net.layers, net.sources, "")
            order = [*net.layers.values()]
            with self._faults_at(path):
                order = ir.in_order(net.layers, net.sources, "")
            for layer in order:
                where = f"{path} / {layer}"
                with self._faults_at(where):
                    self._add_values(net, layer)
            for layer in net.layers.values():
                where = f"{path} / {layer}"
                if layer.type in layers.INPUTS and not self._is_judged(layer):
                    with self._faults_at(where):
                        layers.check_count(layer, "")
                for port in layer.inputs:
                    if (layer.id, port) not in net.sources:
                        self.faults.append(Finding(where, MODEL, "broken", f"input port {port} has no edge"))
                if layer.type in OPERATORS:
                    self.nodes.append(self._node(net, layer))

    @contextmanager
    def _faults_at(self, where: str) -> Iterator[None]:
        try:
            yield
        except ModelError as error:
            finding = Finding(where, MODEL, "broken", _bare(error))
            if finding not in self.faults[-1:]:
                self.faults.append(finding)

    def _read_layers(self, net: _Net, element: Element, depth: int) -> None:
        for child in element.findall("layers/layer"):
            with self._faults_at(net.path):
                layer = layers.read(child, "")
                if layer.id in net.layers:
                    raise ModelError(f"{layer}: the id {layer.id!r} appears twice")
                net.layers[layer.id] = layer
                for check in (layers.check_version, layers.check_precisions, layers.check_element_type):
                    with self._faults_at(f"{net.path} / {layer}"):
                        check(layer, "")
                self._waiting.extend(
                    (f"{net.path} / {layer} {inner.tag}", inner, depth + 1)
                    for inner in child
                    if inner.find("layers") is not None
                )
        if not net.layers:
            self.faults.append(Finding(net.path, MODEL, "broken", "no layers found"))

    # ------------------------------------------------------------------------------------------------ values

    def _add_values(self, net: _Net, layer: Layer) -> None:
        """Add the facts about a layer's output ports. The layer's <data> takes precedence over the ports' declarations.

        If the declared sizes of a port are invalid, its rank is unknown.
        """
        any_rank, is_constant = layers.is_any_rank(layer.data), layer.type == "Const"
        has_own = (layer.type == "Parameter" or is_constant) and not any_rank
        own = layers.own_dims(layer, "") if has_own else None
        for port, texts in layer.outputs.items():
            written = calls.PORT_TYPES.get(layer.precisions.get(port, ""))  # the type that the output port declares
            dtype = self._own_type(net, layer)
            judged_type = dtype if written is None else written
            if dtype is None:
                dtype = written
            declared = written is not None or layers.element_type(layer) is not None
            net.values[layer.id, port] = net.written[layer.id, port] = Known(layer.name, dtype, own, declared)
            may_be_any_rank = any_rank or (self._any_rank and not texts and not is_constant)
            dims = None if may_be_any_rank else layers.sizes_of(texts, "the output port")
            if dims is not None and prod(size for size in dims if isinstance(size, int) and size) > MAX_ELEMENTS:
                raise ModelError(f"the shape {dims} has too many elements")
            fact = dims if own is None else own
            net.values[layer.id, port] = Known(layer.name, dtype, fact, declared)
            net.written[layer.id, port] = Known(layer.name, judged_type, dims, declared)
            if self._is_judged(layer):
                continue  # a clause covers the output
            if dtype is not None and written is not None and dtype != written:
                raise ModelError(f"output port {port} has type {written}, but the layer produces {dtype}")
            if own is not None and dims and not _may_be(dims, own):
                raise ModelError(f"output port {port} has shape {text(dims)}, but the layer's data has {text(own)}")
        if is_constant:
            shape, (offset, size) = layers.fixed_shape(layer, ""), layers.data_extent(layer, "")
            if isinstance(kind := layers.element_type(layer), DType):
                check_size(kind, shape, size, "")
            with self._faults_at("net"):  # reported once for all constants
                self._weights.check_file()
            self._weights.check(offset, size, "the data")

    def _own_type(self, net: _Net, layer: Layer) -> DType | str | None:
        """Return the type in the layer's <data> or, for a max operator, the type of its first input."""
        if (named := layers.element_type(layer)) is not None:
            return named
        return self._fed(net, layer, next(iter(layer.inputs), "")).dtype if layer.type in OPERATORS else None

    def _fed(self, net: _Net, layer: Layer, port: str) -> Known:
        return net.values.get(net.sources.get((layer.id, port), ("", "")), Known(f"input port {port}"))

    def _constant(self, net: _Net, layer: Layer, port: str) -> Array | None:
        """Return the constant that feeds a port, or None if it is large or unknown."""
        feeder = net.sources.get((layer.id, port), ("", ""))[0]
        source = net.layers.get(feeder)
        try:
            if source is None or source.type != "Const" or layers.data_extent(source, "")[1] > LARGEST_READ:
                return None
            return layers.constant(source, self._weights, "")
        except ModelError:  # the error is reported separately, or the weights file is missing
            return None

    # ------------------------------------------------------------------------------------------------- nodes

    def _row(self, layer: Layer) -> tuple[Spec | None, str]:
        return standards.unversioned(self._standard or "OpenVINO", OPERATORS[layer.type])

    def _is_judged(self, layer: Layer) -> bool:
        return layer.type in OPERATORS and self._row(layer)[0] is not None

    def _node(self, net: _Net, layer: Layer) -> Node:
        operator, where = OPERATORS[layer.type], f"{net.path} / {layer}"
        row, note = self._row(layer)
        inputs = []
        for number, port in enumerate(layer.inputs):
            known = self._fed(net, layer, port)
            if operator == "SegmentMax" and number == 2 and known.dims == (0,):
                known = replace(known, dims=())  # OpenVINO's documentation writes a scalar as one size of 0
            if number and operator != "Max":
                known = replace(known, constant=self._constant(net, layer, port))
            inputs.append(known)
        if len(layer.outputs) != 1:
            self.faults.append(Finding(where, MODEL, "broken", f"expected 1 output port, got {len(layer.outputs)}"))
        outputs = tuple(net.written[layer.id, port] for port in layer.outputs if (layer.id, port) in net.written)
        attributes: dict[str, Any] = {}
        with self._faults_at(where):
            attributes = _attributes(layer)
        return Node(where, operator, tuple(inputs), outputs, attributes, row, note, layer.version or None)


def _may_be(written: Dims, own: Dims) -> bool:
    """Return whether two shapes may be equal. OpenVINO's documentation writes the shape of a scalar as (0,)."""
    if own == () and written == (0,):
        return True
    return len(written) == len(own) and all(
        size == other for size, other in zip(written, own, strict=True) if size is not None and other is not None
    )


def _attributes(layer: Layer) -> dict[str, Any]:
    """Return the attributes of a layer, keyed by their names in `maxops.spec`."""
    if layer.type == "ReduceMax":
        # in OpenVINO, ReduceMax with empty axes returns its input
        return {"keepdims": _or_invalid(lambda: int(layers.keep_dims(layer, ""))), "noop_with_empty_axes": 1}
    if layer.type == "SegmentMax":
        return {"fill_mode": _or_invalid(lambda: layers.fill_mode(layer, "", lambda _: None))}
    layers.auto_broadcast(layer, "")
    return {}


def _or_invalid(read: Callable[[], object]) -> object:
    try:
        return read()
    except (ModelError, AttributeValueError) as error:
        return Invalid(_bare(error))


def _bare(error: MaxopsError) -> str:
    """Return an error's text without its location and clause, which a finding stores in separate fields."""
    return error.message.removeprefix(": ")
