"""Trials that the tests of the kit's processes run."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from broken_backends import BAD
from maxops import dtypes, spec
from maxops.conformance.case import Call, Input, Trial
from maxops.conformance.outcome import Outcome
from maxops.conformance.runtimes.runtime import Prepared, Runtime
from maxops.dtypes import DType
from maxops.plan import Array


def call_of(dtype: DType = dtypes.FLOAT32, constant: Array | None = None) -> Call:
    return Call(spec.MAX_13, (Input("a", dtype, (None,)), Input("b", dtype, (None,), constant)), rank=1)


def trial_of(*firsts: float, size: int = 4, refusal: bool = False, second: float = 1) -> Trial:
    """Return a trial with one feed for each of the given first elements."""
    feeds = []
    for first in firsts:
        a = np.arange(size, dtype=np.float32)
        a[:2] = first, second
        feeds.append((a, np.full(size, 2, np.float32)))
    expected = None if refusal else tuple(np.maximum(*feed) for feed in feeds)
    return Trial(call_of(), tuple(feeds), expected)


GOOD = trial_of(1.0)
WRONG = trial_of(1.0, BAD)
SANITY_CALLS = [trial_of(5.0, size=3)]


class Does(Runtime):
    """A runtime that calls the same function for each feed."""

    name = "does"

    def __init__(self, run: Prepared) -> None:
        self._run = run

    def prepare(self, call: Call) -> Prepared:
        return self._run


def returned(outcome: Outcome, trial: Trial) -> bool:
    assert trial.expected is not None
    return outcome.kind == "returned" and all(map(np.array_equal, outcome.outputs, trial.expected))


def ends(pid: int) -> bool:
    """Return whether a killed process ends soon. The system may take a while."""
    deadline = time.monotonic() + 30
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def alive(pid: int) -> bool:
    """Return whether a process is running. A zombie does not count."""
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
