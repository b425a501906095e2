"""Runs in files: a line for each case, and what is read has all that the reports need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maxops.errors import MaxopsError
from maxops.json_text import in_lines
from maxops.whole_files import write_text

Json = dict[str, Any]

FORMAT = 1
_OF_A_RUN = {"began", "command", "machine", "peers", "meaning", "limits", "memory", "scaling", "cells"}
_OF_A_CELL = {"case", "operator", "family", "type", "size", "bytes_read", "bytes_written", "band", "ours", "peers"}
_OF_A_CELL |= {"limit", "best", "ratio", "goal"}


class BenchFileError(MaxopsError, ValueError):
    """A file of an earlier run that cannot be read, or that does not hold one."""


def read(path: Path) -> Json:
    """The run of a file."""
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BenchFileError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BenchFileError(f"{path}: is not JSON: {error}") from error
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise BenchFileError(f"{path}: is not a run of maxops bench in format {FORMAT}")
    _check_fields(run, _OF_A_RUN, str(path))
    if not isinstance(run["cells"], list):
        raise BenchFileError(f"{path}: cells is not a list")
    for number, cell in enumerate(run["cells"]):
        _check_fields(cell, _OF_A_CELL, f"{path}: cells[{number}]")
    return run


def write(path: Path, run: Json) -> None:
    """Write a run, which may be one that is not done yet."""
    write_text(path, as_text(run))


def as_text(run: Json) -> str:
    """The text of a run's file: the same run gives the same."""
    return in_lines(run) + "\n"


def _check_fields(value: object, names: set[str], where: str) -> None:
    if not isinstance(value, dict):
        raise BenchFileError(f"{where} is not an object")
    if missing := names - value.keys():
        raise BenchFileError(f"{where} has no {min(missing)}; is it a run of maxops bench?")
