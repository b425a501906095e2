"""Words, which are sequences of runs of segment ids, and data that distinguishes rows.

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
    """Parse the text of a word, which is a list of runs separated by commas."""
    runs = []
    for part in text.split(","):
        *resume, name, rows = part.split()
        assert resume in ([], ["resume"])
        (kind,) = (each for each in KINDS if each == name)
        runs.append(Run(kind, int(rows), bool(resume)))
    return tuple(runs)


def sizes(itemsize: int, most: int = 100_000) -> tuple[int, ...]:
    """Return the numbers of elements around each size threshold of the native core."""
    values = (value // itemsize for value, unit in _native.parameters().values() if unit == "bytes")
    return tuple(sorted({value + step for value in values for step in (-1, 0, 1) if 1 <= value + step <= most}))


def words(most: int = 5000) -> Iterator[Word]:
    """Yield runs of every kind and length, followed by every kind, resumed or not, at the start and after two rows."""
    for kind in KINDS:
        for rows in lengths(most):
            for after in KINDS:
                for resumes in (False, True):
                    for few in (1, 3):
                        yield Run(kind, rows), Run(after, few, resumes)
                    yield Run("one", 2), Run(kind, rows, resumes), Run(after, 2, True), Run("singles", 1)


def any_word(chosen: random.Random, most: int = 5000, runs: int = 6) -> Word:
    """Return a random word of up to `runs` runs and about `most` rows."""
    near = lengths(most)
    word: list[Run] = []
    for _ in range(chosen.randint(1, runs)):
        if sum(run.rows for run in word) > most:
            break
        rows = chosen.choice((*range(1, 5), *near)) * chosen.choice((1, 1, 1, 2))
        word.append(Run(chosen.choice(KINDS), rows, chosen.random() < 0.5))
    return tuple(word)


def distinguishing_ranks(ids: Array) -> Array:
    """Return four columns of distinct ranks, of shape (rows, 4), that reveal dropped or misplaced rows.

    The ranks ascend in the first column and descend in the second. The other two columns have random orders.
    """
    count = len(ids)
    chosen = np.random.default_rng(count)
    up = np.arange(count)
    return np.stack([up, up[::-1], chosen.permutation(count), chosen.permutation(count)], axis=1)
