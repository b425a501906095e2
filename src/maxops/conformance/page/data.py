"""Prepares the data of the page's script: runs that are already counted, sorted and grouped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from maxops import dtypes
from maxops.conformance.bounds import sentences
from maxops.conformance.groups import groups
from maxops.conformance.ids import Row, case_name, clause, clause_name, row, sort_key, statement
from maxops.conformance.result import FAULTS, Finding, Run, Verdict
from maxops.conformance.wording import WORDS, runtime_label

Json = dict[str, Any]


def data(runs: Sequence[Run]) -> Json:
    """Return all data of the page, in the order in which the page shows it."""
    clauses = _clauses(runs)
    return {
        "verdicts": [
            {"name": each, "mark": said.mark, "many": said.many, "means": said.means, "fault": each in FAULTS}
            for each, said in WORDS.items()
        ],
        "types": {
            each.name: {"kind": each.kind, "bits": each.bits, "exponent": each.exponent_bits} for each in dtypes.ALL
        },
        "clauses": {each: _clause(each) for each in clauses},
        "rows": _rows(clauses),
        "runs": [_run(run, name) for run, name in zip(runs, names(runs), strict=True)],
    }


def names(runs: Sequence[Run]) -> list[str]:
    """Return each run's name for links to the page. Numbers distinguish equal names."""
    seen: Counter[str] = Counter()
    made = []
    for name in map(runtime_label, runs):
        seen[name] += 1
        made.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return made


def _clauses(runs: Sequence[Run]) -> list[str]:
    of_cases = (case_name(case).clause for run in runs for case in run["cases"])
    broken = (finding["clause"] for run in runs for finding in run["findings"])
    return list(dict.fromkeys([*of_cases, *broken]))


def _clause(name: str) -> Json:
    parts, known = clause_name(name), clause(name)
    return {
        "standard": parts.standard,
        "operator": parts.operator,
        "version": parts.version,
        "row": _key(row(name)),
        "statement": known.statement if known else "",
        "source": known.source if known else "a clause of another version of maxops",
        "decided": known is not None and known.level == "undecided",
    }


def _rows(clauses: Sequence[str]) -> list[Json]:
    found: dict[Row, list[str]] = {}
    for name in clauses:
        found.setdefault(row(name), []).append(name)
    return [
        {
            "key": _key(each),
            "standard": each.standard,
            "operator": each.operator,
            "short": each.short,
            "statement": statement(found[each]),
            "clauses": found[each],
        }
        for each in sorted(found, key=sort_key)
    ]


def _key(each: Row) -> str:
    return ".".join(each).replace(" ", "-")


def _run(run: Run, name: str) -> Json:
    counts: dict[str, dict[str, Counter[Verdict]]] = {}
    reasons: dict[str, dict[str, Counter[str]]] = {}
    for case, verdict in run["cases"].items():
        of = case_name(case)
        counts.setdefault(of.clause, {}).setdefault(of.type, Counter())[verdict] += 1
        if verdict == "not applicable":
            reasons.setdefault(run["reasons"].get(case, ""), {}).setdefault(of.clause, Counter())[of.type] += 1
    return {
        "name": name,
        "kit": run["kit"],
        "bounds": sentences(run),
        "machine": run["machine"],
        "seconds": run["seconds"],
        "counts": counts,
        "reasons": [{"text": text, "counts": found} for text, found in reasons.items()],
        "groups": [
            {
                "verdict": group.verdict,
                "clause": group.clause,
                "statement": group.statement,
                "reproducer": group.number,
                "findings": [_finding(finding) for finding in group.findings],
            }
            for group in groups(run)
        ],
        "reproducers": run["reproducers"],
    }


def _finding(finding: Finding) -> Json:
    """Return the details of a finding that its group and the name of its case do not contain."""
    kept = ("case", "message", "expected", "actual", "feed", "index")
    return {name: finding[name] for name in kept}  # type: ignore[literal-required]
