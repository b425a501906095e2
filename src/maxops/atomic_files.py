"""Write files atomically: write a temporary file in the same folder, then rename it.

maxops uses this module for all files that it writes for users.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

import numpy as np

from maxops.errors import OutputError
from maxops.plan import Array

TemporaryPath = Callable[[Path], Path]

_NUMBERS = count()  # unique file numbers, because threads of this process may write to the same folder


@contextmanager
def atomic_write(*, make_folders: bool = False) -> Iterator[TemporaryPath]:
    """Yield a function that returns a temporary path for each final path.

    On exit, all temporary files are renamed to their final paths, or removed if an error occurred.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> path = Path(folder.name) / "a/b.txt"
    >>> with atomic_write(make_folders=True) as temporary:
    ...     _ = temporary(path).write_text("all of it")
    ...     path.exists()
    False
    >>> path.read_text()
    'all of it'
    >>> folder.cleanup()

    With `make_folders`, missing parent folders are created. If a final path is a symbolic link, its target is replaced.
    Devices and pipes are written directly. Callers may create a folder at a temporary path instead of a file.
    """
    partial: dict[Path, Path] = {}  # the temporary paths, keyed by the final path with symbolic links resolved
    made: list[Path] = []

    def temporary(path: Path) -> Path:
        with errors_of(path):
            if _is_special(path):
                return path
            target = Path(os.path.realpath(path))
            if target in partial:
                raise OutputError(f"{path} cannot be written twice; pass a different path for each output")
            missing = [each for each in target.parents if not each.exists()] if make_folders else []
            for folder in reversed(missing):
                folder.mkdir(exist_ok=True)
                made.append(folder)
        partial[target] = target.with_name(f".maxops-{os.getpid()}-{next(_NUMBERS)}.partial")
        return partial[target]

    try:
        yield temporary
        for target, path in partial.items():
            with errors_of(target):
                if target.exists():
                    shutil.copymode(target, path)
                path.replace(target)
    except BaseException:
        for path in partial.values():
            # check first, because on a read-only file system, removing a missing file is an error
            if path.is_dir():
                shutil.rmtree(path)
            elif os.path.lexists(path):
                path.unlink()
        for folder in reversed(made):
            with suppress(OSError):  # another process may have written there
                folder.rmdir()
        raise


def _is_special(path: Path) -> bool:
    """Return whether the path is a device or a pipe. Raise an error for a folder."""
    try:
        path.stat()  # also raises errors about parent folders, which `exists` would hide
    except FileNotFoundError:
        return False
    if path.is_dir():
        raise OutputError(f"{path} cannot be written: it is a folder")
    return not path.is_file()


def check_writable(path: Path) -> None:
    """Check that the folder exists and that a file can be written there, before a long computation starts."""
    with errors_of(path):
        try:
            path.parent.stat()
        except FileNotFoundError as error:
            raise OutputError(f"{path} cannot be written: folder {path.parent} does not exist") from error
    with suppress(_Checked), atomic_write() as temporary, errors_of(path):
        if (partial := temporary(path)) != path:
            partial.touch()
        raise _Checked  # so that atomic_write removes the temporary file


class _Checked(Exception):  # noqa: N818 - signals success, not an error
    pass


def write_text(path: Path, text: str, errors: str = "strict", *, make_folders: bool = False) -> None:
    """Write a text file in UTF-8."""
    with atomic_write(make_folders=make_folders) as temporary, errors_of(path):
        temporary(path).write_text(text, encoding="utf-8", errors=errors)


def save_npy(path: Path, array: Array) -> None:
    """Write a .npy file, but not atomically. If writing fails, the error names the cause, such as a full disk."""
    with path.open("wb") as file:
        np.save(PlainWriter(file), array, allow_pickle=False)


class PlainWriter:
    """A file object with only `write`, so that NumPy does not call `tofile`, whose errors do not name the cause."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write: Callable[[bytes], int] = file.write


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Raise OutputError instead of OSError in a block that writes a file."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
