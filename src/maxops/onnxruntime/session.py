"""Creates ONNX Runtime sessions with the operators of maxops."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper

from maxops import _native
from maxops.onnx.external import check_external, external_tensors, follow_links
from maxops.onnx.load import parse, read, to_bytes
from maxops.onnx.rewrite import moved
from maxops.onnx.tensors import bits_of, bytes_of
from maxops.plan import Array

# The session option for the folder of external data, which ONNX Runtime requires for models that are in memory.
_DATA_FOLDER = "session.model_external_initializers_file_folder_path"
# The SessionOptions that already have the operators of maxops, because onnxruntime rejects a second registration.
_registered: WeakSet[onnxruntime.SessionOptions] = WeakSet()


def register(options: onnxruntime.SessionOptions) -> onnxruntime.SessionOptions:
    """Register the operators of maxops with session options, and return the options.

    >>> import onnxruntime
    >>> options = register(onnxruntime.SessionOptions())

    The operators are Max, ReduceMax, SegmentMax, ScatterElements and ScatterND in the domain "maxops". Use `rewrite` to
    move the nodes of a model to this domain. This function requires onnxruntime 1.21 or newer. Repeated calls with the
    same options have no effect.
    """
    _check_options(options)
    if options not in _registered:
        options.register_custom_ops_library(_native.__file__)
        _registered.add(options)
    return options


def _check_options(options: object) -> None:
    if not isinstance(options, onnxruntime.SessionOptions):
        raise TypeError(f"the options must be an onnxruntime.SessionOptions, got {type(options).__name__}")


def session(
    model: str | os.PathLike[str] | bytes | ModelProto,
    sess_options: onnxruntime.SessionOptions | None = None,
    **arguments: Any,
) -> onnxruntime.InferenceSession:
    """Create a session that runs max operators on maxops, and all other operators in onnxruntime.

    >>> import numpy as np, onnx
    >>> text = '<ir_version: 8, opset_import: ["": 13]> f (int64[n] x, int64[n] y) => (int64[n] z) { z = Max(x, y) }'
    >>> larger = session(onnx.parser.parse_model(text))
    >>> larger.run(None, {"x": np.array([3_000_000_000] * 4), "y": np.array([1] * 4)})[0].tolist()
    [3000000000, 3000000000, 3000000000, 3000000000]

    `model` is a ModelProto, the content of a file as bytes, or the path of a file, which may have external data in its
    folder. The operators of maxops are registered with `sess_options`. All other arguments, such as `providers`, are
    passed to `onnxruntime.InferenceSession`. Arrays may have any shape, and any dtype that the version of the operator
    supports. The max operators run on the CPU.

    Raises ModelError if the model cannot be read or rewritten. A call that violates a clause of a specification raises
    an onnxruntime error that names the clause.
    """
    proto, path = _read(model)
    folder = None if path is None else follow_links(proto, path)
    if sess_options is None:
        return session_with(onnxruntime.SessionOptions(), proto, folder, **arguments)
    _check_options(sess_options)
    before = _entry(sess_options, _DATA_FOLDER)
    try:
        return session_with(sess_options, proto, folder, **arguments)
    finally:  # restore the option, because the caller may use the options for another model
        _set_entry(sess_options, _DATA_FOLDER, before)


def session_with(
    options: onnxruntime.SessionOptions, proto: ModelProto, folder: Path | None, **arguments: Any
) -> onnxruntime.InferenceSession:
    """Create a session like `session`, but do not restore the option for the folder of external data."""
    register(options)
    result = moved(proto)
    check_external(result, "the model")
    if folder is not None and any(external_tensors(result)):
        _set_entry(options, _DATA_FOLDER, str(folder))
    return onnxruntime.InferenceSession(to_bytes(result, "the model"), options, **arguments)


def outputs_of(
    session: onnxruntime.InferenceSession, inputs: Mapping[str, Array], names: Sequence[str] | None = None
) -> list[Array]:
    """Run a session like `InferenceSession.run`, but with support for types that NumPy lacks, such as bfloat16."""
    if not any(numpy_lacks(each.type) for each in (*session.get_inputs(), *session.get_outputs())):
        return list(session.run(names, dict(inputs)))
    values = {name: _to_value(array) for name, array in inputs.items()}
    return [_to_array(value) for value in session.run_with_ort_values(names, values)]


def numpy_lacks(type_name: str) -> bool:
    """Return whether NumPy itself has no dtype for a type of onnxruntime, such as "tensor(bfloat16)" or "tensor(int4)".

    The dtypes of ml_dtypes represent these types.
    """
    number = TensorProto.DataType.DESCRIPTOR.values_by_name.get(type_name[len("tensor(") : -1].upper())
    return number is not None and helper.tensor_dtype_to_np_dtype(number.number).isbuiltin != 1


def _to_value(array: Array) -> onnxruntime.OrtValue:
    if array.dtype.isbuiltin == 1:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    number = helper.np_dtype_to_tensor_dtype(array.dtype)
    words = array.view(f"u{array.itemsize}")
    if array.itemsize * 8 > bits_of(number):  # onnxruntime reads packed elements from the start of the buffer
        packed = np.frombuffer(numpy_helper.from_array(array).raw_data, np.uint8)
        words = np.pad(packed, (0, array.size - packed.size)).reshape(array.shape)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(words, number)


def _to_array(value: onnxruntime.OrtValue) -> Array:
    if not numpy_lacks(value.data_type()):
        return np.asarray(value.numpy())
    number = value.element_type()
    size = bytes_of(number, value.shape())
    bits = ctypes.string_at(value.data_ptr(), size) if size else b""
    return numpy_helper.to_array(TensorProto(data_type=number, dims=value.shape(), raw_data=bits))


def _entry(options: onnxruntime.SessionOptions, key: str) -> str:
    """Return the value of an option, or "" if it is not set. onnxruntime treats "" like an option that is not set."""
    try:
        return str(options.get_session_config_entry(key))
    except RuntimeError:
        return ""


def _set_entry(options: onnxruntime.SessionOptions, key: str, value: str) -> None:
    """Set an option if its value changes, because onnxruntime prints a warning whenever an option is set again."""
    if _entry(options, key) != value:
        options.add_session_config_entry(key, value)


def _read(model: str | os.PathLike[str] | bytes | ModelProto) -> tuple[ModelProto, Path | None]:
    if isinstance(model, ModelProto):
        return model, None
    if isinstance(model, bytes):
        return parse(model, "the model"), None
    path = Path(model)
    return read(path), path
