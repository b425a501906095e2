"""Data of a model that lies in files beside it: which there are, and what it takes to move the model elsewhere."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterator
from pathlib import Path

from onnx import ModelProto, TensorProto

from maxops.errors import ModelError, OutputError
from maxops.onnx.evaluated import all_nodes, inner_graphs


def external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """The tensors whose data lies in another file."""
    graphs = [model.graph, *(graph for node in all_nodes(model) for graph in inner_graphs(node))]
    tensors = [tensor for graph in graphs for tensor in graph.initializer]
    sparse = [tensor for graph in graphs for tensor in graph.sparse_initializer]
    for node in all_nodes(model):
        for attribute in node.attribute:
            tensors += [attribute.t, *attribute.tensors]
            sparse += [attribute.sparse_tensor, *attribute.sparse_tensors]
    tensors += [part for tensor in sparse for part in (tensor.values, tensor.indices)]
    return (tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)


def files(model: ModelProto, folder: Path, source: str) -> dict[str, Path]:
    """The data's files by the location that the model gives; each lies inside the model's own folder."""
    found: dict[str, Path] = {}
    inside = folder.resolve()
    for tensor in external_tensors(model):
        location = next((str(entry.value) for entry in tensor.external_data if entry.key == "location"), "")
        path = (inside / location).resolve()
        if not location or Path(location).is_absolute() or not path.is_relative_to(inside):
            raise ModelError(
                f"{source}: tensor {tensor.name!r} has its data in {location!r}; it is a file inside the model's folder"
            )
        if not path.is_file():
            raise ModelError(f"{source}: tensor {tensor.name!r} has its data in {location!r}, which is no file there")
        found[location] = path
    return found


def copy_files(found: dict[str, Path], folder: Path) -> None:
    """Bring the data to another folder, under the same locations; what lies there already must be the same."""
    for location, path in found.items():
        target = folder / location
        if target.exists() and target.samefile(path):
            continue
        if target.exists() and not filecmp.cmp(path, target, shallow=False):
            raise OutputError(f"{target}: is there already and differs from {path}, the data of the model")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        except OSError as error:
            raise OutputError(f"{target}: cannot be written: {error.strerror}") from error
