"""An ONNX backend that runs on maxops, for tools that accept an `onnx.backend.base.Backend`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import index
from typing import Any

import onnx
from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend as BaseBackend
from onnx.backend.base import BackendRep, namedtupledict

from maxops.errors import ConfigurationError, MaxopsError, ModelError, ModelInputError
from maxops.model import Model, Value
from maxops.onnx import nodes
from maxops.onnx.load import from_proto, known_opset
from maxops.onnx.structure import canonical_node
from maxops.plan import Array


class Representation(BackendRep):
    """A prepared model, which can run many times."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model on a list of arrays in the order of the graph's inputs, or on a mapping of names to arrays.

        A list may omit all inputs that are optional or have defaults, or only those at its end. The result is a tuple
        of the outputs in the graph's order. The names of the outputs can also be used as indices.
        """
        _refuse(kwargs)
        results = self.model.run(self._by_name(inputs))
        return namedtupledict("Outputs", list(results))(*results.values())

    def _by_name(self, inputs: object) -> Mapping[str, Array]:
        if isinstance(inputs, Mapping):
            return inputs
        if not isinstance(inputs, (list, tuple)):
            raise ModelInputError(
                f"inputs must be a list of arrays or a mapping of names to arrays, got {type(inputs).__name__}"
            )
        return in_order(self.model, inputs)


def in_list(model: Model, count: int) -> tuple[Value, ...]:
    """Return the inputs that a list of `count` arrays provides: only the required inputs, or all inputs."""
    return model.required if count == len(model.required) else model.inputs


def in_order(model: Model, inputs: Sequence[Array]) -> dict[str, Array]:
    """Map the names of the inputs to arrays, in graph order. Inputs that are not required may be omitted."""
    values = in_list(model, len(inputs))
    if len(inputs) > len(values):
        listed = ", ".join(map(str, values)) or "none"
        raise ModelInputError(f"{model.source}: expected one array for each input ({listed}), got {len(inputs)}")
    return {value.name: array for value, array in zip(values, inputs, strict=False)}


class Backend(BaseBackend):
    """A backend that runs ONNX models on the CPU: max operators on maxops, others on onnx's reference evaluator.

    >>> import numpy as np
    >>> from onnx import helper
    >>> Backend.run_node(helper.make_node("Max", ["a", "b"], ["c"]), [np.float32([1, 4]), np.float32([3, 2])])[0]
    array([3., 4.], dtype=float32)
    """

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return whether `prepare` accepts the model and the device."""
        _refuse(kwargs)
        try:
            from_proto(model)
        except MaxopsError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Representation:
        """Check a model, and return a `Representation`, which can run many times."""
        _refuse(kwargs)
        cls._check_device(device)
        return Representation(from_proto(model))

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: object = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Run one node on a list of arrays, one for each input, with None for each omitted optional input.

        `opset_version` is the operator set. The default is the newest operator set that the onnx package supports.
        `outputs_info` is ignored, because the arrays determine the types and shapes of the outputs.
        """
        given = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        _refuse(kwargs)
        cls._check_device(device)
        if not isinstance(node, NodeProto):
            raise ModelError(f"the node must be an onnx.NodeProto, got {type(node).__name__}")
        node = canonical_node(node)
        label = nodes.label(node)
        opset = _opset(given, label)
        nodes.check(node, label, opset, onnx.IR_VERSION)
        if isinstance(inputs, Mapping) or not isinstance(inputs, Collection):
            raise ModelInputError(f"{label}: inputs must be a list of arrays, got {type(inputs).__name__}")
        if len(inputs) != len(node.input):
            raise ModelInputError(
                f"{label}: expected one array for each input ({', '.join(node.input)}), got {len(inputs)}"
            )
        if node.op_type == "Constant":
            return namedtupledict("Outputs", list(node.output))(nodes.constant(node, label, None))
        result = nodes.step(node, label, opset).compute([*inputs])
        return namedtupledict("Outputs", list(node.output))(result)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether the device is a CPU."""
        return isinstance(device, str) and device.partition(":")[0] == "CPU"

    @classmethod
    def _check_device(cls, device: str) -> None:
        if not cls.supports_device(device):
            raise ConfigurationError(f"device must be 'CPU', got {device!r}")


def _opset(given: Any, where: str) -> int:
    try:
        version = index(given)
    except TypeError as error:
        raise ConfigurationError(f"opset_version must be an integer, got {given!r}") from error
    return known_opset(version, where)


def _refuse(options: Mapping[str, object]) -> None:
    if options:
        raise ConfigurationError(f"maxops.onnx.Backend does not support the options {', '.join(options)}")
