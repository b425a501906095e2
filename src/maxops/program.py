"""Determine whether maxops runs as a command or is imported by another program, and end the command on errors."""

from __future__ import annotations

import os
import re
import sys
from pathlib import PurePath
from typing import TextIO

# The exit codes; docs/reference/commands.md explains each.
FAILED = 1  # completed, but outputs differ, a clause is violated, or a result is wrong
BAD_USE = 2
OUR_FAULT = 70  # an internal error, as in sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as in shells
CLOSED_PIPE = 141  # 128 + SIGPIPE


def is_command() -> bool:
    """Return whether the running program is the maxops command: the script `maxops`, or `python -m maxops`.

    While Python imports the package to find its `__main__`, the program name is "-m". At that time, only
    `sys.orig_argv` contains the module's name, possibly with options before it: "maxops", "-mmaxops" or "-Immaxops".
    """
    if sys.argv[:1] != ["-m"]:
        return PurePath(*sys.argv[:1]).name == "maxops"
    return re.fullmatch(r"(-\w*m)?maxops", sys.orig_argv[-len(sys.argv)]) is not None


def end_command(error: Exception) -> None:
    """If maxops runs as a command, print the error and exit. This function is for errors during the import."""
    if is_command():
        print_line(f"maxops: error: {error}")
        sys.exit(BAD_USE)


def print_line(line: str) -> None:
    """Print a line to stderr. A failure to write does not change the exit code."""
    if sys.stderr is None:  # closed
        return
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Discard the buffer of a stream. Otherwise, Python would fail to write it at exit, and exit with status 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
