"""Converts reports to SARIF 2.1.0, a format that code-scanning tools read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from maxops.checker.report import MODEL, OUTSIDE, Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# The kind and level of each verdict. According to SARIF 3.27.10, all kinds except "fail" have the level "none".
_KINDS = {"broken": ("fail", "error"), "unknown": ("open", "none"), "holds": ("pass", "none")}


def as_sarif(
    reports: Sequence[Report], version: str, errors: Sequence[str] = (), *, everything: bool = False
) -> dict[str, Any]:
    """Return the reports as a SARIF log.

    The log contains the models' faults, the clauses that are broken or that a model leaves undecided, and the nodes
    outside a requested standard. With `everything`, it also contains the clauses that hold, and those that can be
    checked only at run time. Do not set `everything` for GitHub's code scanning, which shows every result as a problem,
    even results of the kind "pass".

    `errors` contains the error messages of the models that could not be checked. If it is not empty, the log states
    that the run was not successful.
    """
    rules = _rules(reports)
    numbers = {rule["id"]: number for number, rule in enumerate(rules)}
    results = [
        each | {"ruleIndex": numbers[each["ruleId"]]}
        for report in reports
        for each in _results(report, everything=everything)
    ]
    driver = {"name": "maxops", "version": version, "rules": rules}
    artifacts = [{"location": {"uri": _uri(report.source)}} for report in reports]
    invocation: dict[str, Any] = {"executionSuccessful": not errors}
    if errors:
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": {"text": text}} for text in errors]
    tool = {"driver": driver}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": tool, "invocations": [invocation], "artifacts": artifacts, "results": results}],
    }


def _results(report: Report, *, everything: bool) -> Iterator[dict[str, Any]]:
    uri = _uri(report.source)
    seen: Counter[str] = Counter()

    def result(rule: str, kind: str, level: str, node: str, text: str) -> dict[str, Any]:
        # a node has one result per clause, but may have several model faults, and several nodes may share a name
        same = f"{rule} {node} {text if rule == MODEL else ''}"
        seen[same] += 1
        if seen[same] > 1:
            same += f" {seen[same]}"
        return {
            "ruleId": rule,
            "kind": kind,
            "level": level,
            "message": {"text": f"{node}: {text}"},
            "locations": [
                {
                    # a model has no lines, but code scanning requires a line number
                    "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}},
                    "logicalLocations": [{"name": node.rsplit(" / ", 1)[-1], "fullyQualifiedName": node}],
                }
            ],
            # distinguishes alerts on the same line, and matches alerts between runs
            "partialFingerprints": {"primaryLocationLineHash": sha256(same.encode(errors="replace")).hexdigest()},
        }

    for finding in report.findings:
        if everything or finding.notable:
            yield result(finding.clause, *_KINDS[finding.verdict], finding.node, finding.message)
    asked = report.standard is not None
    for node in report.outside:
        if everything or asked:
            kind, level = ("fail", "warning") if asked else ("notApplicable", "none")
            yield result(OUTSIDE, kind, level, node.where, node.note)


def _rules(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Return a SARIF rule for each checked clause, for faults of models, and for nodes outside the standard."""
    clauses = {name: clause for report in reports for name, clause in report.clauses.items()}
    rules = [
        (MODEL, "the model is well formed", "the format of the model"),
        (OUTSIDE, "every max operator is part of the standard", "the requested standard"),
        *((clause.id, clause.statement, clause.source) for clause in clauses.values()),
    ]
    return [
        {"id": name, "shortDescription": {"text": statement}, "help": {"text": f"{statement} ({source})"}}
        for name, statement, source in rules
    ]


def _uri(source: str) -> str:
    """Return the URI of a model: relative if the model is inside the current folder, and absolute otherwise."""
    path = Path(source)
    with suppress(ValueError, FileNotFoundError):  # not inside the current folder, or this folder is deleted
        path = path.relative_to(Path.cwd())
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")
