"""Runs a trial twice in this process, and returns its outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maxops import dtypes
from maxops.conformance.case import Call, Feed, Trial
from maxops.conformance.input_buffers import InputBuffers
from maxops.conformance.outcome import Kind, Outcome, same_bits
from maxops.conformance.poison import Memory, patterns
from maxops.conformance.runtimes.runtime import GarbageError, NoResultError, Prepared, Runtime
from maxops.plan import Array


class _FailedError(NoResultError):
    def __init__(self, kind: Kind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def attempt(runtime: Runtime, trial: Trial, memory: Memory) -> Outcome:
    """Run a trial twice, with free memory poisoned by other patterns, the second time in reverse order of feeds."""
    running = _Running(runtime, trial, memory)
    try:
        outputs = running.first()
        again = running.second()
    except NoResultError as error:
        return Outcome(error.kind, text=f"{error}{running.when}", feed=running.feed)
    finally:
        memory.reset()
    for number, (one, other) in enumerate(zip(outputs, again, strict=True)):
        if not same_bits(one, other):
            return Outcome("nondeterministic", tuple(outputs), tuple(again), "two runs differ", number)
    return Outcome("returned", tuple(outputs))


def error_line(error: BaseException) -> str:
    """An error in a line: its type, and the first line of its message that is not a location."""
    try:
        text = str(error)
    except Exception as another:  # noqa: BLE001 - the runtime's own class
        text = f"(its text raises {type(another).__name__})"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # OpenVINO begins with the source locations that an error came through
    first = next((line for line in lines if not line.endswith(":")), lines[0] if lines else "")
    name = type(error).__name__
    return f"{name}: {first}" if first else name


def _call_runtime(function: Callable[..., Any], *arguments: object) -> Any:
    """What the runtime's code returns; whatever it raises is its refusal, also what is no Exception."""
    try:
        return function(*arguments)
    except NoResultError:
        raise
    except SystemExit as error:  # an end of the process, were it not for us
        raise _FailedError("crashed", f"raised SystemExit({error.code!r})") from error
    except BaseException as error:
        raise _FailedError("refused", error_line(error)) from error


class _Running:
    """The two runs of a trial; `feed` is the number of the current feed, or of the one that failed."""

    def __init__(self, runtime: Runtime, trial: Trial, memory: Memory) -> None:
        self._runtime = runtime
        self._call: Call = trial.call
        self._feeds: Sequence[Feed] = trial.feeds
        self._memory = memory
        self._patterns = patterns(trial.call.dtype)
        self._prepared: Prepared | None = None
        self._at_once = type(runtime).run is not Runtime.run
        # the size of a result; of a refused call none is known, and that of the first input is as good as any
        arrays = trial.expected if trial.expected is not None else [feed[0] if feed else None for feed in trial.feeds]
        self._sizes = [0 if array is None else array.nbytes for array in arrays]
        self._other_sizes = {array.nbytes for feed in trial.feeds for array in feed} | set(self._sizes)
        self.feed = 0
        self.when = ""

    def first(self) -> list[Array]:
        return self._run(self._patterns[0], range(len(self._feeds)))

    def second(self) -> list[Array]:
        self.when = ", in a second run on the same arrays"
        if self._call.constants:
            self._prepared = None  # what is computed of constants may be computed early
        return self._run(self._patterns[1], range(len(self._feeds) - 1, -1, -1))

    def _run(self, pattern: int, order: Iterable[int]) -> list[Array]:
        inputs = InputBuffers(self._call, self._feeds, pattern)
        self._memory.poison(pattern)
        for size in self._other_sizes:
            self._memory.poison_cached(size)
        outputs = self._run_at_once(inputs) if self._at_once else self._run_each(inputs, order)
        if (found := inputs.changed()) is not None:
            self.feed, what = found
            raise _FailedError("overwrote", what)
        return outputs

    def _run_at_once(self, inputs: InputBuffers) -> list[Array]:
        self.feed = 0
        result: object = _call_runtime(
            self._runtime.run, self._call, [inputs.feed(number) for number in range(len(self._feeds))]
        )
        if not isinstance(result, list) or len(result) != len(self._feeds):
            raise GarbageError(f"gave {_described(result)} for {len(self._feeds)} feeds")
        outputs = []
        for self.feed, each in enumerate(result):
            outputs.append(_array(each))
        return outputs

    def _run_each(self, inputs: InputBuffers, order: Iterable[int]) -> list[Array]:
        if self._prepared is None:
            self._prepared = _call_runtime(self._runtime.prepare, self._call)
        outputs: list[Any] = [None] * len(self._feeds)
        for number in order:
            self.feed = number
            feed = inputs.feed(number)
            self._memory.poison_cached(self._sizes[number])
            outputs[number] = _array(_call_runtime(self._prepared, feed))
        return outputs


def _array(result: object) -> Array:
    """A copy of a result, for its memory may be the runtime's to use again; NumPy's scalars are of rank 0."""
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        raise GarbageError(f"gave {_described(result)} for 1 output")
    dtype = dtypes.of(result.dtype)
    if dtype is None or (
        dtype is dtypes.REAL and not all(isinstance(each, int | Fraction) for each in result.reshape(-1))
    ):
        raise GarbageError(f"gave an array of {result.dtype}")
    return np.array(result, order="C", copy=True)


def _described(result: object) -> str:
    if isinstance(result, list | tuple):
        return f"a {type(result).__name__} of {len(result)}"
    return "None" if result is None else f"a {type(result).__name__}"
