"""`maxops bench`: how fast, against whom, and how close to the machine's limit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

import maxops
from maxops.atomic_files import check_writable, write_text
from maxops.bench import compare, environment, gpu, grid, libraries, ours, page, report, saved, session
from maxops.bench.case import OPERATORS, OperatorName, label
from maxops.cli import streams
from maxops.cli.bench_gpu import bench_gpu
from maxops.cli.progress import counting_bar
from maxops.cli.table import show, show_json
from maxops.counted import counted
from maxops.dtypes import DType
from maxops.engines.native import MOST_THREADS
from maxops.json_text import in_lines

WRONG = 1
MAX_SECONDS = 1e6
_EVERY = "all"

Write = Callable[[Path, str], None]  # of a report


def _check_seconds(seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds <= MAX_SECONDS:  # NaN is neither
        raise typer.BadParameter(f"{seconds} is not a number of seconds above 0, up to {MAX_SECONDS:g}")
    return seconds


def bench(
    operators: Annotated[
        list[str] | None, typer.Argument(metavar="OP", help=f"Of {', '.join(OPERATORS)}. Default: all.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option(metavar="TYPE,...", help="Element types, or all. Default: one of each kind.")
    ] = None,
    library: Annotated[
        list[str] | None,
        typer.Option("--libraries", metavar="LIBRARY,...", help=f"Of {', '.join(libraries.NAMES)}. Default: all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few small cases, briefly: a smoke test, not a result.")
    ] = False,
    sizes: Annotated[
        list[str] | None,
        typer.Option(metavar="N,...", help="Numbers of elements, as in the cases' ids: 1,1e3,1e5. Default: all."),
    ] = None,
    only: Annotated[str, typer.Option("--only", metavar="TEXT", help="Cases whose id contains this text.")] = "",
    seconds: Annotated[
        float | None,
        typer.Option(metavar="N", callback=_check_seconds, help="Budget for each pair. Default: 0.3; 0.02 if quick."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=MOST_THREADS, help="Threads for everybody. Default: as maxops has."),
    ] = None,
    cases_only: Annotated[
        bool, typer.Option("--cases-only", help="No limits table, memory, scaling or deviations.")
    ] = False,
    on_gpu: Annotated[
        bool, typer.Option("--gpu", help="On a CUDA device instead; takes --types, --only and --json.")
    ] = False,
    other: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="PATH",
            exists=True,
            help="Beside another maxops instead: its Python, or the folder that holds its package.",
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the cases and end.")] = False,
    earlier: Annotated[Path | None, typer.Option("--from", metavar="FILE", help="Show an earlier run's JSON.")] = None,
    form: streams.Format = "text",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every figure here; --format json prints them.")
    ] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with plots here.")
    ] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write tables here.")] = None,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """Time every operator against other libraries, each result first compared bit for bit with the expected one."""
    if html_file is not None and find_spec("matplotlib") is None:
        raise typer.BadParameter('the plots need matplotlib: pip install "maxops[bench]"', param_hint="--html")
    if form == "json" and json_file is None:
        json_file = streams.STREAM
    elif form == "json":
        raise typer.BadParameter("--format json is --json -, and has no effect with --json FILE")
    _check_files([json_file, html_file, markdown_file], earlier, overwrite=overwrite, parents=parents)
    write = partial(streams.give_text, make_folders=parents)
    if earlier is not None:
        run = saved.parse(streams.read_stdin(), streams.STDIN) if streams.is_stream(earlier) else saved.read(earlier)
        _write(run, json_file, html_file, markdown_file, write, details=False)
        return
    if other is not None and (html_file or markdown_file or on_gpu):
        raise typer.BadParameter("--compare prints tables and takes --json, but not --html, --markdown or --gpu")
    if on_gpu:
        names = _names(types or list(gpu.DEFAULT_TYPES), [str(dtype) for dtype in grid.TYPES], "--types", "type")
        if not bench_gpu([dtype for dtype in grid.TYPES if str(dtype) in names], only, json_file, write):
            raise typer.Exit(WRONG)
        return
    chosen_operators = _operators(operators or [])
    names = _names(library or [], libraries.NAMES, "--libraries", "library")
    rows = _types(types or [], quick)
    cases = [case for case in grid.cases(chosen_operators, rows, quick=quick) if ours.supports(case)]
    labels = _names(sizes or [], [label(size) for size in sorted({case.size for case in cases})], "--sizes", "size")
    cases = [case for case in cases if label(case.size) in labels and only in case.id]
    if not cases:
        raise typer.BadParameter(f"no case's id contains {only!r}; --list shows them", param_hint="--only")
    if listed:
        if form == "json":
            show_json([{"case": case.id, "bytes_touched": case.bytes_touched} for case in cases])
        else:
            show(("case", "touches"), [(case.id, report.size(case.bytes_touched)) for case in cases])
        return
    count = maxops.get_num_threads() if threads is None else threads
    if not environment.is_quiet(count):
        environment.re_execute(count)
    budget = (session.QUICK_SECONDS if quick else session.SECONDS) if seconds is None else seconds
    with _progress(len(cases)) as done:
        if other is not None:
            run = compare.run(cases, other, count, seconds=budget, done=done)
        else:
            run = session.run(
                cases,
                names,
                count,
                seconds=budget,
                quick=quick,
                whole=not cases_only,
                command=" ".join(["maxops", *sys.argv[1:]]),
                done=done,
                keep=_keeper(json_file, make_folders=parents),
            )
    if other is not None:
        _write_comparison(run, json_file, write)
        return
    _write(run, json_file, html_file, markdown_file, write, details=True)
    if failures := report.our_failures(run):
        wrong = counted(len(failures), "of our own results is wrong", "of our own results are wrong")
        print(f"maxops: {wrong}, first {failures[0]}", file=sys.stderr)
        raise typer.Exit(WRONG)


def _check_files(reports: list[Path | None], earlier: Path | None, *, overwrite: bool, parents: bool) -> None:
    """Refuse before hours of work what could not be written after them."""
    files = [file for file in reports if file is not None]
    if len(set(files)) < len(files):
        raise typer.BadParameter(f"{files[0]} is given for several reports; give each a file of its own")
    streams.check_outputs(files, [earlier] if earlier else [], overwrite=overwrite, parents=parents)
    if earlier is None and not parents:
        for file in files:
            if not streams.is_stream(file):
                check_writable(file)


@contextmanager
def _progress(count: int) -> Iterator[Callable[[str, dict[str, Any] | None], None]]:
    """A bar on stderr, if that is a terminal; call the result with each stage's name, and with each case when done."""
    with counting_bar(refresh_per_second=2) as bar:
        task = bar.add_task("maxops bench", total=count)

        def done(text: str, case: dict[str, Any] | None) -> None:
            bar.update(task, description=text, advance=0 if case is None else 1)

        yield done


def _write_comparison(run: dict[str, Any], json_file: Path | None, write: Write) -> None:
    with streams.stdout_kept_for([json_file]):
        for name in ("this", "other"):
            about = run[name]
            print(f"{name}: maxops {about['maxops']} {about['commit']}, {about['isa']}, {about['folder']}")
        _show(compare.tables(run))
        if "interrupted" in run:
            print(f"interrupted {run['interrupted']}")
    if json_file is not None:
        write(json_file, in_lines(run) + "\n")
    if failures := compare.different(run):
        print(
            f"maxops: the two differ in bits in {counted(len(failures), 'case')}, first {failures[0]}", file=sys.stderr
        )
        raise typer.Exit(WRONG)


def _show(tables: list[report.Table]) -> None:
    for table in tables:
        print(f"\n{table.title}" + (f"\n{table.note}" if table.note else ""))
        show(table.columns, table.rows)


def _keeper(json_file: Path | None, *, make_folders: bool) -> Callable[[dict[str, Any]], None]:
    """What saves a run that is not done yet, which may take hours."""

    def keep(run: dict[str, Any]) -> None:
        if json_file is not None and not streams.is_stream(json_file):
            write_text(json_file, saved.as_text(run), make_folders=make_folders)

    return keep


def _write(
    run: dict[str, Any],
    json_file: Path | None,
    html_file: Path | None,
    markdown_file: Path | None,
    write: Write,
    *,
    details: bool,
) -> None:
    if streams.STREAM not in (json_file, html_file, markdown_file):
        _show([*(report.cases(run) if details else []), *report.summary(run)])
        print(f"\n{report.headline(run)}")
    texts: dict[Path | None, Callable[[], str]] = {
        json_file: lambda: saved.as_text(run),
        html_file: lambda: page.html(run),
        markdown_file: lambda: report.markdown(run),
    }
    for file, text in texts.items():
        if file is not None:
            write(file, text())


def _operators(given: list[str]) -> list[OperatorName]:
    chosen = _names(given, OPERATORS, "OP", "operator")
    return [operator for operator in OPERATORS if operator in chosen]


def _types(given: list[str], quick: bool) -> list[DType]:
    if not given:
        return list(grid.QUICK_TYPES if quick else grid.DEFAULT_TYPES)
    chosen = _names(given, [str(dtype) for dtype in grid.TYPES], "--types", "type")
    return [dtype for dtype in grid.TYPES if str(dtype) in chosen]


def _names(
    given: list[str], there: tuple[str, ...] | list[str] | tuple[OperatorName, ...], option: str, what: str
) -> list[str]:
    """Names given one by one or with commas, each of those that there are; all if none is given."""
    chosen = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if not chosen or _EVERY in chosen:
        return list(there)
    for name in chosen:
        if name not in there:
            raise typer.BadParameter(f"there is no {what} {name!r}; there is {', '.join(there)}", param_hint=option)
    return [name for name in there if name in chosen]
