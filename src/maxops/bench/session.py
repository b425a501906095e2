"""A run: every case against every library and the memory limit, as JSON."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

from maxops.bench import environment, libraries, limits, memory
from maxops.bench.case import Case
from maxops.bench.inputs import Work, bits, build, expected_result, same_bits
from maxops.bench.libraries import LIBRARIES
from maxops.bench.saved import FORMAT, rounded
from maxops.bench.timing import Candidate, Json, Stopwatch, UnsupportedError, fastest, figures, one_line, paired
from maxops.plan import Array

SECONDS, QUICK_SECONDS = 0.3, 0.02
CONTENDER = 3.0  # times the fastest correct library's time, in a first sample
# Times the fastest correct library's time at the size before: then a call that would last long is left out.
HOPELESS, LONG_SECONDS = 5.0, 0.1
KEEP_EVERY_SECONDS = 60.0
LARGE_BYTES = 10**7  # from here on a case's arrays are not left to the collector's own time


@dataclass(frozen=True)
class Verdict:
    """Of a candidate: "correct", "wrong", "other input", "unsupported", "not installed" or "skipped", and why.

    One that ran has a first sample.
    """

    status: str
    reason: str = ""
    candidate: Candidate | None = None
    sample: Json | None = None

    @property
    def seconds(self) -> float:
        """Of its call, in the first sample."""
        return float(self.sample["theirs"]) if self.sample else 0.0


class Session:
    """The libraries that are installed, and those that are not; `seconds` is the budget of a case's pair."""

    def __init__(self, names: Sequence[str], threads: int, seconds: float, cases: Sequence[Case]) -> None:
        self.names, self.seconds = names, seconds
        self.about: Json = {}
        self._started: dict[str, libraries.Names] = {}
        # by operator, family, type and library: how far behind the best, and seconds an element, at the size before
        self._before: dict[tuple[str, ...], tuple[float, float]] = {}
        for name in names:
            self.about[name] = {"status": "not installed", "version": "", "reason": ""}
            try:
                self._started[name] = LIBRARIES[name].start(threads)
                self.about[name] |= {"status": "installed", "version": LIBRARIES[name].version}
            except ModuleNotFoundError as error:
                self.about[name]["reason"] = f"not installed: {error.name}"
            except Exception as error:  # noqa: BLE001  (a package that does not even load is one that is not there)
                self.about[name]["reason"] = one_line(error)
        self.limits, self.limit_missing = None, ""
        try:
            most = [
                max(sizes) for sizes in zip(*((case.bytes_read, case.bytes_written) for case in cases), strict=True)
            ]
            self.limits = limits.Limits(*most, threads)
        except UnsupportedError as error:
            self.limit_missing = str(error)

    def measure(self, case: Case) -> Json:
        """Time one case: first a sample of all, then, in pairs, those libraries that may be the fastest."""
        work = build(case)
        expected = expected_result(work)
        own = libraries.ours(work)
        mine = judge(own, own, case, expected)
        verdicts = [(name, each) for name in self.names for each in self._verdicts(name, work, expected, own)]
        best = min((each.seconds for _, each in verdicts if each.status == "correct"), default=0.0)
        row: Json = {
            "id": case.id,
            "operator": case.operator,
            "family": case.family,
            "type": str(case.dtype),
            "size": case.size,
            "bytes_read": case.bytes_read,
            "bytes_written": case.bytes_written,
            "ours": {"status": mine.status, "reason": mine.reason},
            "libraries": {},
        }
        seconds: list[float] = []
        for name, verdict in verdicts:
            entry: Json = {"status": verdict.status, "reason": verdict.reason}
            key = name
            if verdict.candidate is not None and verdict.sample is not None:
                # the budget goes to those who may be the best; of the others the first sample is enough
                times = verdict.seconds / best if best else 1.0
                timed = self._paired(own, verdict.candidate) if times < CONTENDER else verdict.sample
                entry |= {"candidate": verdict.candidate.code} | _entry(timed, seconds)
                self._before[case.operator, case.family, str(case.dtype), name] = (times, verdict.seconds / case.size)
                key += f": {verdict.candidate.code}" * (verdict.status == "other input")
            row["libraries"][key] = entry
        row["limit"] = self._limit(case, own, seconds)
        row["ours"]["seconds"] = sorted(seconds)[len(seconds) // 2] if seconds else Stopwatch(own).warm_up()
        # again, now that many runs have gone by: a result that only sometimes is right is wrong
        if mine.status == "correct" and not same_bits(own.result(case), expected):
            row["ours"] |= {"status": "wrong", "reason": "correct at first, wrong after timing"}
        correct = {name: entry["ratio"] for name, entry in row["libraries"].items() if entry["status"] == "correct"}
        row["fastest"] = min(correct, key=lambda name: float(correct[name]["median"]), default=None)
        row["ratio"] = correct.get(row["fastest"])
        return row

    def _verdicts(self, name: str, work: Work, expected: Array, own: Candidate) -> list[Verdict]:
        """On a library: its fastest correct candidate, or else its fastest wrong one; other inputs apart."""
        case = work.case
        if name not in self._started:
            return [Verdict("not installed", self.about[name]["reason"])]
        times, each = self._before.get((case.operator, case.family, str(case.dtype), name), (0.0, 0.0))
        if times > HOPELESS and each * case.size > LONG_SECONDS:
            return [Verdict("skipped", f"left out: {times:.0f} times the fastest library's time at the previous size")]
        try:
            candidates = LIBRARIES[name].candidates(self._started[name], work)
        except Exception as error:  # noqa: BLE001  (whatever a library raises means that it cannot do it)
            return [Verdict("unsupported", one_line(error))]
        verdicts = [judge(candidate, own, case, expected) for candidate in candidates]
        of = {
            status: [each for each in verdicts if each.status == status]
            for status in ("correct", "wrong", "unsupported")
        }
        best = sorted(of["correct"] or of["wrong"], key=lambda each: each.seconds) or of["unsupported"]
        return [*best[:1], *(each for each in verdicts if each.status == "other input")]

    def _limit(self, case: Case, own: Candidate, seconds: list[float]) -> Json:
        """The fastest of the ways to move the case's bytes: all are timed, since the neighbours' load decides."""
        if self.limits is None:
            return {"status": "not measured", "reason": self.limit_missing}
        try:
            candidates = self.limits.candidates(case)
        except UnsupportedError as error:
            return {"status": "unsupported", "reason": str(error)}
        timed = {name: self._paired(own, candidate, 0.5) for name, candidate in candidates.items()}
        name = min(timed, key=lambda name: float(timed[name]["ratio"]["median"]))
        return {"status": "correct", "reason": "", "candidate": name} | _entry(timed[name], seconds)

    def _paired(self, own: Candidate, other: Candidate, share: float = 1.0) -> Json:
        return paired(Stopwatch(own), Stopwatch(other), self.seconds * share)


def judge(candidate: Candidate, own: Candidate, case: Case, expected: Array) -> Verdict:
    """Run a candidate once, compare bits, and take a first sample beside our own."""
    try:
        result = candidate.result(case)
    except Exception as error:  # noqa: BLE001  (whatever a library raises means that it cannot do it)
        return Verdict("unsupported", f"{candidate.code}: {one_line(error)}")
    sample = figures([(fastest(own), fastest(candidate))])
    if same_bits(result, expected):
        return Verdict("other input" if candidate.other_input else "correct", candidate.other_input, candidate, sample)
    if (result.dtype, result.shape) == (expected.dtype, expected.shape):
        found = f"{int((bits(result) != bits(expected)).sum())} of {expected.size} elements differ"
    else:
        found = f"gives {result.dtype} of shape {result.shape}"
    return Verdict("wrong", f"{candidate.code}: {found}", candidate, sample)


def _entry(timed: Json, seconds: list[float]) -> Json:
    """What JSON has of a pair; our own seconds are gathered."""
    seconds.append(timed["ours"])
    return {"seconds": timed["theirs"], "ratio": timed["ratio"], "pairs": timed["pairs"]}


def run(
    cases: Sequence[Case],
    names: Sequence[str],
    threads: int,
    *,
    seconds: float = SECONDS,
    quick: bool = False,
    command: str = "maxops bench",
    whole: bool = True,
    done: Callable[[str, Json | None], None] = lambda text, measured: None,
    keep: Callable[[Json], None] = lambda run: None,
) -> Json:
    """Measure cases; `whole` adds peaks of memory.

    `done` is called with each stage's name and with each case; `keep` gets what there is once a minute. Ctrl-C among
    the cases ends the run with those that are done.
    """
    began = datetime.now(UTC)
    done("importing the libraries", None)
    session = Session(names, threads, seconds, cases)
    result: Json = {
        "format": FORMAT,
        "began": began.isoformat(timespec="seconds"),
        "command": command,
        "quick": quick,
        "seconds_per_pair": seconds,
        "machine": environment.machine(threads),
        "libraries": session.about,
        "memory": [],
        "cases": [],
    }
    if whole:
        done("peak memory", None)
        result["memory"] = memory.measure(memory.QUICK_CASES if quick else memory.CASES)
    kept = perf_counter()
    try:
        for number, case in enumerate(cases):
            done(f"{number + 1} of {len(cases)}: {case.id}", None)
            result["cases"].append(rounded(session.measure(case)))
            done(case.id, result["cases"][-1])
            if case.bytes_touched > LARGE_BYTES:
                gc.collect()
            if perf_counter() - kept > KEEP_EVERY_SECONDS:
                keep(result)
                kept = perf_counter()
    except KeyboardInterrupt:
        result["interrupted"] = f"after {len(result['cases'])} of {len(cases)} cases"
    result["seconds"] = (datetime.now(UTC) - began).total_seconds()
    return result
