"""ONNX Runtime with our operators: a session whose Max, ReduceMax and SegmentMax run on maxops."""

from maxops.extras import needed

with needed("maxops.onnxruntime", "onnxruntime"):
    from maxops.onnx.rewrite import rewrite
    from maxops.onnxruntime.session import register, session

__all__ = ["register", "rewrite", "session"]
