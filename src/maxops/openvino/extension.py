"""Maximum, ReduceMax and SegmentMax as custom operators of OpenVINO.

OpenVINO's CPU plugin computes only in f32, i32, i8 and u8. It converts all other types in a model to these types, so
64-bit integers lose their upper 32 bits. Therefore, each operator stores the types of its inputs when it is created,
and raises an error if OpenVINO changes them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from maxops import ops
from maxops.calls import Call
from maxops.errors import DTypeError, MaxopsError
from maxops.openvino import calls, layers
from maxops.plan import Array, plan, plan_reduce_max
from maxops.shapes import reduced

ov: Any = import_module("openvino")

VERSION = layers.OURS  # the versions of OpenVINO's own operators are opset1, opset2 and so on


if TYPE_CHECKING:

    class _Op:
        """The base class `openvino.Op` for type checkers, because OpenVINO may be missing, and annotates few types."""

        def __init__(self, *inputs: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    _Op = ov.Op


class _Operator(_Op):
    """The base class of the operators. `defaults` contains the names and default values of the attributes."""

    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, inputs: Any = None, types: tuple[str, ...] = (), **attributes: Any) -> None:
        self.attributes: dict[str, Any] = self.defaults | attributes
        self.types: tuple[str, ...] = types
        super().__init__(self, inputs)

    def get_type_info(self) -> Any:
        """Return a type with OpenVINO's name of the operator. With other names, the plugin would convert i64 to i32."""
        return ov.DiscreteTypeInfo(type(self).__name__, VERSION)

    def visit_attributes(self, visitor: Any) -> bool:
        """Pass the attributes to OpenVINO, which writes them to an IR or reads them from an IR."""
        visitor.on_attributes(self.attributes)
        return True

    def validate_and_infer_types(self) -> None:
        """Set the output's type and shape, which OpenVINO requests when it builds a model."""
        self.set_output_type(0, *self.inferred(self.input_values()))

    def clone_with_new_inputs(self, inputs: list[Any]) -> Any:
        """Return a copy of the operator with other inputs."""
        if all(map(_is_made_for_a_shape, inputs)):
            # When shapes change, the plugin clones the operator only to infer its output shape. Return a Parameter of
            # this shape, because a Python clone and its C++ counterpart reference each other and are never freed.
            return ov.op.Parameter(*self.inferred(inputs))
        return type(self)(inputs, self.types, **self.attributes)

    def has_evaluate(self) -> bool:
        """Return True, because the operator implements `evaluate`."""
        return True

    def inferred(self, ports: list[Any]) -> tuple[Any, Any]:
        """Return the output's type and shape."""
        raise NotImplementedError


class Convert(_Operator):
    """An operator that converts its first input to the type of its second input, and ignores the second input's value.

    A third input is also ignored. If it is an input of the model, it prevents OpenVINO from folding the result to a
    constant, whose type OpenVINO would convert.
    """

    def inferred(self, ports: list[Any]) -> tuple[Any, Any]:
        """Return the type of the second input and the shape of the first input."""
        return ports[1].get_element_type(), ports[0].get_partial_shape()

    def evaluate(self, outputs: list[Any], inputs: list[Any]) -> bool:
        """Convert the values with NumPy's conversion rules."""
        outputs[0].shape = inputs[0].shape
        with np.errstate(all="ignore"):
            np.copyto(_array(outputs[0]), _array(inputs[0]), casting="unsafe")
        return True


class _MaxOperator(_Operator):
    """The base class of the max operators. `make` is the function in `calls` that creates a call of the operator."""

    make: ClassVar[Callable[..., Call]]

    def inferred(self, ports: list[Any]) -> tuple[Any, Any]:
        """Return the type of the first input, and the known sizes of the output. Raise an error if types changed."""
        types = tuple(port.get_element_type().get_type_name() for port in ports)
        if "dynamic" in types:
            return ov.Type.dynamic, ov.PartialShape.dynamic()
        self.types: tuple[str, ...] = self.types or types
        if types != self.types:
            raise DTypeError(
                f"{self.get_friendly_name()} expected inputs of types {', '.join(self.types)}, got {', '.join(types)}: "
                "OpenVINO converted them; use maxops.openvino.rewrite, which prevents this on the CPU"
            )
        if any(kind not in calls.DTYPES for kind in types):
            raise DTypeError(
                f"{type(self).__name__} inputs must be of types {', '.join(calls.DTYPES)}, got {', '.join(types)}"
            )
        dims = None if any(port.get_partial_shape().rank.is_dynamic for port in ports) else self.dims(ports)
        return ports[0].get_element_type(), ov.PartialShape.dynamic() if dims is None else ov.PartialShape(dims)

    def evaluate(self, outputs: list[Any], inputs: list[Any]) -> bool:
        """Run the operator on maxops, which reads and writes OpenVINO's memory without copying."""
        arrays = [_array(inputs[number]) for number in range(len(inputs))]  # looping over OpenVINO's list is slow
        out = _array(outputs[0])
        if self.get_output_partial_shape(0).is_dynamic and out.shape != (shape := plan(self.call(arrays)).shape):
            outputs[0].shape = ov.Shape(shape)
            out = _array(outputs[0])
        self.run(arrays, out)
        return True

    def dims(self, ports: list[Any]) -> list[Any] | None:
        """Return the output's sizes, or None if the output's rank is unknown."""
        raise NotImplementedError

    def call(self, arrays: list[Array]) -> Call:
        """Return a call with these inputs and the operator's attributes."""
        return type(self).make(arrays, **self.attributes)

    def run(self, arrays: list[Array], out: Array) -> None:
        """Compute the result, and write it to `out`."""
        ops.run(self.call(arrays)._replace(out=out))


class Maximum(_MaxOperator):
    """OpenVINO's operator Maximum."""

    defaults: ClassVar[dict[str, Any]] = {"auto_broadcast": "numpy"}
    make: ClassVar[Callable[..., Call]] = staticmethod(calls.maximum)

    def dims(self, ports: list[Any]) -> list[Any]:
        """Return the output's sizes. If a known size other than 1 meets an unknown size, the known size is used."""
        calls.check_auto_broadcast(self.attributes["auto_broadcast"])
        shapes = list(map(_sizes, ports))
        if all(size.is_static for shape in shapes for size in shape):
            return list(plan(self.call(list(map(_abstract, ports)))).shape)
        sizes = plan(calls.maximum(list(map(_abstract, ports)), "numpy")).shape
        result: list[Any] = []
        for axis, size in enumerate(sizes, -len(sizes)):
            beside = [shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis].is_dynamic]
            result.append(size if size != 1 or not beside else beside[0] if len(beside) == 1 else ov.Dimension())
        return result

    def run(self, arrays: list[Array], out: Array) -> None:
        """Compute the result, and write it to `out`."""
        ops.maximum(*arrays, out=out)


class ReduceMax(_MaxOperator):
    """OpenVINO's operator ReduceMax."""

    defaults: ClassVar[dict[str, Any]] = {"keep_dims": False}
    make: ClassVar[Callable[..., Call]] = staticmethod(calls.reduce_max)

    def dims(self, ports: list[Any]) -> list[Any] | None:
        """Return the output's sizes, or None if its rank is unknown. If axes is not a constant, sizes are unknown."""
        sizes, axes = _sizes(ports[0]), _constant(ports[1])
        if axes is None:
            some = _abstract(ports[1])
            plan(self.call([_abstract(ports[0]), some.reshape(-1)[:0] if some.ndim < 2 else some]))
            if self.attributes["keep_dims"]:
                return [ov.Dimension()] * len(sizes)
            return [ov.Dimension()] * max(len(sizes) - some.size, 0) if ports[1].get_partial_shape().is_static else None
        planned = plan_reduce_max(calls.reduce_max([_abstract(ports[0]), axes], **self.attributes)).call
        return sizes if planned.noop_with_empty_axes else list(reduced(sizes, planned.axes, keepdims=planned.keepdims))


class SegmentMax(_MaxOperator):
    """OpenVINO's operator SegmentMax."""

    defaults: ClassVar[dict[str, Any]] = {"fill_mode": ""}
    # the values of ids are checked at run time
    make: ClassVar[Callable[..., Call]] = staticmethod(partial(calls.segment_max, check_ids=False))

    def dims(self, ports: list[Any]) -> list[Any]:
        """Return the output's sizes.

        The size of the first axis is known only if num_segments or, if it is omitted, segment_ids is a constant.
        """
        shapes = list(map(_sizes, ports))
        lengths = [shape[0].get_length() for shape in shapes[:2] if shape and shape[0].is_static]
        length = lengths[0] if lengths else 1
        (count, *_) = plan(self.call([_abstract(port, length) for port in ports])).shape
        decides = ports[2] if len(ports) > 2 else ports[1]
        return [ov.Dimension() if _constant(decides) is None else count, *shapes[0][1:]]

    def run(self, arrays: list[Array], out: Array) -> None:
        """Compute the result, and write it to `out`."""
        data, ids, *count = arrays
        # convert num_segments to a Python integer, because its dtype was checked when the operator was created
        number = [array.item() if array.ndim == 0 else array for array in count]
        try:
            ops.segment_max(data, ids, *number, **self.attributes, out=out)
        except MaxopsError:
            plan(calls.segment_max(arrays, **self.attributes))  # raises the error with the operator's own clause
            raise


def register(core: Any) -> None:
    """Register the custom operators with an `openvino.Core`."""
    if not hasattr(core, "add_extension"):
        raise TypeError(f"the core must be an openvino.Core, got {type(core).__name__}")
    for operator in (Maximum, ReduceMax, SegmentMax, Convert):
        core.add_extension(operator)


def _is_made_for_a_shape(port: Any) -> bool:
    """Return whether OpenVINO created a Parameter or Constant only to infer a shape.

    Such a node has no explicit name, and no other node reads it.
    """
    node = port.get_node()
    return (
        node.get_type_name() in ("Parameter", "Constant")
        and node.get_friendly_name() == node.get_name()
        and not port.get_target_inputs()
    )


def _array(holder: Any) -> Array:
    """Return an array that shares the memory of a tensor or a constant."""
    array: Array = holder.data
    # OpenVINO returns bfloat16 as float16
    return array.view(calls.DTYPES[holder.get_element_type().get_type_name()].numpy)


def _constant(port: Any) -> Array | None:
    node = port.get_node()
    return _array(node) if node.get_type_name() == "Constant" else None


def _abstract(port: Any, length: int = 1) -> Array:
    """Return an array with the type and shape of a port: the constant that feeds the port, or zeros.

    An unknown size is replaced by 1, except that of the first axis, which is replaced by `length`.
    """
    if (constant := _constant(port)) is not None:
        return constant
    sizes = [
        size.get_length() if size.is_static else length if axis == 0 else 1 for axis, size in enumerate(_sizes(port))
    ]
    return np.broadcast_to(np.zeros((), calls.DTYPES[port.get_element_type().get_type_name()].numpy), sizes)


def _sizes(port: Any) -> list[Any]:
    """Return the dimensions of a port, whose rank must be known."""
    shape = port.get_partial_shape()
    return [shape[axis] for axis in range(len(shape))]  # looping over the shape itself is slow
