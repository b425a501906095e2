"""`maxops bench`: compares the speed of maxops with that of other libraries and with the machine's memory bandwidth."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

import maxops
from maxops.atomic_files import check_writable, write_text
from maxops.bench import compare, environment, grid, page, random_calls, report, session
from maxops.bench.grid import OPERATORS, Case, label
from maxops.bench.libraries import LIBRARIES, supports
from maxops.bench.timing import Json
from maxops.cli import streams
from maxops.cli.options import reject_unused
from maxops.cli.progress import counting_bar
from maxops.cli.table import show, show_json
from maxops.counted import counted
from maxops.engines.native import MOST_THREADS
from maxops.extras import needed
from maxops.json_text import in_lines
from maxops.program import FAILED

MAX_SECONDS = 1e6
_LIST = list[str] | None
_FILE = Path | None
_TYPES = "Element dtypes, or all. Default: one for each kind of kernel; all with --random."
_OPERATORS, _LIBRARIES = (f"Any of {', '.join(names)}. Default: all." for names in (OPERATORS, LIBRARIES))
_ANOTHER = "Compare with another installation of maxops. PATH is its Python, or the folder that contains its package."


def _check_seconds(seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds <= MAX_SECONDS:  # NaN is neither
        raise typer.BadParameter(f"expected more than 0 and at most {MAX_SECONDS:g} seconds, got {seconds}")
    return seconds


# fmt: off
def bench(
    context: typer.Context,
    operators: Annotated[_LIST, typer.Argument(metavar="OP", help=_OPERATORS)] = None,
    types: Annotated[_LIST, Option(metavar="TYPE,...", help=_TYPES)] = None,
    library: Annotated[_LIST, Option("--libraries", metavar="LIBRARY,...", help=_LIBRARIES)] = None,
    quick: Annotated[bool, Option("--quick", help="Smoke test: run a few small cases briefly.")] = False,
    sizes: Annotated[
        _LIST, Option(metavar="N,...", help="Numbers of elements as written in case ids, such as 1,1e3. Default: all.")
    ] = None,
    only: Annotated[
        str | None, Option("--only", metavar="TEXT", help="Run only cases whose id contains this text.")
    ] = None,
    seconds: Annotated[
        float | None,
        Option(metavar="N", callback=_check_seconds,
               help="Seconds per comparison. Default: 0.3; 0.02 with --quick; 0.01 with --random."),
    ] = None,
    threads: Annotated[
        int | None,
        Option(metavar="N", min=1, max=MOST_THREADS, help="Threads for every library. Default: the setting of maxops."),
    ] = None,
    other: Annotated[_FILE, Option("--compare", metavar="PATH", exists=True, help=_ANOTHER)] = None,
    random: Annotated[
        float | None,
        Option(metavar="SECONDS", callback=_check_seconds,
               help="Time random calls for this many seconds, instead of the cases."),
    ] = None,
    seed: Annotated[
        int | None, Option(metavar="N", min=0, help="With --random, the seed for the calls. Default: 0.")
    ] = None,
    only_call: Annotated[
        int | None, Option("--only-call", metavar="N", min=0, help="With --random, run only call number N.")
    ] = None,
    listed: Annotated[bool, Option("--list", help="List the cases and exit.")] = False,
    earlier: Annotated[_FILE, Option("--from", metavar="FILE", help="Show the saved run in this JSON file.")] = None,
    form: streams.Format = "text",
    json_file: Annotated[
        _FILE, Option("--json", metavar="FILE", help="Write the run to this file. --format json prints it.")
    ] = None,
    html_file: Annotated[_FILE, Option("--html", metavar="FILE", help="Write a page with plots to this file.")] = None,
    markdown_file: Annotated[_FILE, Option("--markdown", metavar="FILE", help="Write tables to this file.")] = None,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """Benchmark the operators against other libraries. Each result is first compared with the expected bits."""
    # fmt: on
    if html_file is not None:
        with needed("--html", "bench"):  # raises now if matplotlib is missing or broken
            import_module("matplotlib.figure")
    if form == "json" and json_file is not None:
        raise typer.BadParameter("--format json writes to stdout and cannot be combined with --json")
    kinds = {"--random": random, "--from": earlier, "--compare": other, "--list": listed}
    for kind, value in kinds.items():
        if value:
            reject_unused(context, kind, _KINDS[kind] | {"--format"})
    if only == "":
        raise typer.BadParameter("expected a part of a case id, got an empty string", param_hint="--only")
    json_file = streams.STREAM if form == "json" else json_file
    reports = {json_file: report.as_text, html_file: page.html, markdown_file: report.markdown}
    given = [file for file in (json_file, html_file, markdown_file) if file is not None]
    _check_files(given, earlier, overwrite=overwrite, parents=parents)
    if random is None and (seed is not None or only_call is not None):
        raise typer.BadParameter("--seed and --only-call require --random")
    if earlier is not None:
        run = report.parse(streams.read_stdin(), streams.STDIN) if streams.is_stream(earlier) else report.read(earlier)
        _report(run, report.summary(run), reports, parents)
        return
    names = _names(library or [], list(LIBRARIES if random is None else random_calls.BESIDE), "--libraries", "library")
    if random is not None:
        run = _random(operators or [], types or [], names, threads, random, seed or 0, only_call, seconds)
        _report_tables(run, random_calls.headline(run), random_calls.tables(run), json_file, parents)
        _fail(random_calls.failures(run), "{} bit for bit", "call does not match NumPy", "calls do not match NumPy")
        return
    cases = _cases(operators or [], types or [], sizes or [], only or "", quick=quick)
    if listed and form == "json":
        show_json([{"case": case.id, "bytes_touched": case.bytes_touched} for case in cases])
    elif listed:
        show(("case", "bytes accessed"), [(case.id, report.scaled(case.bytes_touched, report.BYTES)) for case in cases])
    if listed:
        return
    count = _quiet(threads)
    budget = (session.QUICK_SECONDS if quick else session.SECONDS) if seconds is None else seconds

    def keep(run: Json) -> None:  # saves the unfinished run, because a run may take hours
        if json_file is not None and not streams.is_stream(json_file):
            write_text(json_file, report.as_text(run), make_folders=parents)

    with _progress(len(cases)) as done:
        if other is None:
            command = " ".join(["maxops", *sys.argv[1:]])
            options: dict[str, Any] = {"quick": quick, "command": command, "keep": keep}
            run = session.run(cases, names, count, seconds=budget, done=done, **options)
        else:
            run = compare.run(cases, other, count, seconds=budget, done=done)
    if other is None:
        _report(run, [*report.cases(run), *report.summary(run)], reports, parents)
        _fail(report.our_failures(run), "{}", "result of maxops is wrong", "results of maxops are wrong")
    else:
        about = "\n".join(
            "{0}: maxops {maxops} {commit}, {isa}, {folder}".format(name, **run[name]) for name in ("this", "other")
        )
        _report_tables(run, about, compare.tables(run), json_file, parents)
        _fail(compare.different(run), "the two installations return different bits in {}", "case", "cases")


# The options that apply to each kind of run, in addition to --format.
_CASES = {"OP", "--types", "--sizes", "--only", "--quick"}
_FILES = {"--json", "--overwrite", "--parents"}
_KINDS = {
    "--random": {"OP", "--types", "--libraries", "--seconds", "--threads", "--seed", "--only-call", *_FILES},
    "--from": {"--html", "--markdown", *_FILES},
    "--compare": {*_CASES, "--seconds", "--threads", *_FILES},
    "--list": _CASES,
}


def _quiet(threads: int | None) -> int:
    """Return the number of threads. If necessary, restart the command so that every library uses this number."""
    count = maxops.get_num_threads() if threads is None else threads
    if not environment.is_quiet(count):
        environment.re_execute(count)
    return count


def _random(
    operators: list[str], types: list[str], names: list[str], threads: int | None, run_seconds: float, seed: int,
    only_call: int | None, seconds: float | None,
) -> Json:
    """Time random calls."""
    chosen = _names(operators, OPERATORS, "OP", "operator")
    kinds = _names(types, list(map(str, grid.TYPES)), "--types", "type")
    count, command = _quiet(threads), " ".join(["maxops", *sys.argv[1:]])
    options: dict[str, Any] = {"seed": seed, "run_seconds": run_seconds, "only_call": only_call, "command": command}
    options |= {"operators": chosen, "types": kinds, "seconds": seconds or random_calls.SECONDS}
    with _progress(None) as done:
        return random_calls.run(names, count, done=done, **options)


def _check_files(files: list[Path], earlier: Path | None, *, overwrite: bool, parents: bool) -> None:
    """Reject files that cannot be written, before a run that may take hours."""
    for file in files:
        if files.count(file) > 1:
            raise typer.BadParameter(f"{file} is specified for several reports; use a different file for each")
    streams.check_outputs(files, [earlier] if earlier else [], overwrite=overwrite, parents=parents)
    for file in files:
        if earlier is None and not parents and not streams.is_stream(file):
            check_writable(file)


@contextmanager
def _progress(count: int | None) -> Iterator[Callable[[str, Json | None], None]]:
    """Yield a function to call for each stage and finished case. On a terminal, a progress bar is shown."""
    with counting_bar(refresh_per_second=2) as bar:
        task = bar.add_task("maxops bench", total=count)
        yield lambda text, case: bar.update(task, description=text, advance=0 if case is None else 1)


def _report(
    run: Json, tables: Sequence[report.Table], reports: Mapping[Path | None, Callable[[Json], str]], parents: bool
) -> None:
    if streams.STREAM not in reports:
        with streams.stdout_kept_for(reports):
            _show(tables, f"\n{report.headline(run)}")
    for file, text in reports.items():
        if file is not None:
            streams.give_text(file, text(run), make_folders=parents)


def _report_tables(
    run: Json, first: str, tables: Sequence[report.Table], json_file: Path | None, parents: bool
) -> None:
    with streams.stdout_kept_for([json_file]):
        print(first)
        _show(tables, f"interrupted {run['interrupted']}" if "interrupted" in run else "")
    if json_file is not None:
        streams.give_text(json_file, in_lines(run) + "\n", make_folders=parents)


def _show(tables: Sequence[report.Table], last: str) -> None:
    for table in tables:
        print(f"\n{table.title}" + (f"\n{table.note}" if table.note else ""))
        show(table.columns, table.rows)
    if last:
        print(last)


def _fail(failures: list[str], text: str, one: str, many: str) -> None:
    if failures:
        print(f"maxops: {text.format(counted(len(failures), one, many))}; first: {failures[0]}", file=sys.stderr)
        raise typer.Exit(FAILED)


def _cases(operators: list[str], types: list[str], sizes: list[str], only: str, *, quick: bool) -> list[Case]:
    chosen = _names(operators, OPERATORS, "OP", "operator")
    by_name = {str(dtype): dtype for dtype in grid.TYPES}
    default = list(map(str, grid.QUICK_TYPES if quick else grid.DEFAULT_TYPES))
    rows = [by_name[name] for name in _names(types or default, list(by_name), "--types", "type")]
    cases = list(filter(supports, grid.cases([each for each in OPERATORS if each in chosen], rows, quick=quick)))
    labels = _names(sizes, [label(size) for size in sorted({case.size for case in cases})], "--sizes", "size")
    cases = [case for case in cases if label(case.size) in labels and only in case.id]
    if not cases:
        raise typer.BadParameter(f"no case id contains {only!r}; list the ids with --list", param_hint="--only")
    return cases


def _names(given: list[str], there: Sequence[str], option: str, what: str) -> list[str]:
    """Return the selected names, which may be separated by commas. By default, return all names."""
    chosen = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if given and not chosen:
        raise typer.BadParameter(f"expected one of {', '.join(there)}, got an empty string", param_hint=option)
    for name in chosen:
        if name not in (*there, "all"):
            raise typer.BadParameter(f"unknown {what} {name!r}; expected one of {', '.join(there)}", param_hint=option)
    return [name for name in there if name in chosen or "all" in chosen or not chosen]
