"""Shows runs as tables for the terminal: runtimes by clauses, the findings, and a summary of each runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from maxops.conformance.ids import Row, case_name, row, sort_key
from maxops.conformance.kinds import kinds
from maxops.conformance.result import VERDICTS, Run, Verdict
from maxops.conformance.wording import BY_SEVERITY, WORDS, Table, expected_to_actual, runtime_label, shortened

NOT_APPLICABLE = "-"
NOT_ASKED = ""

Counts = Counter[Verdict]


def matrix(runs: Sequence[Run]) -> Table:
    """Return a table with a row for each clause (all versions merged) and a column of counts for each runtime."""
    columns = [_by_row(run) for run in runs]
    clauses = {row(case_name(case).clause) for run in runs for case in run["cases"]}
    rows = [
        (*each, *(cell(column.get(each, Counter())) for column in columns)) for each in sorted(clauses, key=sort_key)
    ]
    return Table("Runtimes and clauses", ("standard", "operator", "clause", *map(runtime_label, runs)), rows)


def findings(run: Run) -> Table:
    """Return a table with a row for each kind of finding, worst first, that shows the smallest call."""
    rows = [
        (
            kind.verdict,
            f"{kind.operator} {kind.row.short}",
            ", ".join(kind.types),
            str(len(kind.findings)),
            shortened(expected_to_actual(kind.smallest.expected, kind.smallest.actual)),
        )
        for kind in kinds(run)
    ]
    return Table(
        f"Findings in {runtime_label(run)}", ("verdict", "clause", "types", "cases", "expected -> actual"), rows
    )


def summary(run: Run) -> str:
    """Summarize the runtime in one line, with separate counts for each standard."""
    parts = [
        f"{standard}: {'1 case' if counts.total() == 1 else f'{counts.total()} cases'}: {spoken(counts)}"
        for standard, counts in by_standard(run).items()
    ]
    return f"{runtime_label(run)}: {'; '.join(parts) or 'no cases'}"


def by_standard(run: Run) -> dict[str, Counts]:
    """Count the cases of each standard by verdict."""
    counts: dict[str, Counts] = {}
    for each, found in sorted(_by_row(run).items(), key=lambda item: sort_key(item[0])):
        counts.setdefault(each.standard, Counter()).update(found)
    return counts


def spoken(counts: Counts) -> str:
    """Return counts in words: "700 conform, 60 violate"."""
    return ", ".join(f"{counts[verdict]} {WORDS[verdict].many}" for verdict in VERDICTS if counts[verdict])


def cell(counts: Counts) -> str:
    """Return a cell of the matrix, with the worst verdict first.

    >>> cell(Counter({"conforms": 128, "violates": 12}))
    'violates 12 of 140, conforms 128'
    """
    if not counts:
        return NOT_ASKED
    kinds = [verdict for verdict in BY_SEVERITY if counts[verdict]]
    if kinds == ["not applicable"]:
        return NOT_APPLICABLE
    words = [f"{verdict} {counts[verdict]}" for verdict in kinds]
    if len(words) > 1:
        words[0] += f" of {counts.total()}"
    return ", ".join(words)


def _by_row(run: Run) -> dict[Row, Counts]:
    counts: dict[Row, Counts] = {}
    for case, verdict in run["cases"].items():
        counts.setdefault(row(case_name(case).clause), Counter())[verdict] += 1
    return counts
