"""Helper for tests of commands: writes models to files."""

from __future__ import annotations

from pathlib import Path

from onnx import parser

HEAD = '<ir_version: 10, opset_import: ["": 18]> '


def save_onnx(path: Path, text: str) -> Path:
    """Parse an ONNX model from its text, and write it to a file."""
    path.write_bytes(parser.parse_model(HEAD + text).SerializeToString())
    return path
