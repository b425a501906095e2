"""Timing on a CUDA device: every way in turn, by events on the stream, beside a copy of as many bytes."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from maxops.bench.gpu import Cell, as_array

ROUNDS = 15
# A goal: this part of what a copy of as many bytes reaches.
GOAL = 0.9

Clock = Callable[[Callable[[], Any]], float]


@dataclass(frozen=True)
class Found:
    """A cell's figures: seconds of ours, of the copy and of each peer; a peer that failed has its reason instead."""

    cell: str
    bytes: int
    ours: float
    copy: float
    peers: dict[str, float | str]
    same_bits: bool

    @property
    def of_copy(self) -> float:
        """Our part of the copy's bandwidth."""
        return self.copy / self.ours

    def as_json(self) -> dict[str, Any]:
        """The figures, and the ratio that the goal speaks of."""
        return asdict(self) | {"of_copy": self.of_copy, "goal": GOAL}


def events(way: Callable[[], Any]) -> float:
    """Seconds between two events on the current stream, before and after a call."""
    torch = import_module("torch")
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    way()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000


def measure(cell: Cell, where: Any, clock: Clock, rounds: int = ROUNDS, warm: int = 2) -> Found:
    """Compare the bits with the CPU's, then time every way in each round; medians of all but the `warm` first."""
    same = as_array(cell.ours()).tobytes() == cell.on_cpu().tobytes()
    ways: dict[str, Callable[[], Any]] = {"ours": cell.ours, "copy": _copy(cell.bytes, where)}
    peers: dict[str, float | str] = {}
    for name, way in cell.peers.items():
        try:
            way()
        except (RuntimeError, TypeError, ValueError) as error:
            peers[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        else:
            ways[name] = way
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + warm):
        for name, way in ways.items():
            taken = clock(way)
            if turn >= warm:
                seconds[name].append(taken)
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    ours, copy = middle.pop("ours"), middle.pop("copy")
    return Found(cell.id, cell.bytes, ours, copy, {**peers, **middle}, same)


def _copy(size: int, where: Any) -> Callable[[], Any]:
    """A copy that reads half of so many bytes and writes the other half."""
    torch = import_module("torch")
    source = torch.ones(max(size // 2, 1), dtype=torch.uint8, device=where)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def columns() -> tuple[str, ...]:
    """What the table's columns are."""
    return ("cell", "ms", "GB/s", "of a copy", "times as fast as", "bits")


def row(found: Found) -> tuple[str, ...]:
    """A cell's line of the table."""
    peers = [
        f"{name} {value / found.ours:.2f}" if isinstance(value, float) else f"{name}: {value}"
        for name, value in sorted(found.peers.items())
    ]
    mark = "" if found.of_copy >= GOAL else f" (goal {GOAL})"
    return (
        found.cell,
        f"{found.ours * 1e3:.3f}",
        f"{found.bytes / found.ours / 1e9:.0f}",
        f"{found.of_copy:.2f}{mark}",
        ", ".join(peers) or "no peer",
        "same" if found.same_bits else "DIFFERENT",
    )
