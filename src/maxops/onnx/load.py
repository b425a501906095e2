"""Loads ONNX models from files and from ModelProtos, and checks them.

The message of each ModelError names the file and, if possible, the node.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import BinaryIO, get_args

import onnx
from google.protobuf.message import DecodeError, EncodeError  # type: ignore[import-untyped]
from onnx import ModelProto, OperatorSetIdProto, TypeProto, ValueInfoProto
from onnx.external_data_helper import load_external_data_for_model

from maxops.errors import ConfigurationError, MaxopsError, ModelError
from maxops.model import Container, Model, Other, Step, Value, type_name, warn_caller
from maxops.onnx import nodes, schemas, structure
from maxops.onnx.evaluated import evaluator
from maxops.onnx.external import check_external, external_tensors, follow_links, without_external
from maxops.onnx.rewrite import moved
from maxops.onnx.tensors import DTYPES, dims_of, other_type, to_array, unsupported_type, without_folder
from maxops.plan import Array
from maxops.shown import shown

MAX_MESSAGE = 2**31 - 1  # the maximum size of a protobuf message in bytes
_CHUNK = 1 << 20
MAX_NESTING = 32  # maximum depth of graphs; each level requires three of the hundred levels that protobuf allows


def load(path: str | PathLike[str], *, on: Other = "onnx") -> Model:
    """Load a model from a file, and check it. Files with external data must be inside the model's folder.

    >>> import numpy as np, onnx, tempfile, os
    >>> folder = tempfile.TemporaryDirectory()
    >>> text = '<ir_version: 8, opset_import: ["": 13]> peaks (float[n, 2] x) => (float[n] y) '
    >>> path = os.path.join(folder.name, "peaks.onnx")
    >>> onnx.save(onnx.parser.parse_model(text + "{ y = ReduceMax <axes = [1], keepdims = 0> (x) }"), path)
    >>> load(path).run({"x": np.float32([[1, 5], [-2, -3]])})
    {'y': array([ 5., -2.], dtype=float32)}
    >>> folder.cleanup()

    The max operators are Max, ReduceMax, ScatterElements and ScatterND with the reduction "max", and SegmentMax of the
    domain `maxops`. maxops runs these operators. All other operators run on onnx's reference evaluator or, with
    ``on="onnxruntime"``, on ONNX Runtime, which is faster but supports fewer models. If a model contains only ONNX's
    max operators, Constant and Identity, and no functions, sequences or optionals, maxops runs the whole model.
    `Model.placements` lists the runtime of each operator.

    Raises ModelError if the file cannot be read, is not well formed, or contains unsupported operators. If the model
    violates a clause of a specification, `load` or `Model.run` raises the error for this clause.
    """
    if isinstance(path, ModelProto):
        raise ModelError("expected the path of a model file, got a ModelProto; pass it to maxops.onnx.from_proto")
    path = Path(path)
    return _model(read(path), str(path), path, on)


def read(path: Path) -> ModelProto:
    """Read a ModelProto from a file, without checking it and without reading its external data.

    The result is in canonical form: the default ONNX domain is named "" everywhere.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):  # a device may be endless
                raise ModelError(f"{path} is a device, not an ONNX model file")
            # do not read a file that is too long, because it may not fit in memory
            length = status.st_size
            if length <= MAX_MESSAGE:
                return parse(content(file), str(path))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    raise _too_long(str(path), length)


def content(file: BinaryIO) -> bytes:
    """Read a file, but stop after the maximum size of a protobuf message, because a pipe may be endless."""
    data = bytearray()
    while len(data) <= MAX_MESSAGE and (chunk := file.read(_CHUNK)):
        data += chunk
    return bytes(data)


def _too_long(source: str, length: int) -> ModelError:
    return ModelError(
        f"{source} has {length} bytes or more, but a protobuf message has at most {MAX_MESSAGE} (2 GiB); save the "
        "model with its weights as external data: onnx.save(model, path, save_as_external_data=True)"
    )


# The first bytes of array files, which users may pass instead of a model by mistake.
_DATA_FILES = {b"\x93NUMPY": "a .npy file", b"PK\x03\x04": "a .npz or other zip file"}


def parse(data: bytes, source: str) -> ModelProto:
    """Parse the content of a file, and return the ModelProto in canonical form, without checking it.

    Error messages start with `source`.
    """
    if not data:
        raise ModelError(f"{source} is empty; expected an ONNX model")
    for start, kind in _DATA_FILES.items():
        if data.startswith(start):
            raise ModelError(
                f"{source} is {kind}, not an ONNX model; pass the model first, and array files as inputs: "
                "maxops run MODEL --input NAME=FILE"
            )
    if len(data) > MAX_MESSAGE:
        raise _too_long(source, len(data))
    try:
        return structure.canonical(onnx.load_from_string(data, format="protobuf"))
    except DecodeError as error:
        if "Depth" in str(error):
            raise ModelError(
                f"{source}: graphs are nested too deeply; protobuf reads about {MAX_NESTING} levels"
            ) from error
        raise ModelError(f"{source} is truncated or not an ONNX model") from error


def from_proto(proto: ModelProto, source: str = "model", *, on: Other = "onnx") -> Model:
    """Load a model from a ModelProto, and check it. Error messages start with `source`.

    >>> import numpy as np, onnx
    >>> text = '<ir_version: 8, opset_import: ["": 13]> larger (float[n] a, float[n] b) => (float[n] y) '
    >>> model = from_proto(onnx.parser.parse_model(text + "{ y = Max (a, b) }"))
    >>> print(*model.inputs, sep="; ")
    'a': float32 (n,); 'b': float32 (n,)
    >>> model.run({"a": np.float32([1, -0.0]), "b": np.float32([-1, 0.0])})
    {'y': array([1., 0.], dtype=float32)}

    Raises the same errors as `load`. External data is not supported, because it requires the folder of a file.
    """
    return _model(structure.canonical(proto), source, None, on)


def _model(proto: ModelProto, source: str, path: Path | None, on: Other) -> Model:
    if on not in get_args(Other):
        raise ConfigurationError(f"on must be {' or '.join(map(repr, get_args(Other)))}, got {shown(on)}")
    graph = proto.graph
    opset = opset_of(proto, source)
    structure.check_names(graph, source)
    if not _is_plain(proto):
        return _evaluated(proto, source, path, opset, on)
    light = without_external(proto)  # onnx.checker would search the current folder for external data
    for node in light.graph.node:
        nodes.check(node, f"{source}: {nodes.label(node)}", opset, proto.ir_version)
    structure.check_order(graph, source)
    folder = None if path is None else follow_links(proto, path)
    in_maxima = nodes.in_maxima(graph)
    constants = {
        tensor.name: to_array(
            tensor, f"{source}: initializer {tensor.name!r}", folder, any_type=tensor.name not in in_maxima
        )
        for tensor in graph.initializer
    }
    _check_model(light, source)
    inputs = _values(graph.input, source, "input", only_ours=in_maxima)
    outputs = _values(graph.output, source, "output", only_ours=in_maxima)
    for value in inputs:
        if value.name in constants:
            _check_default(source, value, constants[value.name])
    steps: list[Step] = []
    for node in graph.node:
        where = f"{source}: {nodes.label(node)}"
        if node.op_type == "Constant":
            constants[node.output[0]] = nodes.constant(node, where, folder, any_type=node.output[0] not in in_maxima)
        else:
            steps.append(nodes.step(node, where, opset))
    return Model(source, opset, inputs, outputs, constants, tuple(steps))


def opset_of(proto: ModelProto, source: str) -> int:
    """Return the operator set of a model, after checking that onnx supports it and the IR version."""
    if proto.ir_version < 1:
        raise ModelError(f"{source}: not a valid ONNX model, because the IR version is missing")
    if proto.ir_version > onnx.IR_VERSION:
        raise ModelError(
            f"{source}: onnx {onnx.__version__} supports IR versions up to {onnx.IR_VERSION}, got "
            f"{proto.ir_version}; update the onnx package, or convert the model"
        )
    if proto.ir_version < structure.FIRST_IR_WITH_OPSETS:
        return 1
    of_others = all(entry.domain for entry in proto.opset_import)
    if of_others and all(node.domain for node in structure.all_nodes(proto)):
        return int(onnx.defs.onnx_opset_version())  # no node is in the default ONNX domain
    return imported_opset(proto.opset_import, source)


def imported_opset(imports: Iterable[OperatorSetIdProto], source: str) -> int:
    """Return the version of the default ONNX domain in `imports`. Raise ModelError unless there is exactly one."""
    versions = sorted({int(entry.version) for entry in imports if not entry.domain})
    if not versions:
        raise ModelError(f"{source}: expected an operator set of the default ONNX domain in opset_import, got none")
    if len(versions) > 1:
        raise ModelError(f"{source}: expected one version of the default ONNX domain in opset_import, got {versions}")
    return known_opset(versions[0], source)


def known_opset(version: int, source: str) -> int:
    """Return the version of an ONNX operator set. Raise ModelError if the onnx package does not support it."""
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= version <= newest:
        raise ModelError(
            f"{source}: onnx {onnx.__version__} supports operator sets 1 to {newest}, got {version}"
            + ("; update the onnx package, or convert the model" if version > newest else "")
        )
    return version


def _is_plain(proto: ModelProto) -> bool:
    """Return whether maxops can run all operators of a model, which must be one graph of dense tensors."""
    holders = (container_of(info.type)[0] for info in (*proto.graph.input, *proto.graph.output))
    others = proto.functions or proto.graph.sparse_initializer or any(holders)
    return not others and all(map(nodes.is_ours, proto.graph.node))


def container_of(kind: TypeProto) -> tuple[Container, TypeProto]:
    """Return the name of a type's container, such as "sequence", or "" if it has none, and the type inside it."""
    is_optional = kind.HasField("optional_type")
    held = kind.optional_type.elem_type if is_optional else kind
    if held.HasField("sequence_type"):
        return "optional sequence" if is_optional else "sequence", held.sequence_type.elem_type
    return "optional" if is_optional else "", held


def _evaluated(proto: ModelProto, source: str, path: Path | None, opset: int, on: Other) -> Model:
    """Load a model with operators that maxops does not implement, which an evaluator runs."""
    schemas.register()
    folder = None if path is None else follow_links(proto, path)
    written = proto
    if proto.functions:
        try:
            proto = moved(proto, inline_all=True)  # max operators keep their versions
        except MaxopsError as error:
            raise error.at(source) from error
    if proto.graph.sparse_initializer:
        listed = ", ".join(repr(sparse.values.name) for sparse in proto.graph.sparse_initializer)
        raise ModelError(f"{source}: sparse initializers are not supported: {listed}")
    structure.check_order(proto.graph, source)
    _check_model(without_external(proto), source)
    if on == "onnx":  # ONNX Runtime has its own rules for shadowed names
        structure.check_shadowing(proto.graph, source)
    external = next(external_tensors(proto), None)
    if external is not None and folder is None:
        raise without_folder(f"{source}: tensor {external.name!r}")
    check_external(proto, source)
    if folder is not None and on == "onnx":
        take_data_in(proto, source, folder)
    inputs = _values(proto.graph.input, source, "input")
    outputs = _values(proto.graph.output, source, "output")
    names = {value.name for value in inputs}
    defaults = {
        tensor.name: to_array(tensor, f"{source}: initializer {tensor.name!r}", folder, any_type=True)
        for tensor in proto.graph.initializer
        if tensor.name in names
    }
    for value in inputs:
        if value.name in defaults:
            _check_default(source, value, defaults[value.name])
    made = evaluator(on, proto, written, source, folder, defaults)
    return Model(source, opset, inputs, outputs, defaults, (), made)


def take_data_in(proto: ModelProto, source: str, folder: Path) -> None:
    """Load the external data of a model from its files into the ModelProto."""
    try:
        load_external_data_for_model(proto, str(folder))
    except (*schemas.REFUSALS, ValueError, OSError) as error:
        raise ModelError(f"{source}: {error}") from error


def to_bytes(proto: ModelProto, source: str) -> bytes:
    """Serialize a ModelProto to bytes. Raise ModelError if it is too large for protobuf."""
    try:
        return bytes(proto.SerializeToString())
    except (ValueError, EncodeError) as error:
        raise _too_long(source, MAX_MESSAGE + 1) from error


def _check_model(proto: ModelProto, source: str) -> None:
    try:
        onnx.checker.check_model(proto)
    except (*schemas.REFUSALS, ValueError) as error:
        raise ModelError(f"{source}: {error}") from error


def _values(
    infos: Iterable[ValueInfoProto], source: str, kind: str, *, only_ours: Collection[str] = ()
) -> tuple[Value, ...]:
    """Return the inputs or outputs of a model. The values in `only_ours` must have types that maxops supports."""
    values: dict[str, Value] = {}
    for info in infos:
        where = f"{source}: {kind} {info.name!r}"
        container, held = container_of(info.type)
        form = held.WhichOneof("value")
        if form != "tensor_type":
            actual = "a value without a type" if form is None else f"a {form.removesuffix('_type').replace('_', ' ')}"
            if container:
                actual = f"{'an' if container.startswith('optional') else 'a'} {container} of {actual}"
            raise ModelError(
                f"{where} is {actual}; maxops supports dense tensors, and sequences and optionals of dense tensors"
            )
        tensor = held.tensor_type
        dtype = DTYPES.get(tensor.elem_type) or (None if info.name in only_ours else other_type(tensor.elem_type))
        if dtype is None:
            raise unsupported_type(where, tensor.elem_type)
        if info.name in values:
            raise ModelError(f"{where} appears twice")
        dims = dims_of(tensor.shape) if tensor.HasField("shape") or not container else None
        value = Value(info.name, dtype, dims, container)
        if any(isinstance(size, int) and size < -1 for size in dims or ()):
            raise ModelError(f"{where} has a negative size: {value}; an unknown size must have a name or no value")
        if dims and -1 in dims:
            warn_caller(f"{where} has a size of -1, which is read as an unknown size: {value}")
            value = replace(value, dims=tuple(None if size == -1 else size for size in dims))
        values[info.name] = value
    return tuple(values.values())


def _check_default(source: str, value: Value, default: Array) -> None:
    if not value.admits(default):
        raise ModelError(
            f"{source}: initializer {value.name!r} is {type_name(default)} {default.shape}, but the input is "
            f"declared as {value}"
        )
