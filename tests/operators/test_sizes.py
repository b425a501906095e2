"""ReduceMax and Max of shapes around every constant in native/core/parameters.def, with the maximum at boundaries."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import maxops as mo
from helpers import run_words
from helpers.bits import Array
from helpers.instruction_sets import on_each_source
from maxops import _native
from maxops.conformance import runs

TYPES = (np.float32, np.int64, np.float16, np.uint8)
each_type = pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)


def _values(shape: tuple[int, ...], kind: type) -> Array:
    """Return numbers that repeat after a prime, all below the maxima."""
    numbers = np.arange(int(np.prod(shape))) % 89
    return (numbers + (1 if kind is np.uint8 else -100)).reshape(shape).astype(kind)


def _winners(length: int) -> tuple[int, ...]:
    """Return positions of maxima: the ends, and both sides of boundaries of vectors and blocks."""
    near = {0, 1, length // 2, length - 2, length - 1}
    near |= {step + side for step in (4, 16, 64, 256, 4096) if step < length for side in (-1, 0)}
    near |= {length - step + side for step in (4, 16, 64, 256) if step < length for side in (-1, 0)}
    return tuple(sorted(place for place in near if 0 <= place < length))


def _lengths(kind: type, most: int) -> list[int]:
    sizes = {*runs.lengths(most), *run_words.sizes(np.dtype(kind).itemsize, most)}
    return sorted(sizes)


@on_each_source
@each_type
def test_reduce_rows_and_columns(kind: type, isa: str) -> None:
    """Test few long rows, many short rows, and more axes, with the maximum at each possible boundary."""
    for length in _lengths(kind, 20_000):
        for few in (1, 2, 3, 17) if length < 5000 else (1, 3):
            for shape, axes in (
                ((few, length), (1,)), ((length, few), (0,)), ((few, length), (0,)), ((length, few), (1,)),
                ((2, length, few), (0, 1)), ((few, 2, length), (0, 2)),
            ):  # fmt: skip
                if length > 3000 and len(shape) == 3:
                    continue
                _reduce(shape, axes, kind, isa)


@on_each_source
@each_type
def test_reduce_narrow_columns(kind: type, isa: str) -> None:
    """Test rows of one to five vectors, one element shorter and longer, contiguous and with gaps."""
    itemsize = np.dtype(kind).itemsize
    near = {count * size // itemsize + side for count in range(1, 6) for size in (16, 32, 64) for side in (-1, 0, 1)}
    least = _native.parameters()["kNarrowRows"][0]
    for width in sorted(near - {0}):
        for rows in range(least - 1, least + 3):
            for gap in (0, 3):
                _reduce((rows, width), (0,), kind, isa, gap)


def _reduce(shape: tuple[int, ...], axes: tuple[int, ...], kind: type, isa: str, gap: int = 0) -> None:
    """Test a reduction of rows that are followed by `gap` higher elements, which do not belong to the data."""
    data = _values(shape, kind)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    rows = np.ascontiguousarray(data.transpose(*kept, *axes)).reshape(*(shape[axis] for axis in kept), -1)
    back = np.argsort([*kept, *axes])
    moved = [*(shape[axis] for axis in kept), *(shape[axis] for axis in axes)]
    for winner in _winners(rows.shape[-1])[:: 1 if rows.size < 3000 else 3]:
        with_winner = rows.copy()
        with_winner[..., winner] = (
            1 + np.arange(rows[..., 0].size).reshape(rows.shape[:-1]) % 100 + (kind is np.uint8) * 95
        )
        beside = 127 + (kind is np.uint8) * 95
        given = np.full((*shape[:-1], shape[-1] + gap), beside, np.dtype(kind))[..., : shape[-1]]
        given[...] = with_winner.reshape(moved).transpose(back)
        got, index = mo.reduce_max(given, axes, keepdims=False, return_indices=True)
        assert got.tobytes() == with_winner[..., winner].tobytes(), f"{shape} along {axes}, {winner} wins, on {isa}"
        assert (index == winner).all(), f"{shape} along {axes}, {winner} wins, on {isa}: {index}"


@on_each_source
@each_type
def test_maximum_of_rows(kind: type, isa: str) -> None:
    """Test rows of every length with gaps, and a repeated row. Each input in turn has the maxima."""
    for length in _lengths(kind, 20_000):
        for rows in (1, 3):
            apart = _values((rows, length + 3), kind)[:, :length]
            flat = _values((length,), kind)[::-1]
            one = _values((rows, 1), kind)
            column = _values((length, rows), kind).T
            for others in ((flat,), (one,), (column,), (one, flat), (column, flat, one)):
                inputs = [apart, *others]
                for winner in range(len(inputs)):
                    given = [x + kind(100) if k == winner else x for k, x in enumerate(inputs)]
                    expected = np.broadcast_to(given[winner], (rows, length))
                    got = mo.maximum(*given)
                    assert (got == expected).all(), f"{rows} rows of {length}, input {winner} wins, on {isa}"


@pytest.mark.parametrize("threads", [2, 3])
def test_shares_of_threads(threads: int) -> None:
    """Test data for several threads, with the maximum on both sides of each boundary of parts or tasks."""
    parameters = {name: value for name, (value, _) in _native.parameters().items()}
    with mo.num_threads(threads):
        for size in (parameters["kThreadedBytes"] // 4 + step for step in (-1, 0, 1, 5000)):
            data = np.full(size, -3, np.float32)
            parts = min(
                size * 4 // parameters["kTaskBytes"], parameters["kPartsEnough"] * parameters["kPartsPerThread"]
            )
            ends = {0, size - 1, parameters["kSaturationPeek"]} | {i * size // parts for i in range(parts)}
            for place, side in itertools.product(sorted(ends), (-1, 0)):
                if not 0 <= place + side < size:
                    continue
                data[place + side] = 5
                got, index = mo.reduce_max(data, return_indices=True)
                assert (got.item(), index.item()) == (5, place + side), size
                other = np.full(size, -4, np.float32)
                assert mo.maximum(data, other).tobytes() == data.tobytes()
                assert mo.reduce_max(data.reshape(-1, 1).repeat(2, 1), 0, keepdims=False).tolist() == [5, 5]
                data[place + side] = -3
