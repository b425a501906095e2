"""Maximum, ReduceMax and SegmentMax as custom operators of OpenVINO.

OpenVINO's CPU plugin computes in f32, i32, i8 and u8. It converts all other types in a model to these, so that 64-bit
integers lose their upper half. Each operator stores the types of its inputs, and rejects other types later.
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
        """The base class `openvino.Op`, which is not always available, and has few type annotations."""

        def __init__(self, *inputs: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    _Op = ov.Op


class _Operator(_Op):
    """An operator with attributes. `defaults` contains their names and default values, which an IR may replace."""

    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, inputs: Any = None, types: tuple[str, ...] = (), **attributes: Any) -> None:
        self.attributes: dict[str, Any] = self.defaults | attributes
        self.types: tuple[str, ...] = types
        super().__init__(self, inputs)

    def get_type_info(self) -> Any:
        """Return OpenVINO's name of the operator. After operators of other names, the plugin converts i64 to i32."""
        return ov.DiscreteTypeInfo(type(self).__name__, VERSION)

    def visit_attributes(self, visitor: Any) -> bool:
        """Let OpenVINO write the attributes to an IR, or read them from an IR."""
        visitor.on_attributes(self.attributes)
        return True

    def validate_and_infer_types(self) -> None:
        """Set the output's type and shape."""
        self.set_output_type(0, *self.inferred(self.input_values()))

    def clone_with_new_inputs(self, inputs: list[Any]) -> Any:
        """Return a copy with other inputs."""
        if all(map(_is_made_for_a_shape, inputs)):
            # Each time shapes change, the plugin clones the operator only to infer its output shape. A Python clone
            # would never be freed, because the clone and its C++ counterpart reference each other.
            return ov.op.Parameter(*self.inferred(inputs))
        return type(self)(inputs, self.types, **self.attributes)

    def has_evaluate(self) -> bool:
        """Return True, so that the plugin calls `evaluate`."""
        return True

    def inferred(self, ports: list[Any]) -> tuple[Any, Any]:
        """Return the output's type and shape."""
        raise NotImplementedError


class Convert(_Operator):
    """An operator that converts its first input to the type of its second input, whose value is ignored.

    A third input is also ignored. If it is an input of the model, OpenVINO does not fold the result to a constant.
    OpenVINO would convert the type of such a constant.
    """

    def inferred(self, ports: list[Any]) -> tuple[Any, Any]:
        """Return the type of the second input and the shape of the first. The plugin may convert an unmarked input."""
        return ports[1].get_element_type(), ports[0].get_partial_shape()

    def evaluate(self, outputs: list[Any], inputs: list[Any]) -> bool:
        """Convert as NumPy does."""
        outputs[0].shape = inputs[0].shape
        with np.errstate(all="ignore"):
            np.copyto(_array(outputs[0]), _array(inputs[0]), casting="unsafe")
        return True


class _MaxOperator(_Operator):
    """The base class of the three max operators. `make` is the function of `calls` that creates their calls."""

    make: ClassVar[Callable[..., Call]]

    def inferred(self, ports: list[Any]) -> tuple[Any, Any]:
        """Return the type of the data and the known sizes."""
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
        """Run the maxops kernel on OpenVINO's memory."""
        arrays = [_array(inputs[number]) for number in range(len(inputs))]  # looping over OpenVINO's list is slow
        out = _array(outputs[0])
        if self.get_output_partial_shape(0).is_dynamic and out.shape != (shape := plan(self.call(arrays)).shape):
            outputs[0].shape = ov.Shape(shape)
            out = _array(outputs[0])
        self.run(arrays, out)
        return True

    def dims(self, ports: list[Any]) -> list[Any] | None:
        """Return the output's sizes, or None if not even the rank is known."""
        raise NotImplementedError

    def call(self, arrays: list[Array]) -> Call:
        """Return the call with the operator's attributes."""
        return type(self).make(arrays, **self.attributes)

    def run(self, arrays: list[Array], out: Array) -> None:
        """Compute the result, and write it to `out`."""
        ops.run(self.call(arrays)._replace(out=out))


class Maximum(_MaxOperator):
    """OpenVINO's operator Maximum."""

    defaults: ClassVar[dict[str, Any]] = {"auto_broadcast": "numpy"}
    make: ClassVar[Callable[..., Call]] = staticmethod(calls.maximum)

    def dims(self, ports: list[Any]) -> list[Any]:
        """Return the output's sizes. A known size other than 1 takes precedence over an unknown size."""
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
        """Return the output's sizes, or None for an unknown rank. Sizes are unknown if the axes are not a constant."""
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
        """Return the output's sizes. The first is known if num_segments or, if omitted, the ids are a constant."""
        shapes = list(map(_sizes, ports))
        lengths = [shape[0].get_length() for shape in shapes[:2] if shape and shape[0].is_static]
        length = lengths[0] if lengths else 1
        (count, *_) = plan(self.call([_abstract(port, length) for port in ports])).shape
        decides = ports[2] if len(ports) > 2 else ports[1]
        return [ov.Dimension() if _constant(decides) is None else count, *shapes[0][1:]]

    def run(self, arrays: list[Array], out: Array) -> None:
        """Compute the result, and write it to `out`."""
        data, ids, *count = arrays
        # a Python integer, because the dtype of num_segments was checked when the operator was created
        number = [array.item() if array.ndim == 0 else array for array in count]
        try:
            ops.segment_max(data, ids, *number, **self.attributes, out=out)
        except MaxopsError:
            plan(calls.segment_max(arrays, **self.attributes))  # raises the error with the operator's own clause
            raise


def register(core: Any) -> None:
    """Add the operators to a Core."""
    for operator in (Maximum, ReduceMax, SegmentMax, Convert):
        core.add_extension(operator)


def _is_made_for_a_shape(port: Any) -> bool:
    """Return whether a Parameter or Constant is not in a model yet: it has neither an explicit name nor a consumer."""
    node = port.get_node()
    return (
        node.get_type_name() in ("Parameter", "Constant")
        and node.get_friendly_name() == node.get_name()
        and not port.get_target_inputs()
    )


def _array(holder: Any) -> Array:
    """Return the memory of a tensor or a constant."""
    array: Array = holder.data
    # OpenVINO returns bfloat16 as float16
    return array.view(calls.DTYPES[holder.get_element_type().get_type_name()].numpy)


def _constant(port: Any) -> Array | None:
    node = port.get_node()
    return _array(node) if node.get_type_name() == "Constant" else None


def _abstract(port: Any, length: int = 1) -> Array:
    """Return an array of the port's type and shape: the constant that feeds the port, or zeros.

    Unknown sizes become 1, except that an unknown first size becomes `length`.
    """
    if (constant := _constant(port)) is not None:
        return constant
    sizes = [
        size.get_length() if size.is_static else length if axis == 0 else 1 for axis, size in enumerate(_sizes(port))
    ]
    return np.broadcast_to(np.zeros((), calls.DTYPES[port.get_element_type().get_type_name()].numpy), sizes)


def _sizes(port: Any) -> list[Any]:
    """Return the dimensions of a shape of known rank."""
    shape = port.get_partial_shape()
    return [shape[axis] for axis in range(len(shape))]  # looping over the shape itself is slow
