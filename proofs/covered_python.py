"""What tests reached of files of Python, out of coverage.py's JSON: lines and branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def functions(report: Json, prefix: str) -> Iterator[tuple[str, str, Json]]:
    """Each file, from the root, and function by its last name, with what was reached of it; "" is what
    stands outside of all.
    """
    for path, file in report["files"].items():
        for name, function in file["functions"].items():
            if function["summary"]["num_statements"]:
                yield path.removeprefix(prefix), name.rpartition(".")[2], function


def counts(function: Json) -> dict[str, tuple[int, int]]:
    """Of lines and of branches, how many were reached, of how many."""
    of = function["summary"]
    return {
        "lines": (of["covered_lines"], of["num_statements"]),
        "branches": (of["covered_branches"], of["num_branches"]),
    }


def missed(function: Json, text: list[str]) -> Iterator[tuple[str, str]]:
    """What was not reached: the line's text, and what of it; nothing that follows from another miss."""
    cold = function["missing_lines"]
    for line in cold:
        yield text[line - 1].strip(), "not reached"
    for line, to in function["missing_branches"]:
        if line not in cold and to not in cold:
            yield text[line - 1].strip(), f"never on to: {text[to - 1].strip()}" if to > 0 else "never to the end"
