"""A run of the kit against one runtime: each trial in the runtime's own process, each case judged by its own row."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

import maxops
from maxops.bench import environment
from maxops.conformance import runtimes, transport
from maxops.conformance import seconds as of_trials
from maxops.conformance.case import Case, Trial
from maxops.conformance.checking import Checked, checked
from maxops.conformance.child import RuntimeUnusableError
from maxops.conformance.controls import controls
from maxops.conformance.crew import Crew
from maxops.conformance.judge import Judgement, judge
from maxops.conformance.outcome import Kind, Outcome
from maxops.conformance.process import Process
from maxops.conformance.result import (
    SCHEMA,
    Elements,
    Finding,
    Reproducer,
    Run,
    Told,
    elements,
)
from maxops.conformance.runtimes.runtime import Runtime
from maxops.conformance.script import Script, scripts
from maxops.conformance.smallest import Found, smallest
from maxops.dtypes import DType
from maxops.engines.native import usable_cpus
from maxops.errors import MaxopsError
from maxops.plan import Array
from maxops.spec import ALL, Spec

FEW = 16  # elements of a result that a finding shows whole

MOST_HANGS = 3  # of an operator and a type, each of which takes twice the time that a trial has
FEW_CASES = 50  # for which another process would take longer to start than it saves


class NoAnswersError(MaxopsError, TypeError):
    """A runtime that gives something other than arrays, whatever it is asked."""


# Called with how much is done, of how much, and what is at hand.
Progress = Callable[[int, int, str], None]


# The rows that a runtime is asked which cannot be told a version: the newest of each operator.
_NEWEST = {row.operator: row for row in ALL if row.version is not None}


@dataclass
class _Judged:
    """A case, the judgement on it, and what came."""

    case: Case
    judgement: Judgement
    sought: Judgement  # as it was found, before the types that are missing were named
    wanted: Elements | Told
    got: Elements | Told
    kind: Kind
    found: Found | None  # the call and what came, where the call is one that cannot be made smaller


def conform(
    name: str,
    cases: Sequence[Case],
    *,
    kit: dict[str, Any] | None = None,
    seconds: float = of_trials.USUAL,
    progress: Progress | None = None,
) -> Run:
    """Ask a runtime every case, and return what the JSON holds.

    `kit` says how the cases were chosen, and is written as it is; a trial may take so many seconds. Raises a
    MaxopsError where the runtime cannot be started, or gives something that is no answer at all.
    """
    started = time.monotonic()
    of_trials.check(seconds)
    runtime = runtimes.resolve(name)
    asked = [case for case in cases if _is_asked(runtime, case)]
    with Crew(name, controls(), max(1, min(usable_cpus(), len(asked) // FEW_CASES))) as crew:
        session = _Session(runtime, crew, seconds, progress or (lambda done, of, doing: None))
        session.ask(asked)
        session.show()
        return {
            "schema": SCHEMA,
            "runtime": name,
            "version": crew.version,
            "kit": (kit or {}) | {"maxops": environment.installed("maxops") or "source tree", "cases": len(asked)},
            "machine": environment.machine(maxops.get_num_threads()),
            "seconds": round(time.monotonic() - started, 1),
            "cases": {each.case.id: each.judgement.verdict for each in session.judged},
            "reasons": {
                each.case.id: each.judgement.why
                for each in session.judged
                if each.judgement.verdict == "not applicable"
            },
            "notes": crew.notes,
            "findings": session.findings,
            "reproducers": session.reproducers,
        }


def _is_asked(runtime: Runtime, case: Case) -> bool:
    """A runtime that cannot be told a version is asked the newest of each operator only."""
    row = case.row
    return runtime.versioned or row.version is None or row is _NEWEST[row.operator]


class _Session:
    def __init__(self, runtime: Runtime, crew: Crew, seconds: float, tell: Progress) -> None:
        self._runtime, self._crew, self._seconds, self._tell = runtime, crew, seconds, tell
        self._tried: dict[bytes, Outcome] = {}
        self._hung: Counter[tuple[str, DType]] = Counter()
        self.judged: list[_Judged] = []
        self.findings: list[Finding] = []
        self.reproducers: list[Reproducer] = []

    # --------------------------------------------------------------------------------------------- asking

    def ask(self, cases: Sequence[Case]) -> None:
        """Run the trials and judge the cases."""
        self._look_at_controls()
        groups = [list(group) for _, group in groupby(cases, key=lambda case: case.trial_id)]
        self.judged = [
            each
            for group in self._crew.map(
                self._ask_together, groups, lambda done, group: self._tell(done, len(groups), group[0].id)
            )
            for each in group
        ]
        amended = self._crew.amended()
        for number, each in enumerate(self.judged):
            if (name := _run_name(each.case, self._standard_told(each.case))) in amended:
                trial = self._as_told(each.case, each.case.make())
                self.judged[number] = self._judge(each.case, trial, amended[name])
        self._name_missing_types()

    def _look_at_controls(self) -> None:
        """A runtime that gives no arrays at all is told apart before its cases are run."""

        def outcome_of(process: Process, control: Trial) -> Outcome:
            return process.run(f"control {control.call.row.name}", control, self._seconds)

        outcomes = self._crew.map(outcome_of, controls(), lambda done, control: None)
        answered = [outcome for outcome in outcomes if outcome.kind not in ("not applicable", "refused")]
        if answered and all(outcome.kind == "garbage" for outcome in answered):
            raise NoAnswersError(f"{self._runtime.name}: {answered[0].text}; wanted one NumPy array for each output")

    def _ask_together(self, process: Process, together: Sequence[Case]) -> list[_Judged]:
        """The cases of one trial, which is run once for all of them, or once for each standard that it is told of."""
        trial = together[0].make()
        outcomes: dict[str, Outcome] = {}
        judged = []
        for case in together:
            own, name = self._as_told(case, trial), _run_name(case, self._standard_told(case))
            if not self._is_applicable(case):
                outcome = Outcome("not applicable", text=f"is not told of {case.row.standard}")
            elif name in outcomes:
                outcome = outcomes[name]
            else:
                outcome = outcomes[name] = self._run(process, name, own)
            judged.append(self._judge(case, own, outcome))
        return judged

    def _run(self, process: Process, name: str, trial: Trial) -> Outcome:
        """The outcome of a trial, unless nothing can be expected of it any more."""
        alike = (trial.call.row.operator, trial.call.dtype)
        if self._hung[alike] >= MOST_HANGS:
            return Outcome("not applicable", text=f"not asked: {MOST_HANGS} calls of the kind did not come back")
        try:
            outcome = process.run(name, trial, self._seconds)
        except RuntimeUnusableError as error:
            return Outcome("not applicable", text=f"not asked: the runtime does not start again: {error}")
        self._hung[alike] += outcome.kind == "hung"
        return outcome

    def _judge(self, case: Case, trial: Trial, outcome: Outcome) -> _Judged:
        judgement = judge(case, trial, outcome)
        # what is to be refused is small as it is, and what crashes takes a process for each try
        is_small = trial.is_refusal or (outcome.kind in ("crashed", "hung") and len(trial.feeds) == 1)
        found = Found(trial, outcome, judgement) if is_small else None
        want, got = _wanted(judgement, trial), _got(judgement, outcome)
        return _Judged(case, judgement, judgement, want, got, outcome.kind, found)

    def _standard_told(self, case: Case) -> str:
        """The standard that a call is made under: the case's own, where the runtime can be told of it."""
        return case.row.standard if case.row.standard in self._runtime.claims else ""

    def _as_told(self, case: Case, trial: Trial) -> Trial:
        """The trial under the case's own row, where the runtime can be told of its standard."""
        if self._standard_told(case) in ("", trial.call.row.standard):
            return trial
        return replace(trial, call=replace(trial.call, row=case.row))

    def _is_applicable(self, case: Case) -> bool:
        """Whether a refusal may be asked for: by a standard that the runtime claims, or by one that says the same."""
        asks = (case.id, case.shared)  # the row itself, and the first of those that share its trial
        claimed = tuple(standard.replace(" ", "-") + "." for standard in self._runtime.claims)
        return not case.refusal or any(each.startswith(claimed) for each in asks)

    def _name_missing_types(self) -> None:
        """Where all calls of a type are refused, it is the type that is missing, and not what each call is about.

        That takes the plainest call, which is the case of the clause on types: of a few others, what they have in
        common may be something else.
        """
        by_type: dict[tuple[Spec, DType], list[_Judged]] = {}
        for each in self.judged:
            if not each.case.refusal and each.judgement.verdict != "not applicable":
                by_type.setdefault((each.case.row, each.case.dtype), []).append(each)
        for (row, _), group in by_type.items():
            is_asked = any(each.case.clause == row.rule("T") for each in group)
            if is_asked and all(each.kind == "refused" for each in group):
                for each in group:
                    each.judgement = replace(each.judgement, verdict="refuses", clause=row.rule("T"), kind="type")

    # ------------------------------------------------------------------------------------------- showing

    def show(self) -> None:
        """Make the findings, and for each kind of them the smallest call and a script that shows it."""
        groups: dict[tuple[object, ...], list[_Judged]] = {}
        for each in self.judged:
            if each.judgement.verdict not in ("conforms", "not applicable"):
                groups.setdefault(_kind_of(each), []).append(each)
        shown = self._reproducers([members[0] for members in groups.values()])
        numbers = {id(each): number for members, number in zip(groups.values(), shown, strict=True) for each in members}
        self.findings = [_finding(each, numbers[id(each)]) for each in self.judged if id(each) in numbers]

    def _reproducers(self, firsts: Sequence[_Judged]) -> list[int | None]:
        """The number of each one's reproducer; None where the finding does not come from its call alone."""
        found = self._crew.map(
            self._smallest, firsts, lambda done, each: self._tell(done, len(firsts), f"smaller: {each.case.id}")
        )
        by_text: dict[str, int] = {}
        numbers: list[int | None] = []
        kept: list[list[Script]] = []
        for each, smaller in zip(firsts, found, strict=True):
            if smaller is None:
                numbers.append(None)
                continue
            made = scripts(self._runtime, self._crew.version, each.case, smaller)
            if made[0].text not in by_text:
                by_text[made[0].text] = len(kept)
                kept.append(made)
            numbers.append(by_text[made[0].text])
        for done, shown in enumerate(checked(kept, self._runtime.environment)):
            self._tell(done, len(kept), "each script, run by itself")
            self.reproducers.append(_reproducer(shown))
        return numbers

    def _smallest(self, process: Process, each: _Judged) -> Found | None:
        if each.found is not None:
            return each.found

        def run(trial: Trial) -> Outcome:
            # a trial that several rows judge is made smaller for each, by much the same steps
            key = transport.to_bytes((trial.call, trial.feeds))
            if key not in self._tried:
                self._tried[key] = process.run(each.case.id, trial, self._seconds)
            return self._tried[key]

        return smallest(each.case, self._as_told(each.case, each.case.make()), each.sought, run)


def _run_name(case: Case, standard: str) -> str:
    """What a trial is called where its process looks for culprits."""
    return f"{case.trial_id} {standard}".rstrip()


def _wanted(judgement: Judgement, trial: Trial) -> Elements | Told:
    if trial.wanted is None:
        return {"text": f"an error: {judgement.clause.statement}"}
    return _some(trial.wanted[judgement.feed], judgement.place)


def _got(judgement: Judgement, outcome: Outcome) -> Elements | Told:
    if outcome.kind in ("gave", "unstable"):
        return _some(outcome.outputs[judgement.feed], judgement.place)
    return {"text": outcome.text}


def _some(array: Array, place: tuple[int, ...] | None) -> Elements | Told:
    """A small result whole, of a large one the element that differs."""
    if array.size <= FEW:
        return elements(array)
    if place is not None:
        return elements(np.asarray(array[place]))
    return {"text": f"{array.dtype} of shape {array.shape}"}


def _kind_of(each: _Judged) -> tuple[object, ...]:
    """What makes two findings one: they go by one script."""
    case, judgement = each.case, each.judgement
    about = ""
    if judgement.verdict == "refuses":
        about = re.sub(r"[0-9]+", "#", judgement.why)[:60]
    elif judgement.kind in ("wrong", None):
        about = re.sub(r"[0-9]+", "#", case.sentence)
    return case.row, case.dtype, judgement.verdict, judgement.clause, judgement.kind, about


def _finding(each: _Judged, reproducer: int | None) -> Finding:
    case, judgement = each.case, each.judgement
    return {
        "case": case.id,
        "standard": case.row.standard,
        "operator": case.row.operator,
        "version": case.row.version,
        "type": str(case.dtype),
        "clause": judgement.clause.id,
        "says": judgement.clause.statement,
        "verdict": judgement.verdict,
        "why": judgement.why,
        "wanted": each.wanted,
        "got": each.got,
        "feed": judgement.feed,
        "place": None if judgement.place is None else list(judgement.place),
        "reproducer": reproducer,
    }


def _reproducer(shown: Checked) -> Reproducer:
    found = shown.script.found
    call = found.trial.call
    whole = zip(call.inputs, call.whole(found.trial.feeds[0]), strict=True)
    return {
        "inputs": {each.name: elements(array) for each, array in whole if each is not None and array is not None},
        "attributes": dict(call.attributes),
        "wanted": _wanted(found.judgement, found.trial),
        "got": _got(found.judgement, found.outcome),
        "script": shown.script.text,
        "checked": shown.holds,
        "shown": shown.shown,
    }
