"""What a rule says of a node: holds, broken, or not to be known before a run."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["holds", "broken", "unknown"]


class Ruling(NamedTuple):
    """A verdict and its reason; `by_run` where no model, however much it tells, shows more before it runs."""

    verdict: Verdict
    message: str
    by_run: bool = False


def holds(message: str) -> Ruling:
    """The clause holds, for this reason."""
    return Ruling("holds", message)


def broken(message: str) -> Ruling:
    """The clause is broken, in this way."""
    return Ruling("broken", message)


def unknown(message: str) -> Ruling:
    """The model leaves open whether the clause holds."""
    return Ruling("unknown", message)


def by_run(message: str) -> Ruling:
    """The clause speaks of values that only a run has."""
    return Ruling("unknown", message, True)
