"""The cases, derived from the spec table. Each module builds a family of cases from clauses, types and descriptions.

Each row of ONNX and OpenVINO has its own cases. The rows that profile the newest version of an operator (SONNX) judge
the same trials, and add their own refusals. Cases for a new row or type of the table are created automatically.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase

from maxops.conformance.case import Case
from maxops.conformance.cases import (
    forms,
    large,
    max_shapes,
    reduce_axes,
    reduce_max,
    refusals,
    scatter,
    segment_ids,
    segment_max,
)
from maxops.conformance.cases import max as of_max
from maxops.errors import MaxopsError

__all__ = ["FAMILIES", "NoSuchCaseError", "cases", "select"]

NEAR = 3  # suggestions for a pattern that matches no case
FAMILIES = (of_max, max_shapes, reduce_max, reduce_axes, segment_max, segment_ids, scatter, large, forms, refusals)


def cases() -> Iterator[Case]:
    """Yield all cases in a stable order. Cases that share a trial are adjacent."""
    for family in FAMILIES:
        yield from family.cases()


class NoSuchCaseError(MaxopsError, LookupError):
    """Raised if a pattern matches no case, or if all patterns are blank."""


def select(every: Iterable[Case], only: Sequence[str] = (), *, quick: bool = False) -> list[Case]:
    """Select from `every` as `maxops.conformance.select` does; patterns do not distinguish upper and lower case.

    >>> [case.id for case in select(cases(), ["onnx.max-13.t/int8/two*"])]
    ['ONNX.Max-13.T/int8/two-short-vectors']
    """
    offered = [case for case in every if case.quick or not quick]
    patterns = [part.strip() for text in only for part in text.split(",") if part.strip()]
    if not patterns and only:
        near = ", ".join(_near("", offered))
        raise NoSuchCaseError(f"all patterns are blank; pass a pattern such as {near}")
    if not patterns:
        return offered
    ids = {case.id.lower(): case for case in offered}
    chosen: set[str] = set()
    for pattern in patterns:
        found = {each for each in ids if _fits(each, pattern.lower())}
        if not found:
            raise NoSuchCaseError(
                f"no case{' of a quick run' if quick else ''} matches {pattern!r}; "
                f"closest matches: {', '.join(_near(pattern, offered))}"
            )
        chosen |= found
    return [case for name, case in ids.items() if name in chosen]


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) if any(sign in pattern for sign in "*?[") else pattern in name


def _near(pattern: str, cases: Sequence[Case]) -> list[str]:
    """Return clause ids similar to a pattern, or ids of their cases if the pattern contains more than a clause."""
    clauses = _most_like(pattern.split("/", maxsplit=1)[0], {case.clause.id: None for case in cases})
    if "/" not in pattern:
        return clauses
    return _most_like(pattern, [case.id for case in cases if case.clause.id in clauses])


def _most_like(pattern: str, names: Iterable[str]) -> list[str]:
    matcher = SequenceMatcher(None, "", pattern.lower().replace("*", ""), autojunk=False)

    def likeness(name: str) -> float:
        matcher.set_seq1(name.lower())
        return matcher.ratio()

    return sorted(names, key=likeness, reverse=True)[:NEAR]
