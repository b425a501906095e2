"""Finds the external data files of a model, and the files to copy when the model is written to another folder."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

from onnx import AttributeProto, ModelProto, SparseTensorProto, TensorProto

from maxops.errors import ModelError, OutputError
from maxops.onnx.structure import all_graphs, all_nodes
from maxops.onnx.tensors import check_keys, type_of


def external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Return an iterator over the tensors whose data is in a separate file."""
    tensors = [tensor for graph in all_graphs(model) for tensor in graph.initializer]
    for attribute in _attributes(model):
        tensors += [attribute.t, *attribute.tensors]
    tensors += [part for sparse in _sparse_tensors(model) for part in (sparse.values, sparse.indices)]
    return (tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)


def check_external(model: ModelProto, source: str) -> None:
    """Reject keys of external data that runtimes would ignore. Error messages start with `source`."""
    for tensor in external_tensors(model):
        check_keys(tensor, f"{source}: tensor {tensor.name!r}")


def _attributes(model: ModelProto) -> list[AttributeProto]:
    """Return the attributes of all nodes, and the default attributes of functions."""
    defaults = [attribute for function in model.functions for attribute in function.attribute_proto]
    return defaults + [attribute for node in all_nodes(model) for attribute in node.attribute]


def _sparse_tensors(model: ModelProto) -> list[SparseTensorProto]:
    sparse = [tensor for graph in all_graphs(model) for tensor in graph.sparse_initializer]
    for attribute in _attributes(model):
        sparse += [attribute.sparse_tensor, *attribute.sparse_tensors]
    return sparse


def without_external(model: ModelProto) -> ModelProto:
    """Return the model without external data, so that it can be checked without its files.

    Empty tensors replace external tensors in a copy. A model without external tensors is returned unchanged.
    """
    if not any(external_tensors(model)):
        return model
    result = deepcopy(model)
    for sparse in _sparse_tensors(result):
        if TensorProto.EXTERNAL in (sparse.values.data_location, sparse.indices.data_location):
            _empty(sparse.values)
            _empty(sparse.indices)
    for tensor in [*external_tensors(result)]:
        _empty(tensor)
    return result


def with_external_inputs(model: ModelProto) -> ModelProto:
    """Return the model with inputs instead of external initializers, because shape inference does not read files.

    The new inputs have the types and shapes of the initializers. Existing inputs are unchanged. A model without
    external initializers is returned unchanged.
    """
    initializers = model.graph.initializer
    external = [tensor for tensor in initializers if tensor.data_location == TensorProto.EXTERNAL]
    if not external:
        return model
    result = deepcopy(model)
    kept = [tensor for tensor in initializers if tensor.data_location != TensorProto.EXTERNAL]
    del result.graph.initializer[:]
    result.graph.initializer.extend(kept)
    inputs = {info.name for info in model.graph.input}
    for tensor in external:
        if isinstance(tensor.name, str) and tensor.name not in inputs:  # a name that is not UTF-8 cannot be written
            result.graph.input.add(name=tensor.name, type=type_of(tensor))
    return result


def _empty(tensor: TensorProto) -> None:
    empty = TensorProto(data_type=tensor.data_type, dims=[0])
    if isinstance(tensor.name, str):  # a name that is not UTF-8 cannot be written
        empty.name = tensor.name
    tensor.CopyFrom(empty)


def files(model: ModelProto, path: Path, source: str) -> dict[str, Path]:
    """Return the paths of a model's data files, keyed by their locations in the model.

    Each file must be inside the folder of the model's file. If the model's file is a symbolic link, a data file may
    also be a link to a file in the folder of the link's target, as in the cache of Hugging Face Hub.
    """
    found: dict[str, Path] = {}
    inside = path.parent.resolve()
    for tensor in external_tensors(model):
        location = _location(tensor)
        where = f"{source}: tensor {tensor.name!r} stores its data in {location!r}"
        if not location or leaves_folder(location):
            raise ModelError(f"{where}; external data must be in a file inside the model's folder")
        data = _led_to(inside / location, where)
        if not (data.is_relative_to(inside) or data.is_relative_to(path.resolve().parent)):
            raise ModelError(f"{where}; external data must be in a file inside the model's folder")
        if not data.is_file():
            raise ModelError(f"{where}, which is not a file")
        found[location] = data
    return found


def leaves_folder(location: str) -> bool:
    """Return whether a location is a path outside the model's folder. Symbolic links are not resolved.

    >>> leaves_folder("../model/weights.bin"), leaves_folder("parts/../weights.bin")
    (True, False)
    """
    return os.path.isabs(location) or os.path.normpath(location).split(os.sep)[0] == os.pardir


def _led_to(path: Path, where: str) -> Path:
    """Return a path with all symbolic links resolved. Error messages start with `where`."""
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ModelError(f"{where}, which cannot be read: {error.strerror}") from error
    except ValueError as error:  # a NUL character
        raise ModelError(f"{where}, which cannot be read: {error}") from error
    return Path(os.path.realpath(path))


def copies(found: dict[str, Path], folder: Path) -> dict[Path, Path]:
    """Return the data files to copy when a model is written to `folder`, keyed by their new paths.

    Raises OutputError if a new path resolves to a path outside the folder, or if a different file already exists there.
    """
    copies_by_target: dict[Path, Path] = {}
    for location, path in found.items():
        target = folder / os.path.normpath(location)
        if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(folder)):
            raise OutputError(f"{target} resolves to a path outside {folder}, but the model's data must be inside it")
        try:
            if target.exists() and not target.samefile(path) and not filecmp.cmp(path, target, shallow=False):
                raise OutputError(f"{target} already exists and differs from {path}, the model's data")
        except OSError as error:
            raise OutputError(f"{target} cannot be compared with {path}: {error.strerror}") from error
        if not target.exists():
            try:
                path.open("rb").close()  # check this here, because the error of a failed copy names the target
            except OSError as error:
                raise ModelError(f"{path} cannot be read: {error.strerror}") from error
            copies_by_target[target] = path
    return copies_by_target


def follow_links(model: ModelProto, path: Path) -> Path:
    """Return the folder that contains the data files of a model, after following symbolic links.

    If the model's file and all data files are links into one folder, this is the folder of the links' targets. In
    this case, the locations in the model's tensors are updated, because the targets may have other names. If a location
    is invalid, nothing is updated. The functions that read the data raise the error.
    """
    beside, real = path.parent.resolve(), path.resolve().parent
    if real == beside:
        return path.parent
    found = []
    for tensor in external_tensors(model):
        location = _location(tensor)
        if not location or "\0" in location or leaves_folder(location):
            return path.parent
        data = Path(os.path.realpath(beside / location))
        if not data.is_relative_to(real) or not _is_utf8(str(data)):
            return path.parent
        found.append((tensor, str(data.relative_to(real))))
    for tensor, name in found:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = name
    return real


def _is_utf8(name: str) -> bool:
    """Return whether a file name that Python decoded is UTF-8, as names in models must be."""
    try:
        name.encode()
    except UnicodeEncodeError:  # lone surrogates represent other bytes
        return False
    return True


def _location(tensor: TensorProto) -> str:
    """Return the location of a tensor's data as a string. Protobuf returns bytes for a location that is not UTF-8."""
    return next((os.fsdecode(entry.value) for entry in tensor.external_data if entry.key == "location"), "")
