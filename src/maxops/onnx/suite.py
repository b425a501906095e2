"""Reads test folders in the layout of ONNX's backend tests: model.onnx and test_data_set_*/{input,output}_*.pb."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from maxops.counted import counted
from maxops.errors import ModelInputError
from maxops.model import Model, Value
from maxops.onnx.backend import in_list, in_order
from maxops.onnx.tensors import read_held_file, read_tensor_file

MODEL = "model.onnx"


@dataclass(frozen=True)
class DataSet:
    """The inputs and expected outputs of a test case, keyed by the names of the model's inputs and outputs."""

    name: str
    inputs: dict[str, Any]
    expected: dict[str, Any]


def data_set_folders(folder: Path) -> list[Path]:
    """Return the folders of the data sets, in the order of their numbers."""
    found = [path for path in folder.glob("test_data_set_*") if path.is_dir()]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def read_data_set(folder: Path, model: Model) -> DataSet:
    """Read a data set. The number in a file's name is the index of the model's input or output.

    The names of tensors in the files are ignored.
    """
    files = _numbered(folder, "output")
    if len(files) != len(model.outputs):
        listed = ", ".join(map(str, model.outputs))
        raise ModelInputError(
            f"{folder}: expected one output_*.pb for each output ({listed}), got {counted(len(files), 'file')}"
        )
    expected = {value.name: _read(file, value) for value, file in zip(model.outputs, files, strict=True)}
    files = _numbered(folder, "input")
    declared = in_list(model, len(files))
    inputs = [_read(file, value) for file, value in zip_longest(files, declared[: len(files)])]
    return DataSet(folder.name, in_order(model, inputs), expected)


def _numbered(folder: Path, kind: str) -> list[Path]:
    found = {}
    for path in folder.glob(f"{kind}_*.pb"):
        if match := re.fullmatch(rf"{kind}_(0|[1-9][0-9]*)\.pb", path.name):
            found[int(match[1])] = path
    if sorted(found) != list(range(len(found))):
        raise ModelInputError(f"{folder}: {kind}_*.pb must be numbered from 0 without gaps, got {sorted(found)}")
    return [found[number] for number in range(len(found))]


def _read(file: Path, value: Value | None) -> Any:
    if value and value.container:
        return read_held_file(file, value.container)
    return read_tensor_file(file, any_type=True)[1]
