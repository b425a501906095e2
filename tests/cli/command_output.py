"""Helpers for tests of commands: models in files, from their text."""

from __future__ import annotations

from pathlib import Path

from onnx import parser

HEAD = '<ir_version: 10, opset_import: ["": 18]> '


def save_onnx(path: Path, text: str) -> Path:
    """Write the ONNX model of a text to a file."""
    path.write_bytes(parser.parse_model(HEAD + text).SerializeToString())
    return path
