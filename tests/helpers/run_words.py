"""Words of runs of segment ids: each kind and length before each kind, or some at random; and data to tell rows apart.

>>> [run.kind for run in word_of("singles 3, resume pairs 4")]
['singles', 'pairs']
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from maxops import _native
from maxops.conformance.runs import KINDS, Run, lengths
from maxops.plan import Array

Word = tuple[Run, ...]


def word_of(text: str) -> Word:
    """Parse a word: runs separated by commas."""
    runs = []
    for part in text.split(","):
        *resume, name, rows = part.split()
        assert resume in ([], ["resume"])
        (kind,) = (each for each in KINDS if each == name)
        runs.append(Run(kind, int(rows), bool(resume)))
    return tuple(runs)


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
