"""`maxops conform`: tests whether runtimes compute the max operators as the standards specify."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from maxops.atomic_files import atomic_write, check_writable
from maxops.cli import conform_reports, streams
from maxops.cli.clause import Ignore, Select, selection
from maxops.cli.one_a_line import default_form
from maxops.cli.options import reject_unused
from maxops.cli.progress import counting_bar
from maxops.cli.table import show, show_json
from maxops.conformance import compare, limits, saved
from maxops.conformance.ids import case_name
from maxops.conformance.result import FAULTS, Finding, Run
from maxops.counted import counted
from maxops.errors import ConfigurationError, MaxopsError, RunFileError
from maxops.program import BAD_USE, FAILED, print_line
from maxops.shown import printable

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.conformance.case import Case

MAX_CLAUSES = 8  # maximum number of clauses in an error
MAX_CASE_TEXT = 60  # maximum number of characters of a case name next to the progress bar
_FILES = ("--json", "--junit", "--html", "--compare", "--baseline", "--overwrite", "--parents")
# The options and arguments that have an effect with each of these options.
_USED = {
    "--list": ("--only", "--quick", "--format"),
    "--save": ("--only", "--quick", "--parents"),
    "--from": ("RUNTIME", "--format", "--select", "--ignore", *_FILES),
}


def _check_seconds(seconds: float) -> float:
    try:
        return limits.check_seconds(seconds)
    except ConfigurationError as error:
        raise typer.BadParameter(str(error)) from None


def _check_repeats(repeats: int) -> int:
    try:
        return limits.check_repeats(repeats)
    except ConfigurationError as error:
        raise typer.BadParameter(str(error)) from None


def _complete_runtime(incomplete: str) -> list[str]:
    from maxops.conformance import runtimes  # noqa: PLC0415  (see above)

    return [name for name in (*runtimes.GROUPS, *runtimes.known()) if name.startswith(incomplete)]


def conform(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUNTIME...",
            autocompletion=_complete_runtime,
            help="Names of runtimes; maxops (every engine and instruction set); all (every installed runtime); "
            "mypackage.mybackend, a module or class that implements onnx.backend.base.Backend; or "
            "'command:PROGRAM ...', a program that runs a test folder. Without arguments, list the runtimes.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run only a subset of the cases, in a few seconds.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="TEXT,...", help="Run only cases whose id contains TEXT or matches a pattern with *."
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the selected cases and exit.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the cases as ONNX test folders (SegmentMax as OpenVINO IR) and exit."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the complete run as JSON; - is stdout.")
    ] = None,
    junit_file: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write a JUnit XML report for CI systems.")
    ] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a self-contained HTML report.")
    ] = None,
    old: Annotated[
        Path | None, typer.Option("--compare", metavar="OLD.json", help="Show what changed since an earlier run.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="KNOWN.json",
            help="Exit with status 1 only if there are faults that are not in KNOWN.json.",
        ),
    ] = None,
    earlier: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE...",
            help="Report on runs that were saved with --json, in files or folders. No case is run.",
        ),
    ] = None,
    form: Annotated[
        Literal["text", "concise", "github", "json"] | None,
        typer.Option(
            "--format",
            help="text: tables. concise: one fault per line, in the form 'RUNTIME: CASE: CLAUSE VERDICT: RESULTS'. "
            "github: annotations for GitHub Actions. json: the complete run. Default: text on a terminal, concise "
            "elsewhere.",
        ),
    ] = None,
    select: Select = None,
    ignore: Ignore = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            callback=_check_seconds,
            help="Timeout for each case with the default --repeat. A larger --repeat increases it in proportion.",
        ),
    ] = limits.SECONDS,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeat",
            metavar="N",
            callback=_check_repeats,
            help="Number of runs of each call (at least 2).",
        ),
    ] = limits.REPEATS,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """Test runtimes with cases derived from the clauses of the standards. Each runtime runs in its own process.

    Exits with 1 if a runtime breaks a clause, and with 2 if a runtime cannot be run. --select and --ignore do not
    affect the --json file, which contains every finding.
    """
    from maxops.conformance import cases  # noqa: PLC0415  (see above)

    keeps = selection(select, ignore)
    reports = {"--json": json_file, "--junit": junit_file, "--html": html_file}
    files = [file for file in reports.values() if file is not None]
    if listed or save is not None:
        # --select and --ignore filter findings; --only filters cases
        kind = "--list" if save is None else "--save"
        reject_unused(context, kind, _USED[kind])
        chosen = cases.select(cases.cases(), only or [], quick=quick)
        _list(chosen, form) if save is None else _save(chosen, save, parents=parents)
        return
    if sum(map(streams.is_stream, files)) > 1 or (form == "json" and streams.STREAM in files):
        raise typer.BadParameter("only one report can be written to stdout")
    if old is not None and form not in (None, "text"):
        raise typer.BadParameter(f"--compare requires --format text, got --format {form}")
    saved_files = _saved_files(earlier, names)
    streams.check_inputs(filter(None, [*saved_files, old, baseline]))
    streams.check_outputs(files, filter(None, [*saved_files, old, baseline]), overwrite=overwrite, parents=parents)
    known = _read([baseline]) if baseline else []
    before = [_restricted(run, keeps) for run in _read([old])] if old else []
    _require_distinct(known, str(baseline))
    _require_distinct(before, str(old))
    for file in files:
        if not streams.is_stream(file) and not parents:
            check_writable(file)
    if junit_file is not None:
        import_module("maxops.conformance.junit")  # raises now if its dependency is missing
    failed: list[MaxopsError] = []
    if earlier:
        reject_unused(context, "--from", _USED["--from"])
        runs = _read(saved_files)
        if old is not None or baseline is not None:
            _require_distinct(runs, "--from")
    elif names:
        chosen = cases.select(cases.cases(), only or [], quick=quick)
        runs = list(_run(names, chosen, seconds, repeats, failed, quick=quick, only=only or []))
    else:
        _show_runtimes(context, form)
    seen = [_restricted(run, keeps) for run in runs]
    _require_cases(runs, seen)
    new = _new_faults(seen, known, has_baseline=baseline is not None)
    with streams.stdout_kept_for(files):
        shown_as = "text" if form is None and old is not None else default_form(form)
        conform_reports.report(runs, seen, before, new, shown_as)
        if baseline is not None and shown_as == "text":
            for finding in new:
                print(printable(f"not in the baseline: {finding['case']}: {finding['verdict']}"))
    conform_reports.write(runs, seen, reports, make_folders=parents)
    for error in failed:
        print(f"maxops: error: {printable(str(error))}", file=sys.stderr)
    if failed:
        raise typer.Exit(BAD_USE)
    if new:
        raise typer.Exit(FAILED)


# ------------------------------------------------------------------------------------------------------- saved


def _saved_files(earlier: Sequence[Path] | None, names: Sequence[str] | None) -> list[Path]:
    """Return the files of --from, and the .json files in its folders. `names` are more files, from a shell pattern."""
    if not earlier:
        return []
    others = [Path(name) for name in names or []]
    if strangers := [str(path) for path in others if not path.exists()]:
        raise typer.BadParameter(f"--from expects files or folders, but {strangers[0]!r} does not exist")
    found: list[Path] = []
    for path in (*earlier, *others):
        if path.is_dir():
            if not (inside := sorted(path.glob("*.json"))):
                raise RunFileError(f"{path}: the folder contains no .json files")
            found += inside
        else:
            found.append(path)
    return found


def _read(files: Sequence[Path]) -> list[Run]:
    return [
        run
        for file in files
        for run in (saved.parse(streams.read_stdin(), streams.STDIN) if streams.is_stream(file) else saved.read(file))
    ]


def _require_distinct(runs: Sequence[Run], where: str) -> None:
    """Raise an error if a runtime has several runs, because --compare and --baseline require a single one."""
    try:
        compare.by_runtime(runs)
    except RunFileError as error:
        raise error.at(where) from error


def _require_cases(runs: Sequence[Run], seen: Sequence[Run]) -> None:
    """Raise an error if the runs have no cases, or if --select and --ignore exclude all cases."""
    if not runs or any(run["cases"] for run in seen):
        return
    clauses = sorted({clause for run in runs for clause in _clauses(run).values()})
    if not clauses:
        raise RunFileError("the saved runs contain no cases; run maxops conform again")
    listed = ", ".join(clauses[:MAX_CLAUSES]) + (
        f" and {len(clauses) - MAX_CLAUSES} more" * (len(clauses) > MAX_CLAUSES)
    )
    raise typer.BadParameter(f"--select and --ignore exclude every case; the runs have cases for {listed}")


def _restricted(run: Run, keeps: Callable[[str], bool]) -> Run:
    """Return the run without the findings and the cases of deselected clauses."""
    findings = [each for each in run["findings"] if keeps(each["clause"])]
    clauses = _clauses(run)
    cases = {case: verdict for case, verdict in run["cases"].items() if keeps(clauses[case])}
    return {**run, "cases": cases, "findings": findings}


def _clauses(run: Run) -> dict[str, str]:
    """Return the clause of each case: the clause of its finding or, without a finding, the clause in its id."""
    return {case: case_name(case).clause for case in run["cases"]} | {
        each["case"]: each["clause"] for each in run["findings"]
    }


# ------------------------------------------------------------------------------------------------------ running


def _run(
    names: Sequence[str],
    chosen: Sequence[Case],
    seconds: float,
    repeats: int,
    failed: list[MaxopsError],
    *,
    quick: bool,
    only: Sequence[str],
) -> Iterator[Run]:
    """Yield the run of each runtime. If there are several runtimes, collect the errors of those that cannot run."""
    from maxops.conformance import runtimes, session  # noqa: PLC0415  (see above)

    each = list(dict.fromkeys(single for name in names for single in runtimes.expand(name)))
    for name in each:
        runtimes.resolve(name)  # reports an unknown name before anything runs
    for name in each:
        try:
            with _bar(name) as progress:
                kit = {"quick": quick, "only": list(only)}
                yield session.conform(name, chosen, kit=kit, seconds=seconds, repeats=repeats, progress=progress)
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


def _show_runtimes(context: typer.Context, form: str | None) -> NoReturn:
    """List the runtimes and exit. If there are options that require a runtime, exit with an error."""
    from maxops.conformance import runtimes  # noqa: PLC0415  (see above)

    here = runtimes.installed()
    if form == "json":
        show_json([{"runtime": name, "installed": name in here} for name in runtimes.known()])
    else:
        show(("runtime", "installed"), [(name, "yes" if name in here else "no") for name in runtimes.known()])
    sources = [context.get_parameter_source(name) for name in context.params if name != "form"]
    if not any(source is not None and source.name == "COMMANDLINE" for source in sources):
        raise typer.Exit
    print("maxops: error: no runtime specified; pass names from this list, maxops, or all", file=sys.stderr)
    raise typer.Exit(BAD_USE)


# ------------------------------------------------------------------------------------------------------- cases


def _list(chosen: Sequence[Case], form: str | None) -> None:
    rows = [(case.id, "an error" if case.refusal else "a result") for case in chosen]
    if form == "json":
        show_json([{"case": case, "expects": expects} for case, expects in rows])
    else:
        show(("case", "expects"), rows)
        print(counted(len(chosen), "case"))


def _save(chosen: Sequence[Case], folder: Path, *, parents: bool) -> None:
    """Write a test folder for each case. A case with more than MAX_DATA_SETS data sets is sampled at even intervals."""
    streams.check_outputs([folder / chosen[0].id], [], overwrite=False, parents=parents, folder=folder)
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
    print(f"{counted(len(chosen) - left_out.total(), 'case was', 'cases were')} written to {printable(str(folder))}")
    if shortened:
        has = counted(shortened, "case has", "cases have")
        print(
            f"{has} more than {MAX_DATA_SETS} data sets; only {MAX_DATA_SETS} evenly spaced ones per case were written"
        )
    for why, count in left_out.items():
        print(f"{counted(count, 'case was', 'cases were')} not written: {why}")


def _new_faults(runs: Sequence[Run], known: Sequence[Run], *, has_baseline: bool) -> list[Finding]:
    """Return the faults. If there is a baseline, return only the faults that are not in it."""
    if not has_baseline:
        return [finding for run in runs for finding in run["findings"] if finding["verdict"] in FAULTS]
    pairs = [(before, run) for before, run in compare.pairs(known, runs) if run is not None]
    for before, run in pairs:
        if before is None:
            name = printable(run["runtime"])
            print_line(f"maxops: the baseline contains no run of {name}, so all faults of {name} are new")
    return [finding for before, run in pairs for finding in compare.not_in_baseline(run, before)]
