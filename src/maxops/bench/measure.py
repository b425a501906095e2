"""Timing: two candidates in turn, A B A B ..., and the ratios of neighbours, so that a busy machine slows both."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from timeit import Timer
from typing import Any, Protocol

from maxops.bench.candidate import Candidate

DIGITS = 7  # of a figure: more than any clock tells, and half of what a float would be written with
SAMPLE_SECONDS = 0.001  # of calls in one sample: long beside the clock's grain, short beside a scheduler's slice
MAX_SAMPLES = 401
MIN_PAIRS = 5
EXTRA_SAMPLES = 3  # more, at a candidate whose call is shorter than this
SHORT_SECONDS = 0.02


@dataclass(frozen=True)
class Spread:
    """Quartiles."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Paired:
    """Seconds of a call, each candidate's median, and theirs over ours pair by pair."""

    ours: float
    theirs: float
    ratio: Spread
    pairs: int


class Stopwatch:
    """Times a candidate by a compiled loop around the call, as timeit does, with the garbage collector off."""

    def __init__(self, candidate: Candidate) -> None:
        names = {"function": candidate.function}
        names |= {f"a{number}": value for number, value in enumerate(candidate.args)}
        names |= {f"k_{key}": value for key, value in candidate.kwargs.items()}
        arguments = [f"a{number}" for number in range(len(candidate.args))]
        arguments += [f"{key}=k_{key}" for key in candidate.kwargs]
        self._timer = Timer(f"function({', '.join(arguments)})", timer=perf_counter, globals=names)
        self.times: int = 1

    def seconds(self) -> float:
        """Seconds of one call, over a sample of calls."""
        return self._timer.timeit(self.times) / self.times

    def warm_up(self, sample_seconds: float = SAMPLE_SECONDS) -> float:
        """Run until a sample takes long enough; the seconds of one call."""
        self.times = 1
        while (once := self.seconds()) * self.times < sample_seconds / 2:
            self.times = min(self.times * 16, max(int(sample_seconds / max(once, 1e-9)), self.times * 2))
        return once


def fastest(candidate: Candidate, seconds: float) -> float:
    """The least seconds of a call, which no neighbour slowed."""
    watch = Stopwatch(candidate)
    best = watch.warm_up()
    end = perf_counter() + seconds
    while perf_counter() < end:
        best = min(best, watch.seconds())
    return best


def quickest(candidates: Iterable[Candidate]) -> Candidate:
    """The candidate that is fastest in a short trial."""
    chosen = list(candidates)
    if len(chosen) == 1:
        return chosen[0]
    watches = [Stopwatch(candidate) for candidate in chosen]
    seconds = [watch.warm_up() for watch in watches]
    for _ in range(3):
        least = min(seconds)
        for number, watch in enumerate(watches):
            if seconds[number] < 3 * least:
                seconds[number] = min(seconds[number], watch.seconds())
    return chosen[seconds.index(min(seconds))]


def paired(ours: Candidate, theirs: Candidate, seconds: float) -> Paired:
    """Their time over ours, for samples one after the other, within a budget of seconds but at least a few."""
    return paired_watches(Stopwatch(ours), Stopwatch(theirs), seconds)


class Watch(Protocol):
    """What times one candidate, here or in another process."""

    def warm_up(self, sample_seconds: float, /) -> float:
        """Run until a sample takes long enough; the seconds of one call."""

    def seconds(self) -> float:
        """Seconds of one call, over a sample of calls."""


def paired_watches(ours: Watch, theirs: Watch, seconds: float) -> Paired:
    """As `paired`, of candidates that have their watches."""
    watches = ours, theirs
    # short samples where the budget is short
    sample = min(SAMPLE_SECONDS, seconds / (4 * MIN_PAIRS))
    for watch in watches:
        watch.warm_up(sample)
    pairs: list[tuple[float, float]] = []
    end = perf_counter() + seconds
    while len(pairs) < MIN_PAIRS or (perf_counter() < end and len(pairs) < MAX_SAMPLES):
        pairs.append((watches[0].seconds(), watches[1].seconds()))
    mine, others = zip(*pairs, strict=True)
    return Paired(
        statistics.median(mine),
        statistics.median(others),
        spread([their / our for our, their in pairs]),
        len(pairs),
    )


def once(ours: Candidate, theirs: Candidate) -> Paired:
    """One pair: each candidate's minimum of a few samples where they are short, so that no outlier dismisses one."""
    mine, others = (_fastest_of_few(candidate) for candidate in (ours, theirs))
    return Paired(mine, others, spread([others / mine]), 1)


def _fastest_of_few(candidate: Candidate) -> float:
    watch = Stopwatch(candidate)
    seconds = watch.warm_up()
    return min([seconds, *(watch.seconds() for _ in range(EXTRA_SAMPLES if seconds < SHORT_SECONDS else 0))])


def spread(values: list[float]) -> Spread:
    """Quartiles, those of the sample itself."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(low, median, high)


def rounded(figures: Any) -> Any:
    """Figures as a run has them: every float in JSON with so many digits.

    >>> rounded({"seconds": 1.23456789e-07, "pairs": 401})
    {'seconds': 1.234568e-07, 'pairs': 401}
    """
    if isinstance(figures, float):
        return float(f"{figures:.{DIGITS}g}")
    if isinstance(figures, dict):
        return {name: rounded(each) for name, each in figures.items()}
    return [rounded(each) for each in figures] if isinstance(figures, list) else figures
