"""A run of the kit against one runtime: each trial in the runtime's own process, each case judged by its own row."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

import maxops
from maxops.bench import environment
from maxops.conformance import runtimes, script
from maxops.conformance.case import Case, Trial
from maxops.conformance.controls import controls
from maxops.conformance.judge import Judgement, judge
from maxops.conformance.outcome import Outcome
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
from maxops.conformance.smallest import Found, smallest
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.spec import ALL, Spec

SECONDS = 20.0  # for one trial, before it counts as hung
FEW = 16  # elements of a result that a finding shows whole

# Called with how much is done, of how much, and what is at hand.
Progress = Callable[[int, int, str], None]


# The rows that a runtime is asked which cannot be told a version: the newest of each operator.
_NEWEST = {row.operator: row for row in ALL if row.version is not None}


@dataclass
class _Judged:
    """A case, the judgement on it, what was wanted and what came."""

    case: Case
    judgement: Judgement
    sought: Judgement  # as it was found, before the types that are missing were named
    wanted: Elements | Told
    got: Elements | Told
    refused: bool


def conform(
    name: str, cases: Sequence[Case], *, kit: dict[str, Any], seconds: float = SECONDS, progress: Progress | None = None
) -> Run:
    """Ask a runtime every case, and return what the JSON holds.

    `kit` says how the cases were chosen, and is written as it is; a trial may take so many seconds. Raises a
    MaxopsError where the runtime cannot be started at all.
    """
    started = time.monotonic()
    run = _Session(name, seconds, progress or (lambda done, of, doing: None))
    with run.process:
        run.ask([case for case in cases if run.is_asked(case)])
        run.show()
        return {
            "schema": SCHEMA,
            "runtime": name,
            "version": run.process.version,
            "kit": kit | {"maxops": environment.installed("maxops") or "source tree", "cases": len(run.judged)},
            "machine": environment.machine(maxops.get_num_threads()),
            "seconds": round(time.monotonic() - started, 1),
            "cases": {each.case.id: each.judgement.verdict for each in run.judged},
            "reasons": {
                each.case.id: each.judgement.why for each in run.judged if each.judgement.verdict == "not applicable"
            },
            "findings": run.findings,
            "reproducers": run.reproducers,
        }


class _Session:
    def __init__(self, name: str, seconds: float, tell: Progress) -> None:
        self.runtime = runtimes.resolve(name)
        self.process = Process(name, controls())
        self._seconds = seconds
        self._tell = tell
        self.judged: list[_Judged] = []
        self.findings: list[Finding] = []
        self.reproducers: list[Reproducer] = []

    def is_asked(self, case: Case) -> bool:
        """Whether a runtime that cannot be told a version is asked a row: the newest of each operator only."""
        row = case.row
        return self.runtime.versioned or row.version is None or row is _NEWEST[row.operator]

    # --------------------------------------------------------------------------------------------- asking

    def ask(self, cases: Sequence[Case]) -> None:
        """Run the trials and judge the cases."""
        places: dict[str, list[int]] = {}  # of the judged cases, by the trial they were judged by
        for _, group in groupby(cases, key=lambda case: case.trial_id):
            together = list(group)
            self._tell(len(self.judged), len(cases), together[0].id)
            trial = together[0].make()
            outcomes: dict[str, Outcome] = {}
            for case in together:
                own = self._as_told(case, trial)
                key = f"{together[0].trial_id} {own.call.row.standard}"
                if not self._is_applicable(case):
                    outcome = Outcome("not applicable", text=f"is not told of {case.row.standard}")
                else:
                    if key not in outcomes:
                        outcomes[key] = self.process.run(key, own, self._seconds)
                    outcome = outcomes[key]
                    places.setdefault(key, []).append(len(self.judged))
                self.judged.append(_judged(case, own, outcome))
        for key, outcome in self.process.amended.items():
            for place in places.get(key, []):
                case = self.judged[place].case
                self.judged[place] = _judged(case, case.make(), outcome)
        self._name_missing_types()

    def _as_told(self, case: Case, trial: Trial) -> Trial:
        """The trial under the case's own row, where the runtime can be told of its standard."""
        if case.row.standard not in self.runtime.claims or case.row.standard == trial.call.row.standard:
            return trial
        return replace(trial, call=replace(trial.call, row=case.row))

    def _is_applicable(self, case: Case) -> bool:
        """Whether a refusal may be asked for: by a standard that the runtime claims, or by one that says the same."""
        asks = (case.id, case.shared)  # the row itself, and the first of those that share its trial
        claimed = tuple(standard.replace(" ", "-") + "." for standard in self.runtime.claims)
        return not case.refusal or any(each.startswith(claimed) for each in asks)

    def _name_missing_types(self) -> None:
        """Where all calls of a type are refused, it is the type that is missing, and not what each call is about."""
        by_type: dict[tuple[Spec, DType], list[_Judged]] = {}
        for each in self.judged:
            if not each.case.refusal and each.judgement.verdict != "not applicable":
                by_type.setdefault((each.case.row, each.case.dtype), []).append(each)
        for (row, _), group in by_type.items():
            if all(each.judgement.verdict in ("refuses", "permitted") and each.refused for each in group):
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
        scripts: dict[str, int] = {}
        numbers: list[int | None] = []
        kept: list[tuple[str, Found]] = []
        for done, each in enumerate(firsts):
            self._tell(done, len(firsts), f"the smallest call for {each.case.id}")
            found = self._smallest(each)
            if found is None:
                numbers.append(None)
                continue
            text = self._script(each.case, found)
            if text not in scripts:
                scripts[text] = len(kept)
                kept.append((text, found))
            numbers.append(scripts[text])
        for done, checked in enumerate(script.checked(kept, self.runtime.environment)):
            self._tell(done, len(kept), "each script, run by itself")
            self.reproducers.append(_reproducer(kept[done][1], checked))
        return numbers

    def _smallest(self, each: _Judged) -> Found | None:
        trial = self._as_told(each.case, each.case.make())
        run = partial(self.process.run, each.case.id, seconds=self._seconds)
        return smallest(each.case, trial, each.sought, run)

    def _script(self, case: Case, found: Found) -> str:
        name = f"{self.runtime.name} {self.process.version}"
        return script.written(name, case, found, self.runtime.script)


def _judged(case: Case, trial: Trial, outcome: Outcome) -> _Judged:
    judgement = judge(case, trial, outcome)
    want, got = _wanted(judgement, trial), _got(judgement, outcome)
    return _Judged(case, judgement, judgement, want, got, outcome.kind == "refused")


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


def _reproducer(found: Found, checked: script.Checked) -> Reproducer:
    call = found.trial.call
    whole = zip(call.inputs, call.whole(found.trial.feeds[0]), strict=True)
    return {
        "inputs": {each.name: elements(array) for each, array in whole if each is not None and array is not None},
        "attributes": dict(call.attributes),
        "wanted": _wanted(found.judgement, found.trial),
        "got": _got(found.judgement, found.outcome),
        "script": checked.script,
        "checked": checked.holds,
        "shown": checked.shown,
    }
