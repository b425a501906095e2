"""Creates ONNX Runtime sessions that run max operators on maxops."""

from maxops.extras import needed

with needed("maxops.onnxruntime", "onnxruntime"):
    from maxops.onnx.rewrite import rewrite
    from maxops.onnxruntime.session import register, session

__all__ = ["register", "rewrite", "session"]
