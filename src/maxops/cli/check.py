"""`maxops check`: checks models against a standard, clause by clause, without running them."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import maxops
from maxops.cli import streams
from maxops.cli.clause import Ignore, Select, selection
from maxops.cli.one_a_line import Line, default_form, show_lines
from maxops.cli.progress import counting
from maxops.cli.table import Cell, say, show_all, verdict
from maxops.counted import counted
from maxops.errors import MaxopsError, ModelError
from maxops.program import BAD_USE, FAILED, print_line
from maxops.shown import printable

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.checker import Finding, JudgedNode, Report

MAX_ROWS = 10  # maximum number of rows for a clause
_OTHER_SUFFIXES = (".xml", ".html", ".htm", ".csv", ".tsv", ".md", ".yaml", ".yml", ".pdf", ".xlsx")
# The start of an IR: a declaration, comments, and the <net> element, which other XML files lack.
_IR_BEGINS = re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<net[\s>]", re.DOTALL)
_IR_BEGINS_WITHIN = 4096  # bytes

Row = tuple[tuple[str, ...], str]  # the cells of a row, and its node


def check(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODELS",
            readable=False,  # the loader reports an unreadable file, and the other files are still checked
            help=".onnx files, OpenVINO IRs (.xml), folders that contain them, or - for an ONNX model on stdin. "
            "Models are not run.",
        ),
    ],
    standard: Annotated[
        Literal["onnx", "sonnx", "sonnx-draft", "openvino"] | None,
        typer.Option(help="Check every max node against this standard. Default: the model's own standard."),
    ] = None,
    form: Annotated[
        Literal["text", "concise", "github", "json", "sarif"] | None,
        typer.Option(
            "--format",
            help="text: tables. concise: one finding per line, in the form 'FILE: NODE: CLAUSE MESSAGE'. github: "
            "annotations for GitHub Actions. json: the full report. sarif: SARIF for code scanning. Default: json or "
            "sarif according to the suffix of --output, otherwise text on a terminal and concise elsewhere.",
        ),
    ] = None,
    select: Select = None,
    ignore: Ignore = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show clauses that hold or can be checked only at run time.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the report to this file instead of stdout."),
    ] = None,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """Check every max node of models, clause by clause, without running the models.

    The verdict on a clause is "holds", "broken", or "unknown" (if the model contains too little information).

    Exits with 1 if a clause is broken or if the selected standard does not cover a node, and with 2 if a model cannot
    be read.
    """
    form = form or _form_of(output)
    keeps = selection(select, ignore)
    streams.check_inputs(models)
    failed: dict[Path, MaxopsError] = {}
    found = list(dict.fromkeys(path for given in models for path in _models(given, failed)))
    inputs = (file for path in found for file in streams.model_files(path))
    streams.check_outputs([output] if output else [], inputs, overwrite=overwrite, parents=parents)
    reports: list[Report] = []
    with counting("maxops check", len(found)) as advance:
        for path in found:
            try:
                report = _checked(path, standard)
            except MaxopsError as error:
                failed[path] = error
            else:
                reports.append(report.restricted(keeps))
                _warn_of_nothing(report, reports[-1])
            advance()
    is_in_file = output is not None and not streams.is_stream(output)
    form = default_form(form, in_file=is_in_file)  # type: ignore[assignment]
    if not reports and (is_in_file or form in ("text", "concise")):
        pass  # only print the errors, and keep an earlier report
    elif output is not None and is_in_file:
        with redirect_stdout(StringIO()) as written:
            _print(reports, failed, form, everything=everything)
        streams.give_text(output, written.getvalue(), make_folders=parents)
    else:
        _print(reports, failed, form, everything=everything)
    for why in failed.values():
        print_line(f"maxops: error: {printable(str(why))}")
    if failed:
        raise typer.Exit(BAD_USE)
    if not all(report.passed for report in reports):
        raise typer.Exit(FAILED)


def _form_of(output: Path | None) -> Literal["json", "sarif"] | None:
    """Return the report format for a file's suffix, or None. Raises BadParameter for suffixes of other formats."""
    suffix = "" if output is None else output.suffix.lower()
    if suffix in _OTHER_SUFFIXES:
        raise typer.BadParameter(
            f"{output}: unsupported report suffix {suffix}; use .json or .sarif, or pass --format",
            param_hint="--output",
        )
    if output is None or suffix not in (".json", ".sarif"):
        return None
    return "sarif" if ".sarif" in (suffix, Path(output.stem).suffix.lower()) else "json"


# ------------------------------------------------------------------------------------------------------- models


def _models(given: Path, failed: dict[Path, MaxopsError]) -> Iterator[Path]:
    """Yield the given file, or every model in the given folder and its subfolders, except hidden files and folders.

    `failed` collects the errors of unreadable files and folders, so that the other models are still checked.
    """

    def fail(error: OSError) -> None:
        failed[Path(error.filename)] = ModelError(f"{error.filename} cannot be read: {error.strerror}")

    if not os.path.isdir(given):  # Path.is_dir raises if a parent folder cannot be read
        yield given
        return
    known, found = len(failed), False
    for place, folders, names in os.walk(given, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(place, name) for name in sorted(names) if not name.startswith(".")):
            try:
                is_model = path.suffix.lower() == ".onnx" or (path.suffix.lower() == ".xml" and _is_ir(path))
            except OSError as error:
                fail(error)
                continue
            if is_model:
                found = True
                yield path
    if not found and len(failed) == known:
        failed[given] = ModelError(f"{given}: the folder contains no .onnx files and no OpenVINO IRs")


def _is_ir(path: Path) -> bool:
    with path.open("rb") as file:
        return _IR_BEGINS.match(file.read(_IR_BEGINS_WITHIN)) is not None


def _checked(path: Path, standard: str | None) -> Report:
    from maxops.checker import check as checked  # noqa: PLC0415  (see above)
    from maxops.onnx.load import parse  # noqa: PLC0415

    if streams.is_stream(path):
        return replace(checked(parse(streams.read_model(path), streams.STDIN), standard), source=streams.STDIN)
    return checked(path, standard)


def _warn_of_nothing(report: Report, restricted: Report) -> None:
    """Warn about a model that passes only because no clause was checked."""
    if not restricted.passed or any(node.findings for node in restricted.nodes):
        return
    if not report.nodes:
        why = "the model has no max operators"
    elif any(node.findings for node in report.nodes):
        why = "--select and --ignore exclude every clause of its max operators"
    else:
        why = f"no supported standard covers its max operators: {report.nodes[0].note}"
    print_line(f"maxops: warning: {printable(report.source)}: nothing was checked: {why}")


# ------------------------------------------------------------------------------------------------------ reports


def _print(
    reports: Sequence[Report], failed: Mapping[Path, MaxopsError], form: str | None, *, everything: bool
) -> None:
    from maxops.checker.as_json import as_json  # noqa: PLC0415  (see above)
    from maxops.checker.sarif import as_sarif  # noqa: PLC0415

    errors = list(map(str, failed.values()))
    if form == "json":
        print(json.dumps(as_json(reports, errors), indent=2))
    elif form == "sarif":
        print(json.dumps(as_sarif(reports, maxops.__version__, errors, everything=everything), indent=2))
    elif form == "text":
        for report in reports:
            _print_tables(report, everything=everything)
        if (count := len(reports) + len(failed)) > 1:
            unread = f", {len(failed)} cannot be read" if failed else ""
            passed = sum(report.passed for report in reports)
            print(f"{counted(count, 'model')}: {counted(passed, 'passes', 'pass')}{unread}")
    else:
        for report in reports:
            show_lines(_lines(report, everything=everything), str(form))
        if form == "github":
            show_lines(
                (Line(str(path), "model", "unreadable", str(error), True) for path, error in failed.items()), form
            )


def _lines(report: Report, *, everything: bool) -> Iterator[Line]:
    """Yield a line for each finding. Unless the clause is broken, the message starts with the verdict."""
    from maxops.checker.report import OUTSIDE  # noqa: PLC0415  (see above)

    is_file = report.source != streams.STDIN
    for each in report.findings:
        if everything or each.notable:
            is_broken = each.verdict == "broken"
            message = each.message if is_broken else f"{_verdict(each)}: {each.message}"
            yield Line(report.source, each.node, each.clause, message, is_broken, is_file)
    is_asked = report.standard is not None
    for node in report.outside:
        if everything or is_asked:
            yield Line(report.source, node.where, OUTSIDE, node.note, is_asked, is_file)


def _print_tables(report: Report, *, everything: bool) -> None:
    """Print verdict counts per node, the clauses that do not hold, and a one-line summary."""
    from maxops.checker.as_json import counts  # noqa: PLC0415  (see above)

    shown = [node for node in report.nodes if everything or node.row is None or any(f.notable for f in node.findings)]
    tables: list[tuple[Sequence[Cell], Sequence[Sequence[Cell]]]] = []
    if shown:
        text = [((_judged_by(node), *_counts(node.findings)), node.where) for node in shown]
        columns = ("judged by", verdict("holds"), verdict("broken"), verdict("unknown"), "at run time only", "node")
        tables.append((columns, [(*key, where) for key, where in (text if everything else _gathered(text))]))
    found = [finding for finding in report.findings if everything or finding.notable]
    if found:
        says = {clause.id: clause.statement for node in report.nodes if node.row for clause in node.row.clauses}
        found.sort(key=lambda each: ("broken", "unknown", "at run time only", "holds").index(_verdict(each)))
        rows = _gathered(((_verdict(each), each.clause, each.message), each.node) for each in found)
        cells = [
            (verdict(of), clause, says.get(clause, "the model is well formed"), why, where)
            for (of, clause, why), where in (rows if everything else _shortened(rows))
        ]
        tables.append((("verdict", "clause", "statement", "reason", "node"), cells))
    show_all(tables)
    count = counts(report)
    judged = count["nodes"] - count["outside"]
    by = report.standard or ("its own standard" if judged == 1 else "their own standard")
    say(
        f"{printable(report.source)}: {counted(count['nodes'], 'max node')}, {judged} checked against {by}: "
        f"{counted(count['holds'], 'clause holds', 'clauses hold')}, "
        f"{counted(count['broken'], 'is broken', 'are broken')}, {count['unknown']} cannot be known statically, "
        f"{counted(count['at_run_time'], 'is known', 'are known')} only at run time"
    )
    if report.outside and report.standard is not None:
        outside = counted(count["outside"], "max node is", "max nodes are")
        print(f"{outside} not covered by {report.standard}, so the model does not pass")


def _judged_by(node: JudgedNode) -> str:
    return f"nothing: {node.note}" if node.row is None else f"{node.row.standard} {node.row.name}"


def _counts(findings: Iterable[Finding]) -> list[str]:
    counted = Counter(map(_verdict, findings))
    return [str(counted[kind]) for kind in ("holds", "broken", "unknown", "at run time only")]


def _verdict(finding: Finding) -> str:
    return "at run time only" if finding.at_run_time else finding.verdict


def _gathered(rows: Iterable[Row]) -> list[Row]:
    """Merge equal rows of several nodes into one row, with the first node and the number of other nodes."""
    nodes: dict[tuple[str, ...], list[str]] = {}
    for key, where in rows:
        nodes.setdefault(key, []).append(where)
    return [(key, f"{first}, and {len(more)} more" if more else first) for key, (first, *more) in nodes.items()]


def _shortened(rows: list[Row]) -> list[Row]:
    """Return at most MAX_ROWS rows for each verdict and clause."""
    counted: Counter[tuple[str, ...]] = Counter()
    kept: list[Row] = []
    for (*group, why), where in rows:
        counted[tuple(group)] += 1
        if counted[tuple(group)] <= MAX_ROWS:
            kept.append(((*group, why), where))
    rest = [(group, number - MAX_ROWS) for group, number in counted.items() if number > MAX_ROWS]
    return kept + [((*group, f"and {number} more; show them with --all"), "") for group, number in rest]
