"""The command `maxops`; the extra "onnx" installs its dependencies."""

from __future__ import annotations

import os
import sys
import traceback
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

from maxops.program import BAD_USE, INTERRUPTED, OUR_FAULT, print_line

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

EXTRA = ("typer", "rich", "onnx", "google", "defusedxml", "junitparser")


def main() -> None:
    """Run the command line, or print which extra to install."""
    _open_closed_streams()
    _name_stdout()
    try:
        # here, so that a missing package becomes a line and not a traceback
        from maxops.cli.app import app  # noqa: PLC0415

        app()
    except KeyboardInterrupt:  # while it was imported
        print_line("maxops: interrupted")
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package in EXTRA:
            message, code = f'the command needs the package {package!r}: pip install "maxops[onnx]"', BAD_USE
        else:
            traceback.print_exc()
            message, code = "this is a fault of maxops itself; please report it with the lines above", OUR_FAULT
        print_line(f"maxops: error: {message}")
        raise SystemExit(code) from error


def _open_closed_streams() -> None:
    """Replace closed standard streams, which Python has as None.

    A file that is opened later would get their number. Writing to stdout fails as it does for any program; what goes to
    stderr has nowhere to go.
    """
    for name, flags in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), "r" if name == "stdin" else "w"))  # noqa: SIM115


class _Stdout(FileIO):
    """Standard output with a name, which the system's errors show as they do for a file."""

    def write(self, data: ReadableBuffer) -> int:
        """Write as many bytes as the system accepts at once."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = "stdout"
            raise


def _name_stdout() -> None:
    was = sys.stdout
    raw = _Stdout(was.fileno(), "w", closefd=False)
    # a name or a path that the terminal's encoding lacks must not end the command
    sys.stdout = TextIOWrapper(BufferedWriter(raw), was.encoding, "backslashreplace", line_buffering=raw.isatty())
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
