"""What came of a trial at a runtime, before anybody judges it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from maxops.plan import Array

Kind = Literal[
    "gave",  # arrays, one a feed
    "refused",  # an error of the runtime's own; `text` has its words
    "garbage",  # something that is no array, or not one of them
    "overwrote",  # its inputs, or what lies beside them, whatever it gave
    "crashed",  # the process ended; `text` says how
    "hung",  # it did not come back in time
    "unstable",  # two runs on the same arrays differ: memory that nobody wrote is in the result
    "poisoned",  # after an error of this trial, a call that was right before fails, or ends the process
    "not applicable",  # the runtime has nothing that means this call
]


@dataclass(frozen=True)
class Outcome:
    """`outputs` has one array a feed where the runtime gave them, and `again` those of the second run if unstable.

    `feed` is the number of the feed at which it came to another end.
    """

    kind: Kind
    outputs: tuple[Array, ...] = ()
    again: tuple[Array, ...] = ()
    text: str = ""
    feed: int = 0
