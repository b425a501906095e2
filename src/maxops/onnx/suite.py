"""ONNX's test layout: a folder with model.onnx and test_data_set_*/{input,output}_*.pb."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maxops.counted import counted
from maxops.errors import ModelInputError
from maxops.model import Model, Value
from maxops.onnx.backend import in_order
from maxops.onnx.tensors import read_held_file, read_tensor_file

MODEL = "model.onnx"


@dataclass(frozen=True)
class DataSet:
    """One set of inputs and the outputs that they should give, by name."""

    name: str
    inputs: dict[str, Any]
    expected: dict[str, Any]


def data_set_folders(folder: Path) -> list[Path]:
    """The folders of the data sets, by number."""
    found = [path for path in folder.glob("test_data_set_*") if path.is_dir()]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def read_data_set(folder: Path, model: Model) -> DataSet:
    """Read a data set; files go by number to the model's inputs and outputs, whatever names are in them."""
    outputs = _numbered(folder, "output", model.outputs)
    if len(outputs) != len(model.outputs):
        listed = ", ".join(map(str, model.outputs))
        raise ModelInputError(
            f"{folder}: has {counted(len(outputs), 'file')} output_*.pb; the model's outputs are {listed}"
        )
    names = [value.name for value in model.outputs]
    return DataSet(
        folder.name, in_order(model, _numbered(folder, "input", model.inputs)), dict(zip(names, outputs, strict=True))
    )


def _numbered(folder: Path, kind: str, values: Sequence[Value]) -> list[Any]:
    found = {}
    for path in folder.glob(f"{kind}_*.pb"):
        if match := re.fullmatch(rf"{kind}_(0|[1-9][0-9]*)\.pb", path.name):
            found[int(match[1])] = path
    if sorted(found) != list(range(len(found))):
        raise ModelInputError(f"{folder}: has {kind}_*.pb numbered {sorted(found)}; numbers run from 0 without a gap")
    containers = [value.container for value in values] + [""] * len(found)
    return [
        read_held_file(found[number], containers[number]) if containers[number] else read_tensor_file(found[number])[1]
        for number in range(len(found))
    ]
