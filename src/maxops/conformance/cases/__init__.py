"""The cases, derived from the spec table."""

from __future__ import annotations

from collections.abc import Iterator

from maxops.conformance.case import Case
from maxops.conformance.cases import max as of_max
from maxops.conformance.cases import reduce_max

FAMILIES = (of_max.cases, reduce_max.cases)


def cases() -> Iterator[Case]:
    """All cases, in an order that stays; those that share a trial stand together."""
    for family in FAMILIES:
        yield from family()
