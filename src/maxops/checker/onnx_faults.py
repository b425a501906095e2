"""Detects faults of ONNX models that no clause of an operator covers, such as repeated names."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator
from math import prod
from pathlib import Path

from onnx import AttributeProto, GraphProto, ModelProto, SparseTensorProto, TensorProto
from onnx.external_data_helper import load_external_data_for_tensor

from maxops.errors import ModelError
from maxops.onnx import nodes, schemas, structure
from maxops.onnx.external import external_tensors, leaves_folder
from maxops.onnx.tensors import DTYPES, bytes_of, check_keys, check_size, other_type
from maxops.sizes import MAX_ELEMENTS

LARGEST_READ = 4096  # the maximum number of bytes of external data, as for an IR
FIRST_IR_WITH_CONSTANTS = 4  # in earlier versions, every initializer must also be an input


def take_small_integers_in(proto: ModelProto, folder: Path) -> None:
    """Load small integer tensors from external files into the model, because they may be axes, ids or sizes.

    A tensor remains external if it has a fault, which is reported separately, or if its file cannot be read.
    """
    for tensor in external_tensors(proto):
        dtype = DTYPES.get(tensor.data_type)
        if dtype is None or dtype.kind not in ("int", "uint"):
            continue
        size = bytes_of(tensor.data_type, tensor.dims)
        if not 0 < size <= LARGEST_READ or any(tensor_faults(tensor, "", folder)):
            continue
        entries = [each for each in tensor.external_data if each.key != "length"]
        tensor.ClearField("external_data")
        tensor.external_data.extend(entries)
        tensor.external_data.add(key="length", value=str(size))  # without a length, onnx reads the rest of the file
        try:
            load_external_data_for_tensor(tensor, str(folder))
        except (*schemas.REFUSALS, ValueError, OSError):
            continue
        tensor.ClearField("data_location")
        tensor.ClearField("external_data")


def graph_faults(
    graph: GraphProto, outer: Container[str], folder: Path | None, ir_version: int, *, returns_outer: bool
) -> Iterator[str]:
    """Yield a description of each fault of a graph. `outer` contains the names of outer graphs that it can read."""
    for check in (
        lambda: structure.check_names(graph, ""),
        lambda: structure.check_unique(graph, ""),
        lambda: structure.check_order(graph, "", outer, returns_outer=returns_outer),
    ):
        yield from _words(check)
    yield from _shadows(graph, outer)
    for info in (*graph.input, *graph.output, *graph.value_info):
        yield from _of_sizes(
            repr(info.name), (dim.dim_value for dim in structure.dims_in(info.type) if dim.HasField("dim_value"))
        )
    inputs = {info.name for info in graph.input}
    for tensor in graph.initializer:
        if ir_version < FIRST_IR_WITH_CONSTANTS and tensor.name not in inputs:
            yield f"initializer {tensor.name!r} must be an input of its graph in IR version {ir_version}"
        yield from tensor_faults(tensor, f"initializer {tensor.name!r}", folder)
    for sparse in graph.sparse_initializer:
        yield from sparse_faults(sparse, f"sparse initializer {sparse.values.name!r}", folder)
    for node in graph.node:
        for attribute in node.attribute:
            yield from attribute_faults(attribute, f"attribute {attribute.name!r} of {nodes.label(node)}", folder)


def _shadows(graph: GraphProto, outer: Container[str]) -> Iterator[str]:
    """Yield a description of each node output that has the name of a value in an outer graph."""
    for node in graph.node:
        for name in node.output:
            if name and name in outer:
                yield f"{nodes.label(node)} redefines {name!r}, a value of an outer graph"


def attribute_faults(attribute: AttributeProto, where: str, folder: Path | None) -> Iterator[str]:
    """Yield the faults of the tensors in an attribute."""
    for tensor in (attribute.t, *attribute.tensors):  # a missing tensor has no faults
        yield from tensor_faults(tensor, f"the tensor in {where}", folder)
    for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
        yield from sparse_faults(sparse, f"the sparse tensor in {where}", folder)


def sparse_faults(sparse: SparseTensorProto, where: str, folder: Path | None) -> Iterator[str]:
    """Yield the faults of a sparse tensor's values and indices."""
    yield from tensor_faults(sparse.values, f"the values tensor of {where}", folder)
    yield from tensor_faults(sparse.indices, f"the indices tensor of {where}", folder)


def tensor_faults(tensor: TensorProto, where: str, folder: Path | None) -> Iterator[str]:
    """Yield the faults of a tensor. Its external data is not read."""
    faults = _of_sizes(where, tensor.dims)
    external = tensor.data_location == TensorProto.EXTERNAL
    if external:
        faults += _words(lambda: check_keys(tensor, where))
    if not faults and other_type(tensor.data_type):
        faults += _words(lambda: check_size(tensor, where, external=external))
    if external and not faults:
        faults += _of_location(tensor, where, folder)
    yield from faults


def _words(check: Callable[[], None]) -> list[str]:
    try:
        check()
    except ModelError as error:
        return [str(error).removeprefix(": ")]
    return []


def _of_sizes(what: str, sizes: Iterable[int]) -> list[str]:
    dims = tuple(sizes)
    if any(size < 0 for size in dims):
        return [f"{what} has negative size {min(dims)}"]
    return [f"{what} has too many elements: its sizes are {dims}"] if prod(dims) > MAX_ELEMENTS else []


def _of_location(tensor: TensorProto, where: str, folder: Path | None) -> list[str]:
    """Return the faults of a tensor's reference to external data: its path, offset and length. No data is read."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not location:
        return [f"the external data of {where} has no location"]
    named = f"the external data {location!r} of {where}"
    if leaves_folder(location):
        return [f"{named} is outside the model's folder"]
    length = int(entries.get("length", 0))
    if other_type(tensor.data_type) and tensor.data_type != TensorProto.STRING:
        length = bytes_of(tensor.data_type, tensor.dims)  # without a length, runtimes read as much as they need
    if folder is None:
        return []
    path = folder / os.path.normpath(location)
    try:
        status = path.stat()
    except FileNotFoundError:  # reported once for all tensors in the file, because the message names no tensor
        return [f"the external data {location!r} is missing from the model's folder"]
    except PermissionError as error:  # not a fault of the model
        raise ModelError(f"{path} cannot be accessed: {error.strerror}") from error
    except (OSError, ValueError) as error:  # the file name may be invalid
        return [f"{named} cannot be read: {getattr(error, 'strerror', None) or error}"]
    if not path.resolve().is_relative_to(folder.resolve()):
        return [f"{named} is a symlink that points outside the model's folder"]
    if not stat.S_ISREG(status.st_mode):
        return [f"{named} is not a file"]
    end, size = int(entries.get("offset", 0)) + length, status.st_size
    return [f"{named} ends at byte {end}, but the file has {size} bytes"] if end > size else []
