"""What tests of commands share: models in files, by their text."""

from __future__ import annotations

from pathlib import Path

from onnx import parser

HEAD = '<ir_version: 10, opset_import: ["": 18]> '


def save_onnx(path: Path, text: str) -> Path:
    """Write the model of a graph's text."""
    path.write_bytes(parser.parse_model(HEAD + text).SerializeToString())
    return path
