"""Tests every operator on every pair of boundary values: zeros, subnormals, infinities and NaNs of both signs."""

from __future__ import annotations

from typing import Any

import numpy as np

import maxops as mo

from .states import Array, counted, fail

SIZES = (1, 2, 3, 5, 9, 17, 40, 70)  # parts of vectors, whole vectors, and more than two vectors of any width


def _hard(dtype: Any) -> Array:
    """Return the bits of both signs of 0, the subnormal limits, 1, the largest number, infinity, and NaNs."""
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    infinity = int(np.array(np.inf, dtype).view(unsigned))
    least = int(np.finfo(dtype).smallest_normal.view(unsigned))
    one = int(np.array(1, dtype).view(unsigned))
    sign = 1 << (8 * unsigned.itemsize - 1)
    bits = [0, 1, least - 1, least, one, infinity - 1, infinity, infinity + 1, infinity + least // 2, sign - 1]
    return np.array([x | s for s in (0, sign) for x in bits], unsigned)


def _highest(x: int, y: int, dtype: Any, nan: str) -> int:
    """Return the maximum of two floats by the definition, with all values as bits in Python integers."""
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    infinity = int(np.array(np.inf, dtype).view(unsigned))
    sign = 1 << (8 * unsigned.itemsize - 1)
    if nan == "ignore":
        x, y = (y if x & (sign - 1) > infinity else x), (x if y & (sign - 1) > infinity else y)
    if max(x & (sign - 1), y & (sign - 1)) > infinity:
        return int(np.array(np.nan, dtype).view(unsigned)) & (sign - 1)
    return max(x, y, key=lambda bits: sign - 1 - bits if bits & sign else bits)


def pairs(dtype: Any, sizes: tuple[int, ...] = SIZES) -> None:
    """Test each pair as two inputs, and one value between runs of the other, which must not hide it."""
    for nan in ("propagate", "ignore"):
        _pairs(dtype, sizes, nan)


def _pairs(dtype: Any, sizes: tuple[int, ...], nan: Any) -> None:
    hard = _hard(dtype)
    for x in hard:
        for y in hard:
            expected = _highest(int(x), int(y), dtype, nan)
            for n in sizes:
                a, b = np.full(n, x), np.full(n, y)
                for inputs in ((a, b), (a, b, a), (a, b[:1])):
                    got = mo.maximum(*(each.view(dtype) for each in inputs), nan=nan).view(hard.dtype)
                    if (got != expected).any():
                        fail("maximum", hex(expected), [hex(z) for z in got], inputs=inputs)
                mixed = a.copy()
                mixed[n // 3 : n - n // 3] = y
                rows = np.tile(mixed, (5, 1))
                alone = expected if n > 2 else _highest(int(y), int(y), dtype, nan)
                for name, got in (
                    ("all", mo.reduce_max(mixed.view(dtype), nan=nan)),
                    ("rows", mo.reduce_max(rows.view(dtype), axes=1, nan=nan)),
                    ("columns", mo.reduce_max(np.ascontiguousarray(rows.T).view(dtype), axes=0, nan=nan)),
                ):
                    if (np.asarray(got).view(hard.dtype) != alone).any():
                        fail(f"reduce_max, {name}", hex(alone), got, data=rows)
                ids = np.repeat(np.arange(n), 2)
                both = np.tile(np.array([x, y]), n).view(dtype)
                got = mo.segment_max(both, ids, fill_mode="ZERO", nan=nan).view(hard.dtype)
                if (got != expected).any():
                    fail("segment_max", hex(expected), [hex(z) for z in got], x=hex(x), y=hex(y), ids=ids)
                counted["values"] += 7
