"""Reads and checks the layers of an IR, and creates the functions that compute them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any
from xml.etree.ElementTree import Element

from maxops import ops, spec
from maxops.calls import Call
from maxops.counted import counted
from maxops.dtypes import DType
from maxops.errors import AttributeValueError, ModelError
from maxops.model import OtherType, Value
from maxops.openvino import calls
from maxops.openvino.calls import DTYPES
from maxops.openvino.weights import Weights
from maxops.plan import FILL_MODES, Array
from maxops.sizes import MAX_ELEMENTS, Dims

Port = tuple[str, str]  # the ids of a layer and of one of its ports
Compute = Callable[[Sequence[Array | None]], Array]
Warn = Callable[[str], None]

# The minimum and maximum number of inputs of each type of layer.
INPUTS = {
    "Parameter": (0, 0),
    "Const": (0, 0),
    "Maximum": (2, 2),
    "ReduceMax": (2, 2),
    "SegmentMax": (2, 3),
    "Result": (1, 1),
}
# The operator sets that contain a type of layer. Types that OPSETS does not list are in the operator sets ORDINARY if
# INPUTS lists them, and in EVERY otherwise.
ORDINARY, EVERY = range(1, 17), range(1, 18)
OPSETS = {"SegmentMax": range(16, 17), "Parameter": EVERY}
# The attribute in a layer's <data> that declares the output type.
TYPE_ATTRIBUTES = {
    "Parameter": "element_type",
    "Const": "element_type",
    "Convert": "destination_type",
    "ShapeOf": "output_type",
    "Range": "output_type",
    "RandomUniform": "output_type",
    "Eye": "output_type",
}
# OpenVINO ignores the case of layer types, except that of Const.
SPELLED = {kind.casefold(): kind for kind in (*INPUTS, *TYPE_ATTRIBUTES) if kind != "Const"}
OURS = "maxops"  # the version of the operators that replace OpenVINO's
MOVED = ("Maximum", "ReduceMax", "SegmentMax")
FILL_NAMES = ("fill_mode", "empty_segment_value")  # the name that OpenVINO writes, and the name in its documentation


@dataclass(frozen=True)
class Layer:
    """A layer of an IR file.

    ``data`` contains the attributes of its <data> element. ``inputs`` and ``outputs`` contain the declared sizes of its
    ports, and ``precisions`` contains the declared types of its output ports, by port id.
    """

    id: str
    name: str
    type: str
    data: Mapping[str, str]
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, tuple[str, ...]]
    precisions: Mapping[str, str]
    version: str

    def __str__(self) -> str:
        return f"layer {self.name!r} ({self.type}, id {self.id})"


def read(element: Element, source: str) -> Layer:
    """Convert a <layer> element of any type to a `Layer`."""
    attributes = {name: element.get(name) for name in ("id", "name", "type")}
    kind = attributes["type"]
    if attributes["id"] is None or kind is None:
        raise ModelError(f"{source}: a layer must have an id and a type, got {attributes}")
    layer_id = identifier(attributes["id"])
    if not layer_id.isdecimal():
        raise ModelError(f"{source}: the id of a layer must be a number, got {layer_id!r}")
    if len(element.findall("data")) > 1:
        raise ModelError(f"{source}: the layer with id {layer_id} has more than one <data>")
    data = element.find("data")
    return Layer(
        layer_id,
        attributes["name"] or layer_id,
        SPELLED.get(kind.casefold(), kind),
        {} if data is None else dict(data.attrib),
        _ports(element, "input", source),
        _ports(element, "output", source),
        {identifier(port.get("id", "")): port.get("precision", "") for port in element.findall("output/port")},
        element.get("version", ""),
    )


def identifier(text: str) -> str:
    """Return the id of a layer or port in normalized form. An id that is not a number is unchanged.

    >>> identifier(" 01"), identifier("x")
    ('1', 'x')
    """
    number = _number_of(text)
    return text if number is None else str(number)


def _number_of(text: str) -> int | None:
    """Parse a non-negative integer. Like OpenVINO, allow leading spaces, a plus sign and leading zeros.

    Return None for all other text.
    """
    found = re.fullmatch(r"[ \t\r\n\f\v]*\+?0*([0-9]{1,19})", text)
    return int(found[1]) if found else None


def check_type(layer: Layer, source: str) -> None:
    """Reject a layer whose type maxops does not support."""
    if layer.type not in INPUTS:
        raise ModelError(f"{source}: {layer}: unsupported layer type; supported types: {', '.join(INPUTS)}")


def check_version(layer: Layer, where: str) -> None:
    """Reject a layer whose version OpenVINO does not define. A layer without a version is valid."""
    version = layer.version
    is_ours = version == OURS and layer.type in MOVED
    if not version or is_ours or (layer.type not in INPUTS and not version.startswith("opset")):
        return
    opsets = OPSETS.get(layer.type, ORDINARY if layer.type in INPUTS else EVERY)
    if version not in [f"opset{number}" for number in opsets]:
        expected = f"opset{opsets[0]}" + (f" to opset{opsets[-1]}" if len(opsets) > 1 else "")
        raise ModelError(f"{where}: the version of {layer.type} must be {expected}, got {version!r}")


def _ports(element: Element, side: str, source: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for port in element.findall(f"{side}/port"):
        name = identifier(port.get("id", ""))
        if not name.isdecimal() or name in found:
            raise ModelError(
                f"{source}: the {side} ports of the layer with id {element.get('id')} must have distinct numbers as "
                f"ids, got {name!r}"
            )
        found[name] = tuple((dim.text or "").strip() for dim in port.findall("dim"))
    return found


def element_type(layer: Layer) -> DType | str | None:
    """Return the type in a layer's <data>: a maxops dtype, the name of another OpenVINO type, or None if unknown."""
    return calls.ELEMENT_TYPES.get(layer.data.get(TYPE_ATTRIBUTES.get(layer.type, ""), "").casefold())


def check_element_type(layer: Layer, where: str) -> None:
    """Reject a type in a layer's <data> that OpenVINO does not define, and a Const without a type."""
    attribute = TYPE_ATTRIBUTES.get(layer.type, "")
    name = _attribute(layer, attribute, where) if layer.type == "Const" else layer.data.get(attribute)
    if name is not None and name.casefold() not in calls.ELEMENT_TYPES:
        raise ModelError(f"{where}: OpenVINO has no type {name!r}")


def is_any_rank(data: Mapping[str, str]) -> bool:
    """Return whether a layer's <data> declares a shape of unknown rank."""
    return _bare(data.get("shape", "")) == "..."


def _bare(text: str) -> str:
    """Return the text of a shape without its enclosing brackets."""
    text = text.strip()
    return text[1:-1].strip() if text.startswith("[") and text.endswith("]") else text


def check_precisions(layer: Layer, where: str) -> None:
    """Reject an output port whose type OpenVINO does not define."""
    for port, name in layer.precisions.items():
        if name not in calls.PORT_TYPES:
            raise ModelError(f"{where}: output port {port} has type {name!r}, which OpenVINO does not define")


def check_count(layer: Layer, where: str) -> None:
    """Reject a layer with more or fewer input ports than its type allows."""
    fewest, most = INPUTS[layer.type]
    if not fewest <= len(layer.inputs) <= most:
        expected = counted(most, "input port") if fewest == most else f"{fewest} or {most} input ports"
        raise ModelError(f"{where}: expected {expected}, got {len(layer.inputs)}")


def input_ports(layer: Layer, sources: Mapping[Port, Port], where: str) -> tuple[str, ...]:
    """Return the ids of the layer's input ports, in order. Raise ModelError if an edge is missing."""
    check_count(layer, where)
    for port in layer.inputs:
        if (layer.id, port) not in sources:
            raise ModelError(f"{where}: input port {port} has no edge")
    return tuple(layer.inputs)


def output_port(layer: Layer, where: str) -> str:
    """Return the id of the layer's output port. Raise ModelError unless there is exactly one."""
    if len(layer.outputs) != 1:
        raise ModelError(f"{where}: expected 1 output port, got {len(layer.outputs)}")
    return next(iter(layer.outputs))


def parameter(layer: Layer, where: str) -> Value:
    """Return the model input that a Parameter layer declares."""
    return Value(layer.name, dtype(layer, where), own_dims(layer, where))


def result(layer: Layer, dtype: DType | OtherType, sizes: tuple[str, ...], where: str) -> Value:
    """Return the model output that a Result layer declares, with the type and sizes of the port that feeds it."""
    return Value(layer.name, dtype, sizes_of(sizes, where))


def constant(layer: Layer, weights: Weights, where: str) -> Array:
    """Return the array of a Const layer."""
    return weights.read(dtype(layer, where), fixed_shape(layer, where), *data_extent(layer, where), where)


def fixed_shape(layer: Layer, where: str) -> tuple[int, ...]:
    """Return the shape of a Const layer."""
    dims = own_dims(layer, where)
    shape = tuple(size for size in dims if isinstance(size, int))
    if len(shape) != len(dims):
        raise ModelError(f"{where}: a constant must have a fixed shape, got {_attribute(layer, 'shape', where)!r}")
    return shape


def data_extent(layer: Layer, where: str) -> tuple[int, int]:
    """Return the offset and the size, in bytes, of a Const layer's data in the weights file."""
    return _number(layer, "offset", where), _number(layer, "size", where)


def compute(layer: Layer, where: str, warn: Warn) -> Compute:
    """Return a function that computes a Maximum, ReduceMax or SegmentMax layer from its inputs."""
    call: Callable[[Sequence[Array]], Call]
    if layer.type == "Maximum":
        kind = auto_broadcast(layer, where)
        try:
            calls.check_auto_broadcast(kind)
        except AttributeValueError as error:
            raise ModelError(f"{where}: {error}") from error
        call = partial(calls.maximum, auto_broadcast=kind)
    elif layer.type == "ReduceMax":
        call = partial(calls.reduce_max, keep_dims=keep_dims(layer, where))
    else:
        call = partial(calls.segment_max, fill_mode=fill_mode(layer, where, warn))
        sizes = list(layer.inputs.values())
        if len(sizes) > 2 and sizes[2] == ("0",):
            warn(
                f"{where}: num_segments with <dim>0</dim> is read as a scalar, as in the examples of OpenVINO's "
                "documentation; a scalar has no dims"
            )
    return partial(_run, call)


def _run(call: Callable[[list[Array]], Call], inputs: Sequence[Array | None]) -> Any:
    return ops.run(call([array for array in inputs if array is not None]))


def auto_broadcast(layer: Layer, where: str) -> str:
    """Return the broadcast mode of a Maximum layer."""
    kind = layer.data.get("auto_broadcast", "numpy")
    if kind.casefold() not in calls.AUTO_BROADCAST:
        raise ModelError(f"{where}: auto_broadcast must be one of {', '.join(calls.AUTO_BROADCAST)}, got {kind!r}")
    return calls.AUTO_BROADCAST[kind.casefold()]


def fill_mode(layer: Layer, where: str, warn: Warn) -> str:
    """Return the fill mode of a SegmentMax layer. The attribute is required, and may have either of two names."""
    given = {name: layer.data[name] for name in FILL_NAMES if name in layer.data}
    clause = spec.SEGMENT_MAX_16.clause("fill_mode")
    if len({text.upper() for text in given.values()}) != 1:
        actual = " and ".join(f'{name}="{text}"' for name, text in given.items()) or "neither"
        raise AttributeValueError(f"{where}: expected {' or '.join(FILL_NAMES)}, got {actual}", clause)
    if FILL_NAMES[0] not in given:
        warn(
            f"{where}: the attribute {FILL_NAMES[1]} is from the examples of OpenVINO's documentation; OpenVINO itself "
            f"writes {FILL_NAMES[0]}"
        )
    if unknown := sorted(set(layer.data) - set(FILL_NAMES)):
        raise AttributeValueError(f"{where}: unknown attribute {unknown[0]!r}", clause)
    mode = next(iter(given.values())).upper()
    if mode not in FILL_MODES:
        raise AttributeValueError(f"{where}: fill_mode must be ZERO or LOWEST, got {mode!r}", clause)
    return mode


def _attribute(layer: Layer, name: str, where: str) -> str:
    if name not in layer.data:
        raise ModelError(
            f"{where}: the attribute {name!r} is missing; attributes found: {', '.join(layer.data) or 'none'}"
        )
    return layer.data[name]


def _number(layer: Layer, name: str, where: str) -> int:
    text = _attribute(layer, name, where)
    number = _number_of(text)
    if number is None or number > MAX_ELEMENTS:
        raise ModelError(f"{where}: {name} must be a number of bytes, got {text!r}")
    return number


def keep_dims(layer: Layer, where: str) -> bool:
    """Return whether a ReduceMax layer keeps the reduced axes."""
    text = layer.data.get("keep_dims", "false").lower()
    if text not in ("true", "false", "1", "0"):
        raise ModelError(f"{where}: keep_dims must be true or false, got {text!r}")
    return text in ("true", "1")


def dtype(layer: Layer, where: str) -> DType:
    """Return the type that a Parameter or a Const declares."""
    name = _attribute(layer, "element_type", where)
    if name.casefold() not in DTYPES:
        raise ModelError(f"{where}: unsupported type {name!r}; supported types: {', '.join(DTYPES)}")
    return DTYPES[name.casefold()]


def own_dims(layer: Layer, where: str) -> Dims:
    """Return the sizes that a Parameter or a Const declares.

    The shape of a Parameter may be enclosed in square brackets. A Parameter without a shape is a scalar.
    """
    if is_any_rank(layer.data):
        raise ModelError(f"{where}: the rank is unknown; maxops runs only models with known ranks")
    is_parameter = layer.type == "Parameter"
    text = _bare(layer.data.get("shape", "")) if is_parameter else _attribute(layer, "shape", where).strip()
    dims = tuple(_size(part.strip(), where) for part in text.split(",")) if text else ()
    if prod(size for size in dims if size) > MAX_ELEMENTS:
        raise ModelError(f"{where}: the shape {text!r} has too many elements")
    return dims


def sizes_of(texts: Sequence[str], where: str) -> Dims:
    """Parse the sizes of a port."""
    return tuple(_size(text, where) for text in texts)


def _size(text: str, where: str) -> int | None:
    """Parse a size. Return None for an unknown size, which is written as -1, ?, or a range such as 1..8."""
    if text in ("-1", "?"):
        return None
    if found := re.fullmatch(r"([0-9]{0,19})\.\.([0-9]{0,19})", text):
        least, most = int(found[1] or 0), found[2]
        return least if most and int(most) == least else None
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise ModelError(f"{where}: a size must be a number, -1, ? or a range, got {text!r}")
    return int(text)
