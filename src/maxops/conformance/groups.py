"""Groups findings that share one small call, so that users read one group instead of a hundred cases."""

from __future__ import annotations

from dataclasses import dataclass

from maxops.conformance.ids import case_name, row, sort_key
from maxops.conformance.result import Elements, Finding, Message, Reproducer, Run, Verdict
from maxops.conformance.wording import BY_SEVERITY


@dataclass(frozen=True)
class Group:
    """Findings with the same verdict, clause and reproducer or, without a reproducer, with the same message."""

    verdict: Verdict
    clause: str
    statement: str  # the statement of the clause
    reproducer: Reproducer | None
    number: int | None  # the index of the reproducer in its run
    findings: tuple[Finding, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The affected types, in the order of the findings."""
        return tuple(dict.fromkeys(case_name(finding["case"]).type for finding in self.findings))

    @property
    def expected(self) -> Elements | Message:
        """The expected result of the reproducer, or of the first finding without one."""
        return self.reproducer["expected"] if self.reproducer else self.findings[0]["expected"]

    @property
    def actual(self) -> Elements | Message:
        """The actual result of the reproducer, or of the first finding without one."""
        return self.reproducer["actual"] if self.reproducer else self.findings[0]["actual"]


def groups(run: Run) -> list[Group]:
    """Return the groups by severity, then in the order of the spec table. Ties keep the order of the findings."""
    found: dict[tuple[Verdict, str, int | None, str], list[Finding]] = {}
    for finding in run["findings"]:
        number = finding["reproducer"]
        reason = finding["message"] if number is None else ""
        found.setdefault((finding["verdict"], finding["clause"], number, reason), []).append(finding)
    made = [
        Group(
            verdict,
            clause,
            run["clauses"][clause],
            None if number is None else run["reproducers"][number],
            number,
            tuple(findings),
        )
        for (verdict, clause, number, _), findings in found.items()
    ]
    return sorted(made, key=lambda group: (BY_SEVERITY.index(group.verdict), sort_key(row(group.clause))))
