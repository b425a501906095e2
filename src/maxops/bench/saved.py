"""Runs in files: a line for each case, and what is read has all that the reports need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maxops.atomic_files import write_text
from maxops.errors import MaxopsError
from maxops.json_text import in_lines

Json = dict[str, Any]

FORMAT = 2
_OF_A_RUN = {"began", "command", "machine", "libraries", "deviations", "limits", "memory", "scaling", "cases"}
_OF_A_CASE = {"id", "operator", "family", "type", "size", "bytes_read", "bytes_written", "band", "ours", "libraries"}
_OF_A_CASE |= {"limit", "fastest", "ratio", "goal"}


class BenchFileError(MaxopsError, ValueError):
    """A file of an earlier run that cannot be read, or that does not hold one."""


def read(path: Path) -> Json:
    """The run of a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BenchFileError(f"{path}: {error.strerror}") from error
    return parse(data, str(path))


def parse(data: bytes, source: str) -> Json:
    """The run of a file's bytes; `source` is what errors call it."""
    try:
        run = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise BenchFileError(f"{source}: is not JSON: {error}") from error
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise BenchFileError(f"{source}: is not a run of maxops bench in format {FORMAT}; run it again")
    _check_fields(run, _OF_A_RUN, source)
    if not isinstance(run["cases"], list):
        raise BenchFileError(f"{source}: cases is not a list")
    for number, case in enumerate(run["cases"]):
        _check_fields(case, _OF_A_CASE, f"{source}: cases[{number}]")
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
