"""A trial at a runtime, in this process: run twice, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maxops import dtypes
from maxops.conformance.case import Call, Feed, Trial
from maxops.conformance.given import Given
from maxops.conformance.outcome import Kind, Outcome
from maxops.conformance.poison import Memory, patterns
from maxops.conformance.runtimes.runtime import (
    GarbageError,
    NotApplicableError,
    Prepared,
    ProcessEndedError,
    ProcessHungError,
    Runtime,
)
from maxops.plan import Array


class _EndedError(Exception):
    """The runtime came to another end than a result."""

    def __init__(self, kind: Kind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def attempt(runtime: Runtime, trial: Trial, memory: Memory) -> Outcome:
    """Run a trial twice, with other bytes in free memory, the second time from the last feed to the first."""
    running = _Running(runtime, trial, memory)
    try:
        outputs = running.first()
        again = running.second()
    except _EndedError as error:
        return Outcome(error.kind, text=f"{error}{running.when}", feed=running.feed)
    finally:
        memory.leave()
    for number, (one, other) in enumerate(zip(outputs, again, strict=True)):
        if not same_bits(one, other):
            return Outcome("unstable", tuple(outputs), tuple(again), "two runs differ", number)
    return Outcome("gave", tuple(outputs))


def words(error: BaseException) -> str:
    """An error in a line: its type, and the first line of its text that says something."""
    try:
        text = str(error)
    except Exception as another:  # noqa: BLE001 - the runtime's own class
        text = f"(its text raises {type(another).__name__})"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # OpenVINO begins with the places in its source that an error came through
    first = next((line for line in lines if not line.endswith(":")), lines[0] if lines else "")
    name = type(error).__name__
    return f"{name}: {first}" if first else name


def _asked(function: Callable[..., Any], *arguments: object) -> Any:
    """What the runtime's code returns; whatever it raises is its refusal, also what is no Exception."""
    try:
        return function(*arguments)
    except NotApplicableError as error:
        raise _EndedError("not applicable", str(error)) from error
    except GarbageError as error:
        raise _EndedError("garbage", str(error)) from error
    except ProcessHungError as error:
        raise _EndedError("hung", str(error)) from error
    except ProcessEndedError as error:
        raise _EndedError("crashed", str(error)) from error
    except SystemExit as error:  # an end of the process, were it not for us
        raise _EndedError("crashed", f"raised SystemExit({error.code!r})") from error
    except BaseException as error:
        raise _EndedError("refused", words(error)) from error


def same_bits(one: Array, other: Array) -> bool:
    """Whether two results are the same in every bit; rationals in every value."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(one.tolist() == other.tolist() if one.dtype.hasobject else one.tobytes() == other.tobytes())


class _Running:
    """The two runs of a trial; `feed` is the number of the feed that is at work, or was when it failed."""

    def __init__(self, runtime: Runtime, trial: Trial, memory: Memory) -> None:
        self._runtime = runtime
        self._call: Call = trial.call
        self._feeds: Sequence[Feed] = trial.feeds
        self._memory = memory
        self._patterns = patterns(trial.call.dtype)
        self._prepared: Prepared | None = None
        self._at_once = type(runtime).run is not Runtime.run
        # the size of a result; of a refused call none is known, and that of the first input is as good as any
        arrays = trial.wanted if trial.wanted is not None else [feed[0] if feed else None for feed in trial.feeds]
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
        given = Given(self._call, self._feeds, pattern)
        self._memory.fill(pattern)
        for size in self._other_sizes:
            self._memory.fill_kept(size)
        outputs = self._run_at_once(given) if self._at_once else self._run_each(given, order)
        if (found := given.changed()) is not None:
            self.feed, what = found
            raise _EndedError("overwrote", what)
        return outputs

    def _run_at_once(self, given: Given) -> list[Array]:
        self.feed = 0
        came: object = _asked(self._runtime.run, self._call, [given.feed(number) for number in range(len(self._feeds))])
        if not isinstance(came, list) or len(came) != len(self._feeds):
            raise _EndedError("garbage", f"gave {_described(came)} for {len(self._feeds)} feeds")
        outputs = []
        for self.feed, each in enumerate(came):
            outputs.append(_array(each))
        return outputs

    def _run_each(self, given: Given, order: Iterable[int]) -> list[Array]:
        if self._prepared is None:
            self._prepared = _asked(self._runtime.prepare, self._call)
        outputs: list[Any] = [None] * len(self._feeds)
        for number in order:
            self.feed = number
            feed = given.feed(number)
            self._memory.fill_kept(self._sizes[number])
            outputs[number] = _array(_asked(self._prepared, feed))
        return outputs


def _array(came: object) -> Array:
    """A copy of a result, for its memory may be the runtime's to use again; NumPy's scalars are of rank 0."""
    if isinstance(came, np.generic):
        came = np.asarray(came)
    if not isinstance(came, np.ndarray):
        raise _EndedError("garbage", f"gave {_described(came)} for 1 output")
    dtype = dtypes.of(came.dtype)
    if dtype is None or (
        dtype is dtypes.REAL and not all(isinstance(each, int | Fraction) for each in came.reshape(-1))
    ):
        raise _EndedError("garbage", f"gave an array of {came.dtype}")
    return np.array(came, order="C", copy=True)


def _described(came: object) -> str:
    if isinstance(came, list | tuple):
        return f"a {type(came).__name__} of {len(came)}"
    return "None" if came is None else f"a {type(came).__name__}"
