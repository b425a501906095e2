"""`maxops check`: a model against a standard, clause by clause, without running it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from maxops.atomic_files import write_text
from maxops.bench.environment import installed
from maxops.cli.table import printable, show

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.checker import Finding, JudgedNode, Report

NOT_PASSED = 1
MAX_ROWS = 10  # rows of one clause

Row = tuple[tuple[str, ...], str]  # what a row says, and the node


def check(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A .onnx file, an OpenVINO IR (.xml), or a folder with model.onnx. Nothing is run."
        ),
    ],
    standard: Annotated[
        Literal["onnx", "sonnx", "sonnx-draft", "openvino"] | None,
        typer.Option(help="Judge every max node by this one. Default: by its model's own."),
    ] = None,
    form: Annotated[
        Literal["text", "json", "sarif"], typer.Option("--format", help="Tables, JSON, or SARIF for code scanning.")
    ] = "text",
    everything: Annotated[
        bool, typer.Option("--all", help="Also what holds, and what is known at run time only (JSON always has both).")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report here, not to the terminal.")
    ] = None,
) -> None:
    """Give every max node and clause a verdict: holds, broken, or not to be known before a run."""
    from maxops.checker import check as checked  # noqa: PLC0415  (see above)
    from maxops.onnx import suite  # noqa: PLC0415

    report = checked(model / suite.MODEL if model.is_dir() else model, standard)
    if output is not None:
        with redirect_stdout(StringIO()) as written:
            _print(report, form, everything=everything)
        write_text(output, written.getvalue())
    else:
        _print(report, form, everything=everything)
    if not report.passed:
        raise typer.Exit(NOT_PASSED)


def _print(report: Report, form: str, *, everything: bool) -> None:
    from maxops.checker.as_json import as_json  # noqa: PLC0415  (see above)
    from maxops.checker.sarif import as_sarif  # noqa: PLC0415

    if form == "json":
        print(json.dumps(as_json(report), indent=2))
    elif form == "sarif":
        version = installed("maxops") or "0"  # a source tree
        print(json.dumps(as_sarif(report, version, everything=everything), indent=2))
    else:
        _print_tables(report, everything=everything)


def _print_tables(report: Report, *, everything: bool) -> None:
    """The nodes by counts, the clauses that do not hold in words, and all of it in one line."""
    from maxops.checker.as_json import counts  # noqa: PLC0415  (see above)

    shown = [node for node in report.nodes if everything or node.row is None or any(f.notable for f in node.findings)]
    if shown:
        text = [((_judged_by(node), *_counts(node.findings)), node.where) for node in shown]
        show(
            ("judged by", "holds", "broken", "unknown", "at run time only", "node"),
            [(*key, where) for key, where in (text if everything else _gathered(text))],
        )
    found = [finding for finding in report.findings if everything or finding.notable]
    if found:
        says = {clause.id: clause.statement for node in report.nodes if node.row for clause in node.row.clauses}
        found.sort(key=_order)
        rows = _gathered(((_verdict(each), each.clause, each.message), each.node) for each in found)
        show(
            ("verdict", "clause", "says", "why", "node"),
            [
                (verdict, clause, says.get(clause, "it is well formed"), why, where)
                for (verdict, clause, why), where in (rows if everything else _shortened(rows))
            ],
        )
    count = counts(report)
    judged, by = count["nodes"] - count["outside"], report.standard or "their own standard"
    print(
        f"{printable(report.source)}: {count['nodes']} max nodes, {judged} of them judged by {by}: "
        f"{count['holds']} clauses hold, {count['broken']} are broken, {count['unknown']} cannot be known statically, "
        f"{count['at_run_time']} are known at run time only"
    )
    if report.outside and report.standard is not None:
        print(f"{count['outside']} max nodes are outside {report.standard}, so that the model does not pass")


def _judged_by(node: JudgedNode) -> str:
    return f"nothing: {node.note}" if node.row is None else f"{node.row.standard} {node.row.name}"


def _counts(findings: Iterable[Finding]) -> list[str]:
    counted = Counter(map(_verdict, findings))
    return [str(counted[kind]) for kind in ("holds", "broken", "unknown", "at run time only")]


def _verdict(finding: Finding) -> str:
    return "at run time only" if finding.at_run_time else finding.verdict


def _order(finding: Finding) -> int:
    return ("broken", "unknown", "at run time only", "holds").index(_verdict(finding))


def _gathered(rows: Iterable[Row]) -> list[Row]:
    """Rows that say the same of several nodes as one, with the first node and the number of the others."""
    nodes: dict[tuple[str, ...], list[str]] = {}
    for key, where in rows:
        nodes.setdefault(key, []).append(where)
    return [(key, f"{first}, and {len(more)} more" if more else first) for key, (first, *more) in nodes.items()]


def _shortened(rows: list[Row]) -> list[Row]:
    """The rows, with few of a verdict and a clause of which there are many."""
    counted: Counter[tuple[str, ...]] = Counter()
    kept: list[Row] = []
    for (*group, why), where in rows:
        counted[tuple(group)] += 1
        if counted[tuple(group)] <= MAX_ROWS:
            kept.append(((*group, why), where))
    rest = [(group, number - MAX_ROWS) for group, number in counted.items() if number > MAX_ROWS]
    return kept + [((*group, f"and {number} more; --all shows them"), "") for group, number in rest]
