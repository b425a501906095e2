"""Runs ONNX models: max operators on maxops, and other operators on onnx's reference evaluator or ONNX Runtime."""

from maxops.extras import needed

with needed("maxops.onnx", "onnx"):
    from maxops.model import Model, Value
    from maxops.onnx.backend import Backend
    from maxops.onnx.from_torch import torch_translations
    from maxops.onnx.load import from_proto, load
    from maxops.onnx.reference import ReferenceEvaluator, reference_ops
    from maxops.onnx.rewrite import rewrite
    from maxops.onnx.schemas import register
    from maxops.onnx.segment_max import portable, segment_max_function, segment_max_node

__all__ = [
    "Backend",
    "Model",
    "ReferenceEvaluator",
    "Value",
    "from_proto",
    "load",
    "portable",
    "reference_ops",
    "register",
    "rewrite",
    "segment_max_function",
    "segment_max_node",
    "torch_translations",
]
