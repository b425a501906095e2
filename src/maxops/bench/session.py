"""A run: every case against every library and the memory limit, as JSON."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from maxops.bench import deviations, environment, goals, libraries, limits, ours, peak, scaling
from maxops.bench.candidate import Candidate, UnsupportedError, Work
from maxops.bench.case import Case
from maxops.bench.inputs import build
from maxops.bench.libraries.library import Library
from maxops.bench.limits import Limits
from maxops.bench.measure import Paired, Stopwatch, once, paired, rounded
from maxops.bench.oracle import expected_result, same_bits
from maxops.bench.saved import FORMAT
from maxops.bench.verdict import Verdict, judge, one_line
from maxops.dtypes import DType

SECONDS = 0.3
QUICK_SECONDS = 0.02
CONTENDER = 3.0  # times the fastest correct library's time, in a first sample
# Times the fastest correct library's time at the size before: then a call that would last long is left out.
HOPELESS = 5.0
LONG_SECONDS = 0.1
KEEP_EVERY_SECONDS = 60.0
LARGE_BYTES = 10**7  # from here on a case's arrays are not left to the collector's own time

Json = dict[str, Any]


@dataclass
class Session:
    """The libraries that are installed, and those that are not; `seconds` is the budget of a case's pair."""

    names: Sequence[str]
    threads: int
    seconds: float = SECONDS
    installed: dict[str, Library] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    limits: Limits | None = None
    limit_missing: str = ""
    # how far behind the best, and seconds an element, at the size before
    _before: dict[tuple[str, ...], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            try:
                self.installed[name] = libraries.load(name, self.threads)
            except ModuleNotFoundError as error:
                self.missing[name] = f"not installed: {error.name}"
            except Exception as error:  # noqa: BLE001  (a package that does not even load is one that is not there)
                self.missing[name] = one_line(error)

    def prepare_limits(self, cases: Iterable[Case]) -> None:
        """Buffers for the cases' bytes."""
        chosen = list(cases)
        try:
            read, written = max(case.bytes_read for case in chosen), max(case.bytes_written for case in chosen)
            self.limits = Limits(read, written, self.threads)
        except UnsupportedError as error:
            self.limit_missing = str(error)

    def measure(self, case: Case) -> Json:
        """Time one case of the grid."""
        inputs = build(case)
        work = Work(case, inputs, self.threads)
        expected = expected_result(case, inputs)
        own_candidate = ours.candidate(work)
        (own,) = judge(lambda: [own_candidate], case, expected)
        row: Json = {
            "id": case.id,
            "operator": case.operator,
            "family": case.family,
            "type": str(case.dtype),
            "size": case.size,
            "bytes_read": case.bytes_read,
            "bytes_written": case.bytes_written,
            "band": goals.band(case),
            "ours": {"status": own.status, "reason": own.reason},
            "libraries": {},
            "limit": {"status": "not measured", "reason": self.limit_missing},
        }
        mine: list[float] = []
        verdicts = [(name, verdict) for name in self.names for verdict in self._library(name, work, expected)]
        first_samples = [
            None if verdict.candidate is None else once(own_candidate, verdict.candidate) for _, verdict in verdicts
        ]
        fastest_time = min(
            (
                sample.theirs
                for sample, (_, verdict) in zip(first_samples, verdicts, strict=True)
                if sample and verdict.status == "correct"
            ),
            default=0.0,
        )
        for (name, verdict), sample in zip(verdicts, first_samples, strict=True):
            entry: Json = {"status": verdict.status, "reason": verdict.reason}
            key = name
            if verdict.candidate is not None and sample is not None:
                # the budget goes to those who may be the best; of the others the first sample is enough
                times = sample.theirs / fastest_time if fastest_time else 1.0
                timed = paired(own_candidate, verdict.candidate, self.seconds) if times < CONTENDER else sample
                entry |= {"candidate": verdict.candidate.name, **_figures(timed)}
                mine.append(timed.ours)
                self._before[case.operator, case.family, str(case.dtype), name] = (times, timed.theirs / case.size)
                if verdict.status == "other input":
                    key = f"{name}: {verdict.candidate.name}"
            row["libraries"][key] = entry
        if self.limits is not None:
            row["limit"], seconds = self._limit(self.limits, case, own_candidate)
            mine += [seconds] if seconds else []
        row["ours"]["seconds"] = sorted(mine)[len(mine) // 2] if mine else Stopwatch(own_candidate).warm_up()
        # again, now that many runs have gone by: a result that only sometimes is right is wrong
        if own.status == "correct" and not same_bits(own_candidate.result(case), expected):
            row["ours"] |= {"status": "wrong", "reason": "correct at first, wrong after timing"}
        correct = {name: entry for name, entry in row["libraries"].items() if entry["status"] == "correct"}
        fastest = min(correct, key=lambda name: correct[name]["ratio"]["median"], default=None)
        row["fastest"] = fastest
        row["ratio"] = correct[fastest]["ratio"] if fastest else None
        row["goal"] = goal.name if (goal := goals.of(case)) else None
        row["targets"] = [asdict(target) for target in goals.targets(case)]
        return row

    def _library(self, name: str, work: Work, expected: Any) -> list[Verdict]:
        if name in self.missing:
            return [Verdict("not installed", self.missing[name])]
        case = work.case
        times, each = self._before.get((case.operator, case.family, str(case.dtype), name), (0.0, 0.0))
        if times > HOPELESS and each * case.size > LONG_SECONDS:
            return [Verdict("skipped", f"left out: {times:.0f} times the fastest library's time at the previous size")]
        return judge(lambda: self.installed[name].candidates(work), case, expected)

    def _limit(self, limits: Limits, case: Case, own_candidate: Candidate) -> tuple[Json, float]:
        try:
            candidates = limits.candidates(case)
        except UnsupportedError as error:
            return {"status": "unsupported", "reason": str(error)}, 0.0
        # all of them, since which is fastest depends on the neighbours' load
        timed = {candidate.name: paired(own_candidate, candidate, self.seconds / 2) for candidate in candidates}
        name = min(timed, key=lambda name: timed[name].ratio.median)
        return {"status": "correct", "reason": "", "candidate": name, **_figures(timed[name])}, timed[name].ours

    def find_deviations(self, types: Iterable[DType], operators: Iterable[Any]) -> Json:
        """By library, then operator and type: the special values on which it deviates from the standards."""
        found: Json = {}
        chosen = [(operator, dtype) for operator in operators for dtype in types]
        for name, library in self.installed.items():
            for operator, dtype in chosen:
                differs = deviations.of(library.candidates, operator, dtype, self.threads)
                if differs:
                    found.setdefault(name, {})[f"{operator} {dtype}"] = differs
        return found

    def about_libraries(self) -> Json:
        """Version or absence of each library."""
        installed = {
            name: {"status": "installed", "version": library.version, "reason": ""}
            for name, library in self.installed.items()
        }
        missing = {
            name: {"status": "not installed", "version": "", "reason": reason} for name, reason in self.missing.items()
        }
        return installed | missing


def _figures(timed: Paired) -> Json:
    return {"seconds": timed.theirs, "ratio": asdict(timed.ratio), "pairs": timed.pairs}


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
    """Measure cases; `whole` adds the meaning of libraries, the machine's limits, peak memory and scaling.

    `done` is called with each stage's name and of each case; `keep` gets what there is once a minute. Ctrl-C among the
    cases ends the run with those that are done.
    """
    began = datetime.now(UTC)
    done("importing the libraries", None)
    session = Session(names, threads, seconds)
    session.prepare_limits(cases)
    result: Json = {
        "format": FORMAT,
        "began": began.isoformat(timespec="seconds"),
        "command": command,
        "quick": quick,
        "seconds_per_pair": seconds,
        "machine": environment.machine(threads),
        "libraries": session.about_libraries(),
        "deviations": {},
        "limits": [],
        "memory": [],
        "scaling": None,
    }
    if whole:
        types = list(dict.fromkeys(case.dtype for case in cases))
        operators = list(dict.fromkeys(case.operator for case in cases))
        done("deviations on special values", None)
        result["deviations"] = session.find_deviations(types, operators)
        done("the machine's memory limit", None)
        if session.limits is not None:
            size = 3_000_000 if quick else limits.TABLE_BYTES
            found = limits.table(threads, size=size, seconds=0.1 if quick else 3.0)
            result["limits"] = rounded([asdict(limit) for limit in found])
        done("peak memory", None)
        result["memory"] = peak.measure(*((4_000_000, tuple(peak.CALLS)[:2]) if quick else ()))
        done("threads and sizes", None)
        result["scaling"] = rounded(scaling.measure(threads, quick=quick))
    result["cases"] = []
    kept = perf_counter()
    try:
        for number, case in enumerate(cases):
            done(f"{number + 1} of {len(cases)}: {case.id}", None)
            measured = rounded(session.measure(case))
            result["cases"].append(measured)
            done(case.id, measured)
            if case.bytes_touched > LARGE_BYTES:
                gc.collect()
            if perf_counter() - kept > KEEP_EVERY_SECONDS:
                keep(result)
                kept = perf_counter()
    except KeyboardInterrupt:
        result["interrupted"] = f"after {len(result['cases'])} of {len(cases)} cases"
    result["seconds"] = (datetime.now(UTC) - began).total_seconds()
    return result
