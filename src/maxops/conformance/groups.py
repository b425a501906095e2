"""Findings that one small call shows, together: what a person reads instead of each of its hundred cases."""

from __future__ import annotations

from dataclasses import dataclass

from maxops.conformance.named import place, row
from maxops.conformance.result import Elements, Finding, Reproducer, Run, Told, Verdict
from maxops.conformance.wording import WORST_FIRST


@dataclass(frozen=True)
class Group:
    """Findings of one verdict and clause with one reproducer. Without a reproducer, those with one reason."""

    verdict: Verdict
    clause: str
    reproducer: Reproducer | None
    number: int | None  # of the reproducer, in its run
    findings: tuple[Finding, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types that show it, in the order in which they were found."""
        return tuple(dict.fromkeys(finding["type"] for finding in self.findings))

    @property
    def wanted(self) -> Elements | Told:
        """What the smallest call should give."""
        return self.reproducer["wanted"] if self.reproducer else self.findings[0]["wanted"]

    @property
    def got(self) -> Elements | Told:
        """What the smallest call gives."""
        return self.reproducer["got"] if self.reproducer else self.findings[0]["got"]


def groups(run: Run) -> list[Group]:
    """The worst verdict first; within one, in the order of the spec table, then as they were found."""
    found: dict[tuple[Verdict, str, int | None, str], list[Finding]] = {}
    for finding in run["findings"]:
        number = finding["reproducer"]
        reason = finding["why"] if number is None else ""
        found.setdefault((finding["verdict"], finding["clause"], number, reason), []).append(finding)
    made = [
        Group(verdict, clause, None if number is None else run["reproducers"][number], number, tuple(findings))
        for (verdict, clause, number, _), findings in found.items()
    ]
    return sorted(made, key=lambda group: (WORST_FIRST.index(group.verdict), place(row(group.clause))))
