"""Writes a call of OpenVINO's SegmentMax as an IR: the text of its .xml and the bytes of its .bin."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from maxops import dtypes
from maxops.conformance.case import Call, Input
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.dtypes import DType
from maxops.openvino.calls import NAMES, PORT_NAMES

VERSION = "11"


def ir(call: Call, *, one_line: bool = False) -> tuple[str, bytes]:
    """Return the model, indented or in one line. Raise NotApplicableError for a call that an IR cannot express."""
    if call.row.standard != "OpenVINO":
        raise NotApplicableError(f"an IR cannot contain {call.row.standard} {call.row.name}")
    inputs = present_inputs(call)
    net = Element("net", name="case", version=VERSION)
    layers, edges = SubElement(net, "layers"), SubElement(net, "edges")
    weights = bytearray()
    for number, each in enumerate(inputs):
        _source(layers, number, each, weights)
        _edge(edges, (number, 0), (len(inputs), number))
    sizes = ["-1"] * (len(inputs[0].dims) if call.rank is None else call.rank)
    node = _layer(layers, len(inputs), call.row.operator, call.row.operator, f"opset{call.row.version}")
    if call.attributes:
        SubElement(node, "data", {name: str(value) for name, value in call.attributes})
    ports = SubElement(node, "input")
    for number, each in enumerate(inputs):
        _port(ports, number, each.dtype, [str(-1 if size is None else size) for size in each.dims])
    _port(SubElement(node, "output"), len(inputs), call.dtype, sizes)
    result = _layer(layers, len(inputs) + 1, "y", "Result", "opset1")
    _port(SubElement(result, "input"), 0, call.dtype, sizes)
    _edge(edges, (len(inputs), len(inputs)), (len(inputs) + 1, 0))
    if not one_line:
        indent(net)
    end = "" if one_line else "\n"
    return f'<?xml version="1.0"?>{end}{tostring(net, encoding="unicode")}{end}', bytes(weights)


def present_inputs(call: Call) -> list[Input]:
    """Return the present inputs. Only trailing inputs may be omitted, because an IR cannot express a gap."""
    inputs = [each for each in call.inputs if each is not None]
    if any(each is None for each in call.inputs[: len(inputs)]):
        raise NotApplicableError("an IR can omit only trailing inputs")
    return inputs


def element_type(dtype: DType) -> str:
    """Return OpenVINO's name for a type."""
    if dtype == dtypes.REAL:
        raise NotApplicableError("OpenVINO has no type for real numbers")
    return NAMES[dtype]


def _source(layers: Element, number: int, each: Input, weights: bytearray) -> None:
    """Add a Parameter, or a Const with its data in the weights."""
    kind = "Parameter" if each.constant is None else "Const"
    layer = _layer(layers, number, each.name, kind, "opset1")
    data = {
        "element_type": element_type(each.dtype),
        "shape": ",".join("?" if size is None else str(size) for size in each.dims),
    }
    if each.constant is not None:
        weights.extend(bytes(-len(weights) % 64))  # aligned for the widest type
        data |= {"offset": str(len(weights)), "size": str(each.constant.nbytes)}
        weights.extend(np.ascontiguousarray(each.constant).tobytes())
    SubElement(layer, "data", data)
    _port(SubElement(layer, "output"), 0, each.dtype, [str(-1 if size is None else size) for size in each.dims])


def _layer(layers: Element, number: int, name: str, kind: str, version: str) -> Element:
    return SubElement(layers, "layer", id=str(number), name=name, type=kind, version=version)


def _port(side: Element, number: int, dtype: DType, sizes: list[str]) -> None:
    port = SubElement(side, "port", id=str(number), precision=PORT_NAMES[dtype])
    for size in sizes:
        SubElement(port, "dim").text = size


def _edge(edges: Element, start: tuple[int, int], end: tuple[int, int]) -> None:
    attributes = {"from-layer": start[0], "from-port": start[1], "to-layer": end[0], "to-port": end[1]}
    SubElement(edges, "edge", {name: str(number) for name, number in attributes.items()})
