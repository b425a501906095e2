"""A run: every case against every peer, the limit beside them, and all of it as JSON."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from maxops.bench import environment, goals, limits, meaning, ours, peak, peers, scaling
from maxops.bench.case import Case
from maxops.bench.inputs import build
from maxops.bench.limits import Limits
from maxops.bench.measure import Paired, Stopwatch, once, paired, rounded
from maxops.bench.oracle import expected, same_bits
from maxops.bench.peers.peer import Peer
from maxops.bench.saved import FORMAT
from maxops.bench.verdict import Verdict, in_words, judge
from maxops.bench.way import RefusedError, Way, Work
from maxops.dtypes import DType

SECONDS = 0.3
QUICK_SECONDS = 0.02
CONTENDER = 3.0  # times the best right peer's time, in a first look
HOPELESS = 5.0  # times the best right peer's time at the size before: then a call that would last long is left out
LONG_SECONDS = 0.1
KEEP_EVERY_SECONDS = 60.0
LARGE_BYTES = 10**7  # from here on a case's arrays are not left to the collector's own time

Json = dict[str, Any]


@dataclass
class Session:
    """Peers that are there, and those that are not; `seconds` is the budget of a cell's pair."""

    names: Sequence[str]
    threads: int
    seconds: float = SECONDS
    here: dict[str, Peer] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    limits: Limits | None = None
    limit_missing: str = ""
    # how far behind the best, and seconds an element, at the size before
    _before: dict[tuple[str, ...], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.names:
            try:
                self.here[name] = peers.load(name, self.threads)
            except ModuleNotFoundError as error:
                self.missing[name] = f"not installed: {error.name}"
            except Exception as error:  # noqa: BLE001  (a package that does not even load is one that is not there)
                self.missing[name] = in_words(error)

    def prepare_limits(self, cases: Iterable[Case]) -> None:
        """Buffers for the cases' bytes."""
        chosen = list(cases)
        try:
            read, written = max(case.bytes_read for case in chosen), max(case.bytes_written for case in chosen)
            self.limits = Limits(read, written, self.threads)
        except RefusedError as error:
            self.limit_missing = str(error)

    def cell(self, case: Case) -> Json:
        """One cell of the grid."""
        inputs = build(case)
        work = Work(case, inputs, self.threads)
        wanted = expected(case, inputs)
        own_way = ours.way(work)
        (own,) = judge(lambda: [own_way], case, wanted)
        row: Json = {
            "case": case.id,
            "operator": case.operator,
            "family": case.family,
            "type": str(case.dtype),
            "size": case.size,
            "bytes_read": case.bytes_read,
            "bytes_written": case.bytes_written,
            "band": goals.band(case),
            "ours": {"status": own.status, "reason": own.reason},
            "peers": {},
            "limit": {"status": "missing", "reason": self.limit_missing},
        }
        mine: list[float] = []
        verdicts = [(name, verdict) for name in self.names for verdict in self._peer(name, work, wanted)]
        looks = [None if verdict.way is None else once(own_way, verdict.way) for _, verdict in verdicts]
        best_look = min(
            (
                look.theirs
                for look, (_, verdict) in zip(looks, verdicts, strict=True)
                if look and verdict.status == "right"
            ),
            default=0.0,
        )
        for (name, verdict), look in zip(verdicts, looks, strict=True):
            entry: Json = {"status": verdict.status, "reason": verdict.reason}
            key = name
            if verdict.way is not None and look is not None:
                # the budget goes to those who may be the best; of the others the first look is enough
                times = look.theirs / best_look if best_look else 1.0
                timed = paired(own_way, verdict.way, self.seconds) if times < CONTENDER else look
                entry |= {"way": verdict.way.name, **_figures(timed)}
                mine.append(timed.ours)
                self._before[case.operator, case.family, str(case.dtype), name] = (times, timed.theirs / case.size)
                if verdict.status == "other input":
                    key = f"{name}: {verdict.way.name}"
            row["peers"][key] = entry
        if self.limits is not None:
            row["limit"], seconds = self._limit(self.limits, case, own_way)
            mine += [seconds] if seconds else []
        row["ours"]["seconds"] = sorted(mine)[len(mine) // 2] if mine else self._alone(own_way)
        # again, now that many runs have gone by: a result that only sometimes is right is wrong
        if own.status == "right" and not same_bits(own_way.result(case), wanted):
            row["ours"] |= {"status": "wrong", "reason": "right at first, wrong after timing"}
        right = {name: entry for name, entry in row["peers"].items() if entry["status"] == "right"}
        best = min(right, key=lambda name: right[name]["ratio"]["median"], default=None)
        row["best"] = best
        row["ratio"] = right[best]["ratio"] if best else None
        row["goal"] = goal.name if (goal := goals.of(case)) else None
        row["targets"] = [asdict(target) for target in goals.targets(case)]
        return row

    def _peer(self, name: str, work: Work, wanted: Any) -> list[Verdict]:
        if name in self.missing:
            return [Verdict("missing", self.missing[name])]
        case = work.case
        times, each = self._before.get((case.operator, case.family, str(case.dtype), name), (0.0, 0.0))
        if times > HOPELESS and each * case.size > LONG_SECONDS:
            return [Verdict("skipped", f"left out: {times:.0f} times the best peer's time at the size before")]
        return judge(lambda: self.here[name].ways(work), case, wanted)

    def _limit(self, limits: Limits, case: Case, own_way: Way) -> tuple[Json, float]:
        try:
            ways = limits.ways(case)
        except RefusedError as error:
            return {"status": "refused", "reason": str(error)}, 0.0
        # all of them, since which is fastest depends on the neighbours' load
        timed = {way.name: paired(own_way, way, self.seconds / 2) for way in ways}
        name = min(timed, key=lambda name: timed[name].ratio.median)
        return {"status": "right", "reason": "", "way": name, **_figures(timed[name])}, timed[name].ours

    def _alone(self, own_way: Way) -> float:
        return Stopwatch(own_way).warm_up()

    def meanings(self, types: Iterable[DType], operators: Iterable[Any]) -> Json:
        """By peer, then operator and type: the values on which it leaves the standards, where it runs at all."""
        found: Json = {}
        chosen = [(operator, dtype) for operator in operators for dtype in types]
        for name, peer in self.here.items():
            for operator, dtype in chosen:
                differs = meaning.differs_on(peer.ways, operator, dtype, self.threads)
                if differs:
                    found.setdefault(name, {})[f"{operator} {dtype}"] = differs
        return found

    def about_peers(self) -> Json:
        """Version or absence of each peer."""
        here = {name: {"status": "here", "version": peer.version, "reason": ""} for name, peer in self.here.items()}
        gone = {name: {"status": "missing", "version": "", "reason": reason} for name, reason in self.missing.items()}
        return here | gone


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
    done: Callable[[str, Json | None], None] = lambda text, cell: None,
    keep: Callable[[Json], None] = lambda run: None,
) -> Json:
    """Measure cases; `whole` adds the meaning of peers, the machine's limits, peak memory and scaling.

    `done` hears of each stage's name and of each cell; `keep` gets what there is once a minute. Ctrl-C among the
    cells ends the run with those that are done.
    """
    began = datetime.now(UTC)
    done("importing the peers", None)
    session = Session(names, threads, seconds)
    session.prepare_limits(cases)
    result: Json = {
        "format": FORMAT,
        "began": began.isoformat(timespec="seconds"),
        "command": command,
        "quick": quick,
        "seconds_per_pair": seconds,
        "machine": environment.machine(threads),
        "peers": session.about_peers(),
        "meaning": {},
        "limits": [],
        "memory": [],
        "scaling": None,
    }
    if whole:
        types = list(dict.fromkeys(case.dtype for case in cases))
        operators = list(dict.fromkeys(case.operator for case in cases))
        done("values on which peers differ", None)
        result["meaning"] = session.meanings(types, operators)
        done("the machine's memory limit", None)
        if session.limits is not None:
            size = 3_000_000 if quick else limits.TABLE_BYTES
            result["limits"] = rounded(limits.as_json(limits.table(threads, size=size, seconds=0.1 if quick else 3.0)))
        done("peak memory", None)
        result["memory"] = peak.measure(*((4_000_000, tuple(peak.CALLS)[:2]) if quick else ()))
        done("threads and sizes", None)
        result["scaling"] = rounded(scaling.measure(threads, quick=quick))
    result["cells"] = []
    kept = perf_counter()
    try:
        for number, case in enumerate(cases):
            done(f"{number + 1} of {len(cases)}: {case.id}", None)
            cell = rounded(session.cell(case))
            result["cells"].append(cell)
            done(case.id, cell)
            if case.bytes_touched > LARGE_BYTES:
                gc.collect()
            if perf_counter() - kept > KEEP_EVERY_SECONDS:
                keep(result)
                kept = perf_counter()
    except KeyboardInterrupt:
        result["interrupted"] = f"after {len(result['cells'])} of {len(cases)} cells"
    result["seconds"] = (datetime.now(UTC) - began).total_seconds()
    return result
