"""Tests ReduceMax and Max with enough rows and vectors for a whole task, stream or tile of the miniature.

The maximum of each output moves through all positions of its row, or through some, and differs between outputs.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import maxops as mo

from .states import Array, counted, fail


def _check(rows: int, n: int, dtype: Any, turn: int, what: str) -> None:
    """Test rows, each with its maximum one position after that of the row before, with and without gaps."""
    expected = np.arange(rows).astype(dtype)
    wide = np.full((rows, n + 1), 120, dtype)
    wide[:, :n] = np.arange(rows * n).reshape(rows, n) % 100 - 128
    wide[np.arange(rows), (turn + np.arange(rows)) % n] = expected
    for given in (wide[:, :n].copy(), wide[:, :n]):
        got = mo.reduce_max(given, 1, keepdims=False)
        if got.tobytes() != expected.tobytes():
            fail(f"reduce_max, {what}", expected, got, data=given)
        counted[f"reduce_max: {what}"] += 1


def rows() -> None:
    """Test as many rows of more than 16 bytes as a vector has lanes of 8 bytes, and parts of transposed squares."""
    for length, n in itertools.product((7, 8, 9), range(3, 11)):
        for turn in range(n):
            _check(length, n, np.float64, turn, "rows of a task")
    for length in (16, 17, 19, 23):
        for turn in range(16):
            _check(length, 16, np.int8, turn, "squares in parts")


def streams() -> None:
    """Test rows slightly longer than the minimum for four streams, and shorter than the longest streams."""
    for n in (641, 673, 700, 735, 767):
        for turn in range(0, n, 31):
            _check(16, n, np.int8, turn, "rows of short streams")


def transposed() -> None:
    """Test Max of a matrix and two transposed ones, with sizes around multiples of the transposed squares."""
    sizes = (8, 9, 16, 17)
    for dtype, height, width in itertools.product((np.int8, np.int16, np.int32, np.float64), sizes, sizes):
        numbers = np.arange(3 * height * width)
        ranks: list[Array] = [(numbers[start::3] * 77 % 251 - 125).astype(dtype) for start in range(3)]
        plain, across, other = (each.reshape(width, height).T for each in ranks)
        plain = np.ascontiguousarray(plain)
        expected = np.maximum(np.maximum(plain, across), other)
        for given in ((across, other, plain), (plain, across, other)):
            got = mo.maximum(*given)
            if (got != expected).any():
                fail("maximum, two transposed", expected, got, inputs=given)
            counted["maximum: two transposed"] += 1


def between_lines() -> None:
    """Test Max into unaligned outputs, some of which begin one byte before a cache line."""
    for n, start in itertools.product((18, 24, 36), (15, 31, 47, 63)):
        data = np.arange(n) * 7.0 % 11
        memory = np.full(64 + 36 * 8 + 64, 5, np.uint8)
        out = np.ndarray((n,), np.float64, memory, start)
        for inputs in ((data,), (data, data[::-1].copy())):
            expected = np.maximum.reduce(inputs)
            memory[:] = 5
            mo.maximum(*inputs, out=out)
            got = out.tobytes()
            out.view(np.uint8)[...] = 5
            if got != expected.tobytes() or (memory != 5).any():
                fail("maximum, out= between lines", expected, np.frombuffer(got), inputs=inputs, start=start)
            counted["maximum: out= between lines"] += 1
