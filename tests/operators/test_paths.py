"""Tests for each code path of Max and ReduceMax.

The paths include one element with a row, streaming stores, vectors with masked tails, sizes just below and above each
threshold, and floating-point modes.
"""

from __future__ import annotations

import platform
from functools import cache

import numpy as np
import pytest

import maxops as mo
from exhaustive.states import subnormals_as_zero
from helpers.bits import (
    Array,
    Guarded,
    assert_same_bits,
    at_offset,
    each_float,
    each_type,
    each_width,
    fast_maximum,
    fast_reduce_max,
    mixed,
    of_words,
    pitched,
    pool,
)
from maxops.dtypes import FLOAT32, DType

pytestmark = pytest.mark.usefixtures("isa")


STREAMED_BYTES = 64 << 20  # native/drivers/iterate.h: kStreamedBytes
PEELED_BYTES = 2048  # native/core/parameters.def: kPeelBytes


# ------------------------------------------------------------------------------- Max: one element and a row


@each_type
def test_every_value_against_a_row(dtype: DType) -> None:
    """Test a column with all kinds of elements, whose sign selects the loop."""
    column = pool(dtype)[:, np.newaxis]
    row = mixed(dtype, (1, 67), nans=0.1)
    expected = fast_maximum(np.repeat(column, 67, 1), np.repeat(row, len(column), 0))
    assert_same_bits(mo.maximum(column, row), expected)
    assert_same_bits(mo.maximum(row, column), expected)
    for place in np.linspace(0, len(column) - 1, 60).astype(int):  # of both signs, and NaNs
        assert_same_bits(mo.maximum(row, np.array(column[place, 0])), expected[place : place + 1])


@each_width
def test_every_length_of_row_against_a_column(dtype: DType) -> None:
    """Test rows shorter and longer than a vector, their tails, and the memory around the output."""
    column, data = mixed(dtype, (5, 1), 1), mixed(dtype, (5, 131), 2)
    for n in range(1, 132):
        expected = fast_maximum(data[:, :n], np.repeat(column, n, 1))
        guarded = Guarded(dtype, (5, n))
        mo.maximum(data[:, :n], column, out=guarded.array)
        assert_same_bits(guarded.array, expected)
        guarded.check()
        assert_same_bits(mo.maximum(column, data[:, :n].copy()), expected)


@each_width
def test_a_column_at_every_alignment(dtype: DType) -> None:
    column, data = mixed(dtype, (3, 1), 3), mixed(dtype, (3, 1100), 4)
    expected = fast_maximum(data, np.repeat(column, 1100, 1))
    for offset in range(64):
        out = at_offset(np.zeros_like(data), offset)
        assert mo.maximum(at_offset(data, 63 - offset), column, out=out) is out
        assert_same_bits(out, expected)


@each_type
def test_every_length_of_max(dtype: DType) -> None:
    """Test parts of vectors, whole vectors, and a last vector that overlaps another, also in place."""
    data = [mixed(dtype, 131, seed, nans=0.05) for seed in range(20, 28)]
    for n in range(132):
        for count in (1, 2, 3, 4, 8):
            inputs = [each[:n] for each in data[:count]]
            expected = inputs[0].copy() if n == 0 else fast_maximum(*inputs)
            guarded = Guarded(dtype, (n,))
            mo.maximum(*inputs, out=guarded.array)
            assert_same_bits(guarded.array, expected)
            guarded.check()
            in_place = inputs[-1].copy()
            mo.maximum(*inputs[:-1], in_place, out=in_place)
            assert_same_bits(in_place, expected)


@each_width
def test_max_at_every_alignment(dtype: DType) -> None:
    """Test outputs around the length from which the first vector ends at a cache line."""
    whole = [mixed(dtype, 2100, seed, nans=0.01) for seed in (28, 29, 30)]
    for n in (13, PEELED_BYTES // dtype.numpy.itemsize - 1, PEELED_BYTES // dtype.numpy.itemsize, 2100):
        data = [each[:n] for each in whole]
        expected = {count: fast_maximum(*data[:count]) for count in (2, 3)}
        for offset in range(64):
            moved = [at_offset(each, (offset * k) % 64) for k, each in enumerate(data, 1)]
            for count in (2, 3):
                out = at_offset(np.zeros_like(data[0]), offset)
                mo.maximum(*moved[:count], out=out)
                assert_same_bits(out, expected[count])


# ------------------------------------------------------------------------------------ Max: streaming stores


@cache
def _large(dtype: DType, n: int) -> tuple[Array, Array, Array]:
    a, b = (np.tile(mixed(dtype, 65_537, seed), n // 65_537 + 1)[:n] for seed in (5, 6))
    # repeats a block, so that expected results are computed only once
    expected = np.tile(fast_maximum(a[:65_537], b[:65_537]), n // 65_537 + 1)[:n]
    return a, b, expected


@each_width
def test_streaming_stores(dtype: DType) -> None:
    """Test sizes just below and above the minimum for streaming stores, at any alignment."""
    n = STREAMED_BYTES // (3 * dtype.numpy.itemsize) + 64
    a, b, expected = _large(dtype, n)
    for past, offset in ((64, 0), (64, 1), (64, 16), (64, 63), (0, 63), (-64, 16)):
        few = n - 64 + past
        out = at_offset(expected[:few], offset)
        out.view(np.uint8)[...] = 0xA5
        mo.maximum(a[:few], b[:few], out=out)
        assert_same_bits(out, expected[:few])
    del out
    mo.maximum(a, b)  # the next output reuses its pages from the cache
    assert_same_bits(mo.maximum(a, b), expected)


@pytest.mark.parametrize("threads_used", [1, 3])
def test_streaming_stores_of_broadcast_and_strided_inputs(threads_used: int) -> None:
    rows, length = 6000, 1501
    data = np.tile(mixed(FLOAT32, (1, length), 7), (rows, 1))
    column = np.resize(mixed(FLOAT32, 60, 8), (rows, 1))
    with mo.num_threads(threads_used):
        for other in (column, data[0], data[::-1], np.array(column[0, 0])):
            expected = fast_maximum(data[:60], np.broadcast_to(other, data.shape)[:60].copy())
            out = np.zeros_like(data)
            mo.maximum(data, other, out=out)
            assert_same_bits(out, np.resize(expected, data.shape))
            in_place = data.copy()
            mo.maximum(in_place, other, out=in_place)
            assert_same_bits(in_place, out)


# ------------------------------------------------------------------------------------- ReduceMax: many rows


@each_type
def test_rows_of_every_length_and_number(dtype: DType) -> None:
    """Test many rows, which are reduced 8 or 16 at a time, and few rows, which are reduced one by one."""
    data = mixed(dtype, (37, 150), 9, nans=0.004)
    guarded = Guarded(dtype, (37,))
    for n in (*range(1, 70), 127, 128, 129, 150):
        expected = fast_reduce_max(data[:, :n], (1,), False)
        apart, together = pitched(data[:, :n]), data[:, :n].copy()
        for rows in (1, 3, 4, 7, 15, 16, 17, 33, 37):
            out = guarded.array[:rows]
            assert_same_bits(mo.reduce_max(together[:rows], 1, False, out=out), expected[:rows])
            guarded.check()
            assert_same_bits(mo.reduce_max(apart[:rows], 1, False), expected[:rows])


@each_type
def test_columns_of_every_length_and_number(dtype: DType) -> None:
    """Test columns, which are reduced 8 rows at a time, then 4 or 1. The last rows may be read twice."""
    data = mixed(dtype, (26, 150), 10, nans=0.004)
    for n in (*range(1, 70), 127, 128, 129, 150):
        together, guarded = data[:, :n].copy(), Guarded(dtype, (n,))
        for rows in (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 26):
            expected = fast_reduce_max(together[:rows], (0,), False)
            assert_same_bits(mo.reduce_max(together[:rows], 0, False, out=guarded.array), expected)
        guarded.check()
    rows_apart = pitched(data)
    assert_same_bits(mo.reduce_max(rows_apart, 0, False), fast_reduce_max(data, (0,), False))


@each_width
def test_rows_and_columns_at_every_alignment(dtype: DType) -> None:
    data = mixed(dtype, (20, 700), 12, nans=0.0)
    by_row, by_column = fast_reduce_max(data, (1,), False), fast_reduce_max(data, (0,), False)
    whole = fast_reduce_max(data)
    for offset in range(64):
        moved = at_offset(data, offset)
        assert_same_bits(mo.reduce_max(moved, 1, False), by_row)
        assert_same_bits(mo.reduce_max(moved, 0, False), by_column)
        assert_same_bits(mo.reduce_max(moved), whole)


STREAM_BYTES, STREAMS_FROM = 65536, 32768  # native/core/parameters.def: kStreamMostBytes, kStreamsFromBytes


@each_width
def test_long_runs_as_streams(dtype: DType) -> None:
    """Test a maximum in each stream, at its ends, and in the remainder."""
    item = dtype.numpy.itemsize
    for size in (STREAMS_FROM - 64, STREAMS_FROM, STREAMS_FROM + 200, 4 * STREAM_BYTES + STREAMS_FROM + 100):
        n = size // item
        data = of_words(dtype, np.full(n, dtype.lowest_bits, dtype.word))
        steps = min(STREAM_BYTES, size // 4)
        ends = {k * steps // item + by for k in range(5) for by in (-9, -1, 0, 1, 9)}
        for place in {*ends, n - 1, n // 2} & {*range(n)}:
            for bits in (1, dtype.lowest_bits):
                data[place] = of_words(dtype, [bits])[0]
                assert_same_bits(mo.reduce_max(data), of_words(dtype, [bits]))
                rows = np.stack([data, data])
                assert_same_bits(mo.reduce_max(rows, 1, False), of_words(dtype, [bits, bits]))


@each_float
def test_only_negative_zeros_and_what_is_above_them(dtype: DType) -> None:
    """Test zeros, which the processor's maximum treats as equal, in both orders."""
    minus_zero = 1 << dtype.bits - 1
    for n in (3, 8, 40, 100, 1000, 9000 // dtype.numpy.itemsize, 40_000):
        words = np.full(n, minus_zero, dtype.word)
        words[::3] = minus_zero | 1  # negative subnormals
        for place in {0, 1, n // 2, n - 1}:
            for bits in (0, minus_zero, 1):
                data = of_words(dtype, words)
                data[place] = of_words(dtype, [bits])[0]
                expected = of_words(dtype, [bits])
                assert_same_bits(mo.reduce_max(data), expected)
                rows = np.stack([data] * 9)
                assert_same_bits(mo.reduce_max(rows, 1, False), np.repeat(expected, 9))
                assert_same_bits(mo.reduce_max(rows.T.copy(), 0, False), np.repeat(expected, 9))


@pytest.mark.parametrize("stride", [2, 3, -2])
@each_width
def test_gathered_runs_of_every_length(dtype: DType, stride: int) -> None:
    """Test that vectors of every second element read nothing past the end, and lose no element."""
    data = mixed(dtype, 3000, 31, nans=0.0)
    for n in (*range(1, 40), 255, 256, 257, 511, 512, 513, 900):
        view = data[::stride][:n] if stride < 0 else data[-(n * stride) + stride - 1 :: stride]
        assert view.size == n
        assert_same_bits(mo.reduce_max(view), fast_reduce_max(view.copy()))
        assert_same_bits(mo.maximum(view, data[:n]), fast_maximum(view.copy(), data[:n].copy()))


# ---------------------------------------------------------------------------------- the processor's float modes


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="of x86-64 and glibc")
@each_float
def test_subnormals_where_the_processor_would_flush_them(dtype: DType) -> None:
    tiny = of_words(dtype, [1, 2, 1 << dtype.bits - 1 | 1, 1 << dtype.bits - 1 | 2])
    a, b = np.resize(tiny, 100), np.resize(np.roll(tiny, 1), 100)
    correct = fast_maximum(a, b)
    both = np.stack([a, b] * 9)
    alone = np.float32(1e-40) * np.float32(1)
    with subnormals_as_zero():
        flushed = np.float32(1e-40) * np.float32(1)
        results = [
            mo.maximum(a, b), mo.reduce_max(both, 0, False), mo.reduce_max(both.T.copy(), 1, False),
            mo.reduce_max(a[2::4]), mo.maximum(a, b[:1]), mo.maximum(a, b, a), mo.reduce_max(np.resize(a[2::4], 9000)),
        ]  # fmt: skip
    assert flushed == 0 < alone, "the modes did not take hold, and the test shows nothing"
    for got, expected in zip(
        results,
        [correct, correct, correct, a[2:3], fast_maximum(a, np.repeat(b[:1], 100)), correct, a[2:3]],
        strict=True,
    ):
        assert_same_bits(got, expected)
