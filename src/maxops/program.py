"""Identifies the program that imports maxops: its own command, or another program."""

from __future__ import annotations

import os
import re
import sys
from pathlib import PurePath
from typing import TextIO

# The exit codes; docs/reference/commands.md explains each.
FAILED = 1  # it ran to its end, and outputs differ, a clause is broken, or a result is wrong
BAD_USE = 2
OUR_FAULT = 70  # an internal error, as in sysexits.h
INTERRUPTED = 130  # as a shell reports a program that SIGINT ended
CLOSED_PIPE = 141  # likewise SIGPIPE


def is_command() -> bool:
    """Whether the program is the command: the script `maxops`, or `python -m maxops`.

    While Python looks for the module, which begins with the import of the package, the program's name is "-m". Only
    `sys.orig_argv` has the module's name and the options before it: "maxops", "-mmaxops" or "-Immaxops".
    """
    if sys.argv[:1] != ["-m"]:
        return PurePath(*sys.argv[:1]).name == "maxops"
    return re.fullmatch(r"(-\w*m)?maxops", sys.orig_argv[-len(sys.argv)]) is not None


def end_command(error: Exception) -> None:
    """End the program with one line if it is the command: no code of the command runs before maxops is imported."""
    if is_command():
        print_line(f"maxops: error: {error}")
        sys.exit(BAD_USE)


def print_line(line: str) -> None:
    """Print a line to stderr. If stderr cannot be written, the exit code is unchanged."""
    if sys.stderr is None:  # closed
        return
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Discard the buffer of a stream, which Python would write again at exit, and exit with status 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
