"""The verdict of a rule on a node: holds, broken, or unknown statically."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["holds", "broken", "unknown"]


class Ruling(NamedTuple):
    """A verdict and its reason; `at_run_time` if no model, whatever it declares, can show it statically."""

    verdict: Verdict
    message: str
    at_run_time: bool = False


def holds(message: str) -> Ruling:
    """The clause holds, for this reason."""
    return Ruling("holds", message)


def broken(message: str) -> Ruling:
    """The clause is broken, in this way."""
    return Ruling("broken", message)


def unknown(message: str) -> Ruling:
    """The model leaves open whether the clause holds."""
    return Ruling("unknown", message)


def at_run_time(message: str) -> Ruling:
    """The clause is about values, which are known at run time only."""
    return Ruling("unknown", message, True)
