"""Compares two runs of one runtime: regressions, fixes, and faults that are not in a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maxops.conformance.result import FAULTS, OPEN, Finding, Run, Verdict
from maxops.conformance.wording import Table, one_line, runtime_label
from maxops.counted import counted
from maxops.errors import RunFileError


@dataclass(frozen=True)
class Change:
    """One case in both runs. A finding is None if the case conforms or is not applicable."""

    case: str
    old: Verdict
    new: Verdict
    before: Finding | None
    after: Finding | None


@dataclass(frozen=True)
class Comparison:
    """The differences between two runs.

    `new_faults` contains cases that were not faults before. `fixed` contains former faults that now conform or are
    permitted. `changed` contains other cases with a different verdict or result. `only_old` and `only_new` contain the
    cases that occur in only one of the runs, with their verdicts. Such cases exist if the kits or options differ.
    """

    old: str
    new: str
    new_faults: tuple[Change, ...]
    fixed: tuple[Change, ...]
    changed: tuple[Change, ...]
    unchanged: int
    only_old: dict[str, Verdict]
    only_new: dict[str, Verdict]


def compare(old: Run, new: Run) -> Comparison:
    """Return the changes, case by case.

    A fault that is no longer applicable counts as changed, not fixed, because it can no longer be observed.
    """
    before, after = _findings(old), _findings(new)
    new_faults, fixed, changed, unchanged = [], [], [], 0
    for case, verdict in new["cases"].items():
        if case not in old["cases"]:
            continue
        change = Change(case, old["cases"][case], verdict, before.get(case), after.get(case))
        if change.new in FAULTS and change.old not in FAULTS:
            new_faults.append(change)
        elif change.old in FAULTS and change.new in ("conforms", *OPEN):
            fixed.append(change)
        elif change.old != change.new or _answer(change.before) != _answer(change.after):
            changed.append(change)
        else:
            unchanged += 1
    return Comparison(
        runtime_label(old),
        runtime_label(new),
        tuple(new_faults),
        tuple(fixed),
        tuple(changed),
        unchanged,
        {case: verdict for case, verdict in old["cases"].items() if case not in new["cases"]},
        {case: verdict for case, verdict in new["cases"].items() if case not in old["cases"]},
    )


def pairs(old: Sequence[Run], new: Sequence[Run]) -> list[tuple[Run | None, Run | None]]:
    """Pair runs of the same runtime, regardless of its version. None means that one file has no run of the runtime."""
    before, after = by_runtime(old), by_runtime(new)
    return [(before.get(name), after.get(name)) for name in dict.fromkeys([*after, *before])]


def not_in_baseline(run: Run, baseline: Run | None) -> list[Finding]:
    """Return the faults that are new: the baseline has a different verdict, or no verdict, for their cases.

    The bits are not compared. A wrong result may depend on the machine and on memory, so a known fault with a different
    wrong result is not a new fault. `compare` shows such differences.
    """
    known = baseline["cases"] if baseline else {}
    return [
        finding
        for finding in run["findings"]
        if finding["verdict"] in FAULTS and known.get(finding["case"]) != finding["verdict"]
    ]


def tables(comparison: Comparison) -> list[Table]:
    """Return the differences as tables, omitting empty tables."""
    made = [
        Table(title, ("case", "before", "after"), [_row(change) for change in changes])
        for title, changes in (
            ("New faults", comparison.new_faults),
            ("Fixed", comparison.fixed),
            ("Changed", comparison.changed),
        )
    ]
    made += [
        Table(f"Only in {name}", ("case", "verdict"), list(cases.items()))
        for name, cases in ((comparison.old, comparison.only_old), (comparison.new, comparison.only_new))
    ]
    return [table for table in made if table.rows]


def summary(comparison: Comparison) -> str:
    """Summarize the comparison in one line."""
    faults = sum(verdict in FAULTS for verdict in comparison.only_new.values())
    counts = [
        counted(len(comparison.new_faults), "new fault"),
        f"{len(comparison.fixed)} fixed",
        f"{len(comparison.changed)} changed",
        f"{comparison.unchanged} unchanged",
        f"{len(comparison.only_old)} only before",
        f"{len(comparison.only_new)} new, including {counted(faults, 'fault')}",
    ]
    return f"{comparison.old} -> {comparison.new}: {'; '.join(counts)}"


def _answer(finding: Finding | None) -> object:
    """Return the part of a finding that is compared between two runs.

    Error texts are not compared, because they may contain addresses and line numbers. Nondeterministic results are not
    compared, either.
    """
    if finding is None:
        return None
    actual = finding["actual"]
    if "text" in actual or finding["verdict"] in ("uninitialized memory", "not the same twice"):
        return finding["clause"]
    return finding["clause"], actual["type"], actual["shape"], actual["bits"] or actual["values"]


def _findings(run: Run) -> dict[str, Finding]:
    return {finding["case"]: finding for finding in run["findings"]}


def by_runtime(runs: Sequence[Run]) -> dict[str, Run]:
    """Return the runs by the names of their runtimes. Raise RunFileError if a runtime has several runs."""
    found: dict[str, Run] = {}
    for run in runs:
        if run["runtime"] in found:
            other = found[run["runtime"]]
            raise RunFileError(
                f"expected one run for each runtime, got {runtime_label(other)} and {runtime_label(run)}"
            )
        found[run["runtime"]] = run
    return found


def _row(change: Change) -> tuple[str, str, str]:
    return change.case, _side(change.old, change.before), _side(change.new, change.after)


def _side(verdict: Verdict, finding: Finding | None) -> str:
    return verdict if finding is None else f"{verdict}: {one_line(finding['actual'])}"
