"""Files that are written whole or not at all: beside their place first, then renamed. Nothing else writes for users."""

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

Beside = Callable[[Path], Path]

_NUMBERS = count()  # of files in this process, whose threads may write into one folder


@contextmanager
def written_whole(*, make_folders: bool = False) -> Iterator[Beside]:
    """What gives, for a final path, the one to write to: at the end all are renamed, or nothing is left.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> path = Path(folder.name) / "a/b.txt"
    >>> with written_whole(make_folders=True) as beside:
    ...     _ = beside(path).write_text("all of it")
    ...     path.exists()
    False
    >>> path.read_text()
    'all of it'
    >>> folder.cleanup()

    With `make_folders`, folders on the way are made. Where the path is a link, the file that it leads to is replaced; a
    device or a pipe is written itself. Under the path that it gets, a folder may be made in place of a file.
    """
    partial: dict[Path, Path] = {}  # by the final path, links followed
    made: list[Path] = []

    def beside(path: Path) -> Path:
        with errors_of(path):
            if _is_special(path):
                return path
            target = Path(os.path.realpath(path))
            if target in partial:
                raise OutputError(f"{path}: is to be written twice; give each output a file of its own")
            missing = [each for each in target.parents if not each.exists()] if make_folders else []
            for folder in reversed(missing):
                folder.mkdir(exist_ok=True)
                made.append(folder)
        partial[target] = target.with_name(f".maxops-{os.getpid()}-{next(_NUMBERS)}.partial")
        return partial[target]

    try:
        yield beside
        for target, path in partial.items():
            with errors_of(target):
                if target.exists():
                    shutil.copymode(target, path)
                path.replace(target)
    except BaseException:
        for path in partial.values():
            # asked first, since a read-only file system refuses to remove what is not there, too
            if path.is_dir():
                shutil.rmtree(path)
            elif os.path.lexists(path):
                path.unlink()
        for folder in reversed(made):
            with suppress(OSError):  # somebody else may have something in it by now
                folder.rmdir()
        raise


def _is_special(path: Path) -> bool:
    """Whether the path is a device or a pipe; a folder is refused."""
    try:
        path.stat()  # which tells what is wrong on the way there; `exists` would not
    except FileNotFoundError:
        return False
    if path.is_dir():
        raise OutputError(f"{path}: cannot be written: it is a folder")
    return not path.is_file()


def check_place(path: Path) -> None:
    """Before long work: whether a file can be written there, in a folder that is there."""
    with errors_of(path):
        try:
            path.parent.stat()
        except FileNotFoundError as error:
            raise OutputError(f"{path}: there is no folder {path.parent}") from error
    with suppress(_Checked), written_whole() as beside, errors_of(path):
        if (partial := beside(path)) != path:
            partial.touch()
        raise _Checked  # which removes it


class _Checked(Exception):  # noqa: N818 - no error
    pass


def write_text(path: Path, text: str, errors: str = "strict") -> None:
    """Write a file of text in UTF-8."""
    with written_whole() as beside, errors_of(path):
        beside(path).write_text(text, encoding="utf-8", errors=errors)


def save_npy(path: Path, array: Array) -> None:
    """Write a .npy file, there and not beside, by `np.save`, with the system's own words for what goes wrong."""
    with path.open("wb") as file:
        np.save(_Plain(file), array, allow_pickle=False)


class _Plain:
    """A file that NumPy writes to by `write`: by `tofile`, it says how many items were written, and not why no more."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """What the system says of a file that is written, as ours."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
