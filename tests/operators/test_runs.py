"""SegmentMax of ids in runs, with lengths around every constant in native/core/parameters.def."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers import run_words
from helpers.bits import Array, assert_same_bits, each_type, fast_first_in_segments, fast_segment_max
from maxops import _native
from maxops.conformance import runs
from maxops.conformance.runs import Run
from maxops.dtypes import DType

MOST = 1100  # rows of a run: more than the blocks of a scan


def _definition(data: Array, ids: Array) -> Array:
    """Return the maxima of negative data without NaN by NumPy, with zeros for empty segments."""
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    best = np.zeros((int(ids[-1]) + 1, *data.shape[1:]), data.dtype)
    best[ids[starts]] = np.maximum.reduceat(data, starts, axis=0)
    return best


def _said(word: run_words.Word) -> str:
    return ", ".join(map(str, word))


def _check(word: run_words.Word, ids: Array, data: Array, isas: list[str], expected: Array, **options: Any) -> None:
    for isa in isas:
        assert _native.use_isa(isa)
        got = mo.segment_max(data, ids, fill_mode="ZERO", **options)
        if got.tobytes() != expected.tobytes():
            place = np.argwhere(got != expected)[0].tolist()
            raise AssertionError(f"{_said(word)} on {isa}, {data.shape} {data.dtype}, {options}: wrong at {place}")


@pytest.fixture
def isas() -> Iterator[list[str]]:
    """Yield all instruction sets of this machine, and restore the selected one afterwards."""
    before = _native.isa()
    yield _native.isas()
    assert _native.use_isa(before)


@pytest.mark.parametrize("kind", runs.KINDS)
def test_every_pair_of_runs(kind: str, isas: list[str]) -> None:
    """Test rows of one, two and four columns, whose values distinguish each row from its neighbors."""
    count = 0
    for word in run_words.words(MOST):
        if (word[0] if len(word) == 2 else word[1]).kind != kind:
            continue
        ids = runs.ids_of(word)
        data = (run_words.distinguishing_ranks(ids) - len(ids)).astype(np.float32)
        expected = _definition(data, ids)
        _check(word, ids, data, isas, expected)
        _check(word, ids, np.ascontiguousarray(data[:, :2]), isas, np.ascontiguousarray(expected[:, :2]))
        for column in range(len(data[0])):
            _check(word, ids, np.ascontiguousarray(data[:, column]), isas, np.ascontiguousarray(expected[:, column]))
        count += 1
    assert count >= len(runs.lengths(MOST)) * len(runs.KINDS) * 6


def _every_word(symbols: int, length: int) -> Array:
    """Return a de Bruijn sequence: each word of this length over the symbols 0, 1, ... occurs once."""
    found: list[int] = []
    word = [0] * symbols * length

    def extend(at: int, period: int) -> None:
        if at > length:
            found.extend(word[1 : period + 1] if length % period == 0 else ())
            return
        for symbol in range(word[at - period], symbols):
            word[at] = symbol
            extend(at + 1, period if symbol == word[at - period] else at)

    extend(1, 1)
    return np.array(found + found[: length - 1])


def test_every_word_is_there() -> None:
    for symbols, length in ((2, 1), (2, 5), (3, 4)):
        sequence = _every_word(symbols, length).tolist()
        words = {tuple(sequence[k : k + length]) for k in range(symbols**length)}
        assert len(words) == symbols**length == len(sequence) - length + 1


# A vector of eight rows and one more on either side; sixteen rows; gaps, and rare gaps in a block.
PATTERNS = [
    ((0, 1), 10),
    pytest.param((0, 1), 18, marks=pytest.mark.exhaustive),
    ((0, 2), 10),
    ((0, 1, 3), 7),
    pytest.param((0, 1, 3), 10, marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize(("steps", "length"), PATTERNS)
@pytest.mark.parametrize("kind", [np.float32, np.int64, np.float16, np.int16, np.uint8])
def test_every_pattern_of_steps_at_every_lane(kind: type, steps: tuple[int, ...], length: int, isas: list[str]) -> None:
    """Test all patterns of steps between the rows of a vector, for which the miniature's blocks are too short.

    Each row of a segment in turn has the maximum, with values above or below those of the adjacent segments.
    """
    word = (Run("singles", 1),)
    pattern = np.take(steps, _every_word(len(steps), length))
    for shift in range(8 if length <= 10 else 16):
        ids = np.cumsum(np.concatenate([np.ones(shift, np.int64), pattern]))
        ids -= ids[0]
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        lengths = np.diff(starts, append=len(ids))
        place = np.arange(len(ids)) - np.repeat(starts, lengths)
        longest = int(lengths.max())
        for turn in range(longest) if longest < 12 else (0, 3, 7, longest - 1):
            for up in (1, -1):
                rank = (place + turn) % np.repeat(lengths, lengths) + ids * 5 * up % 11 * longest
                data = (rank + 1 if kind is np.uint8 else rank - 1000).astype(kind)
                _check(word, ids, data, isas, _definition(data, ids), check_ids=up > 0)


@each_type
def test_every_type(dtype: DType, isas: list[str]) -> None:
    """Test ranks of each type. Types with few values wrap around, which hides some errors."""
    chosen = random.Random(dtype.name)
    for _ in range(60):
        word = run_words.any_word(chosen, 300)
        ids = runs.ids_of(word)
        ranks = run_words.distinguishing_ranks(ids)
        if dtype.kind == "float":
            data = (-(ranks % 1900) - 1).astype(dtype.numpy)
        else:
            data = (ranks % (2 if dtype.kind == "bool" else 120)).astype(dtype.numpy)
        expected = fast_segment_max(data, ids, int(ids[-1]) + 1, "ZERO")
        _check(word, ids, data, isas, expected)
        _check(word, ids.astype(np.int32), data[:, :2], isas, expected[:, :2], check_ids=False)
        for column in range(4):
            one = np.ascontiguousarray(expected[:, column])
            _check(word, ids, np.ascontiguousarray(data[:, column]), isas, one)


@pytest.mark.parametrize("options", ["any order", "offsets", "indices", "fewer", "strided", "out"])
def test_every_option(options: str, isas: list[str]) -> None:
    chosen = random.Random(options)
    for _ in range(100):
        word = run_words.any_word(chosen, 700)
        ids = runs.ids_of(word)
        every = (run_words.distinguishing_ranks(ids) - len(ids)).astype(np.float32)
        for data in (every, every[:, :2], np.ascontiguousarray(every[:, 0]), np.ascontiguousarray(every[:, 1])):
            _with_options(options, word, ids, data, isas, np.random.default_rng(len(ids)))


def _with_options(
    options: str, word: run_words.Word, ids: Array, data: Array, isas: list[str], order: np.random.Generator
) -> None:
    expected = _definition(data, ids)
    for isa in isas:
        assert _native.use_isa(isa)
        if options == "any order":
            rows = order.permutation(len(ids))
            got = mo.segment_max(np.ascontiguousarray(data[rows]), ids[rows], fill_mode="ZERO", sorted=False)
        elif options == "offsets":
            offsets = np.searchsorted(ids, np.arange(ids[-1] + 2))
            got = mo.segment_max(data, offsets=offsets, fill_mode="ZERO")
        elif options == "indices":
            got, rows = mo.segment_max(data, ids, fill_mode="ZERO", return_indices=True)
            assert_same_bits(rows, np.where(got == 0, -1, fast_first_in_segments(data, ids, expected)))
        elif options == "fewer":
            count = len(expected) // 2
            got = mo.segment_max(data, ids, count, fill_mode="ZERO")
            expected = expected[:count]
        elif options == "strided":
            got = mo.segment_max(np.repeat(data, 2, axis=-1)[..., ::2], np.repeat(ids, 2)[::2], fill_mode="ZERO")
        else:
            got = mo.segment_max(data, ids, fill_mode="ZERO", out=np.full_like(expected, 7))
        assert got.tobytes() == np.ascontiguousarray(expected).tobytes(), f"{_said(word)} on {isa}, {data.shape}"


@pytest.mark.parametrize("sorted_ids", [True, False], ids=["in order", "any order"])
def test_every_width(sorted_ids: bool, isas: list[str]) -> None:
    """Test rows around the widths of blocks, tasks and pieces of columns."""
    ids = runs.ids_of(run_words.word_of("one 2, singles 2, resume pairs 4"))
    for itemsize, kind in ((4, np.float32), (8, np.int64), (1, np.uint8)):
        for width in run_words.sizes(itemsize, 70_000):
            base = np.arange(width) % 97
            rows = (np.arange(len(ids)) * 7 % len(ids))[:, np.newaxis]
            data = (base + rows + (100 if kind is np.uint8 else -300)).astype(kind)
            order = np.arange(len(ids)) if sorted_ids else np.arange(len(ids))[::-1]
            expected = _definition(data, ids)
            for isa in isas:
                assert _native.use_isa(isa)
                got = mo.segment_max(np.ascontiguousarray(data[order]), ids[order], fill_mode="ZERO", sorted=sorted_ids)
                assert got.tobytes() == expected.tobytes(), f"{width} columns of {kind.__name__} on {isa}"


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_shares_of_threads(width: int, threads: int, isas: list[str]) -> None:
    """Test runs that end at the boundary of a thread's share, one row before it, and one row after it."""
    task, rows_each = _native.parameters()["kTaskBytes"][0], _native.parameters()["kSharesEnough"][0]
    total = _native.parameters()["kThreadedBytes"][0] // (4 * width + 8) + 1000
    share = max(total // rows_each, task // (4 * width + 8)) + 1
    with mo.num_threads(threads):
        for first in (share - 1, share, share + 1):
            for kind in runs.KINDS[:4]:
                for resumes in (False, True):
                    head = (Run(kind, first), Run("one", 1, resumes), Run("pairs", share - 2, True))
                    word = (*head, Run("one", share + 3, resumes), Run("singles", total))
                    ids = runs.ids_of(word)[:total]
                    every = np.ascontiguousarray(
                        (run_words.distinguishing_ranks(ids) - len(ids)).astype(np.float32)[:, :2]
                    )
                    data = every[:, 0] if width == 1 else np.repeat(every, 3, axis=1)[:, :width]
                    data = np.ascontiguousarray(data)
                    _check(word, ids, data, isas, _definition(data, ids))


def test_a_new_parameter_is_a_new_length() -> None:
    """Test that the lengths come from the core's parameters."""
    for name, (value, unit) in _native.parameters().items():
        assert unit in ("rows", "bytes", "tasks"), name
        if unit == "rows" and value <= 5000:
            assert {max(value - 1, 1), value, value + 1} <= set(runs.lengths()), name
        if unit == "bytes" and value // 4 < 100_000:
            assert {value // 4, value // 4 + 1} - {0} <= set(run_words.sizes(4)), name
