"""Prints findings for pipes and CI: one per line, in the style of compilers and linters, or as GitHub annotations."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from maxops.shown import printable


class Line(NamedTuple):
    """A finding: the file or runtime, the node or case in it, the clause, and the message."""

    file: str
    node: str
    clause: str
    message: str
    is_fault: bool
    is_file: bool = True


def show_lines(lines: Iterable[Line], form: str) -> None:
    """Print findings in the "concise" or "github" form."""
    for line in lines:
        if form == "github":
            print(_github(line))
        else:
            print(printable(f"{line.file}: {line.node}: {line.clause} {line.message}"))


def default_form(form: str | None, *, in_file: bool = False) -> str:
    """Return the requested form. The default is tables on a terminal, and one finding per line elsewhere."""
    return form or ("text" if sys.stdout.isatty() and not in_file else "concise")


def _github(line: Line) -> str:
    """Return a GitHub workflow command: an error for a fault, or a notice for any other finding."""
    level = "error" if line.is_fault else "notice"
    title = f"title={_escaped(line.clause, of_property=True)}"
    if line.is_file:
        return (
            f"::{level} file={_escaped(line.file, of_property=True)},{title}::"
            f"{_escaped(printable(f'{line.node}: {line.message}'))}"
        )
    return f"::{level} {title}::{_escaped(printable(f'{line.file}: {line.node}: {line.message}'))}"


def _escaped(text: str, *, of_property: bool = False) -> str:
    """Escape the message or a property of a GitHub workflow command, as GitHub's toolkit does."""
    codes: dict[str, str | int | None] = {"%": "%25", "\r": "%0D", "\n": "%0A"}
    if of_property:
        codes |= {":": "%3A", ",": "%2C"}
    return text.translate(str.maketrans(codes))
