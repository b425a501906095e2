"""NumPy's files: read without trust and without copies, and written."""

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
from maxops.cli.streams import is_pipe, is_stream, name_of, npy_bytes, read_pipe, say_written, write_stdout
from maxops.errors import ModelInputError, OutputTooLargeError
from maxops.plan import LARGEST_OUTPUT, Array

# What NumPy's header parser, which evaluates the header as Python, lets out on hostile text.
_HEADER_ERRORS = (
    ValueError, SyntaxError, TokenError, RecursionError, MemoryError, TypeError, LookupError, ArithmeticError,
)  # fmt: skip
_BFLOAT16 = dtypes.BFLOAT16.numpy


@dataclass(frozen=True)
class Header:
    """What a .npy header says; data follows at `offset`."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def size(self) -> int:
        """Bytes of data."""
        return prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path) -> Array:
    """The array of a .npy file, mapped into memory and read-only, or of a pipe; never unpickled."""
    if is_pipe(path):
        return npy_of(read_pipe(path), name_of(path))
    try:
        with path.open("rb") as file:
            header = _read_header(file, str(path))
            _check_size(header, os.fstat(file.fileno()).st_size, str(path))
            if header.size == 0:  # nothing to map
                return np.empty(header.shape, header.dtype)
            order: Literal["C", "F"] = "F" if header.fortran else "C"
            return np.asarray(np.memmap(path, header.dtype, "r", header.offset, header.shape, order))
    except OSError as error:
        raise ModelInputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # more axes, or a larger size, than NumPy takes
        raise ModelInputError(f"{path}: has a shape that NumPy does not take: {error}") from error


def npy_of(data: bytes, where: str) -> Array:
    """The array of a .npy file that is in memory, read-only; never unpickled."""
    header = _read_header(BytesIO(data), where)
    _check_size(header, len(data), where)
    try:
        if header.size == 0:
            return np.empty(header.shape, header.dtype)
        flat = np.frombuffer(data, header.dtype, prod(header.shape), header.offset)
        return flat.reshape(header.shape, order="F" if header.fortran else "C")
    except ValueError as error:  # as in a file
        raise ModelInputError(f"{where}: has a shape that NumPy does not take: {error}") from error


def read_npz(path: Path, data: bytes | None = None) -> dict[str, Array]:
    """The arrays of a .npz file, which may be in memory, by name; never unpickled."""
    arrays: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(path if data is None else BytesIO(data)) as archive:
            for member in archive.infolist():
                where = f"{path}: {member.filename!r}"
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ModelInputError(f"{where}: is compressed in a way that NumPy does not write")
                with archive.open(member) as file:
                    header = _read_header(file, where)
                _check_size(header, member.file_size, where)
                if header.size > LARGEST_OUTPUT:
                    raise OutputTooLargeError(f"{where}: {header.size} bytes are more than this machine's memory")
                with archive.open(member) as file:
                    array = npy_format.read_array(file, allow_pickle=False)
                arrays[member.filename.removesuffix(".npy")] = array
    except ModelInputError:  # it says which member, and what is wrong with it
        raise
    except OSError as error:
        raise ModelInputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise ModelInputError(f"{path}: is truncated, broken or not a .npz file: {error}") from error
    return arrays


def _read_header(file: IO[bytes], where: str) -> Header:
    start = file.read(npy_format.MAGIC_LEN)
    if not start.startswith(npy_format.MAGIC_PREFIX):
        hint = " (a pickle is never read)" if start.startswith(b"\x80") else ""
        raise ModelInputError(
            f"{where}: is not a .npy file{hint}; it starts with {start!r}"
            if start
            else f"{where}: is empty; it should be a .npy file"
        )
    readers = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
    version = tuple(start[-2:])
    if version not in readers or len(start) < npy_format.MAGIC_LEN:
        raise ModelInputError(f"{where}: is a .npy file of version {version}; plain arrays have 1.0 or 2.0")
    try:
        with warnings.catch_warnings():
            # NumPy asks to save files of Python 2 again, and says so of broken ones too; both are read or refused
            warnings.simplefilter("ignore", UserWarning)
            shape, fortran, dtype = readers[version](file)
    except _HEADER_ERRORS as error:
        raise ModelInputError(f"{where}: is truncated or broken in its header: {error}") from error
    if dtype.hasobject:
        raise ModelInputError(f"{where}: holds pickled Python objects, which are never read; save a numeric array")
    if any(size < 0 for size in shape):
        raise ModelInputError(f"{where}: is broken: its header has the shape {shape}")
    return Header(tuple(map(int, shape)), fortran, dtype, file.tell())


def _check_size(header: Header, actual: int, where: str) -> None:
    expected = header.offset + header.size
    if actual < expected:
        raise ModelInputError(
            f"{where}: is truncated: {header.dtype} {header.shape} needs {expected} bytes, it has {actual}"
        )


def as_bfloat16(array: Array) -> Array:
    """The array, read as bfloat16 if it holds what NumPy makes of that type in a file: two bytes without a meaning."""
    return array.view(_BFLOAT16) if is_two_bytes(array) else array


def is_two_bytes(array: Array) -> bool:
    """Whether the type is NumPy's void of two bytes."""
    return array.dtype.kind == "V" and array.dtype.itemsize == _BFLOAT16.itemsize and array.dtype.names is None


def file_name(name: str) -> str:
    """A .npy file's name for a tensor's name, different for different tensors, that cannot leave its folder.

    >>> file_name("../scores")
    '..%2Fscores.npy'
    """
    return re.sub(r"[%/\x00-\x1f\x7f]", lambda match: f"%{ord(match[0]):02X}", name) + ".npy"


def write_npy(arrays: Mapping[Path, Array], *, make_folders: bool) -> None:
    """Write .npy files under their names only when all of them are complete on the disk, and say so.

    Or one to standard output.
    """
    # strings, which are objects to onnx, as NumPy's own
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
    """Write arrays by name to one .npz file, or to standard output."""
    if is_stream(path):
        file = BytesIO()
        np.savez(file, allow_pickle=False, **arrays)
        write_stdout(file.getvalue())
        return
    with atomic_write(make_folders=make_folders) as temporary, errors_of(path), temporary(path).open("wb") as opened:
        np.savez(opened, allow_pickle=False, **arrays)
    say_written([path])
