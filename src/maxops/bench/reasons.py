"""Why a case is below 1.0: patterns of case ids, as a shell matches them, and the reason that explains it.

The first pattern that matches counts. A case without a reason is listed as one that has none yet.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

_MEMORY = "bound by memory, on both sides: see the case's share of the limit"

_CALL = "the cost of a call: a result here is an array, which has to be made; bottleneck and polars give a scalar"

REASONS: tuple[tuple[str, str], ...] = (
    ("ReduceMax/all/*/1", _CALL),
    ("ReduceMax/first-narrow/*/8e6", _MEMORY),
    ("Max/half-rows*/3e7", _MEMORY),
    ("ReduceMax/last-1000/*/3e7", _MEMORY),
    ("ReduceMax/middle/*/3e7", _MEMORY),
)


def reason(case_id: str) -> str:
    """The reason for a case, or ""."""
    return next((text for pattern, text in REASONS if fnmatchcase(case_id, pattern)), "")
