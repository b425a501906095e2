"""ONNX models: their max operators run as the standard says, on our kernels; all else on onnx's reference evaluator."""

from maxops.model import Model, Value
from maxops.onnx.backend import Backend
from maxops.onnx.load import from_proto, load
from maxops.onnx.reference import reference_ops
from maxops.onnx.segment_max import portable, register, segment_max_function, segment_max_node

__all__ = [
    "Backend",
    "Model",
    "Value",
    "from_proto",
    "load",
    "portable",
    "reference_ops",
    "register",
    "segment_max_function",
    "segment_max_node",
]
