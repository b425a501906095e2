"""The program that imports maxops: its own command, or another."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import PurePath

BAD_USE = 2  # 1 is kept for "ran, but the outputs differ", and "read, but a clause is broken"


def is_command() -> bool:
    """Whether the program is the command: the script `maxops`, or `python -m maxops`.

    Python calls a program "-m" as long as it looks for the module, which begins with the import of the package; the
    module's name, and options before it, are in `sys.orig_argv` alone: "maxops", "-mmaxops" or "-Immaxops".
    """
    if sys.argv[:1] != ["-m"]:
        return PurePath(*sys.argv[:1]).name == "maxops"
    return re.fullmatch(r"(-\w*m)?maxops", sys.orig_argv[-len(sys.argv)]) is not None


def end_command(error: Exception) -> None:
    """If the program is the command, end it in one line: no line of its own has been run before maxops is imported."""
    if is_command():
        if sys.stderr is not None:  # where Python has None, it is closed
            with suppress(OSError):  # nobody can be told; the exit code says it
                print(f"maxops: error: {error}", file=sys.stderr, flush=True)
        sys.exit(BAD_USE)
