"""ONNX's test layout: a folder with model.onnx and test_data_set_*/{input,output}_*.pb."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from maxops.counted import counted
from maxops.errors import ModelInputError
from maxops.model import Model
from maxops.onnx.backend import in_order
from maxops.onnx.tensors import read_tensor_file
from maxops.plan import Array

MODEL = "model.onnx"


@dataclass(frozen=True)
class DataSet:
    """One set of inputs and the outputs that they should give, by name."""

    name: str
    inputs: dict[str, Array]
    expected: dict[str, Array]


def data_set_folders(folder: Path) -> list[Path]:
    """The folders of the data sets, by number."""
    found = [path for path in folder.glob("test_data_set_*") if path.is_dir()]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def read_data_set(folder: Path, model: Model) -> DataSet:
    """Read a data set; files go by number to the model's inputs and outputs, whatever names are in them."""
    outputs = _numbered(folder, "output")
    if len(outputs) != len(model.outputs):
        listed = ", ".join(map(str, model.outputs))
        raise ModelInputError(
            f"{folder}: has {counted(len(outputs), 'file')} output_*.pb; the model's outputs are {listed}"
        )
    names = [value.name for value in model.outputs]
    return DataSet(folder.name, in_order(model, _numbered(folder, "input")), dict(zip(names, outputs, strict=True)))


def _numbered(folder: Path, kind: str) -> list[Array]:
    found = {}
    for path in folder.glob(f"{kind}_*.pb"):
        if match := re.fullmatch(rf"{kind}_(0|[1-9][0-9]*)\.pb", path.name):
            found[int(match[1])] = path
    if sorted(found) != list(range(len(found))):
        raise ModelInputError(f"{folder}: has {kind}_*.pb numbered {sorted(found)}; numbers run from 0 without a gap")
    return [read_tensor_file(found[number])[1] for number in range(len(found))]
