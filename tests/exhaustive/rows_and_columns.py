"""Tests ReduceMax along rows and columns of every length that selects a different kernel loop.

The tests include rows of bytes whose maxima fill a vector, short and long rows of vectors, rows and columns that
overlap or have gaps, and columns of more vectors than the registers hold. The maximum of each output moves through all
positions, and differs between outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import maxops as mo

from .states import Array, counted, fail, subnormals_as_zero

FEW = 40  # rows shorter than this have their maximum at each position in turn


def _with_winners(rows: int, n: int, dtype: Any, turn: int) -> tuple[Array, Array]:
    """Return rows whose unique maximum is one position further in each row, and the maxima."""
    places = (turn + np.arange(rows)) % n
    others = np.arange(rows * n).reshape(rows, n)
    highest = np.arange(rows)[:: 1 if turn % 2 else -1] % 100  # ascending or descending
    is_narrow = np.dtype(dtype).itemsize == 1
    data = (others % 100 - 128 if is_narrow else others % 20_000 - 30_000).astype(dtype)
    data[np.arange(rows), places] = highest
    return data, highest.astype(dtype)


def _check(given: Array, axis: int, expected: Array, what: str) -> None:
    got = mo.reduce_max(given, axis, keepdims=False)
    if got.tobytes() != expected.tobytes():
        fail(f"reduce_max, {what}", expected, got, data=given, axis=axis)
    counted[f"reduce_max: {what}"] += 1


def _pitched(data: Array, more: int) -> Array:
    """Return the same rows in a wider array, followed by higher elements."""
    wide = np.full((data.shape[0], data.shape[1] + more), 120, data.dtype)
    wide[:, : data.shape[1]] = data
    return wide[:, : data.shape[1]]


def _rows(shapes: Iterator[tuple[int, int]], dtype: Any, what: str, pitches: tuple[int, ...] = (0, 1)) -> None:
    for rows, n in shapes:
        for turn in range(0, n, 1 if n < FEW else rows):
            data, expected = _with_winners(rows, n, dtype, turn)
            for more in pitches:
                _check(_pitched(data, more) if more else data, 1, expected, what)


def rows() -> None:
    """Test reduction along contiguous rows, with and without gaps between them."""
    # As many rows as one task of the miniature has, below 32 bytes in all; then sizes around a transposed square.
    _rows(((rows, n) for n in range(2, 10) for rows in range(2, 32 // n + 1)), np.int8, "rows of bytes", (0, 1, 2, 9))
    vectors = (15, 16, 17, 33, 63, 64, 65, 70, 129, 143)
    _rows(((rows, n) for rows in (2, 4, 5, 9) for n in vectors), np.int8, "rows of bytes")
    # Sizes around steps of four vectors of 64 bytes, and around the minimum for long rows.
    _rows(((16, n) for n in (255, 320, 321, 575, 577, 639, 640, 641)), np.int8, "rows of bytes")
    _rows(((rows, n) for rows in (4, 7) for n in range(2, 13)), np.int16, "rows")
    _rows(((rows, n) for rows in (4, 5) for n in range(2, 37)), np.float32, "rows")
    _rows(((4, n) for n in range(2, 19)), np.float64, "rows")
    # A single row in two parts.
    for n in (128, 130):
        for place in range(n):
            data = (np.arange(n) % 100 - 128).astype(np.int8)
            data[place] = 1
            _check(data, 0, np.array(1, np.int8), "a row of bytes")


def long_rows() -> None:
    """Test rows that are long enough for a check for an early stop, and for the end of a stream."""
    lengths = (72, 80, 97, 101, 104, 130, 131, 143, 150, 200, 257, 262, 270, 271, 390, 410, 530, 700, 927)
    _rows(((16, n) for n in lengths), np.float32, "long rows")
    _rows(((16, n) for n in (70, 77, 100, 131, 200, 263)), np.float64, "long rows")


def windows() -> None:
    """Test rows that overlap: each begins a few elements after the one before."""
    for dtype in (np.int8, np.int16, np.float32):
        for length, n, step in (
            (2, 4, 2), (3, 4, 3), (5, 4, 2), (2, 8, 5), (3, 8, 3), (4, 8, 3), (5, 20, 1), (6, 20, 1), (9, 20, 1),
            (13, 22, 1), (5, 33, 1), (9, 40, 1), (9, 70, 1), (10, 80, 3), (17, 88, 5),
        ):  # fmt: skip
            for place in range((length - 1) * step + n):
                whole = (np.arange((length - 1) * step + n) % 100 - 128).astype(dtype)
                whole[place] = 100
                given: Array = np.ndarray((length, n), dtype, whole, 0, (step * whole.itemsize, whole.itemsize))
                for axis in (0, 1):
                    _check(given, axis, given.max(axis), "overlapping rows")


def columns() -> None:
    """Test columns: few enough to reduce several rows as one, and from one vector up to a block of the miniature."""
    for dtype, widths in (
        (np.float32, range(4, 24)), (np.float64, (2, 3, 4, 5, 7, 8, 9, 11)),
        (np.int16, (2, 3, 8, 16, 17, 31, 32, 33, 41, 44)),
        (np.int8, (15, 16, 17, 31, 32, 33, 63, 64, 65, 70, 79, 87, 88)),
    ):  # fmt: skip
        for n in widths:
            for length in (1, 2, 3, 4, 5, 7, 8, 9, 12, 17):
                for turn in range(length):
                    data, expected = _with_winners(n, length, dtype, turn)
                    given = np.ascontiguousarray(data.T)
                    _check(given, 0, expected, "columns")
                    if turn % 3 == 0:
                        _check(_pitched(given, 1), 0, expected, "columns")


def modes() -> None:
    """Test subnormals in the floating-point mode "denormals are zero": rows, columns, one segment and two inputs."""
    for dtype, words in ((np.float32, np.uint32), (np.float64, np.uint64)):
        for length, n in ((1, 9), (1, 40), (3, 3), (4, 20), (5, 34), (4, 70), (9, 5)):
            for place in range(n):
                bits = (np.arange(length * n) % 50 + 1).astype(words).reshape(length, n)
                bits[:, place] = 60 + np.arange(length)
                given, last = bits.view(dtype), bits[-1].copy().view(dtype)
                ids = np.zeros(n, np.int64)
                with subnormals_as_zero():
                    got = [
                        *(mo.reduce_max(given, axis, keepdims=False) for axis in (0, 1)), mo.maximum(given, last),
                        mo.segment_max(last, ids, 1, fill_mode="LOWEST"),
                    ]  # fmt: skip
                expected = [bits.max(0), bits.max(1), np.maximum(bits, bits[-1]), bits[-1:].max(1)]
                if [each.tobytes() for each in got] != [each.tobytes() for each in expected]:
                    fail(
                        "maximum, reduce_max and segment_max, subnormals",
                        expected,
                        [each.view(words) for each in got],
                        bits=bits,
                    )
                counted["subnormals as zero"] += 4
