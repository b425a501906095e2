"""Determine whether maxops runs as a command or is imported by another program, and end the command on errors."""

from __future__ import annotations

import os
import re
import sys
import traceback
from pathlib import PurePath
from typing import NoReturn, TextIO

from maxops.extras import cause_of

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


def end_command(error: Exception, message: str = "") -> NoReturn:
    """Print an error or another message, and exit. An error without a known cause is a bug in maxops."""
    # not isinstance, because a broken NumPy prevents the import of maxops.errors
    is_ours = any(each.__module__ == "maxops.errors" for each in type(error).__mro__)
    code, message = BAD_USE, message or (str(error) if is_ours else cause_of(error))
    if not message:
        traceback.print_exception(error)
        code, message = OUR_FAULT, "this is a bug in maxops; please report it with the traceback above"
    print_line(f"maxops: error: {' '.join(message.split())}")
    raise SystemExit(code) from error


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
