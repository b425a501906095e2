"""Runs a runtime in its own process for a whole run, so that every effect on the process counts as an outcome.

A call that writes out of bounds may end the process later, in a trial without a fault. Therefore, if a process
ends after several trials, the last trial runs again alone in a new process. If the new process survives, the earlier
trials that raised an error, or should have, become suspects. Suspects are bisected in new processes, and the outcomes
of those that end a process are `amended`. If a process fails during shutdown and no suspect reproduces the failure, its
most recent other trials become suspects, too.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from maxops.conformance import limits, resource_limits, runtimes
from maxops.conformance.case import Trial
from maxops.conformance.child import Child, ChildEndedError, ChildHungError, RuntimeUnusableError
from maxops.conformance.outcome import Outcome
from maxops.counted import counted

SANITY_SECONDS = 10.0, 60.0  # bounds of the timeout of a sanity call; the first call may load or compile code
_MAX_SUSPECTS = 512
_MAX_LATEST = 64  # trials that are kept in memory with their arrays


@dataclass(frozen=True)
class _Suspect:
    name: str
    trial: Trial
    seconds: float


class Process:
    """A context manager that runs the trials of one runtime and returns the outcome of each.

    `sanity_calls` are small calls: those that the runtime supports must return the same results after every error.
    `seconds` is the timeout of a trial, from which the timeout of the first sanity calls is derived.
    `amended` maps names of trials to outcomes that replace those that `run` returned. It is complete after
    `close`. `notes` contains observations that belong to no trial. Raises RuntimeUnusableError, with a message of one
    line, if the runtime cannot be started.
    """

    def __init__(
        self,
        runtime: str,
        sanity_calls: Sequence[Trial] = (),
        memory: int | None = None,
        *,
        repeats: int = limits.REPEATS,
        seconds: float = limits.SECONDS,
    ) -> None:
        self.amended: dict[str, Outcome] = {}
        self.notes: list[str] = []
        self._runtime, self._repeats = runtime, repeats
        least, most = SANITY_SECONDS
        self._sanity_seconds = min(max(seconds, least), most)
        self._memory = resource_limits.memory_limit() if memory is None else memory
        environment = runtimes.resolve(runtime).environment
        self._directory = tempfile.TemporaryDirectory(prefix="maxops-conform-", ignore_cleanup_errors=True)
        self._environment = {"TMPDIR": self._directory.name, **environment}  # the folder is removed with leftover files
        self._sanity_calls = list(sanity_calls)
        self._child: Child | None = None
        self._latest: Child | None = None  # the child that starts or bisects
        self._used = False  # a trial ran in this child
        self._suspects: list[_Suspect] = []
        self._latest_fine: deque[_Suspect] = deque(maxlen=_MAX_LATEST)  # trials without errors in this child
        self._always_ends: str | None = None
        self._is_over = False
        try:
            self._child = self._start()
        except BaseException:
            self._directory.cleanup()
            raise
        self.version: str = self._child.version

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self.kill()

    def run(self, name: str, trial: Trial, seconds: float) -> Outcome:
        """Return the outcome of a trial. The timeout applies to the trial, and again to the sanity calls after it."""
        if self._child is None:
            self._child = self._start()
        outcome, due, ended = _ask(self._child, trial, seconds, self._repeats)
        alone, self._used = not self._used, True
        if ended:
            suspects = self._drop()
            try:
                return outcome if alone else self._again(name, trial, seconds, outcome, suspects)
            except RuntimeUnusableError as error:
                if self._is_over:
                    raise
                return replace(outcome, text=f"{outcome.text}; the runtime cannot be restarted: {error}")
        if outcome.kind == "corrupted state":
            self._drop()
        elif not due:
            self._latest_fine.append(_Suspect(name, trial, seconds))
        elif len(self._suspects) < _MAX_SUSPECTS:
            self._suspects.append(_Suspect(name, _as_far(trial, outcome), seconds))
        return outcome

    def close(self) -> None:
        """End the process gracefully. A crash at this point amends the outcome of its cause, or adds a note."""
        child, suspects, fine = self._child, self._suspects, list(self._latest_fine)
        self._forget()
        if child is None:
            return
        with child:
            how = self._finish(child)
        if how and not (self._bisect(suspects) or self._bisect(fine)):
            tried = counted(len(suspects) + len(fine), "trial")
            self.notes.append(f"during shutdown, {how}; rerunning {tried} did not reproduce the failure")

    def kill(self) -> None:
        """Kill all processes immediately. Any thread may call this. Waiting callers receive a RuntimeUnusableError."""
        self._is_over = True
        if self._latest is not None:
            self._latest.kill()
        self._drop()
        self._directory.cleanup()

    def _drop(self) -> list[_Suspect]:
        suspects = self._suspects
        if self._child is not None:
            self._child.kill()
        self._forget()
        return suspects

    def _forget(self) -> None:
        self._child, self._suspects, self._used = None, [], False
        self._latest_fine.clear()

    def _start(self) -> Child:
        r"""Start a process and run the sanity calls in it. Drop a sanity call that ends the process or times out."""
        while True:
            if self._is_over:
                raise RuntimeUnusableError(f"the processes of {self._runtime} were killed")
            child = self._latest = Child(self._runtime, self._environment, self._memory)
            if self._is_over:  # set while the child was starting
                child.kill()
                continue
            child.wait_until_ready()
            try:
                for sanity_call in self._sanity_calls:
                    child.request(("sanity call", sanity_call), self._sanity_seconds)
            except (ChildEndedError, ChildHungError) as error:
                child.kill()
                call = f"{sanity_call.call.row.name} of {sanity_call.call.dtype}"
                how = str(error) or f"it timed out after {self._sanity_seconds:g} s"
                self.notes.append(f"{call} cannot be a sanity call: {how}")
                self._sanity_calls = [each for each in self._sanity_calls if each is not sanity_call]
            except BaseException:
                child.kill()
                raise
            else:
                return child

    def _again(self, name: str, trial: Trial, seconds: float, first: Outcome, suspects: list[_Suspect]) -> Outcome:
        """Rerun a trial alone after it ended a shared process, and return its outcome."""
        with self._start() as child:
            outcome, _, ended = _ask(child, trial, seconds, self._repeats)
            how = "" if ended else self._finish(child)
        if ended:
            return outcome
        if how:
            return Outcome("crashed", text=f"during shutdown, {how}")
        if self._bisect(suspects):
            return outcome
        if suspects or first.kind == "hung":  # an earlier error may be the cause, but not this trial
            self.notes.append(f"{name}: {first.text}; the trial does not fail when run alone")
            return outcome
        return replace(first, text=f"{first.text} (the trial does not fail when run alone)")

    def _bisect(self, suspects: Sequence[_Suspect]) -> bool:
        """Bisect the suspects, and amend the outcomes of those that end a process. Return whether there are any.

        Suspects share processes, because there may be hundreds of suspects, and a framework takes seconds to start.
        """
        if not suspects or not (how := self._fatal(suspects)):
            return False
        if len(suspects) == 1:
            self.amended[suspects[0].name] = Outcome("crashed", text=how)
            return True
        middle = len(suspects) // 2
        first = self._bisect(suspects[:middle])
        return self._bisect(suspects[middle:]) or first

    def _fatal(self, suspects: Sequence[_Suspect]) -> str:
        """Return how a process that runs these trials ends, or "" if it ends gracefully."""
        with self._start() as child:
            for suspect in suspects:
                outcome, _, ended = _ask(child, suspect.trial, suspect.seconds, self._repeats)
                if ended:
                    return outcome.text
            how = self._finish(child)
        return f"after the call, {how}" if how else ""

    def _finish(self, child: Child) -> str:
        """Shut a process down and return how it ended, or "" if it ended gracefully or if idle processes also fail."""
        how = child.shut_down()
        if how and self._always_ends is None:
            with self._start() as idle:
                self._always_ends = idle.shut_down()
            if self._always_ends:
                self.notes.append(f"during shutdown, {self._always_ends}, regardless of the calls")
        return "" if self._always_ends else how


def _ask(child: Child, trial: Trial, seconds: float, repeats: int) -> tuple[Outcome, bool, bool]:
    """Return the outcome, whether the call failed or should fail, and whether the process ended."""
    try:
        outcome, due = child.request(("trial", trial, repeats), seconds)
    except ChildEndedError as error:
        return Outcome("crashed", text=str(error)), True, True
    except ChildHungError:
        child.kill()
        return Outcome("hung", text=f"timed out after {seconds:g} s"), True, True
    if not due:
        return outcome, False, False
    try:
        wrong = child.response(seconds)
    except ChildEndedError as error:
        return Outcome("crashed", text=f"after the call, {error}"), True, True
    except ChildHungError:
        child.kill()
        return Outcome("hung", text=f"the next sanity call timed out after {seconds:g} s"), True, True
    if wrong:
        return replace(outcome, kind="corrupted state", text=f"{outcome.text}; {wrong}".lstrip("; ")), True, False
    return outcome, True, False


def _as_far(trial: Trial, outcome: Outcome) -> Trial:
    """Return the trial without the feeds that follow the failing feed, because the failure does not need them."""
    if outcome.kind == "returned":
        return trial
    return replace(trial, feeds=trial.feeds[: outcome.feed + 1], expected=None, without_nan=())
