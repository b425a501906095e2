"""Timing on a CUDA device: interleaved, by events on the stream, beside a copy of as many bytes."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from maxops.bench.gpu import GpuCase, as_array

ROUNDS = 15
# A goal: this part of what a copy of as many bytes reaches.
GOAL = 0.9

COLUMNS = ("case", "ms", "GB/s", "of a copy", "times as fast as", "bits")  # of `row`

Clock = Callable[[Callable[[], Any]], float]


@dataclass(frozen=True)
class Measurement:
    """A case's medians: seconds of ours, of the copy and of each library, or why a library failed."""

    case: str
    bytes: int
    ours: float
    copy: float
    libraries: dict[str, float | str]
    same_bits: bool

    @property
    def of_copy(self) -> float:
        """Our part of the copy's bandwidth."""
        return self.copy / self.ours

    def as_json(self) -> dict[str, Any]:
        """The figures, and the ratio that the goal speaks of."""
        return asdict(self) | {"of_copy": self.of_copy, "goal": GOAL}


def events(function: Callable[[], Any]) -> float:
    """Seconds between two events on the current stream, before and after a call."""
    torch = import_module("torch")
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    function()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000


def measure(case: GpuCase, where: Any, clock: Clock, rounds: int = ROUNDS, warm: int = 2) -> Measurement:
    """Compare the bits with the CPU's, then time every function in each round; medians of all but the `warm` first."""
    same = as_array(case.ours()).tobytes() == case.on_cpu().tobytes()
    candidates: dict[str, Callable[[], Any]] = {"ours": case.ours, "copy": _copy(case.bytes, where)}
    libraries: dict[str, float | str] = {}
    for name, candidate in case.libraries.items():
        try:
            candidate()
        except (RuntimeError, TypeError, ValueError) as error:
            libraries[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        else:
            candidates[name] = candidate
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds + warm):
        for name, candidate in candidates.items():
            taken = clock(candidate)
            if turn >= warm:
                seconds[name].append(taken)
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    ours, copy = middle.pop("ours"), middle.pop("copy")
    return Measurement(case.id, case.bytes, ours, copy, {**libraries, **middle}, same)


def _copy(size: int, where: Any) -> Callable[[], Any]:
    """A copy that reads half of so many bytes and writes the other half."""
    torch = import_module("torch")
    source = torch.ones(max(size // 2, 1), dtype=torch.uint8, device=where)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def row(found: Measurement) -> tuple[str, ...]:
    """A case's line of the table."""
    libraries = [
        f"{name} {value / found.ours:.2f}" if isinstance(value, float) else f"{name}: {value}"
        for name, value in sorted(found.libraries.items())
    ]
    mark = "" if found.of_copy >= GOAL else f" (goal {GOAL})"
    return (
        found.case,
        f"{found.ours * 1e3:.3f}",
        f"{found.bytes / found.ours / 1e9:.0f}",
        f"{found.of_copy:.2f}{mark}",
        ", ".join(libraries) or "no library",
        "same" if found.same_bits else "DIFFERENT",
    )
