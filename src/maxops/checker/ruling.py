"""The result of checking one clause for one node: "holds", "broken", or "unknown"."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

Verdict = Literal["holds", "broken", "unknown"]


class Ruling(NamedTuple):
    """A verdict and its reason. `at_run_time` marks clauses that depend on facts that are known only at run time."""

    verdict: Verdict
    message: str
    at_run_time: bool = False


# Each of these functions creates a ruling from the reason for its verdict.
holds: partial[Ruling] = partial(Ruling, "holds")
broken: partial[Ruling] = partial(Ruling, "broken")
unknown: partial[Ruling] = partial(Ruling, "unknown")
# For clauses about values, which are known only at run time.
at_run_time: partial[Ruling] = partial(Ruling, "unknown", at_run_time=True)
