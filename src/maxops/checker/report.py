"""The findings of a check: a verdict on every clause of each max node, and the other faults of the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from maxops.checker import rules_max, rules_reduce_max, rules_scatter, rules_segment_max
from maxops.checker.facts import Node
from maxops.checker.ruling import Verdict
from maxops.spec import Clause, Spec

# Used instead of a clause id for faults of the model that no clause covers.
MODEL = "model"
# Used instead of a clause id for max nodes without rules in the requested standard.
OUTSIDE = "outside"
RULES = {
    "Max": rules_max.RULES,
    "ReduceMax": rules_reduce_max.RULES,
    "SegmentMax": rules_segment_max.RULES,
    "ScatterElements": rules_scatter.OF_ELEMENTS,
    "ScatterND": rules_scatter.OF_ND,
}


@dataclass(frozen=True)
class Finding:
    """The verdict on one clause for one node, or a fault of the model.

    ``clause`` is the id of the clause, or "model" for a fault that no clause covers. ``message`` gives the reason.
    ``at_run_time`` is True if the verdict depends on facts that are known only at run time, such as values.
    """

    node: str
    clause: str
    verdict: Verdict
    message: str
    at_run_time: bool = False

    @property
    def notable(self) -> bool:
        """True if the clause is broken, or if the model does not contain enough information to judge it."""
        return self.verdict == "broken" or (self.verdict == "unknown" and not self.at_run_time)


@dataclass(frozen=True)
class JudgedNode:
    """A max node with a finding for each clause of its specification.

    If the standard has no specification for the node, ``row`` is None and ``note`` gives the reason.
    """

    where: str
    operator: str
    row: Spec | None
    note: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Report:
    """The result of a check of one model.

    ``source`` is the model's path. ``standard`` is the requested standard, or None if each operator was checked
    against the standard that defines it. ``faults`` contains the findings that are not about a single max node.
    """

    source: str
    standard: str | None
    faults: tuple[Finding, ...]
    nodes: tuple[JudgedNode, ...]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The model's faults and the findings of all nodes."""
        return (*self.faults, *(finding for node in self.nodes for finding in node.findings))

    def restricted(self, keeps: Callable[[str], bool]) -> Report:
        """Return a copy with the findings whose clauses `keeps` accepts. "model" and "outside" count as clauses."""
        return replace(
            self,
            faults=tuple(each for each in self.faults if keeps(each.clause)),
            nodes=tuple(
                replace(node, findings=tuple(each for each in node.findings if keeps(each.clause)))
                for node in self.nodes
                if node.row is not None or keeps(OUTSIDE)
            ),
        )

    @property
    def clauses(self) -> dict[str, Clause]:
        """The clauses that were checked, by id."""
        return {clause.id: clause for node in self.nodes if node.row for clause in node.row.clauses}

    @property
    def broken(self) -> bool:
        """True if a clause is broken or the model is malformed."""
        return any(finding.verdict == "broken" for finding in self.findings)

    @property
    def outside(self) -> tuple[JudgedNode, ...]:
        """The nodes for which the standard has no rules."""
        return tuple(node for node in self.nodes if node.row is None)

    @property
    def passed(self) -> bool:
        """True if nothing is broken and no node is outside a requested standard."""
        return not self.broken and not (self.standard is not None and self.outside)


def judge(node: Node) -> JudgedNode:
    """Check a node against every clause of its specification."""
    row, findings = node.row, []
    for short, _ in () if row is None else row.rules:
        assert row is not None
        ruling = RULES[node.operator][short](node, row)
        findings.append(Finding(node.where, row.clause(short), *ruling))
    return JudgedNode(node.where, node.operator, row, node.note, tuple(findings))
