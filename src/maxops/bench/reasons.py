"""Why a cell is below 1.0: patterns of case ids, as a shell matches them, and the reason that stands in the way.

The first pattern that matches speaks. A cell without a reason is listed as one that has none yet.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

_MEMORY = (
    "both are bound by memory: the peer too moves nearly what bare loads and stores do, and no instruction is saved"
)

REASONS: tuple[tuple[str, str], ...] = (
    ("Max/half-rows*/3e7", f"{_MEMORY}; rows that end half-way start the processor's fetching ahead anew"),
    ("ReduceMax/last-1000/*/3e7", _MEMORY),
    (
        "ReduceMax/middle/*/3e7",
        f"{_MEMORY}; 310 columns a row, whose maxima are kept in cache, cost loads and stores there",
    ),
    ("SegmentMax/*mean-1,*/3e7", f"{_MEMORY}: one row a segment is a copy"),
)


def reason(case_id: str) -> str:
    """The reason for a case, or ""."""
    return next((text for pattern, text in REASONS if fnmatchcase(case_id, pattern)), "")
