"""Shows the results of `maxops conform`, and writes them to files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from maxops.cli import streams
from maxops.cli.one_a_line import Line, show_lines
from maxops.cli.table import say, show
from maxops.conformance import bounds, compare, matrix, saved
from maxops.conformance.result import Finding, Run
from maxops.conformance.wording import Table, expected_to_actual, runtime_label, shortened
from maxops.program import print_line
from maxops.shown import printable

LETTERS_OF_CLAUSE, LETTERS_OF_RUNTIME = 60, 20  # column widths of the matrix that keep words whole


def report(runs: Sequence[Run], seen: Sequence[Run], before: Sequence[Run], new: Sequence[Finding], form: str) -> None:
    """Show runs. `seen` are the runs after --select and --ignore, and `new` are the faults that cause exit code 1."""
    if form == "text":
        _show_tables(seen, before)
        return
    if form == "json":
        sys.stdout.write(saved.as_text(runs))
    else:
        show_lines((line for run in seen for line in _lines(run, new)), form)
    for run in seen:
        for text in map(printable, _summary(run)):
            print_line(f"maxops: {text}")


def _lines(run: Run, new: Sequence[Finding]) -> Iterator[Line]:
    failing = set(map(id, new))
    for each in run["findings"]:
        if id(each) in failing:
            results = shortened(expected_to_actual(each["expected"], each["actual"]))
            message = f"{each['verdict']}: {results}"
            yield Line(runtime_label(run), each["case"], each["clause"], message, is_fault=True, is_file=False)


def _summary(run: Run) -> Iterator[str]:
    for note in run["notes"]:
        yield f"{run['runtime']}: note: {note}"
    for sentence in bounds.sentences(run):
        yield f"{run['runtime']}: bounds: {sentence}"
    yield matrix.summary(run)


def _show_tables(runs: Sequence[Run], before: Sequence[Run]) -> None:
    if runs:
        for beside in _that_fit(runs):
            _show(matrix.matrix(beside))
    for run in runs:
        if (found := matrix.findings(run)).rows:
            _show(found)
    for old, new in compare.pairs(before, runs) if before else []:
        if old is None and new is not None:
            print_line(
                f"maxops: the --compare file contains no run of {printable(new['runtime'])}, "
                "so this runtime is not compared"
            )
        if old is not None and new is not None:
            comparison = compare.compare(old, new)
            for table in compare.tables(comparison):
                _show(table)
            print(printable(compare.summary(comparison)))
    for run in runs:
        for text in map(printable, _summary(run)):
            say(text)


def _that_fit(runs: Sequence[Run]) -> Iterator[Sequence[Run]]:
    """Yield groups of runs that fit side by side on a terminal. For a pipe or a file, yield a single group."""
    most = len(runs)
    if sys.stdout.isatty():
        most = max(1, (Console().width - LETTERS_OF_CLAUSE) // LETTERS_OF_RUNTIME)
    for start in range(0, len(runs), most):
        yield runs[start : start + most]


def _show(table: Table) -> None:
    print(printable(table.title))
    show(table.columns, table.rows)


def write(runs: Sequence[Run], seen: Sequence[Run], files: dict[str, Path | None], *, make_folders: bool) -> None:
    """Write runs to the files of --json, --junit and --html. Only the JSON file ignores --select and --ignore."""
    from maxops.conformance import junit, page  # noqa: PLC0415  (imports are slow)

    if not runs:
        return
    texts: dict[str, Callable[[], str]] = {
        "--json": lambda: saved.as_text(runs),
        "--junit": lambda: junit.as_text(seen),
        "--html": lambda: page.html(seen),
    }
    for option, file in files.items():
        if file is not None:
            # the name of a runtime may contain bytes that are not UTF-8
            streams.give_text(file, texts[option](), errors="backslashreplace", make_folders=make_folders)
