"""Input and output files of commands. "-" is stdin or stdout. Replacing inputs and creating folders require options."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Annotated, Literal

import numpy as np
import typer

from maxops.atomic_files import PlainWriter, errors_of, write_text
from maxops.errors import ModelError, ModelInputError, OutputError
from maxops.plan import Array
from maxops.program import print_line
from maxops.shown import printable

STREAM = Path("-")
LONGEST_MODEL = 2**31 - 1  # protobuf's limit in bytes
_BLOCK = 1 << 20  # bytes
STDIN, STDOUT = "stdin", "stdout"  # names in messages

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Allow an output to replace an input file.")]
Parents = Annotated[bool, typer.Option("--parents", "-p", help="Create the missing folders of an output.")]
Format = Annotated[Literal["text", "json"], typer.Option("--format", help="Tables, or JSON for programs.")]


def is_stream(path: Path | None) -> bool:
    """Return whether a path is "-", which means stdin or stdout."""
    return path == STREAM


def name_of(path: Path) -> str:
    """Return the name of an input file for messages."""
    return STDIN if is_stream(path) else str(path)


def check_inputs(paths: Iterable[Path]) -> None:
    """Raise an error if several inputs are stdin, which can be read only once."""
    if sum(map(is_stream, paths)) > 1:
        raise ModelInputError("- (stdin) is specified twice, but stdin can be read only once")


def check_outputs(
    outputs: Iterable[Path], inputs: Iterable[Path], *, overwrite: bool, parents: bool, folder: Path | None = None
) -> None:
    """Reject outputs that would replace an input, or whose folder does not exist, before any work is done.

    Without outputs, reject the options --overwrite and --parents, which have no effect.

    `folder` is the output folder from the command line, in which the command may create folders, or None. The inputs
    are compared only with existing outputs.
    """
    existing: list[Path] = []
    outputs = list(outputs)
    if not outputs and (overwrite or parents):
        raise typer.BadParameter(f"{'--overwrite' if overwrite else '--parents'} has no effect without an output file")
    for path in outputs:
        if is_stream(path):
            continue
        if not parents:
            _check_folder(path.parent if folder is None else folder, path if folder is None else folder)
        with errors_of(path):
            if not overwrite and path.exists():
                existing.append(path)
    if not existing:
        return
    for source in inputs:
        for path in existing:
            if not is_stream(source) and os.path.exists(source) and path.samefile(source):
                known_as = "" if path == source else f" ({source})"
                raise OutputError(f"{path} is also an input{known_as}; pass --overwrite to replace it")


def model_files(model: Path) -> Iterator[Path]:
    """Yield the file of a model, and its data files. If the model cannot be read, yield only its own file."""
    yield model
    if model.suffix.lower() == ".xml":
        yield model.with_suffix(".bin")
    elif os.path.isfile(model):
        from maxops.onnx import external  # noqa: PLC0415  (onnx takes longer to import than most commands to run)
        from maxops.onnx.load import read  # noqa: PLC0415

        with suppress(ModelError):
            yield from external.files(read(model), model, str(model)).values()


def _check_folder(folder: Path, path: Path) -> None:
    with errors_of(path):
        try:
            folder.stat()
        except FileNotFoundError as error:
            raise OutputError(f"{path}: folder {folder} does not exist; pass --parents to create it") from error


def is_pipe(path: Path) -> bool:
    """Return whether a path can be read only once: "-", or a pipe such as a shell's <(command)."""
    try:
        return is_stream(path) or path.is_fifo()
    except OSError:  # opening the file reports the error
        return False


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, a pipe or standard input for reading. System errors are raised as ModelInputError."""
    try:
        if is_stream(path):
            yield sys.stdin.buffer
            return
        with path.open("rb") as file:
            yield file
    except IsADirectoryError as error:
        raise ModelInputError(f"{path} cannot be read: it is a folder; pass a file") from error
    except OSError as error:
        raise ModelInputError(f"{name_of(path)} cannot be read: {error.strerror or error}") from error


def read_at_most(file: IO[bytes], count: int) -> bytearray:
    """Read at most `count` bytes of a pipe, allocating memory only as data arrive."""
    data = bytearray()
    while len(data) < count and (part := file.read(min(count - len(data), _BLOCK))):
        data += part
    return data


def read_model(path: Path) -> bytes:
    """Read a model from stdin or a pipe, up to one byte past the size limit, because a pipe may be endless."""
    with opened(path) as file:
        return bytes(read_at_most(file, LONGEST_MODEL + 1))


def read_stdin() -> bytes:
    """Return all data of standard input. Raise an error if it exceeds the size limit."""
    data = read_model(STREAM)
    if len(data) > LONGEST_MODEL:
        raise ModelInputError(f"{STDIN}: the data exceeds {LONGEST_MODEL} bytes, the limit for standard input")
    return data


def write_stdout(data: bytes) -> None:
    """Write bytes to standard output. Raise OutputError for a terminal, which would interpret the bytes."""
    if sys.stdout.isatty():
        raise OutputError("stdout is a terminal, which cannot show binary data; redirect stdout or pass a file name")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def npy_bytes(array: Array) -> bytes:
    """Return the bytes of a .npy file."""
    file = BytesIO()
    np.save(PlainWriter(file), array, allow_pickle=False)
    return file.getvalue()


def give_text(path: Path, text: str, errors: str = "strict", *, make_folders: bool = False) -> None:
    """Write a report to its file and print the file's name, or write it to standard output."""
    if is_stream(path):
        sys.stdout.write(text)
    else:
        write_text(path, text, errors=errors, make_folders=make_folders)
        say_written([path])


def say_written(paths: Iterable[Path]) -> None:
    """Name the written files on stderr, so that standard output contains only results."""
    for path in paths:
        print_line(f"maxops: wrote {printable(str(path))}")


def stdout_kept_for(outputs: Iterable[Path | None]) -> AbstractContextManager[object]:
    """Redirect printed messages to stderr if standard output is one of the outputs, even as /dev/stdout.

    Call this function before writing the outputs, because a written file replaces the file that stdout has open.
    """
    is_output = any(is_stream(path) or _is_stdout(path) for path in outputs if path is not None)
    return redirect_stdout(sys.stderr) if is_output else nullcontext()


def _is_stdout(path: Path) -> bool:
    """Return whether a path is the pipe or the file of standard output. Devices, such as /dev/null, do not count."""
    try:
        mine = os.fstat(sys.stdout.fileno())
        return not stat.S_ISCHR(mine.st_mode) and os.path.samestat(path.stat(), mine)
    except (OSError, ValueError):  # the output does not exist yet, or stdout is not a file
        return False
