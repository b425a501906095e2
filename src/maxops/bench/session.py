"""Measures every case against every library and the memory bandwidth, and returns the run as JSON."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import perf_counter

from maxops import _native
from maxops.bench import libraries, limits
from maxops.bench.grid import Case
from maxops.bench.inputs import Work, bits, build, expected_result, same_bits
from maxops.bench.libraries import LIBRARIES
from maxops.bench.report import FORMAT
from maxops.bench.timing import Candidate, Json, Stopwatch, UnsupportedError, fastest, figures, one_line, paired
from maxops.machine import machine
from maxops.plan import Array

SECONDS, QUICK_SECONDS = 0.3, 0.02
# A library is timed in pairs if its first sample takes less than this multiple of the fastest correct library's time.
CONTENDER = 3.0
# A long call is skipped above this multiple of the fastest correct library's time at the previous size.
HOPELESS, LONG_SECONDS = 5.0, 0.1
KEEP_EVERY_SECONDS = 60.0
LARGE_BYTES = 10**7  # above this, garbage is collected after each case

Verdict = tuple[Json, Candidate | None]  # the JSON of a candidate, and the candidate if it runs


class Session:
    """Measures cases with the installed libraries. `seconds` is the time budget for a pair of candidates."""

    def __init__(self, names: Sequence[str], threads: int, seconds: float, cases: Sequence[Case]) -> None:
        self.names: Sequence[str] = names
        self.seconds: float = seconds
        self.about: Json = {}
        self._started: dict[str, libraries.Names] = {}
        # by operator, family, type and library: the multiple of the best time and the seconds per element at the
        # previous size
        self._before: dict[tuple[str, ...], tuple[float, float]] = {}
        for name in names:
            self.about[name] = {"status": "not installed", "version": "", "reason": ""}
            try:
                self._started[name] = LIBRARIES[name].start(threads)
                version = getattr(sys.modules[LIBRARIES[name].name], "__version__", "")
                self.about[name] |= {"status": "installed", "version": version}
            except ModuleNotFoundError as error:
                self.about[name]["reason"] = f"not installed: {error.name}"
            except Exception as error:  # noqa: BLE001  (a package that fails to import counts as missing)
                self.about[name]["reason"] = one_line(error)
        self.limits: limits.Limits | str  # the limits, or the reason why they cannot be measured
        try:
            read, written = max(case.bytes_read for case in cases), max(case.bytes_written for case in cases)
            self.limits = limits.Limits(read, written, threads)
        except UnsupportedError as error:
            self.limits = str(error)

    def measure(self, case: Case) -> Json:
        """Time one case: take a sample of every library, then time maxops in pairs with the fastest libraries."""
        work = build(case)
        expected = expected_result(work)
        own = libraries.ours(work)
        mine, _ = judge(own, own, case, expected)
        # Other libraries cannot compute with PyTorch's tensors.
        names = [name for name in self.names if case.spelling != "torch-tensors" or name == "torch"]
        verdicts = [(name, each) for name in names for each in self._verdicts(name, work, expected, own)]
        best = min((entry["seconds"] for _, (entry, _) in verdicts if entry["status"] == "correct"), default=0.0)
        row: Json = {"id": case.id, "operator": case.operator, "family": case.family, "type": str(case.dtype)}
        row |= {"size": case.size, "bytes_read": case.bytes_read, "bytes_written": case.bytes_written}
        row |= {"ours": {"status": mine["status"], "reason": mine["reason"]}, "libraries": {}}
        for name, (entry, candidate) in verdicts:
            key = name
            if candidate is not None:
                # the time budget is for the fastest candidates; one sample of each other candidate is enough
                times = entry["seconds"] / best if best else 1.0
                self._before[case.operator, case.family, str(case.dtype), name] = times, entry["seconds"] / case.size
                if times < CONTENDER:
                    entry.update(self._paired(own, candidate))
                key += f": {candidate.code}" * (entry["status"] == "other input")
            row["libraries"][key] = entry
        row["limit"] = self._limit(case, own)
        seconds = [entry.pop("ours") for entry in (*row["libraries"].values(), row["limit"]) if "ours" in entry]
        row["ours"]["seconds"] = sorted(seconds or [mine["ours"]])[len(seconds) // 2]
        # compared again after many runs, because a result that is only sometimes correct is wrong
        if mine["status"] == "correct" and not same_bits(own.result(case), expected):
            row["ours"] |= {"status": "wrong", "reason": "correct at first, wrong after timing"}
        correct = {name: entry["ratio"] for name, entry in row["libraries"].items() if entry["status"] == "correct"}
        row["fastest"] = min(correct, key=lambda name: float(correct[name]["median"]), default=None)
        row["ratio"] = correct.get(row["fastest"])
        return row

    def _verdicts(self, name: str, work: Work, expected: Array, own: Candidate) -> list[Verdict]:
        """Return the verdicts on a library's best candidate, and on its candidates with other inputs."""
        case = work.case
        if name not in self._started:
            return [({"status": "not installed", "reason": self.about[name]["reason"]}, None)]
        times, each = self._before.get((case.operator, case.family, str(case.dtype), name), (0.0, 0.0))
        if times > HOPELESS and each * case.size > LONG_SECONDS:
            why = f"skipped: took {times:.0f} times as long as the fastest correct library at the previous size"
            return [({"status": "skipped", "reason": why}, None)]
        try:
            candidates = LIBRARIES[name].candidates(self._started[name], work)
        except Exception as error:  # noqa: BLE001  (any error means that the library does not support the call)
            return [({"status": "unsupported", "reason": one_line(error)}, None)]
        verdicts = [judge(candidate, own, case, expected) for candidate in candidates]
        order = ("correct", "wrong", "unsupported")
        compared = [verdict for verdict in verdicts if verdict[0]["status"] in order]
        compared.sort(key=lambda verdict: (order.index(verdict[0]["status"]), verdict[0].get("seconds", 0.0)))
        return compared[:1] + [verdict for verdict in verdicts if verdict[0]["status"] == "other input"]

    def _limit(self, case: Case, own: Candidate) -> Json:
        """Return the fastest sweep over the case's bytes. All are timed, because load affects which is fastest."""
        if isinstance(self.limits, str):
            return {"status": "not measured", "reason": self.limits}
        try:
            candidates = self.limits.candidates(case)
        except UnsupportedError as error:
            return {"status": "unsupported", "reason": str(error)}
        timed: list[Json] = [{"candidate": name} | self._paired(own, each, 0.5) for name, each in candidates.items()]
        return {"status": "correct", "reason": ""} | min(timed, key=lambda entry: float(entry["ratio"]["median"]))

    def _paired(self, own: Candidate, other: Candidate, share: float = 1.0) -> Json:
        return paired(Stopwatch(own), Stopwatch(other), self.seconds * share)


def judge(candidate: Candidate, own: Candidate, case: Case, expected: Array) -> Verdict:
    """Run a candidate once, compare its result bit for bit with the expected result, and time it and maxops.

    The times are from one sample of the candidate and one sample of maxops.
    """
    try:
        result = candidate.result(case)
    except Exception as error:  # noqa: BLE001  (as above)
        return {"status": "unsupported", "reason": f"{candidate.code}: {one_line(error)}"}, None
    status, reason = "wrong", f"{candidate.code}: returns {result.dtype} of shape {result.shape}"
    if same_bits(result, expected):
        status, reason = "other input" if candidate.other_input else "correct", candidate.other_input
    elif (result.dtype, result.shape) == (expected.dtype, expected.shape):
        count = int((bits(result) != bits(expected)).sum())
        reason = f"{candidate.code}: {count} of {expected.size} elements differ"
    sample = figures([(fastest(own), fastest(candidate))])
    return {"status": status, "reason": reason, "candidate": candidate.code} | sample, candidate


def run(
    cases: Sequence[Case],
    names: Sequence[str],
    threads: int,
    *,
    seconds: float = SECONDS,
    quick: bool = False,
    command: str = "maxops bench",
    done: Callable[[str, Json | None], None] = lambda text, measured: None,
    keep: Callable[[Json], None] = lambda run: None,
) -> Json:
    """Measure cases, and return the run as JSON.

    `done` is called with the name of each stage and with each case. `keep` receives the partial run at most once a
    minute. Ctrl-C during the cases ends the run, and the finished cases are kept.
    """
    began = datetime.now(UTC)
    done("importing the libraries", None)
    session = Session(names, threads, seconds, cases)
    result: Json = {"format": FORMAT, "began": began.isoformat(timespec="seconds"), "command": command, "quick": quick}
    result |= {
        "seconds_per_pair": seconds,
        "machine": machine(threads) | {"core": _native.build()["sources"]},
        "libraries": session.about,
        "cases": [],
    }
    kept = perf_counter()
    try:
        for number, case in enumerate(cases):
            done(f"{number + 1} of {len(cases)}: {case.id}", None)
            result["cases"].append(session.measure(case))
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
