"""Segment ids as runs of rows, with lengths around every constant at which the core switches to a different code path.

A word is a sequence of a few runs. Loops tend to fail at the ends of blocks, runs and chunks. Therefore the lengths are
one less than, equal to, and one more than each constant of the native core. The core reports its constants, so the
lengths of a new constant are added automatically.

>>> ids_of((Run("singles", 3), Run("pairs", 4, resumes=True))).tolist()
[0, 1, 2, 2, 2, 3, 3]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np

from maxops import _native
from maxops.plan import Array

Kind = Literal["singles", "pairs", "triples", "one", "gaps", "far"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# By kind: the number of rows of a segment, and the step from one id to the next.
_SHAPES: dict[Kind, tuple[int, int]] = {
    "singles": (1, 1),
    "pairs": (2, 1),
    "triples": (3, 1),
    "one": (0, 1),  # all rows of the run in one segment
    "gaps": (1, 2),
    "far": (1, 70),  # a vector of ids spans more segments than a kernel stores at once
}
LANES = (4, 8, 16, 32, 64)  # the lanes in vectors of all types and instruction sets


@dataclass(frozen=True)
class Run:
    """Rows of one kind. The first row resumes the segment of the row before it, or starts a new segment."""

    kind: Kind
    rows: int
    resumes: bool = False

    def __str__(self) -> str:
        return f"{'resume ' if self.resumes else ''}{self.kind} {self.rows}"


def ids_of(word: Sequence[Run]) -> Array:
    """Return the ids of a word, starting with 0 unless the first run leaves gaps."""
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
def lengths(most: int = 5000) -> tuple[int, ...]:
    """Return numbers of rows or elements, up to `most`, around each constant that limits them."""
    values = {value for value, unit in _native.parameters().values() if unit == "rows"} | {*LANES}
    return tuple(sorted({value + step for value in values for step in (-1, 0, 1) if 1 <= value + step <= most}))
