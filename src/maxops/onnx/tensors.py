"""Converts TensorProto messages in models and in separate files to arrays, bit for bit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import OptionalProto, SequenceProto, TensorProto, TensorShapeProto, TypeProto, helper, numpy_helper
from onnx.checker import ValidationError

from maxops import dtypes
from maxops.dtypes import DType
from maxops.errors import MaxopsError, ModelError, ModelInputError
from maxops.model import Container, OtherType
from maxops.plan import Array
from maxops.shown import shown
from maxops.sizes import Dims, Size

# The number of each dtype in TensorProto.DataType. The dtype `real` is not part of ONNX.
NUMBERS: dict[DType, int] = {
    dtype: TensorProto.DataType.Value(dtype.onnx.upper()) for dtype in dtypes.ALL if dtype is not dtypes.REAL
}
DTYPES: dict[int, DType] = {number: dtype for dtype, number in NUMBERS.items()}
# The keys that `external_data` may have: those that ONNX defines, and `basepath`, which the onnx package writes.
EXTERNAL_KEYS = ("location", "offset", "length", "checksum", "basepath")


def type_name(elem_type: int) -> str:
    """Return ONNX's name of an element type, or the number of a type that the onnx package does not support."""
    if elem_type not in TensorProto.DataType.values():
        return f"type number {elem_type}"
    return str(TensorProto.DataType.Name(elem_type)).lower()


def unsupported_type(where: str, elem_type: int) -> ModelError:
    """Return the error for an element type that maxops does not support. The message starts with `where`."""
    listed = ", ".join(row.onnx for row in DTYPES.values())
    name = type_name(elem_type).removeprefix("type ")
    return ModelError(f"{where} has unsupported type {name}; supported types: {listed}")


def other_type(elem_type: int) -> OtherType | None:
    """Return an element type that no max operator supports, or None if the onnx package does not define its number."""
    if elem_type == TensorProto.UNDEFINED or elem_type not in TensorProto.DataType.values():
        return None
    return OtherType(type_name(elem_type), np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)))


def dims_of(shape: TensorShapeProto) -> Dims:
    """Return the sizes of a shape as integers, names of symbolic sizes, or None for unknown sizes."""
    return tuple(dim.dim_value if dim.HasField("dim_value") else _name(dim.dim_param) or None for dim in shape.dim)


def _name(text: str | bytes) -> str:
    """Return the name of a symbolic size as a string. Protobuf returns bytes for a name that is not UTF-8."""
    return text if isinstance(text, str) else text.decode(errors="backslashreplace")


def shape_of(dims: Iterable[Size]) -> TensorShapeProto:
    """Convert sizes to a TensorShapeProto."""
    shape = TensorShapeProto()
    for size in dims:
        dim = shape.dim.add()
        if isinstance(size, str):
            dim.dim_param = size
        elif size is not None:
            dim.dim_value = size
    return shape


def type_of(tensor: TensorProto) -> TypeProto:
    """Return the type of a tensor, which consists of its element type and its shape."""
    return TypeProto(tensor_type=TypeProto.Tensor(elem_type=tensor.data_type, shape=shape_of(tensor.dims)))


def without_folder(where: str) -> ModelError:
    """Return the error for external data of a model that is not loaded from a file."""
    return ModelError(
        f"{where} has external data, which maxops can read only if the model is loaded from a file; load the model "
        "with onnx.load, which includes the data"
    )


def to_array(tensor: TensorProto, where: str, folder: Path | None = None, *, any_type: bool = False) -> Array:
    """Convert a TensorProto to a read-only array. Error messages start with `where`.

    External data is read only from files inside `folder`. If `folder` is None, external data raises ModelError. With
    `any_type`, the tensor may have a type that no max operator supports.
    """
    dtype = DTYPES.get(tensor.data_type)
    if dtype is None and not (any_type and other_type(tensor.data_type)):
        raise unsupported_type(where, tensor.data_type)
    external = tensor.data_location == TensorProto.EXTERNAL
    if external and folder is None:
        raise without_folder(where)
    if external:
        check_keys(tensor, where)
    check_size(tensor, where, external=external)
    try:
        array = numpy_helper.to_array(tensor, "" if folder is None else str(folder))
    except (ValidationError, ValueError, OSError, RuntimeError) as error:  # RuntimeError is from onnx's C++ code
        raise ModelError(f"{where}: {error}") from error
    if dtype is dtypes.BOOL and array.size and array.view(np.uint8).max() > 1:
        raise ModelError(f"{where} is bool, but contains a byte other than 0 or 1")
    array.flags.writeable = False
    return array


def check_keys(tensor: TensorProto, where: str) -> None:
    """Reject unknown or repeated keys of external data, and invalid values."""
    # onnx only warns about an unknown key. It would ignore a misspelled `offset`, and read from byte 0.
    keys = [entry.key for entry in tensor.external_data]
    for key in keys:
        if key not in EXTERNAL_KEYS:
            listed = ", ".join(EXTERNAL_KEYS)
            raise ModelError(f"{where} has unknown external data key {key!r}; expected one of {listed}")
        if keys.count(key) > 1:
            raise ModelError(f"{where} has external data key {key!r} more than once")
    for entry in tensor.external_data:
        if not isinstance(entry.value, str):  # protobuf returns invalid UTF-8 as bytes
            raise ModelError(f"{where} has external data whose {entry.key} is not UTF-8: {entry.value!r}")
        if entry.key in ("offset", "length") and not re.fullmatch("[0-9]{1,19}", entry.value):
            raise ModelError(
                f"{where} has external data whose {entry.key} must be a number of bytes with at most 19 decimal "
                f"digits, got {shown(entry.value)}"
            )


def bits_of(elem_type: int) -> int:
    """Return the number of bits of an element.

    >>> bits_of(TensorProto.FLOAT), bits_of(TensorProto.FLOAT8E5M2), bits_of(TensorProto.INT4)
    (32, 8, 4)
    """
    found = re.search("[0-9]+", type_name(elem_type))
    return int(found[0]) if found else 8 * helper.tensor_dtype_to_np_dtype(elem_type).itemsize


def bytes_of(elem_type: int, dims: Iterable[int]) -> int:
    """Return the number of bytes of a tensor's data. Elements of less than 8 bits are packed."""
    return (prod(dims) * bits_of(elem_type) + 7) // 8


def _is_packed(number: int) -> bool:
    """Return whether a value in int32_data contains several elements. Types of 6 bits are not packed."""
    return bits_of(number) in (2, 4)


def check_size(tensor: TensorProto, where: str, *, external: bool) -> None:
    """Check that the data of a TensorProto has the size that its dimensions and its type require.

    The check runs before an array is allocated. Only the length of external data is checked, because the size of the
    file is checked when the data is read.
    """
    dims, number = tuple(tensor.dims), tensor.data_type
    if any(size < 0 for size in dims):
        raise ModelError(f"{where} has negative dimensions: {dims}")
    if tensor.HasField("segment"):
        raise ModelError(f"{where} is a segment of a tensor; maxops reads only whole tensors")
    kind = DTYPES.get(number) or type_name(number)
    if external:
        length = next((int(entry.value) for entry in tensor.external_data if entry.key == "length"), 0)
        if length and number != TensorProto.STRING and length != bytes_of(number, dims):
            raise ModelError(
                f"{where} of dtype {kind} and dimensions {dims} must have {bytes_of(number, dims)} bytes of external "
                f"data, got {length}"
            )
        return
    field = helper.tensor_dtype_to_field(number)
    stored = getattr(tensor, field)
    is_raw = tensor.HasField("raw_data") and number != TensorProto.STRING
    if is_raw or _is_packed(number):
        expected, actual = bytes_of(number, dims), len(tensor.raw_data if is_raw else stored)
    else:
        parts = 2 if number in (TensorProto.COMPLEX64, TensorProto.COMPLEX128) else 1
        expected, actual = prod(dims) * parts, len(stored)
    if actual != expected:
        unit = "bytes" if is_raw else f"values in {field}"
        raise ModelError(f"{where} of dtype {kind} and dimensions {dims} must have {expected} {unit}, got {actual}")
    if not is_raw and field not in ("float_data", "double_data", "string_data"):
        _check_range(np.asarray(stored), number, where)


def _check_range(stored: Array, number: int, where: str) -> None:
    # onnx stores narrow types in wide fields, and truncates values that are out of range
    dtype = DTYPES.get(number)
    if dtype is None or dtype.kind == "float":  # the field contains the bits of floats, or bytes of packed elements
        low, high = 0, 2 ** (8 if _is_packed(number) else bits_of(number)) - 1
    else:
        low, high = (0, 1) if dtype is dtypes.BOOL else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
    if stored.size and not low <= int(stored.min()) <= int(stored.max()) <= high:
        odd = int(stored.min()) if int(stored.min()) < low else int(stored.max())
        kind = dtype or type_name(number)
        raise ModelError(f"{where} contains {odd}, but values stored for {kind} must be between {low} and {high}")


def read_tensor_file(path: Path, *, any_type: bool = False) -> tuple[str, Array]:
    """Return the name and the data of the tensor in a TensorProto file. The name may be empty.

    With `any_type`, the tensor may have a type that no max operator supports.
    """
    tensor = TensorProto()
    try:
        tensor.ParseFromString(path.read_bytes())
    except OSError as error:
        raise ModelInputError(f"{path} cannot be read: {error.strerror}") from error
    except DecodeError as error:
        raise ModelInputError(f"{path} is truncated or not a TensorProto file") from error
    if tensor.data_type == TensorProto.UNDEFINED:
        raise ModelInputError(f"{path} is empty or not a TensorProto file: it has no element type")
    return tensor.name, _held(tensor, path, any_type=any_type)


def read_held_file(path: Path, container: Container) -> Any:
    """Return the data in a SequenceProto or OptionalProto file: an array, a list, or None for an empty optional."""
    message = OptionalProto() if container.startswith("optional") else SequenceProto()
    kind = type(message).__name__
    try:
        data = path.read_bytes()
        message.ParseFromString(data)
    except OSError as error:
        raise ModelInputError(f"{path} cannot be read: {error.strerror}") from error
    except DecodeError as error:
        raise ModelInputError(f"{path} is truncated or not a {kind} file") from error
    known = type(message).FromString(data)
    known.DiscardUnknownFields()
    if known.ByteSize() != message.ByteSize() or not data:
        raise ModelInputError(f"{path} is {'' if data else 'empty, '}not a {kind} file")
    if isinstance(message, OptionalProto):
        if message.HasField("tensor_value"):
            return _held(message.tensor_value, path, any_type=True)
        if not message.HasField("sequence_value"):
            return None
        message = message.sequence_value
    if message.elem_type != SequenceProto.TENSOR:
        raise ModelInputError(f"{path} is not a sequence of dense tensors")
    return [_held(tensor, path, any_type=True) for tensor in message.tensor_values]


def _held(tensor: TensorProto, path: Path, *, any_type: bool) -> Array:
    try:
        return to_array(tensor, f"{path}: the tensor", any_type=any_type)
    except MaxopsError as error:
        raise ModelInputError(str(error)) from error
