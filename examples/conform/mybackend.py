"""A NumPy-based runtime for the operator Max, with one fault: it compares uint64 values as int64.

It implements the `onnx.backend.base.Backend` protocol: `prepare` accepts a model, and `run` accepts its inputs.
"""

from functools import reduce

import numpy as np
import onnx
from onnx import numpy_helper

__version__ = "0.1"


class Prepared:
    """A prepared model."""

    def __init__(self, graph):
        self.node = graph.node[0]
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.names = [value.name for value in graph.input if value.name not in self.constants]

    def run(self, inputs):
        """Run the model, and return a list that contains its only output."""
        values = self.constants | dict(zip(self.names, inputs, strict=True))
        arrays = [values[name] for name in self.node.input]
        dtype = arrays[0].dtype
        if dtype == np.uint64:
            arrays = [array.view(np.int64) for array in arrays]
        return [np.asarray(reduce(np.maximum, arrays)).view(dtype)]


def prepare(model, device="CPU"):
    """Check and prepare a model with a single Max node. Reject all other models."""
    onnx.checker.check_model(model, full_check=True)
    if [node.op_type for node in model.graph.node] != ["Max"]:
        raise NotImplementedError("supports only models with a single Max node")
    return Prepared(model.graph)
