"""Converts reports of `check` to dictionaries that `json.dumps` accepts, in a versioned format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxops.checker.report import Finding, Report

FORMAT = 3


def as_json(reports: Sequence[Report], errors: Sequence[str] = ()) -> dict[str, Any]:
    """Return the reports as dictionaries and lists. ``FORMAT`` increases with each incompatible change.

    `errors` contains the error messages of the models that could not be checked.
    """
    return {
        "format": FORMAT,
        "passed": not errors and all(report.passed for report in reports),
        "broken": any(report.broken for report in reports),
        "errors": list(errors),
        "reports": [_report(report) for report in reports],
        "clauses": {
            name: {"statement": clause.statement, "source": clause.source, "level": clause.level}
            for report in reports
            for name, clause in report.clauses.items()
        },
    }


def _report(report: Report) -> dict[str, Any]:
    return {
        "model": report.source,
        "standard": report.standard,
        "passed": report.passed,
        "broken": report.broken,
        "counts": counts(report),
        "faults": [_finding(finding) for finding in report.faults],
        "nodes": [
            {
                "node": node.where,
                "operator": node.operator,
                "judged_by": None if node.row is None else f"{node.row.standard} {node.row.name}",
                "note": node.note,
                "findings": [_finding(finding) for finding in node.findings],
            }
            for node in report.nodes
        ],
    }


def counts(report: Report) -> dict[str, int]:
    """Count a report's nodes, the nodes for which the standard has no specification, and the findings by verdict."""
    found = report.findings
    return {
        "nodes": len(report.nodes),
        "outside": len(report.outside),
        "holds": sum(finding.verdict == "holds" for finding in found),
        "broken": sum(finding.verdict == "broken" for finding in found),
        "unknown": sum(finding.verdict == "unknown" and not finding.at_run_time for finding in found),
        "at_run_time": sum(finding.at_run_time for finding in found),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "where": finding.node,
        "clause": finding.clause,
        "verdict": finding.verdict,
        "message": finding.message,
        "at_run_time": finding.at_run_time,
    }
