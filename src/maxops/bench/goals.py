"""The goals: each part of the grid's speedup over the fastest correct library, and its share of the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from maxops import dtypes
from maxops.bench.case import Case

Band = Literal["1", "1e3", "1e5", "64 MB"]
BANDS: tuple[Band, ...] = ("1", "1e3", "1e5", "64 MB")
LARGE = 64 * 10**6
FASTEST = "fastest"
LIMIT = "limit"


@dataclass(frozen=True)
class Target:
    """`ratio` times as fast as `against`: the fastest correct library, a library by name, or the limit (a share)."""

    ratio: float
    against: str = FASTEST


@dataclass(frozen=True)
class Goal:
    """A row of the table: the cases it speaks of, and a target or more for each band of sizes."""

    name: str
    applies: Callable[[Case], bool]
    targets: dict[Band, tuple[Target, ...]]


def band(case: Case) -> Band | None:
    """The column of the table that a case falls into, by its size or, when large, by its largest array."""
    if case.largest_array >= LARGE:
        return "64 MB"
    sizes: dict[int, Band] = {1: "1", 1_000: "1e3", 100_000: "1e5"}
    return sizes.get(case.size)


def _is_half(case: Case) -> bool:
    return case.dtype.kind == "float" and case.dtype.bits == 16


def _full(case: Case) -> bool:
    return not _is_half(case) and case.dtype.kind != "bool"


def _max(case: Case, *families: str) -> bool:
    return case.operator == "Max" and case.family.partition(",")[0] in families


def _reduce(case: Case, *, short: bool) -> bool:
    is_short = case.family in ("last-8", "first-narrow")
    return case.operator == "ReduceMax" and case.family != "all" and is_short is short


def _segments(case: Case, *, flat: bool, checked: bool | None = None, long: bool | None = None) -> bool:
    if case.segments is None or (len(case.operands[0].shape) == 1) is not flat:
        return False
    is_long = case.segments.lengths in ("mean-1000", "mean-1e6")
    return (checked is None or case.segments.check_ids is checked) and (long is None or is_long is long)


def _at(one: float, thousand: float, cache: float, *large: Target) -> dict[Band, tuple[Target, ...]]:
    targets = {"1": one, "1e3": thousand, "1e5": cache}
    bands: dict[Band, tuple[Target, ...]] = {
        name: (Target(targets[name]),) for name in BANDS if targets.get(name, 0) > 0
    }
    return bands | {"64 MB": large}


_TWO_IN_CACHE = (Target(1.0, "torch"), Target(1.4, "numpy"))

GOALS = (
    Goal(
        "Max of 2, new output: f32, f64, integers",
        lambda case: _max(case, "2-inputs") and not case.out and _full(case),
        _at(2, 2, 0, Target(3), Target(0.9, LIMIT)) | {"1e5": _TWO_IN_CACHE},
    ),
    Goal(
        "Max of 2, out=: f32, f64, integers",
        lambda case: _max(case, "2-inputs") and case.out and _full(case),
        _at(2, 2, 0, Target(1.2), Target(0.9, LIMIT)) | {"1e5": _TWO_IN_CACHE},
    ),
    Goal(
        "Max of 2: f16, bf16",
        lambda case: _max(case, "2-inputs") and _is_half(case),
        _at(2, 5, 2.5, Target(1.6), Target(0.9, LIMIT)),
    ),
    Goal(
        "Max of 8: f32",
        lambda case: _max(case, "8-inputs") and case.dtype is dtypes.FLOAT32,
        _at(4, 4, 1.3, Target(1.7)),
    ),
    Goal(
        "Max of 8: f16",
        lambda case: _max(case, "8-inputs") and case.dtype is dtypes.FLOAT16,
        _at(4, 12, 4, Target(3)),
    ),
    Goal(
        "Max, broadcast",
        lambda case: _max(case, "row", "column", "outer", "scalar"),
        _at(0, 2, 1.5, Target(1.5)),
    ),
    Goal("Max, transposed", lambda case: _max(case, "transposed"), _at(0, 2, 1.5, Target(4))),
    Goal(
        "ReduceMax all: 4-8 byte",
        lambda case: case.operator == "ReduceMax" and case.family == "all" and case.dtype.bits >= 32,
        _at(5, 5, 1.6, Target(1.0), Target(0.95, LIMIT)),
    ),
    Goal(
        "ReduceMax all: 16-bit",
        lambda case: case.operator == "ReduceMax" and case.family == "all" and case.dtype.bits == 16,
        _at(5, 10, 4, Target(2.5)),
    ),
    Goal("ReduceMax over axes", lambda case: _reduce(case, short=False), _at(3, 2, 2, Target(1.3))),
    Goal("ReduceMax, rows and columns of 8", lambda case: _reduce(case, short=True), _at(0, 2, 2, Target(4))),
    Goal(
        "SegmentMax 1-D, every id checked",
        lambda case: _segments(case, flat=True, checked=True),
        _at(5, 6, 3.5, Target(4), Target(0.8, LIMIT)),
    ),
    Goal(
        "SegmentMax 1-D, check_ids=False, short",
        lambda case: _segments(case, flat=True, checked=False, long=False),
        _at(5, 6, 4, Target(5)),
    ),
    Goal(
        "SegmentMax 1-D, check_ids=False, long",
        lambda case: _segments(case, flat=True, checked=False, long=True),
        _at(0, 6, 4, Target(8)),
    ),
    Goal("SegmentMax rows", lambda case: _segments(case, flat=False), _at(0, 3, 3, Target(3), Target(0.85, LIMIT))),
)


def of(case: Case) -> Goal | None:
    """The goal that speaks of a case, or None; whether it has a target at its size is another question.

    At most one does: a test looks.
    """
    return next((goal for goal in GOALS if goal.applies(case)), None)


def targets(case: Case) -> tuple[Target, ...]:
    """What a case should reach."""
    goal, column = of(case), band(case)
    return () if goal is None or column is None else goal.targets.get(column, ())
