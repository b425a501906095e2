"""What makes an ONNX model malformed, where no clause of an operator covers it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator
from math import prod
from pathlib import Path

from onnx import GraphProto, TensorProto, TypeProto

from maxops.errors import ModelError
from maxops.onnx import structure
from maxops.onnx.external import leaves_folder
from maxops.onnx.tensors import DTYPES, check_keys, check_size
from maxops.sizes import MAX_ELEMENTS


def graph_faults(graph: GraphProto, outer: Container[str], folder: Path | None) -> Iterator[str]:
    """The faults of one graph in words; `outer` holds the names that it sees around it."""
    for check in (
        lambda: structure.check_names(graph, ""),
        lambda: structure.check_unique(graph, ""),
        lambda: structure.check_order(graph, "", outer),
    ):
        yield from _words(check)
    for info in (*graph.input, *graph.output, *graph.value_info):
        shape = info.type.tensor_type.shape if info.type.HasField("tensor_type") else None
        sizes = [] if shape is None else [dim.dim_value for dim in shape.dim if dim.HasField("dim_value")]
        yield from (f"{info.name!r} {fault}" for fault in _of_sizes(sizes))
    inputs = {info.name: info.type for info in graph.input}
    for tensor in graph.initializer:
        declared = inputs.get(tensor.name)
        if declared is not None and not _is_of(tensor, declared):
            yield f"initializer {tensor.name!r} is not a value of what is declared for the input of its name"
    for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
        yield from tensor_faults(tensor, f"initializer {tensor.name!r}", folder)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield from tensor_faults(attribute.t, f"the tensor of {node.op_type} {node.name!r}", folder)


def _is_of(tensor: TensorProto, declared: TypeProto) -> bool:
    kind = declared.tensor_type
    if kind.elem_type not in (TensorProto.UNDEFINED, tensor.data_type):
        return False
    if not kind.HasField("shape"):
        return True
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    return len(sizes) == len(tensor.dims) and all(
        size in (None, given) for size, given in zip(sizes, tensor.dims, strict=True)
    )


def tensor_faults(tensor: TensorProto, where: str, folder: Path | None) -> Iterator[str]:
    """The faults of a tensor whose data, if it lies in another file, is not read."""
    faults = [f"{where} {fault}" for fault in _of_sizes(tensor.dims)]
    external = tensor.data_location == TensorProto.EXTERNAL
    if external:
        faults += _words(lambda: check_keys(tensor, where)) or [
            f"{where}: {fault}" for fault in _of_external(tensor, folder)
        ]
    elif not faults and tensor.data_type in DTYPES:
        faults += _words(lambda: check_size(tensor, DTYPES[tensor.data_type], where, external=False))
    yield from faults


def _words(check: Callable[[], None]) -> list[str]:
    try:
        check()
    except ModelError as error:
        return [str(error).removeprefix(": ")]
    return []


def _of_sizes(sizes: Iterable[int]) -> list[str]:
    dims = tuple(sizes)
    if any(size < 0 for size in dims):
        return [f"has the negative size {min(dims)}"]
    return [f"has the sizes {dims}, more elements than can be counted"] if prod(dims) > MAX_ELEMENTS else []


def _of_external(tensor: TensorProto, folder: Path | None) -> list[str]:
    """Where external data would be read, by names and lengths alone."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not location:
        return ["its external data has no location"]
    if leaves_folder(location):
        return [f"its external data, {location!r}, lies outside the model's folder"]
    numbers: dict[str, int] = {}
    for key in ("offset", "length"):
        text = entries.get(key, "0")
        if not (text.isascii() and text.isdecimal() and len(text) < 20):
            return [f"the {key} of its external data is {text!r}; it is a number of bytes"]
        numbers[key] = int(text)
    if folder is None:
        return []
    path = folder / os.path.normpath(location)
    try:
        status = path.stat()
    except FileNotFoundError:
        return []  # a model may be checked without its weights beside it
    except PermissionError as error:  # which says nothing about the model
        raise ModelError(f"{path}: cannot be looked at: {error.strerror}") from error
    except (OSError, ValueError) as error:  # no file can have that name
        return [f"its external data, {location!r}, cannot be read: {getattr(error, 'strerror', None) or error}"]
    if not path.resolve().is_relative_to(folder.resolve()):
        return [f"its external data, {location!r}, leads outside the model's folder"]
    if not stat.S_ISREG(status.st_mode):
        return [f"its external data, {location!r}, is not a file"]
    end, size = sum(numbers.values()), status.st_size
    return [f"its external data ends at byte {end} of {location!r}, which has {size}"] if end > size else []
