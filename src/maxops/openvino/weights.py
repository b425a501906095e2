"""Reads constants from the .bin file of an IR, and rejects constants that extend past the end of the file."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np

from maxops import dtypes
from maxops.dtypes import DType
from maxops.errors import ModelError
from maxops.plan import Array


def check_size(dtype: DType, shape: tuple[int, ...], size: int, where: str) -> None:
    """Reject a constant with fewer bytes than its elements require. OpenVINO also rejects such constants."""
    expected = prod(shape) * dtype.numpy.itemsize
    if size < expected:
        raise ModelError(f"{where}: {dtype} {shape} requires {expected} bytes, got {size}")


class Weights:
    """The weights file of an IR. The file is open only while a constant is read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, offset: int, size: int, where: str) -> None:
        """Reject data that extends past the end of the file. The file is not opened, and may be missing."""
        if self._path.is_file():
            self._check(offset, size, where)

    def check_file(self) -> None:
        """Raise an error if the file does not exist."""
        if not self._path.is_file():
            raise ModelError(f"the weights file {self._path.name!r} is missing from the model's folder")

    def _check(self, offset: int, size: int, where: str) -> None:
        length = self._path.stat().st_size
        if offset + size > length:
            raise ModelError(
                f"{where}: bytes {offset} to {offset + size} extend past the end of {self._path} ({length} bytes)"
            )

    def read(self, dtype: DType, shape: tuple[int, ...], offset: int, size: int, where: str) -> Array:
        """Return a constant as a read-only array. Error messages start with `where`."""
        check_size(dtype, shape, size, where)
        try:
            self._check(offset, size, where)
            data = np.fromfile(self._path, dtype.numpy, prod(shape), offset=offset)
        except OSError as error:
            raise ModelError(f"{where}: the weights {self._path} cannot be read: {error.strerror}") from error
        if dtype is dtypes.BOOL and data.size and data.view(np.uint8).max() > 1:
            raise ModelError(f"{where}: the type is boolean, but the data contains a byte other than 0 or 1")
        try:
            array = data.reshape(shape)
        except ValueError as error:
            raise ModelError(f"{where}: NumPy does not support the shape: {error}") from error
        array.flags.writeable = False
        return array
