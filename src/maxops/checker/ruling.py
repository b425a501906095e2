"""The verdict of a rule on a node: holds, broken, or unknown statically."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

Verdict = Literal["holds", "broken", "unknown"]


class Ruling(NamedTuple):
    """A verdict and its reason; `at_run_time` marks a clause that can be decided only at run time."""

    verdict: Verdict
    message: str
    at_run_time: bool = False


# A clause that holds, a clause that is broken, and a clause that the model leaves open, each with the reason.
holds: partial[Ruling] = partial(Ruling, "holds")
broken: partial[Ruling] = partial(Ruling, "broken")
unknown: partial[Ruling] = partial(Ruling, "unknown")
# A clause about values, which are known only at run time.
at_run_time: partial[Ruling] = partial(Ruling, "unknown", at_run_time=True)
