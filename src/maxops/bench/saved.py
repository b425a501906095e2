"""Runs in files: a line for each case, and what is read has all that the reports need."""

from __future__ import annotations

import json
from pathlib import Path

from maxops.bench.timing import Json
from maxops.errors import MaxopsError
from maxops.json_text import in_lines

FORMAT = 2
_OF_A_RUN = {"began", "command", "machine", "libraries", "cases"}
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
    cases = run.get("cases", [])
    if not isinstance(cases, list):
        raise BenchFileError(f"{source}: cases is not a list")
    fields = [(source, run, _OF_A_RUN), *((f"{source}: cases[{n}]", each, _OF_A_CASE) for n, each in enumerate(cases))]
    for where, value, names in fields:
        if not isinstance(value, dict):
            raise BenchFileError(f"{where} is not an object")
        if missing := names - value.keys():
            raise BenchFileError(f"{where} has no {min(missing)}; is it a run of maxops bench?")
    return run


def as_text(run: Json) -> str:
    """The text of a run's file: the same run gives the same."""
    return in_lines(run) + "\n"
