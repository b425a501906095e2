"""A scaling model of the thread pool, fitted here, for machines with more cores; and cost over five decades of bytes.

The model. A call of B bytes costs `call` seconds and its bytes at the machine's pace. One core moves `core` bytes a
second, all together `machine` at most. Helpers wake one after another: the first after `wake`, each next one `each`
later, since they pass through one mutex; a helper that wakes late finds fewer chunks left, and no more helpers work
than there are chunks. At the end the last chunk is waited for, half of one on average. Partial results are one element
a chunk and cost nothing that shows. It speaks of memory: what fits into caches is faster than it says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import maxops as mo
from maxops import _native
from maxops.bench.candidate import Candidate
from maxops.bench.measure import fastest

Json = dict[str, Any]

CORES = (1, 2, 4, 8, 16, 32, 64, 128)
PREDICTED_BYTES = (16 * 10**6, 64 * 10**6, 10**9)
POOL_BYTES = 5 * 10**6  # a little past where the pool is used
UNBOUNDED = 10**9  # of chunks: no bound that was seen
DECADES = (10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
QUICK_DECADES = (10**3, 10**4, 10**5)
# A server's socket of today, for machines that are not here: twelve channels of DDR5-4800.
SOCKET_BYTES_PER_SECOND = 460e9


@dataclass(frozen=True)
class Model:
    """What a call costs, in seconds and bytes a second."""

    call: float
    core: float
    machine: float
    wake: float
    each: float
    chunk: float
    most_chunks: int

    def chunks(self, size: float) -> int:
        """How many tasks a call falls into, which is how many threads can work on it."""
        return max(min(int(size / self.chunk), self.most_chunks), 1)

    def seconds(self, size: float, threads: int, machine: float | None = None) -> float:
        """Predict a call that touches `size` bytes.

        >>> model = Model(call=0.0, core=10e9, machine=40e9, wake=0.0, each=0.0, chunk=1e6, most_chunks=10**9)
        >>> round(model.seconds(40e9, 2), 2), round(model.seconds(40e9, 8), 2)
        (2.0, 1.0)
        """
        total = machine or self.machine
        helpers = min(threads, self.chunks(size)) - 1
        if helpers <= 0:
            return self.call + size / min(self.core, total)
        left, now, arrives = size, 0.0, self.wake
        for working in range(1, helpers + 1):  # until the next one has woken
            pace = min(working * self.core, total)
            if left <= pace * (arrives - now):
                break
            left -= pace * (arrives - now)
            now, arrives = arrives, arrives + self.each
        else:
            working = helpers + 1
        pace = min(working * self.core, total)
        last = size / self.chunks(size) / min(self.core, total) / 2
        return self.call + now + left / pace + last


Make = Callable[[int], Candidate]


def _maximum(size: int) -> Candidate:
    count = max(size // 12, 1)
    arrays = [np.full(count, value, np.float32) for value in (1, 2, 0)]
    return Candidate("Max of 2, out=, float32", mo.maximum, tuple(arrays[:2]), {"out": arrays[2]})


def _reduce(size: int) -> Candidate:
    return Candidate("ReduceMax all, float32", mo.reduce_max, (np.full(max(size // 4, 1), 1, np.float32),))


def _segment(size: int) -> Candidate:
    count = max(int(size / 8.4), 1)  # data, 32-bit ids, and a tenth as many results
    data, ids = np.full(count, 1, np.float32), (np.arange(count) // 10).astype(np.int32)
    return Candidate(
        "SegmentMax of 10 rows each, float32", mo.segment_max, (data, ids, int(ids[-1]) + 1), {"fill_mode": "ZERO"}
    )


SUBJECTS: dict[str, Make] = {"Max": _maximum, "ReduceMax": _reduce, "SegmentMax": _segment}


def measure(threads: int, *, quick: bool = False) -> Json:
    """The model with what it was fitted to, its predictions, and the cost of each decade of bytes."""
    before = mo.get_num_threads()
    seconds = 0.005 if quick else 0.3
    sizes = (8 * 10**6,) if quick else (10**8, 2 * 10**8, 4 * 10**8)  # past the caches
    try:
        fitted = {name: _fitted(SUBJECTS[name], threads, sizes, seconds) for name in ("Max", "ReduceMax")}
        mo.set_num_threads(threads)
        decades = {
            name: linearity(make, QUICK_DECADES if quick else DECADES, seconds) for name, make in SUBJECTS.items()
        }
    finally:
        mo.set_num_threads(before)
    return {
        "threads": threads,
        "socket_bytes_per_second": SOCKET_BYTES_PER_SECOND,
        "models": fitted,
        "decades": decades,
    }


def _fitted(make: Make, threads: int, sizes: tuple[int, ...], seconds: float) -> Json:
    points = []
    candidate = make(10**3)
    mo.set_num_threads(1)
    call = fastest(candidate, seconds)
    for size in sizes:
        candidate = make(size)
        for count in [cores for cores in CORES if cores < threads] + [threads]:
            mo.set_num_threads(count)
            points.append({"bytes": size, "threads": count, "seconds": fastest(candidate, seconds)})
    woken = _woken(make, threads, seconds)
    chunk, most = _chunks(make, sizes[-1])
    model = fit(points, woken, call, chunk, most)
    for point in points:
        point["predicted"] = model.seconds(point["bytes"], int(point["threads"]))
    errors = [abs(point["predicted"] / point["seconds"] - 1) for point in points]
    return {
        "model": asdict(model),
        "points": points,
        "woken": woken,
        "mean_error": float(np.mean(errors)),
        "predicted": predictions(model),
    }


def _woken(make: Make, threads: int, seconds: float) -> list[Json]:
    """A call just large enough for the pool, with more and more helpers: on few cores, what each of them costs."""
    candidate, rows = make(POOL_BYTES), []
    for count in sorted({*CORES, threads}):
        mo.set_num_threads(count)
        rows.append({"threads": count, "seconds": fastest(candidate, seconds)})
    return rows


def _tasks(make: Make, size: int) -> int:
    """By the pool's own count."""
    candidate = make(size)
    mo.set_num_threads(2)
    candidate.function(*candidate.args, **candidate.kwargs)
    return max(_native.progress()[1], 1)


def _chunks(make: Make, large: int) -> tuple[float, int]:
    """Bytes of a chunk, and the most chunks that a call falls into if a large call shows such a bound."""
    chunk = POOL_BYTES / _tasks(make, POOL_BYTES)
    most = _tasks(make, large)
    return chunk, most if most < 0.8 * large / chunk else UNBOUNDED


def fit(points: list[Json], woken: list[Json], call: float, chunk: float, most_chunks: int) -> Model:
    """The model's figures from measured points.

    Paces are those of the largest size. Waking is seen in a call just large enough for the pool: w seconds late, one of
    p threads costs it w (p - 1) / p. What each more helper costs is bounded from above by threads past the cores, which
    also have to take turns: the least of those bounds.
    """
    largest = max(point["bytes"] for point in points)

    def pace(threads: int) -> float:
        (point,) = (point for point in points if point["bytes"] == largest and point["threads"] == threads)
        return float(point["bytes"] / max(point["seconds"] - call, 1e-9))

    most = max(int(point["threads"]) for point in points)
    core, machine = pace(1), max(pace(1), pace(most))
    seconds = {int(row["threads"]): row["seconds"] - call for row in woken}
    working = max(most, 2)
    late = (seconds[working] - seconds[1] / working) * working / (working - 1)
    bounds = [(took - seconds[working]) / (count - working) for count, took in seconds.items() if count > working]
    return Model(call, core, machine, max(late, 1e-6), max(min(bounds, default=0.0), 0.0), chunk, most_chunks)


def predictions(model: Model, total: float = SOCKET_BYTES_PER_SECOND) -> list[Json]:
    """Seconds and speedup of calls on 1 to 128 cores of a machine with so much bandwidth in all."""
    rows = []
    for size in PREDICTED_BYTES:
        alone = model.seconds(size, 1, total)
        for cores in CORES:
            seconds = model.seconds(size, cores, total)
            rows.append(
                {
                    "bytes": size,
                    "cores": cores,
                    "seconds": seconds,
                    "speedup": alone / seconds,
                    "share_of_machine": size / seconds / min(cores * model.core, total),
                }
            )
    return rows


def linearity(make: Make, sizes: tuple[int, ...], seconds: float) -> Json:
    """Seconds of each decade, and the slope of log seconds over log bytes: 1 is linear, 2 would be quadratic.

    A line through all would hide the caches and the call's own cost, so both are in the rows.
    """
    rows = []
    for size in sizes:
        best = fastest(make(size), seconds)
        rows.append({"bytes": size, "seconds": best, "seconds_per_byte": best / size})
    slope = np.polyfit(np.log([row["bytes"] for row in rows]), np.log([row["seconds"] for row in rows]), 1)[0]
    return {"what": make(sizes[0]).name, "slope": float(slope), "rows": rows}
