"""Runs a trial several times in this process and returns its outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maxops import dtypes
from maxops.conformance import limits
from maxops.conformance.case import Feed, Trial
from maxops.conformance.input_buffers import InputBuffers
from maxops.conformance.judge import differences
from maxops.conformance.outcome import Kind, Outcome, same_bits
from maxops.conformance.poison import Memory, patterns
from maxops.conformance.runtimes.runtime import GarbageError, NoResultError, Prepared, Runtime
from maxops.plan import Array

MAX_DISTINCT = 8  # results kept per trial; further results are kept only if they differ in a new way
MAX_FEEDS_HELD = 16  # with more feeds, the previous result is not checked after each call
REUSES = "each call overwrites the memory of the previous result; copy the result before the next call"


class _FailedError(NoResultError):
    def __init__(self, kind: Kind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def attempt(runtime: Runtime, trial: Trial, memory: Memory, repeats: int = limits.REPEATS) -> Outcome:
    """Run a trial several times, alternating the poison pattern of free memory and the order of the feeds."""
    try:
        return _Running(runtime, trial, memory).outcome(repeats)
    finally:
        memory.reset()


def error_line(error: BaseException) -> str:
    """Return an error on one line: its type and the first line of its message that is not a source location."""
    try:
        text = str(error)
    except Exception as another:  # noqa: BLE001 - the runtime's own class
        text = f"(converting the error to text raises {type(another).__name__})"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # messages of OpenVINO begin with source locations
    first = next((line for line in lines if not line.endswith(":")), lines[0] if lines else "")
    name = type(error).__name__
    return f"{name}: {first}" if first else name


def _call_runtime(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function of the runtime. Treat SystemExit as a crash, and every other error as a refusal."""
    try:
        return function(*arguments)
    except NoResultError:
        raise
    except SystemExit as error:  # would end the process
        raise _FailedError("crashed", f"raised SystemExit({error.code!r})") from error
    except BaseException as error:
        raise _FailedError("refused", error_line(error)) from error


class _Running:
    """Runs a trial several times. `feed` is the number of the current feed or of the feed that failed."""

    def __init__(self, runtime: Runtime, trial: Trial, memory: Memory) -> None:
        self._runtime = runtime
        self._trial, self._call = trial, trial.call
        self._feeds: Sequence[Feed] = trial.feeds
        self._memory = memory
        self._patterns = patterns(trial.call.dtype)
        self._prepared: Prepared | None = None
        self._at_once = type(runtime).run is not Runtime.run
        # the size of each result in bytes, or 0 if the call is invalid
        self._sizes = [0] * len(trial.feeds) if trial.expected is None else [array.nbytes for array in trial.expected]
        self._other_sizes = {array.nbytes for feed in trial.feeds for array in feed} | set(self._sizes)
        self._is_refusal, self._layout = trial.is_refusal, trial.layout
        self._note = ""

    def outcome(self, repeats: int) -> Outcome:
        """Return the outcome of all runs.

        Every run must refuse an invalid call. If a run returns a result instead, the result is the outcome. A wrong
        result is the outcome even if a later run refuses the call.
        """
        distinct: list[list[Array]] = []
        seen: set[frozenset[str]] = set()
        first_error: Outcome | None = None
        for number in range(repeats):
            try:
                outputs = self._run(number)
            except NoResultError as error:
                which = "a second run" if number == 1 else f"run {number + 1}"
                when = f", in {which} on the same arrays" if number else ""
                failed = Outcome(error.kind, text=f"{error}{when}", feed=self.feed)
                if not self._is_refusal and error.kind == "refused" and any(map(self._is_wrong, distinct)):
                    self._note = failed.text
                    break
                if not self._is_refusal or error.kind != "refused":
                    return failed
                first_error = first_error or failed
                continue
            if any(all(map(same_bits, outputs, other)) for other in distinct):
                continue
            if len(distinct) >= MAX_DISTINCT:
                seen = seen or {*map(self._differences, distinct)}
                if (found := self._differences(outputs)) in seen:
                    continue
                seen.add(found)
            distinct.append(outputs)
        if not distinct:
            assert first_error is not None
            return first_error
        first, *others = distinct
        if not others:
            return Outcome("returned", tuple(first), note=self._note)
        differ = (feed for feed, each in enumerate(zip(first, others[0], strict=True)) if not same_bits(*each))
        again = tuple(output for run in others for output in run)
        count = f"{'at least ' * (len(distinct) >= MAX_DISTINCT)}{len(distinct)}"
        text = "two runs differ" if repeats == 2 else f"{count} different results in {repeats} runs"
        return Outcome("nondeterministic", tuple(first), again, text, next(differ, 0))

    def _differences(self, outputs: Sequence[Array]) -> frozenset[str]:
        """Return the kinds of differences from the expected result."""
        expected = self._trial.expected or ()
        each = zip(outputs, expected, self._trial.without_nan or expected, strict=False)
        return frozenset(found.kind for arrays in each for found in differences(*arrays))

    def _is_wrong(self, outputs: Sequence[Array]) -> bool:
        """Return whether a result has a wrong type, a wrong shape or a wrong maximum."""
        return not self._differences(outputs).isdisjoint({"type", "shape", "wrong"})

    def _run(self, number: int) -> list[Array]:
        """Run the trial once. Every second run uses the second pattern and reverses the order of the feeds."""
        self.feed = 0
        if number and self._call.constants:
            self._prepared = None  # runtimes may fold constants while they prepare a call
        pattern = self._patterns[number % 2]
        order = range(len(self._feeds)) if number % 2 == 0 else range(len(self._feeds) - 1, -1, -1)
        inputs = InputBuffers(self._call, self._feeds, pattern, self._layout)
        self._memory.poison(pattern)
        for size in self._other_sizes:
            self._memory.poison_cached(size)
        try:
            outputs = self._run_at_once(inputs) if self._at_once else self._run_each(inputs, order)
        except NoResultError as error:
            if error.kind != "crashed" and (found := inputs.changed()) is not None:
                raise _FailedError("overwrote", f"{found[1]} before raising an error: {error}") from error
            raise
        if (found := inputs.changed()) is not None:
            self.feed, what = found
            raise _FailedError("overwrote", what)
        return outputs

    def _run_at_once(self, inputs: InputBuffers) -> list[Array]:
        result: object = _call_runtime(
            self._runtime.run, self._call, [inputs.feed(number) for number in range(len(self._feeds))]
        )
        if not isinstance(result, list) or len(result) != len(self._feeds):
            raise GarbageError(f"expected a list of {len(self._feeds)} results, got {_described(result)}")
        outputs = []
        for self.feed, each in enumerate(result):
            outputs.append(_array(each))
        return outputs

    def _run_each(self, inputs: InputBuffers, order: Iterable[int]) -> list[Array]:
        if self._prepared is None:
            self._prepared = _call_runtime(self._runtime.prepare, self._call)
        outputs: list[Any] = [None] * len(self._feeds)
        before: tuple[object, Array] | None = None
        for number in order:
            self.feed = number
            feed = inputs.feed(number)
            self._memory.poison_cached(self._sizes[number])
            result = _call_runtime(self._prepared, feed)
            outputs[number] = _array(result)
            if len(self._feeds) <= MAX_FEEDS_HELD:
                if before is not None and not same_bits(_array(before[0]), before[1]):
                    self._note = REUSES
                before = result, outputs[number]
        return outputs


def _array(result: object) -> Array:
    """Return a copy of a result as an array, because the runtime may reuse the memory. Scalars become 0-D arrays."""
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        raise GarbageError(f"expected an array, got {_described(result)}")
    dtype = dtypes.of(result.dtype)
    if dtype is None or (
        dtype is dtypes.REAL and not all(isinstance(each, int | Fraction) for each in result.reshape(-1))
    ):
        raise GarbageError(f"returned an array of the unsupported dtype {result.dtype}")
    return np.array(result)


def _described(result: object) -> str:
    if isinstance(result, list | tuple):
        return f"a {type(result).__name__} of length {len(result)}"
    return "None" if result is None else f"an object of type {type(result).__name__}"
