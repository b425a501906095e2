"""Prints tables that fit the width of a terminal. In pipes and files, lines are not wrapped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maxops import dtypes
from maxops.model import type_name
from maxops.plan import Array
from maxops.shown import printable

Cell = str | Text
FIRST = 6
PROSE = 20  # columns with longer cells get at least this width
NO_WRAP = 1_000_000  # the assumed width of a pipe or a file
_FRAME = 3  # the width of a column's frame in characters
# The symbol and the style of each verdict.
VERDICTS = {
    "holds": ("\N{CHECK MARK}", "green"),
    "agrees": ("\N{CHECK MARK}", "green"),
    "broken": ("\N{BALLOT X}", "red"),
    "DIFFERS": ("\N{BALLOT X}", "red"),
    "crashes": ("\N{BALLOT X}", "red"),
    "hangs": ("\N{BALLOT X}", "red"),
    "unknown": ("?", "yellow"),
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # rich would exit with 1; the group of commands has its own exit code
        raise BrokenPipeError


def verdict(text: str) -> Cell:
    """Return a verdict with a color for a terminal, and with a sign for readers who cannot see colors."""
    sign, style = VERDICTS.get(text.partition(":")[0], ("", ""))
    if not sys.stdout.isatty():
        return text
    can_sign = sign and "utf" in (sys.stdout.encoding or "").lower()
    # styles only part of the text, because a style of the whole text would also apply to the padding of the cell
    return Text.assemble((printable(f"{sign} {text}" if can_sign else text), style))


def show(columns: Sequence[Cell], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table. On a terminal, cells wrap between words. Elsewhere, lines are not wrapped.

    On a terminal that is too narrow for the columns, each row becomes a block of lines.
    """
    show_all([(columns, rows)])


def show_all(tables: Iterable[tuple[Sequence[Cell], Iterable[Sequence[Cell]]]]) -> None:
    """Print the tables of a report in one layout: if one table is too wide, the rows of all tables become blocks."""
    console = _Console(file=sys.stdout, width=_width())
    texts = [
        [[Text(printable(cell)) if isinstance(cell, str) else cell for cell in row] for row in [columns, *rows]]
        for columns, rows in tables
    ]
    widths = [_widths(rows, console.width - _FRAME * len(rows[0]) - 1) for rows in texts]
    for (heads, *cells), columns in zip(texts, widths, strict=True):
        if all(widths):
            table = Table()
            for head, width in zip(heads, columns, strict=True):
                table.add_column(head, width=width)
            for row in cells:
                table.add_row(*row)
            console.print(table)
        else:
            _show_blocks(console, heads, cells)


def _show_blocks(console: Console, heads: Sequence[Text], cells: Sequence[Sequence[Text]]) -> None:
    beside = max(head.cell_len for head in heads) <= console.width // 2
    for row in cells:
        block = Table.grid(padding=(0, 2, 0, 0))
        for _ in range(1 + beside):
            block.add_column(overflow="fold")
        for head, cell in zip(heads, row, strict=True):
            if cell:
                for line in [(head, cell)] if beside else [(head,), (cell,)]:
                    block.add_row(*line)
        with console.capture() as captured:
            console.print(block)
        print(*(line.rstrip() for line in captured.get().splitlines()), "", sep="\n")  # rich pads lines
    if not cells:
        say(", ".join(head.plain for head in heads))


def _widths(rows: Sequence[Sequence[Text]], room: int) -> list[int]:
    """Return column widths at which no word is broken, or an empty list if the columns do not fit."""
    columns = list(zip(*rows, strict=True))
    widths = [max(cell_len(word) for cell in column for word in cell.plain.split() or [""]) for column in columns]
    longest = [max(cell.cell_len for cell in column) for column in columns]
    growth = [length - width for length, width in zip(longest, widths, strict=True)]
    spare = room - sum(widths)
    if spare < 0:
        return []
    for done, number in enumerate(sorted(range(len(columns)), key=growth.__getitem__)):
        more = min(growth[number], spare // (len(columns) - done))
        widths[number] += more
        spare -= more
    return [] if any(width < PROSE < length for width, length in zip(widths, longest, strict=True)) else widths


def _width() -> int:
    return get_terminal_size().columns if sys.stdout.isatty() else NO_WRAP


def say(text: str, indent: int = 0) -> None:
    """Print a line. On a terminal, wrap it between words, and indent the continuation lines."""
    if not sys.stdout.isatty():
        print(text)
        return
    print(fill(text, _width(), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False))


def describe(name: str, array: Array) -> dict[str, Any]:
    """Describe an array for JSON: its type, its shape, and its first values with their bits."""
    dtype = dtypes.of(array.dtype)
    first = _first(array)
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
    """Return the first values in row-major order, shortened with "..." to about a third of the terminal width."""
    values = [str(value) for value in _first(array)]
    while len(values) > 1 and len(", ".join(values)) > _width() // 3:
        values.pop()
    return ", ".join([*values, "..."] if array.size > len(values) else values)


def _first(array: Array) -> list[Any]:
    """Return the first elements in row-major order, which are all in a corner of the array."""
    # np.ndindex needs memory for every index along each axis, and array.flat supports at most 32 axes
    corner = np.asarray(array[(slice(FIRST),) * array.ndim], array.dtype)
    return [corner[index] for index in islice(np.ndindex(corner.shape), FIRST)]
