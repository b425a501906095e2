"""Runs the kit against one runtime: trials run in the runtime's process, and each case is judged by its own row."""

from __future__ import annotations

import hashlib
import pickle
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

import maxops
from maxops.conformance import limits, runtimes
from maxops.conformance.bounds import Bounds, bounds_of, widest
from maxops.conformance.case import Case, Trial
from maxops.conformance.child import RuntimeUnusableError
from maxops.conformance.judge import Judgement, judge
from maxops.conformance.outcome import Kind, Outcome
from maxops.conformance.process import Process
from maxops.conformance.reproduce import Reproduction, reproduce
from maxops.conformance.result import NO_FINDING, SCHEMA, Elements, Finding, Message, Reproducer, Run, elements
from maxops.conformance.runtimes.runtime import Runtime
from maxops.conformance.sanity_calls import sanity_calls
from maxops.conformance.script import Script, scripts
from maxops.conformance.shrink import Counterexample, shrink
from maxops.conformance.worker_pool import WorkerPool
from maxops.dtypes import DType
from maxops.engines.native import usable_cpus
from maxops.errors import MaxopsError
from maxops.machine import installed, machine
from maxops.plan import Array
from maxops.spec import ALL, Spec

MAX_ELEMENTS = 16  # largest result that a finding shows in full

FEW_ELEMENTS = 4096  # outcomes of calls with up to this many elements are cached

MAX_HANGS = 3  # the limit for an operator and type, because a hang takes twice the timeout of a trial
CASES_PER_PROCESS = 50  # for fewer cases, starting another process costs more time than it saves


class NoAnswersError(MaxopsError, TypeError):
    """Raised if a runtime never returns arrays."""


class NothingToJudgeError(MaxopsError, LookupError):
    """Raised if none of the selected cases applies to the runtime."""


# Called with the number of completed steps, the total of this phase, and the current step.
Progress = Callable[[int, int, str], None]


# The rows for a runtime whose versions cannot be chosen: the newest of each operator.
_NEWEST = {row.operator: row for row in ALL if row.version is not None}


@dataclass
class _Judged:
    """A case with its judgement and its result."""

    case: Case
    judgement: Judgement
    original: Judgement  # before attribution to missing types
    expected: Elements | Message
    actual: Elements | Message
    outcome: Kind
    note: str
    bounds: Bounds
    counterexample: Counterexample | None  # set if the call is not to be shrunk


def conform(
    name: str,
    cases: Sequence[Case],
    *,
    kit: dict[str, Any] | None = None,
    seconds: float = limits.SECONDS,
    repeats: int = limits.REPEATS,
    progress: Progress | None = None,
) -> Run:
    """Run every case on a runtime, as `maxops.conformance.conform` does. `kit` is copied into the JSON of the run."""
    started = time.monotonic()
    seconds, repeats = limits.check_seconds(seconds), limits.check_repeats(repeats)
    runtime = runtimes.resolve(name)
    selected = _selected(runtime, cases)
    size = max(1, min(usable_cpus(), len(selected) // CASES_PER_PROCESS))
    allowed = seconds * repeats / limits.REPEATS
    with WorkerPool(name, sanity_calls(), size, repeats, allowed) as workers:
        session = _Session(runtime, workers, allowed, progress or (lambda done, of, doing: None))
        session.run(selected)
        session.report()
        return {
            "schema": SCHEMA,
            "runtime": name,
            "version": workers.version,
            "kit": (kit or {})
            | {
                "maxops": installed("maxops") or "source tree",
                "cases": len(selected),
                "repeats": repeats,
                "bounds": session.bounds(),
            },
            "machine": machine(maxops.get_num_threads()),
            "seconds": round(time.monotonic() - started, 1),
            "cases": {each.case.id: each.judgement.verdict for each in session.judged},
            "clauses": {
                each.judgement.clause.id: each.judgement.clause.statement
                for each in session.judged
                if each.judgement.verdict not in NO_FINDING
            },
            "reasons": {
                each.case.id: each.judgement.message
                for each in session.judged
                if each.judgement.verdict == "not applicable"
            },
            "notes": [*workers.notes, *session.notes()],
            "findings": session.findings,
            "reproducers": session.reproducers,
        }


def _selected(runtime: Runtime, cases: Sequence[Case]) -> list[Case]:
    """Return the cases for a runtime: only those of the newest versions if the runtime has no operator versions.

    Raises NothingToJudgeError if there are none.
    """
    found = [
        case
        for case in cases
        if runtime.versioned or case.row.version is None or case.row is _NEWEST[case.row.operator]
    ]
    if not found:
        newest = ", ".join(row.name for row in _NEWEST.values())
        of = ", ".join(dict.fromkeys(case.row.name for case in cases)) or "none"
        raise NothingToJudgeError(
            f"{runtime.name}: none of the selected cases applies. The runtime does not version its operators, so only "
            f"the newest versions are tested ({newest}), but the selected cases are for {of}"
        )
    return found


class _Session:
    def __init__(self, runtime: Runtime, workers: WorkerPool, seconds: float, progress: Progress) -> None:
        self._runtime, self._workers, self._seconds, self._progress = runtime, workers, seconds, progress
        self._outcomes: dict[bytes, Outcome] = {}  # the outcomes of small calls, by digest
        self._hung: Counter[tuple[str, DType]] = Counter()
        self.judged: list[_Judged] = []
        self.findings: list[Finding] = []
        self.reproducers: list[Reproducer] = []

    # --------------------------------------------------------------------------------------------- running

    def run(self, cases: Sequence[Case]) -> None:
        """Run the trials and judge the cases."""
        self._check_sanity_calls()
        groups = [list(group) for _, group in groupby(cases, key=lambda case: case.trial_id)]
        self.judged = [
            each
            for group in self._workers.map(
                self._run_together, groups, lambda done, group: self._progress(done, len(groups), group[0].id)
            )
            for each in group
        ]
        amended = self._workers.amended()
        for number, each in enumerate(self.judged):
            if (name := _run_name(each.case, self._named_standard(each.case))) in amended:
                trial = self._under_named_standard(each.case, each.case.make())
                self.judged[number] = self._judge(each.case, trial, amended[name])
        self._check_that_something_was_judged()
        self._attribute_to_missing_types()

    def bounds(self) -> dict[str, Bounds]:
        """Return the bounds of the judged cases for each operator."""
        found: dict[str, list[Bounds]] = {}
        for each in self.judged:
            if each.judgement.verdict != "not applicable":
                found.setdefault(each.case.row.operator, []).append(each.bounds)
        return {operator: widest(every) for operator, every in found.items()}

    def notes(self) -> list[str]:
        """Return observations that are not faults, each with a case that shows it."""
        found: dict[str, str] = {}
        for each in self.judged:
            if each.note:
                found.setdefault(each.note, each.case.id)
        return [f"{note} (seen in {case})" for note, case in found.items()]

    def _check_that_something_was_judged(self) -> None:
        reasons = Counter(each.judgement.message for each in self.judged if each.judgement.verdict == "not applicable")
        if reasons.total() == len(self.judged):
            listed = "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common(3))
            raise NothingToJudgeError(
                f"{self._runtime.name}: none of the {len(self.judged)} selected cases is applicable ({listed}); "
                "list all cases with --list, and select others with --only"
            )

    def _check_sanity_calls(self) -> None:
        """Fail early for a runtime that never returns arrays."""

        def outcome_of(process: Process, call: Trial) -> Outcome:
            return process.run(f"sanity call {call.call.row.name}", call, self._seconds)

        outcomes = self._workers.map(outcome_of, sanity_calls(), lambda done, call: None)
        answered = [outcome for outcome in outcomes if outcome.kind not in ("not applicable", "refused")]
        if answered and all(outcome.kind == "garbage" for outcome in answered):
            raise NoAnswersError(f"{self._runtime.name}: {answered[0].text}; expected one NumPy array for each output")

    def _run_together(self, process: Process, together: Sequence[Case]) -> list[_Judged]:
        """Judge the cases of one trial, which runs once, or once for each standard that the runtime can name."""
        trial = together[0].make()
        outcomes: dict[str, Outcome] = {}
        judged = []
        for case in together:
            own, name = self._under_named_standard(case, trial), _run_name(case, self._named_standard(case))
            if not self._is_applicable(case):
                outcome = Outcome(
                    "not applicable",
                    text=f"the call is invalid, and the runtime does not claim to implement {case.row.standard}",
                )
            elif own.layout != "contiguous" and not self._runtime.takes_arrays:
                outcome = Outcome(
                    "not applicable", text="the runtime reads arrays from files, which are always contiguous"
                )
            elif name in outcomes:
                outcome = outcomes[name]
            else:
                outcome = outcomes[name] = self._run_trial(process, name, own)
            judged.append(self._judge(case, own, outcome))
        return judged

    def _run_trial(self, process: Process, name: str, trial: Trial) -> Outcome:
        """Run a trial and return its outcome. Skip it after too many timeouts, or if the runtime does not restart."""
        alike = (trial.call.row.operator, trial.call.dtype)
        if self._hung[alike] >= MAX_HANGS:
            return Outcome("not applicable", text=f"not run: {MAX_HANGS} similar calls timed out")
        try:
            outcome = process.run(name, trial, self._seconds)
        except RuntimeUnusableError as error:
            return Outcome("not applicable", text=f"not run: the runtime cannot be restarted: {error}")
        self._hung[alike] += outcome.kind == "hung"
        return outcome

    def _judge(self, case: Case, trial: Trial, outcome: Outcome) -> _Judged:
        judgement = judge(case, trial, outcome)
        # invalid calls are already small, and a crashing call takes a new process for each try
        is_small = trial.is_refusal or (
            outcome.kind in ("crashed", "hung")
            and len(trial.feeds) == 1
            and all(array.size <= FEW_ELEMENTS for array in trial.feeds[0])
        )
        found = Counterexample(trial, outcome, judgement) if is_small else None
        expected, actual = _expected(judgement, trial), _actual(judgement, outcome)
        of = bounds_of(trial)
        return _Judged(case, judgement, judgement, expected, actual, outcome.kind, outcome.note, of, found)

    def _named_standard(self, case: Case) -> str:
        """Return the case's standard if calls of this runtime can name it, or "" if they cannot."""
        return case.row.standard if case.row.standard in self._runtime.claims else ""

    def _under_named_standard(self, case: Case, trial: Trial) -> Trial:
        """Return the trial unchanged, or with the case's own row if the runtime can name the row's standard."""
        if self._named_standard(case) in ("", trial.call.row.standard):
            return trial
        return replace(trial, call=replace(trial.call, row=case.row))

    def _is_applicable(self, case: Case) -> bool:
        """Return whether a case expects a result, or the runtime claims the standard of the case or of its trial."""
        asks = (case.id, case.shared)  # the row itself, and the first row with the same trial
        claimed = tuple(standard.replace(" ", "-") + "." for standard in self._runtime.claims)
        return not case.refusal or any(each.startswith(claimed) for each in asks)

    def _attribute_to_missing_types(self) -> None:
        """Attribute refusals to the type clause if the runtime refuses all valid calls of a type.

        These calls must include the simplest one, the case for the type clause. Otherwise, the calls may be refused for
        a different common reason.
        """
        by_type: dict[tuple[Spec, DType], list[_Judged]] = {}
        for each in self.judged:
            if not each.case.refusal and each.judgement.verdict != "not applicable":
                by_type.setdefault((each.case.row, each.case.dtype), []).append(each)
        for (row, _), group in by_type.items():
            is_asked = any(each.case.clause == row.rule("T") for each in group)
            if is_asked and all(each.outcome == "refused" for each in group):
                for each in group:
                    each.judgement = replace(each.judgement, verdict="refuses", clause=row.rule("T"), kind="type")

    # ------------------------------------------------------------------------------------------- reporting

    def report(self) -> None:
        """Create the findings. For each kind, find the smallest call and write a script that shows it."""
        groups: dict[tuple[object, ...], list[_Judged]] = {}
        for each in self.judged:
            if each.judgement.verdict not in NO_FINDING:
                groups.setdefault(_group_key(each), []).append(each)
        shown = self._reproducers([members[0] for members in groups.values()])
        numbers = {id(each): number for members, number in zip(groups.values(), shown, strict=True) for each in members}
        self.findings = [_finding(each, numbers[id(each)]) for each in self.judged if id(each) in numbers]

    def _reproducers(self, firsts: Sequence[_Judged]) -> list[int | None]:
        """Return the index of each finding's reproducer, or None if the call alone does not reproduce the finding."""
        found = self._workers.map(
            self._shrink, firsts, lambda done, each: self._progress(done, len(firsts), f"shrinking: {each.case.id}")
        )
        by_text: dict[str, int] = {}
        numbers: list[int | None] = []
        kept: list[list[Script]] = []
        for each, smaller in zip(firsts, found, strict=True):
            if smaller is None:
                numbers.append(None)
                continue
            made = scripts(self._runtime, self._workers.version, each.case, smaller)
            if made[0].text not in by_text:
                by_text[made[0].text] = len(kept)
                kept.append(made)
            numbers.append(by_text[made[0].text])
        for done, reproduction in enumerate(reproduce(kept, self._runtime.environment)):
            self._progress(done, len(kept), "reproducing by scripts")
            self.reproducers.append(_reproducer(reproduction))
        return numbers

    def _shrink(self, process: Process, each: _Judged) -> Counterexample | None:
        if each.counterexample is not None:
            return each.counterexample

        def run(trial: Trial) -> Outcome:
            # a trial that several rows judge is shrunk once for each row, mostly by the same steps
            key = hashlib.blake2b(pickle.dumps((trial.call, trial.feeds, trial.layout))).digest()
            if sum(array.size for array in trial.feeds[0]) > FEW_ELEMENTS:  # too large to cache
                return process.run(each.case.id, trial, self._seconds)
            if key not in self._outcomes:
                self._outcomes[key] = process.run(each.case.id, trial, self._seconds)
            return self._outcomes[key]

        trial = self._under_named_standard(each.case, each.case.make())
        try:
            return shrink(each.case, trial, each.original, run)
        except RuntimeUnusableError:  # the runtime cannot be restarted; the finding stays, without a smaller call
            return None


def _run_name(case: Case, standard: str) -> str:
    """Return the name of a trial for the bisection of a crash."""
    return f"{case.trial_id} {standard}".rstrip()


def _expected(judgement: Judgement, trial: Trial) -> Elements | Message:
    if trial.expected is None:
        return {"text": f"an error: {judgement.clause.statement}"}
    return _excerpt(trial.expected[judgement.feed], judgement.index)


def _actual(judgement: Judgement, outcome: Outcome) -> Elements | Message:
    if outcome.kind in ("returned", "nondeterministic"):
        return _excerpt(outcome.runs[judgement.run][judgement.feed], judgement.index)
    return {"text": outcome.text}


def _excerpt(array: Array, index: tuple[int, ...] | None = None, most: int = MAX_ELEMENTS) -> Elements | Message:
    """Return a small array in full. Of a large result, return only the element that differs, if any."""
    if array.size <= most:
        return elements(array)
    if index is not None:
        return elements(np.asarray(array[index]))
    return {"text": f"{array.dtype} of shape {array.shape}"}


def _group_key(each: _Judged) -> tuple[object, ...]:
    """Return the key of a finding. Findings with the same key share a reproducer."""
    case, judgement = each.case, each.judgement
    about = ""
    if judgement.verdict == "refuses":
        about = re.sub(r"[0-9]+", "#", judgement.message)[:60]
    elif judgement.kind in ("wrong", None):
        about = re.sub(r"[0-9]+", "#", case.sentence)
    return case.row, case.dtype, judgement.verdict, judgement.clause, judgement.kind, about


def _finding(each: _Judged, reproducer: int | None) -> Finding:
    case, judgement = each.case, each.judgement
    return {
        "case": case.id,
        "clause": judgement.clause.id,
        "verdict": judgement.verdict,
        "message": judgement.message,
        "expected": each.expected,
        "actual": each.actual,
        "feed": judgement.feed,
        "index": None if judgement.index is None else list(judgement.index),
        "reproducer": reproducer,
    }


def _reproducer(reproduction: Reproduction) -> Reproducer:
    found = reproduction.script.counterexample
    call = found.trial.call
    whole = zip(call.inputs, call.whole(found.trial.feeds[0]), strict=True)
    return {
        "inputs": {
            each.name: _excerpt(array, most=FEW_ELEMENTS)
            for each, array in whole
            if each is not None and array is not None
        },
        "attributes": dict(call.attributes),
        "expected": _expected(found.judgement, found.trial),
        "actual": _actual(found.judgement, found.outcome),
        "script": reproduction.script.text,
        "reproduced": reproduction.reproduced,
        "output": reproduction.output,
    }
