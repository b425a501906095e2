"""`maxops conform`: does a runtime compute the max operators as the standards say?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from maxops.atomic_files import atomic_write, check_writable
from maxops.cli.progress import counting_bar
from maxops.cli.table import printable, show
from maxops.conformance import timeout
from maxops.errors import ConfigurationError, MaxopsError

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.conformance.case import Case
    from maxops.conformance.result import Run
    from maxops.conformance.wording import Table

NOT_CONFORMING = 1
UNUSABLE = 2
LETTERS_OF_CLAUSE, LETTERS_OF_RUNTIME = 60, 20  # in a line of the matrix, so that words stay whole
MAX_CASE_TEXT = 60  # letters of a case's name beside the bar


def _check_seconds(seconds: float) -> float:
    try:
        return timeout.check(seconds)
    except ConfigurationError as error:
        raise typer.BadParameter(str(error)) from None


def conform(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUNTIME...",
            help="Runtimes by name; maxops (each engine and instruction set) or all (whatever is installed); "
            "mypackage.mybackend, a module or class with the protocol of onnx.backend.base.Backend; or "
            "'command:PROGRAM ...', which is run on a test folder. Without any: which there are.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A selection of the cases, in seconds.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="TEXT,...", help="Cases whose id contains a text, or matches a pattern with *."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the cases that would be run, and end.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the cases as ONNX test folders (SegmentMax as OpenVINO IR), and end."
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the run as JSON.")] = None,
    junit_file: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, for CI systems.")
    ] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one page that needs nothing else.")
    ] = None,
    old: Annotated[
        Path | None, typer.Option("--compare", metavar="OLD.json", help="Show what changed since an earlier run.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", metavar="KNOWN.json", help="Exit with 1 only for a fault that this run does not have."
        ),
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="FILE", help="Report runs that were saved with --json; nothing is run."),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", callback=_check_seconds, help="The timeout of a case."),
    ] = timeout.DEFAULT,
) -> None:
    """Judge runtimes by cases derived from the standards' clauses, each runtime in its own process.

    Exits with 1 if a runtime breaks a clause, 2 if one cannot be run.
    """
    from maxops.conformance import cases, saved  # noqa: PLC0415  (see above)

    reports = {"--json": json_file, "--junit": junit_file, "--html": html_file}
    if listed or save is not None:
        _reject_unused("--list" if save is None else "--save", {**reports, "--from": earlier})
        chosen = cases.select(cases.cases(), only or [], quick=quick)
        _list(chosen) if save is None else _save(chosen, save)
        return
    known = saved.read(baseline) if baseline else []
    before = saved.read(old) if old else []
    for file in filter(None, reports.values()):
        check_writable(file)
    failed: list[MaxopsError] = []
    if earlier:
        _reject_unused("--from", {"RUNTIME": names, "--only": only, "--quick": quick})
        runs = [run for file in earlier for run in saved.read(file)]
    elif names:
        chosen = cases.select(cases.cases(), only or [], quick=quick)
        runs = list(_run(names, chosen, seconds, failed, quick=quick, only=only or []))
    else:
        _show_runtimes()
        raise typer.Exit(UNUSABLE)
    _report(runs, before)
    _write(runs, json_file, junit_file, html_file)
    for error in failed:
        print(f"maxops: error: {printable(str(error))}", file=sys.stderr)
    if failed:
        raise typer.Exit(UNUSABLE)
    if _is_faulty(runs, known, has_baseline=baseline is not None):
        raise typer.Exit(NOT_CONFORMING)


# ------------------------------------------------------------------------------------------------------ running


def _run(
    names: Sequence[str],
    chosen: Sequence[Case],
    seconds: float,
    failed: list[MaxopsError],
    *,
    quick: bool,
    only: Sequence[str],
) -> Iterator[Run]:
    """Each runtime's run; one that cannot be run does not keep the others from it, if there are others."""
    from maxops.conformance import runtimes, session  # noqa: PLC0415  (see above)

    each = list(dict.fromkeys(single for name in names for single in runtimes.expand(name)))
    for name in each:
        runtimes.resolve(name)  # a wrong name is an error before anything runs
    for name in each:
        try:
            with _bar(name) as progress:
                yield session.conform(
                    name, chosen, kit={"quick": quick, "only": list(only)}, seconds=seconds, progress=progress
                )
        except MaxopsError as error:
            if len(each) == 1:
                raise
            failed.append(error)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int, str], None]]:
    with counting_bar() as bar:
        task = bar.add_task(name)

        def progress(done: int, of: int, doing: str) -> None:
            short = doing if len(doing) <= MAX_CASE_TEXT else f"{doing[: MAX_CASE_TEXT - 1]}…"
            bar.update(task, completed=done, total=of, description=f"{name}  {printable(short):{MAX_CASE_TEXT}}")

        yield progress


def _show_runtimes() -> None:
    from maxops.conformance import runtimes  # noqa: PLC0415  (see above)

    here = runtimes.installed()
    show(("runtime", "installed"), [(name, "yes" if name in here else "no") for name in runtimes.known()])
    print("maxops: error: no runtime is given: name some of these, or maxops, or all", file=sys.stderr)


# ------------------------------------------------------------------------------------------------------- cases


def _list(chosen: Sequence[Case]) -> None:
    show(
        ("case", "expects"),
        [(case.id, "an error" if case.refusal else "an answer") for case in chosen],
    )
    print(f"{len(chosen)} cases")


def _save(chosen: Sequence[Case], folder: Path) -> None:
    """Write folders; of a case of thousands of feeds, a few of them."""
    from maxops.conformance.folder import MAX_DATA_SETS, spread, write  # noqa: PLC0415  (see above)
    from maxops.conformance.runtimes.runtime import NotApplicableError  # noqa: PLC0415

    left_out: Counter[str] = Counter()
    shortened = 0
    with _bar("saving") as progress, atomic_write(make_folders=True) as temporary:
        for done, case in enumerate(chosen):
            progress(done, len(chosen), case.id)
            try:
                count = len(case.make().feeds)
                write(case, folder, temporary, spread(count))
                shortened += count > MAX_DATA_SETS
            except NotApplicableError as error:
                left_out[str(error)] += 1
    print(f"{folder}: {len(chosen) - left_out.total()} cases")
    if shortened:
        print(f"{shortened} of them with {MAX_DATA_SETS} data sets of more, at even distances")
    for why, count in left_out.items():
        print(f"{count} cases have no folder: {why}")


# ----------------------------------------------------------------------------------------------------- reports


def _report(runs: Sequence[Run], before: Sequence[Run]) -> None:
    from maxops.conformance import compare, matrix  # noqa: PLC0415  (see above)

    if runs:
        for beside in _that_fit(runs):
            _show(matrix.matrix(beside))
    for run in runs:
        if (found := matrix.findings(run)).rows:
            _show(found)
    for old, new in compare.pairs(before, runs) if before else []:
        if old is not None and new is not None:
            comparison = compare.compare(old, new)
            for table in compare.tables(comparison):
                _show(table)
            print(compare.summary(comparison))
    for run in runs:
        for note in run["notes"]:
            print(f"{run['runtime']}: note: {printable(note)}")
        print(matrix.summary(run))


def _that_fit(runs: Sequence[Run]) -> Iterator[Sequence[Run]]:
    """As many runtimes beside each other as a terminal has room for; in a pipe or a file, all."""
    most = len(runs)
    if sys.stdout.isatty():
        most = max(1, (Console().width - LETTERS_OF_CLAUSE) // LETTERS_OF_RUNTIME)
    for start in range(0, len(runs), most):
        yield runs[start : start + most]


def _show(table: Table) -> None:
    print(table.title)
    show(table.columns, table.rows)


def _write(runs: Sequence[Run], json_file: Path | None, junit_file: Path | None, html_file: Path | None) -> None:
    from maxops.conformance import junit, page, saved  # noqa: PLC0415  (see above)

    if not runs:
        return
    for file, write in ((json_file, saved.write), (junit_file, junit.write), (html_file, page.write)):
        if file is not None:
            write(file, runs)


def _reject_unused(option: str, others: dict[str, object]) -> None:
    """What is asked for beside an option that would pass it over."""
    for name, value in others.items():
        if value:
            raise typer.BadParameter(f"{name} has no effect with {option}")


def _is_faulty(runs: Sequence[Run], known: Sequence[Run], *, has_baseline: bool) -> bool:
    """Whether there are faults; with a baseline, whether there are such that it does not have."""
    from maxops.conformance import compare  # noqa: PLC0415  (see above)
    from maxops.conformance.result import FAULTS  # noqa: PLC0415

    if not has_baseline:
        return any(finding["verdict"] in FAULTS for run in runs for finding in run["findings"])
    pairs = [(before, run) for before, run in compare.pairs(known, runs) if run is not None]
    for before, run in pairs:
        if before is None:
            print(f"the baseline has no run of {printable(run['runtime'])}: all of its faults are new")
    new = [finding for before, run in pairs for finding in compare.not_in_baseline(run, before)]
    for finding in new:
        print(f"not in the baseline: {finding['case']}: {finding['verdict']}")
    return bool(new)
