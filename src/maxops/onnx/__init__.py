"""ONNX models whose operators are Max, ReduceMax, Constant and Identity, run as the standard says."""

from maxops.onnx.backend import Backend
from maxops.onnx.load import from_proto, load
from maxops.onnx.model import Model, Value

__all__ = ["Backend", "Model", "Value", "from_proto", "load"]
