"""The outcome of a trial on a runtime, before it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from maxops.plan import Array

Kind = Literal[
    "returned",  # one array for each feed
    "refused",  # the runtime raised an error; `text` has its message
    "garbage",  # the result is not one array of a supported dtype
    "overwrote",  # the runtime modified its inputs or adjacent memory
    "crashed",  # the process ended; `text` states how
    "hung",  # no result before the timeout
    "nondeterministic",  # runs on the same inputs differ
    "corrupted state",  # after this trial, a sanity call fails or returns a different result
    "not applicable",  # the runtime cannot express this call
]


@dataclass(frozen=True)
class Outcome:
    """The result of a trial. `outputs` contains one array per feed. `again` contains the outputs of runs that differ.

    `feed` is the number of the feed at which the trial failed. `note` is an observation that is not a fault.
    """

    kind: Kind
    outputs: tuple[Array, ...] = ()
    again: tuple[Array, ...] = ()
    text: str = ""
    feed: int = 0
    note: str = ""

    @property
    def runs(self) -> list[tuple[Array, ...]]:
        """The outputs of the first run, and of each run that differs from all earlier runs."""
        count = len(self.outputs)
        return [self.outputs, *(self.again[start : start + count] for start in range(0, len(self.again), count or 1))]


def same_bits(one: Array, other: Array) -> bool:
    """Return whether two results are bit-identical. Rationals are compared by value."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(one.tolist() == other.tolist() if one.dtype.hasobject else one.tobytes() == other.tobytes())
