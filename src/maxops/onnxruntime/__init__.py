"""ONNX Runtime with our operators: the max operators of a session run on maxops."""

from maxops.extras import needed

with needed("maxops.onnxruntime", "onnxruntime"):
    from maxops.onnx.rewrite import rewrite
    from maxops.onnxruntime.session import register, session

__all__ = ["register", "rewrite", "session"]
