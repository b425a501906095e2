"""The verdict of a rule on a node: holds, broken, or unknown statically."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["holds", "broken", "unknown"]


class Ruling(NamedTuple):
    """A verdict and its reason; `at_run_time` marks a clause that can be decided only at run time."""

    verdict: Verdict
    message: str
    at_run_time: bool = False


def holds(message: str) -> Ruling:
    """Return a ruling that the clause holds, with the reason."""
    return Ruling("holds", message)


def broken(message: str) -> Ruling:
    """Return a ruling that the clause is broken, with the reason."""
    return Ruling("broken", message)


def unknown(message: str) -> Ruling:
    """Return a ruling that the model leaves the clause open, with the reason."""
    return Ruling("unknown", message)


def at_run_time(message: str) -> Ruling:
    """Return a ruling that the clause is about values, which are known only at run time."""
    return Ruling("unknown", message, True)
