"""Times two candidates alternately, A B A B ..., and compares adjacent samples.

Load on the machine slows both samples of a pair.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from timeit import Timer
from typing import Any

import numpy as np

from maxops.bench.grid import Case
from maxops.plan import Array

SAMPLE_SECONDS = 0.001  # much longer than the clock's resolution, and shorter than a time slice of the scheduler
MAX_SAMPLES, MIN_PAIRS = 401, 5
EXTRA_SAMPLES, SHORT_SECONDS = 3, 0.02  # extra samples for calls that are shorter than SHORT_SECONDS
MAX_REASON_LENGTH = 160

Json = dict[str, Any]


class UnsupportedError(Exception):
    """Raised if a library does not support a call. The table shows the message as the reason."""


def one_line(error: Exception) -> str:
    """Return the text of an error as one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, UnsupportedError) and type(error).__name__ not in text:
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= MAX_REASON_LENGTH else f"{text[: MAX_REASON_LENGTH - 3]}..."


@dataclass(frozen=True)
class Candidate:
    """A timed Python expression with its names. The conversion of its result by `to_numpy` is not timed.

    `other_input` names an input of the call that the operator itself does not have. A call with another input does less
    work, so it is shown but not compared.
    """

    code: str
    names: Mapping[str, Any]
    to_numpy: Callable[[Any], Any] = np.asarray
    other_input: str = ""

    def result(self, case: Case) -> Array:
        """Run the candidate once, and return a copy of its result as an array."""
        array = np.asarray(self.to_numpy(eval(self.code, dict(self.names))))
        if array.ndim == 0 and array.dtype != case.dtype.numpy:
            array = array.astype(case.dtype.numpy)  # a Python scalar, which represents the value exactly
        # copied, because the next run may overwrite it
        return array.reshape(case.shape).copy() if array.size == np.prod(case.shape, dtype=int) else array.copy()


class Stopwatch:
    """Times a candidate with timeit while the garbage collector is off."""

    def __init__(self, candidate: Candidate) -> None:
        self._timer = Timer(candidate.code, timer=perf_counter, globals=dict(candidate.names))
        self.times: int = 1

    def seconds(self) -> float:
        """Return the time per call in seconds, measured over a sample of calls."""
        return self._timer.timeit(self.times) / self.times

    def warm_up(self, sample_seconds: float = SAMPLE_SECONDS) -> float:
        """Choose how many calls take about `sample_seconds`, and return the time per call in seconds."""
        self.times = 1
        while (once := self.seconds()) * self.times < sample_seconds / 2:
            self.times = min(self.times * 16, max(int(sample_seconds / max(once, 1e-9)), self.times * 2))
        return once


def fastest(candidate: Candidate) -> float:
    """Return the shortest time per call in seconds, which other load affects least. Short calls get extra samples."""
    watch = Stopwatch(candidate)
    first = watch.warm_up()
    return min(first, *(watch.seconds() for _ in range(EXTRA_SAMPLES))) if first < SHORT_SECONDS else first


def paired(ours: Any, theirs: Any, seconds: float) -> Json:
    """Measure the speedup from alternating samples. Stay within a budget of seconds, but take at least MIN_PAIRS pairs.

    Both arguments are stopwatches, or have the methods of a stopwatch.
    """
    sample = min(SAMPLE_SECONDS, seconds / (4 * MIN_PAIRS))  # shorter samples for a small budget
    for watch in (ours, theirs):
        watch.warm_up(sample)
    pairs: list[tuple[float, float]] = []
    end = perf_counter() + seconds
    while len(pairs) < MIN_PAIRS or (perf_counter() < end and len(pairs) < MAX_SAMPLES):
        pairs.append((ours.seconds(), theirs.seconds()))
    return figures(pairs)


def figures(pairs: list[tuple[float, float]]) -> Json:
    """Return the median seconds per call of both candidates, and the quartiles of the speedup over the pairs."""
    mine, others = zip(*pairs, strict=True)
    quartiles = np.quantile([their / our for our, their in pairs], (0.25, 0.5, 0.75))
    ratio = dict(zip(("low", "median", "high"), map(rounded, quartiles), strict=True))
    seconds = (rounded(statistics.median(each)) for each in (mine, others))
    return dict(zip(("ours", "seconds"), seconds, strict=True)) | {"ratio": ratio, "pairs": len(pairs)}


def rounded(figure: float) -> float:
    """Round a figure to the digits that a clock can resolve, which halves the size of the JSON."""
    return float(f"{figure:.7g}")
