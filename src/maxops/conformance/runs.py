"""A grammar of segment ids: runs of rows whose lengths stand around every constant that switches a path.

A word is a few runs, one after the other. Loops go wrong where a block, a run or a thread's share ends and another
begins: so lengths are one less, as many, and one more than each constant of the native core has, which it reports
itself. A constant that is added there is a length here by itself.

>>> [run.kind for run in word_of("singles 3, resume pairs 4")]
['singles', 'pairs']
>>> ids_of(word_of("singles 3, resume pairs 4")).tolist()
[0, 1, 2, 2, 2, 3, 3]
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np

from maxops import _native
from maxops.plan import Array

Kind = Literal["singles", "pairs", "triples", "one", "gaps", "far"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# The rows of a segment, and the step from one segment to the next.
_SHAPES: dict[Kind, tuple[int, int]] = {
    "singles": (1, 1),
    "pairs": (2, 1),
    "triples": (3, 1),
    "one": (0, 1),  # all rows of the run in one segment
    "gaps": (1, 2),
    "far": (1, 70),  # further apart than a vector's segments may be
}
LANES = (4, 8, 16, 32, 64)  # of vectors, by type and instruction set


@dataclass(frozen=True)
class Run:
    """Rows of one kind; the first resumes the segment of the row before, or opens another."""

    kind: Kind
    rows: int
    resumes: bool = False

    def __str__(self) -> str:
        return f"{'resume ' if self.resumes else ''}{self.kind} {self.rows}"


Word = tuple[Run, ...]


def word_of(text: str) -> Word:
    """Parse a word: runs separated by commas."""
    runs = []
    for part in text.split(","):
        *resume, kind, rows = part.split()
        assert resume in ([], ["resume"])
        assert kind in _SHAPES
        runs.append(Run(kind, int(rows), bool(resume)))
    return tuple(runs)


def ids_of(word: Sequence[Run]) -> Array:
    """The ids that a word spells, from 0 on."""
    parts: list[Array] = []
    last = -1
    for run in word:
        rows, step = _SHAPES[run.kind]
        first = last if run.resumes and last >= 0 else last + step
        numbers = np.arange(run.rows) // rows if rows else np.zeros(run.rows, np.int64)
        parts.append(first + numbers * step)
        last = int(parts[-1][-1]) if run.rows else last
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, np.int64)


@cache
def _around(unit: str, least: int, most: int) -> tuple[int, ...]:
    values = {value for value, its in _native.parameters().values() if its == unit}
    near = {value + step for value in values | ({*LANES} if unit == "rows" else set()) for step in (-1, 0, 1)}
    return tuple(sorted(size for size in near if least <= size <= most))


def lengths(most: int = 5000) -> tuple[int, ...]:
    """Numbers of rows, or of elements, around each constant that counts them."""
    return _around("rows", 1, most)


def sizes(itemsize: int, most: int = 100_000) -> tuple[int, ...]:
    """Numbers of elements around each constant that counts bytes."""
    values = (value // itemsize for value, unit in _native.parameters().values() if unit == "bytes")
    return tuple(sorted({value + step for value in values for step in (-1, 0, 1) if 1 <= value + step <= most}))


def words(most: int = 5000) -> Iterator[Word]:
    """Every kind and length, followed by every kind that resumes or not, at a start and two rows on."""
    for kind in KINDS:
        for rows in lengths(most):
            for after in KINDS:
                for resumes in (False, True):
                    for few in (1, 3):
                        yield Run(kind, rows), Run(after, few, resumes)
                    yield Run("one", 2), Run(kind, rows, resumes), Run(after, 2, True), Run("singles", 1)


def any_word(chosen: random.Random, most: int = 5000, runs: int = 6) -> Word:
    """A word at random, of up to so many runs and about so many rows."""
    near = lengths(most)
    word: list[Run] = []
    for _ in range(chosen.randint(1, runs)):
        if sum(run.rows for run in word) > most:
            break
        rows = chosen.choice((*range(1, 5), *near)) * chosen.choice((1, 1, 1, 2))
        word.append(Run(chosen.choice(KINDS), rows, chosen.random() < 0.5))
    return tuple(word)


def distinguishing_ranks(ids: Array) -> Array:
    """Four columns of distinct ranks, (rows, 4), that show a row that is dropped or gets where it is not of.

    Upwards the last row of each segment is the highest and every later segment higher; downwards the first, and every
    later segment lower. In the other two, rows at places at random.
    """
    count = len(ids)
    chosen = np.random.default_rng(count)
    up = np.arange(count)
    return np.stack([up, up[::-1], chosen.permutation(count), chosen.permutation(count)], axis=1)
