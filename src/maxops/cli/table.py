"""Tables on the terminal, and in pipes and files without loss."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maxops import dtypes
from maxops.model import type_name
from maxops.plan import Array

FIRST = 6
NO_WRAP = 1_000_000  # columns of a pipe or a file


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # rich would exit with 1; the commands' frame gives it its own code
        raise BrokenPipeError


def printable(text: str) -> str:
    r"""The text with what would move a terminal's cursor or change its colours written out.

    >>> printable("scores\x1b[2J")
    'scores\\x1b[2J'
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def show(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table. On a terminal long cells fold; elsewhere lines are as long as they need to be."""
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    _Console(file=sys.stdout, width=None if sys.stdout.isatty() else NO_WRAP).print(table)


def describe(name: str, array: Array) -> dict[str, Any]:
    """An array for JSON: as the tables have it, and the bits of its first values."""
    dtype = dtypes.of(array.dtype)
    first = [array[index] for index in islice(np.ndindex(array.shape), FIRST)]
    found = {
        "output": name,
        "type": type_name(array),
        "shape": list(array.shape),
        "first_values": [str(value) for value in first],
    }
    if dtype is not None and dtype is not dtypes.REAL:
        words = np.array(first, dtype.numpy).view(dtype.word)
        found["first_bits"] = [f"{int(word):0{dtype.bits // 4}X}" for word in words]
    return found


def show_json(document: object) -> None:
    """Print a document as JSON."""
    print(json.dumps(document, indent=2))


def show_arrays(arrays: Mapping[str, Array]) -> None:
    """Print each array's name, type, shape and first values."""
    show(
        ("output", "type", "shape", "first values"),
        [(name, type_name(array), str(array.shape), first_values(array)) for name, array in arrays.items()],
    )


def first_values(array: Array) -> str:
    """The first values in row-major order, and three dots if there are more."""
    # array.flat takes 32 axes at most
    values = [str(array[index]) for index in islice(np.ndindex(array.shape), FIRST)]
    return ", ".join([*values, "..."] if array.size > FIRST else values)
