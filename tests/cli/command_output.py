"""Helpers for tests of commands: run a command in this process, and write models and arrays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from onnx import parser
from typer.testing import CliRunner, Result

from maxops.cli.app import app

HEAD = '<ir_version: 10, opset_import: ["": 18]> '


def save_onnx(path: Path, text: str) -> Path:
    """Parse an ONNX model from its text, and write it to a file."""
    path.write_bytes(parser.parse_model(HEAD + text).SerializeToString())
    return path


def maxops(*words: object, stdin: bytes | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [*map(str, words)], input=stdin)


def npy(array: Any) -> bytes:
    """Return an array as the bytes of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()
