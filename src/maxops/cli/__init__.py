"""The command `maxops`, whose dependencies the extra "onnx" installs: `pip install "maxops[onnx]"`."""

from __future__ import annotations

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

from maxops.extras import missing_package
from maxops.program import INTERRUPTED, end_command, print_line

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

EXTRA = ("typer", "rich", "onnx", "google", "defusedxml", "junitparser")


def main() -> None:
    """Run the command line. If a dependency is missing, print which extra installs it."""
    _open_closed_streams()
    _name_stdout()
    try:
        # imported here, so that a missing package gives one line instead of a traceback
        from maxops.cli.app import app  # noqa: PLC0415

        app()
    except KeyboardInterrupt:  # during the import
        print_line("maxops: interrupted")
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001  (end_command raises SystemExit)
        package = missing_package(error)
        missing = f'the maxops command requires {package!r}; run pip install "maxops[onnx]"'
        end_command(error, missing if package in EXTRA else "")


def _open_closed_streams() -> None:
    """Replace closed standard streams, which are None in Python, with the null device.

    Otherwise, the next opened file would get the file descriptor of the closed stream. After the replacement, writing
    to stdout fails, as in other programs, and text for stderr is discarded.
    """
    for name, flags in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), "r" if name == "stdin" else "w"))  # noqa: SIM115


class _Stdout(FileIO):
    """A stream for standard output that adds the file name "stdout" to its errors."""

    def write(self, data: ReadableBuffer) -> int:
        """Write as many bytes as the system accepts in one call."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = "stdout"
            raise


def _name_stdout() -> None:
    was = sys.stdout
    raw = _Stdout(was.fileno(), "w", closefd=False)
    # characters that the terminal's encoding lacks must not end the command
    sys.stdout = TextIOWrapper(BufferedWriter(raw), was.encoding, "backslashreplace", line_buffering=raw.isatty())
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
