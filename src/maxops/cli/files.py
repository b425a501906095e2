"""Reads and writes NumPy files. Input files are untrusted, and .npy files are read without copying."""

from __future__ import annotations

import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy_format

from maxops import dtypes
from maxops.atomic_files import atomic_write, errors_of, save_npy
from maxops.cli.streams import is_pipe, is_stream, name_of, npy_bytes, opened, read_at_most, say_written, write_stdout
from maxops.errors import ModelInputError, OutputTooLargeError
from maxops.plan import LARGEST_OUTPUT, Array

# The errors that NumPy's header parser, which parses the header as a Python literal, raises for malicious text.
_HEADER_ERRORS = (
    ValueError, SyntaxError, TokenError, RecursionError, MemoryError, TypeError, LookupError, ArithmeticError,
)  # fmt: skip
_BFLOAT16 = dtypes.BFLOAT16.numpy
_LENGTH_BYTES: dict[tuple[int, ...], int] = {
    (1, 0): 2,
    (2, 0): 4,
    (3, 0): 4,
}  # size of the header's length field, by format version
_LONGEST_HEADER = 10_000  # the limit of NumPy's parser in bytes
_MOST_AXES = 64
_LONGEST_AXIS = 2**63 - 1
_SHOWN = 200  # maximum number of bytes of a broken file in an error
SAVE_AGAIN = "save it again with np.save(FILE, array)"
SAVE_NPZ_AGAIN = "save it again with np.savez(FILE, NAME=array, ...)"
# Other kinds of files: a pattern of the first bytes, a description, and the next step.
_OTHER_FILES = (
    (rb"\x93N?U?M?P?\Z", "the file is truncated", f"copy or {SAVE_AGAIN}"),
    (rb"PK[\x03\x05]", "it is a .npz or zip archive", "save one array with np.save(FILE, np.load(NPZ)[NAME])"),
    (rb"\x80[\x00-\x05]", "it is a pickle, which can run code and is never read", SAVE_AGAIN),
    (rb"\x08[\x00-\x7f][\x0a\x12\x1a\x22\x28\x32\x3a\x42]", "it is an ONNX model", "run it with `maxops run MODEL`"),
    (
        rb"\x08.{1,9}?[\x08\x10]",
        "it is an ONNX tensor, as in a .pb file",
        "use `maxops run MODEL --input NAME=FILE.pb`",
    ),
    (rb"\x89HDF", "it is an HDF5 file", SAVE_AGAIN),
    (rb"PAR1|ARROW1", "it is a Parquet or Arrow table", SAVE_AGAIN),
    (rb"\x1f\x8b|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd", "it is compressed", "decompress it first"),
    (rb"\s*<(\?xml|net)\b", "it is XML", "run an OpenVINO IR with `maxops run MODEL`"),
    (rb"[\t\n\r\x20-\x7e]+\Z", "it is text", 'convert it with np.save(FILE, np.loadtxt(TEXT, delimiter=","))'),
)


@dataclass(frozen=True)
class Header:
    """The contents of a .npy header. The data starts at `offset`."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def size(self) -> int:
        """The number of bytes of data."""
        return prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path) -> Array:
    """Return the array in a .npy file (as a read-only memory map) or in a pipe. Pickles are never loaded."""
    where = name_of(path)
    with opened(path) as file:
        header = _read_header(file, where)
        if is_pipe(path):
            return _read_pipe(file, header, where)
        _check_size(header, os.fstat(file.fileno()).st_size, where)
        if header.size == 0:  # nothing to map
            return np.empty(header.shape, header.dtype)
        order: Literal["C", "F"] = "F" if header.fortran else "C"
        return np.asarray(np.memmap(file, header.dtype, "r", header.offset, header.shape, order))


def _read_pipe(file: IO[bytes], header: Header, where: str) -> Array:
    """Return the array in a pipe. Read at most one byte past the array, because a pipe may be endless."""
    data = read_at_most(file, min(header.size, LARGEST_OUTPUT) + 1)
    if len(data) > LARGEST_OUTPUT:
        raise OutputTooLargeError(f"{where}: {header.size} bytes exceed this machine's memory; use a file")
    _check_size(header, header.offset + len(data), where)
    if header.size == 0:
        return np.empty(header.shape, header.dtype)
    array = np.frombuffer(data, header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
    array.setflags(write=False)
    return array


def read_npz(path: Path) -> dict[str, Array]:
    """Return the arrays in a .npz file or a pipe, keyed by name. Pickles are never loaded."""
    where = name_of(path)
    with opened(path) as file:
        start = file.read(2)
        if start != b"PK":
            kind = f"it starts with {_short(start + file.read(_SHOWN))}" if start else "it is empty"
            raise ModelInputError(f"{where}: not a .npz file: {kind}; {SAVE_NPZ_AGAIN}")
        if not is_pipe(path):
            file.seek(0)
            return _members(file, where)
        data = bytearray(start) + read_at_most(file, LARGEST_OUTPUT)
    return _members(BytesIO(data), where)


def _members(file: IO[bytes], source: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                where = f"{source}: {member.filename!r}"
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ModelInputError(f"{where}: unsupported compression method; {SAVE_NPZ_AGAIN}")
                with archive.open(member) as opened_member:
                    header = _read_header(opened_member, where)
                _check_size(header, member.file_size, where)
                if header.size > LARGEST_OUTPUT:
                    raise OutputTooLargeError(
                        f"{where}: the array requires {header.size} bytes, more than this machine's memory"
                    )
                with archive.open(member) as opened_member:
                    array = npy_format.read_array(opened_member, allow_pickle=False)
                name = member.filename.removesuffix(".npy")
                if name in arrays:
                    raise ModelInputError(f"{source}: the file contains two arrays named {name!r}; {SAVE_NPZ_AGAIN}")
                arrays[name] = array
    except ModelInputError:  # names the member and the problem
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise ModelInputError(
            f"{source}: truncated, broken or not a .npz file: {error}; copy or {SAVE_NPZ_AGAIN}"
        ) from error
    return arrays


def _read_header(file: IO[bytes], where: str) -> Header:
    start = file.read(npy_format.MAGIC_LEN)
    if not start.startswith(npy_format.MAGIC_PREFIX):
        raise ModelInputError(f"{where}: {_what_it_is(start + file.read(_SHOWN - len(start)))}")
    version = tuple(start[-2:])
    is_cut = len(start) < npy_format.MAGIC_LEN
    if not is_cut and version not in _LENGTH_BYTES:
        known = ", ".join(map(str, _LENGTH_BYTES))
        raise ModelInputError(f"{where}: unsupported .npy version {version}; expected {known}; {SAVE_AGAIN}")
    size_bytes = b"" if is_cut else file.read(_LENGTH_BYTES[version])
    size = int.from_bytes(size_bytes, "little")
    if size > _LONGEST_HEADER:
        raise ModelInputError(
            f"{where}: truncated or invalid header: expected at most {_LONGEST_HEADER} bytes, got {size}; {SAVE_AGAIN}"
        )
    text = file.read(size)
    if is_cut or len(size_bytes) < _LENGTH_BYTES[version] or len(text) < size:
        raise ModelInputError(f"{where}: the file is truncated within its header; copy or {SAVE_AGAIN}")
    header = _parsed(size_bytes + text, version, where)
    return Header(*header, offset=len(start) + len(size_bytes) + len(text))


def _parsed(header: bytes, version: tuple[int, ...], where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Parse a header, the text of a dictionary. Return the shape, whether the order is Fortran order, and the dtype."""
    # 3.0 differs from 2.0 only in the encoding of field names
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    try:
        with warnings.catch_warnings():
            # ignores NumPy's warnings about files from Python 2 and broken files: the read succeeds or raises an error
            warnings.simplefilter("ignore", UserWarning)
            shape, fortran, dtype = read(BytesIO(header), _LONGEST_HEADER)
    except _HEADER_ERRORS as error:
        # other errors describe the code of NumPy's parser, not the file
        why = str(error) if type(error) is ValueError else f"cannot parse {_short(header[_LENGTH_BYTES[version] :])}"
        raise ModelInputError(f"{where}: truncated or invalid header: {_cut(why, _SHOWN)}; {SAVE_AGAIN}") from error
    if dtype.hasobject:
        raise ModelInputError(
            f"{where}: the array contains pickled Python objects, which can run code and are never read; save a "
            "numeric array with np.save(FILE, array.astype(float))"
        )
    if len(shape) > _MOST_AXES or not all(0 <= size <= _LONGEST_AXIS for size in shape):
        raise ModelInputError(
            f"{where}: invalid header: expected at most {_MOST_AXES} axes with sizes from 0 to {_LONGEST_AXIS}, got "
            f"the shape {_short(shape)}; {SAVE_AGAIN}"
        )
    if 0 in shape:
        try:
            np.empty(shape, dtype)
        except ValueError as error:  # the product of the other sizes is too large
            raise ModelInputError(
                f"{where}: invalid header: NumPy rejects the shape {_short(shape)}; {SAVE_AGAIN}"
            ) from error
    return tuple(map(int, shape)), fortran, dtype


def _what_it_is(start: bytes) -> str:
    """Describe a file that is not a .npy file by its first bytes, and suggest a next step."""
    if not start:
        return f"expected a .npy file, but the file is empty; {SAVE_AGAIN}"
    for prefix, kind, next_step in _OTHER_FILES:
        if re.match(prefix, start, re.DOTALL):
            return f"not a .npy file ({kind}); it starts with {_short(start)}; {next_step}"
    return f"not a .npy file; it starts with {_short(start)}; {SAVE_AGAIN}"


def _short(value: object) -> str:
    return _cut(repr(value), 60)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


def _check_size(header: Header, actual: int, where: str) -> None:
    expected = header.offset + header.size
    if actual < expected:
        raise ModelInputError(
            f"{where}: the file is truncated: expected {expected} bytes for {header.dtype} {header.shape}, got "
            f"{actual}; copy or {SAVE_AGAIN}"
        )
    if actual > expected:
        raise ModelInputError(
            f"{where}: unexpected data after the array: {header.dtype} {header.shape} ends at byte {expected}; a .npy "
            f"file can contain only one array; {SAVE_AGAIN}"
        )


def as_bfloat16(array: Array) -> Array:
    """View an array of 2-byte void as bfloat16, which NumPy saves in this form. Return other arrays unchanged."""
    return array.view(_BFLOAT16) if is_two_bytes(array) else array


def is_two_bytes(array: Array) -> bool:
    """Return whether the dtype is NumPy's 2-byte void."""
    return array.dtype.kind == "V" and array.dtype.itemsize == _BFLOAT16.itemsize and array.dtype.names is None


def file_name(name: str) -> str:
    """Return the name of the .npy file for a tensor. Different tensors get different names, without path separators.

    >>> file_name("../scores")
    '..%2Fscores.npy'
    """
    return re.sub(r"[%/\x00-\x1f\x7f]", lambda match: f"%{ord(match[0]):02X}", name) + ".npy"


def write_npy(arrays: Mapping[Path, Array], *, make_folders: bool) -> None:
    """Write .npy files and print their names. Files get their final names only after all files are complete.

    The path "-" is standard output.
    """
    # onnx represents strings as objects
    plain = {path: array.astype(str) if array.dtype.kind == "O" else array for path, array in arrays.items()}
    for path in filter(is_stream, plain):
        write_stdout(npy_bytes(plain[path]))
    named = [path for path in plain if not is_stream(path)]
    with atomic_write(make_folders=make_folders) as temporary:
        for path in named:
            with errors_of(path):
                save_npy(temporary(path), plain[path])
    say_written(named)


def write_npz(path: Path, arrays: Mapping[str, Array], *, make_folders: bool) -> None:
    """Write named arrays to a .npz file or to standard output."""
    if is_stream(path):
        file = BytesIO()
        np.savez(file, allow_pickle=False, **arrays)
        write_stdout(file.getvalue())
        return
    with atomic_write(make_folders=make_folders) as temporary, errors_of(path), temporary(path).open("wb") as opened:
        np.savez(opened, allow_pickle=False, **arrays)
    say_written([path])
