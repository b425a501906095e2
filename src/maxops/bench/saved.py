"""Runs in files: a line for each case, and what is read has all that the reports need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maxops.bench.timing import Json
from maxops.errors import MaxopsError
from maxops.json_text import in_lines

FORMAT = 2
DIGITS = 7  # of a figure: more than any clock tells, and half of what a float would be written with
_OF_A_RUN = {"began", "command", "machine", "libraries", "memory", "cases"}
_OF_A_CASE = {"id", "operator", "family", "type", "size", "bytes_read", "bytes_written", "ours", "libraries", "limit"}
_OF_A_CASE |= {"fastest", "ratio"}


class BenchFileError(MaxopsError, ValueError):
    """A file of an earlier run that cannot be read, or that does not hold one."""


def read(path: Path) -> Json:
    """The run of a file."""
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise BenchFileError(f"{path}: {error.strerror}") from error


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


def as_text(run: Json) -> str:
    """The text of a run's file: the same run gives the same."""
    return in_lines(run) + "\n"


def rounded(figures: Any) -> Any:
    """Figures as a run has them: every float in JSON with so many digits.

    >>> rounded({"seconds": 1.23456789e-07, "pairs": 401})
    {'seconds': 1.234568e-07, 'pairs': 401}
    """
    if isinstance(figures, float):
        return float(f"{figures:.{DIGITS}g}")
    if isinstance(figures, dict):
        return {name: rounded(each) for name, each in figures.items()}
    return [rounded(each) for each in figures] if isinstance(figures, list) else figures


def _check_fields(value: object, names: set[str], where: str) -> None:
    if not isinstance(value, dict):
        raise BenchFileError(f"{where} is not an object")
    if missing := names - value.keys():
        raise BenchFileError(f"{where} has no {min(missing)}; is it a run of maxops bench?")
