"""All pairs of boundary values and their maxima, which fill every lane and every position.

The reference computes each pair once. The maximum of many copies of the two values is the same, because the maximum is
associative, commutative and idempotent. A test verifies this against the reference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from maxops import dtypes, spec
from maxops.conformance import pool
from maxops.conformance.case import Call, Input
from maxops.conformance.expected import expected_result, without_nan
from maxops.dtypes import DType
from maxops.plan import Array

Which = Literal["value", "nan", "zeros", "lowest"]

# The maximum length of vectors. Lengths from 1 cover every register width, and twice and four times that width.
MAX_LENGTH = 130
BANDS = ((1, 8), (9, 16), (17, 32), (33, 64), (65, 96), (97, MAX_LENGTH))
SAMPLE = (1, 3, 8, 16, 17, 31, 65, MAX_LENGTH)


@dataclass(frozen=True)
class Pairs:
    """Values u and v with their maximum, the maximum of v alone, and the maxima of a runtime that ignores NaN.

    `position` numbers the pairs. Those with numbers below `different` have two different values.
    """

    u: Array
    v: Array
    expected: Array
    alone: Array
    without_nan: Array
    alone_without_nan: Array
    has_nan: bool
    position: Array
    different: int

    def __len__(self) -> int:
        return len(self.u)


@cache
def pairs(dtype: DType, which: Which) -> Pairs:
    """Return all ordered pairs without a NaN, with one or two NaNs, of two zeros, or of only the lowest value."""
    ordinary, nans = pool.ordinary(dtype), pool.nans(dtype)
    if which == "zeros":
        ordinary = pool.zeros(dtype)
    if which == "lowest":
        ordinary = pool.of_words(dtype, [dtype.lowest_bits])
    values = np.concatenate([ordinary, nans]) if which == "nan" else ordinary
    u, v = (each.reshape(-1) for each in np.meshgrid(values, values, indexing="ij"))
    if which == "nan":
        chosen = pool.is_nan(u) | pool.is_nan(v)
        u, v = u[chosen], v[chosen]
    row = replace(spec.MAX_13, dtypes=dtypes.ALL)  # a row with the common semantics that supports every type
    call = Call(row, (Input("a", dtype, (None,)), Input("b", dtype, (None,))))
    both, twice = (u, v), (v, v)
    same = u.view(dtype.word) == v.view(dtype.word)
    return Pairs(
        u,
        v,
        expected_result(row, call, both),
        expected_result(row, call, twice),
        without_nan(row, call, both),
        without_nan(row, call, twice),
        which == "nan",
        _positions(same),
        int((~same).sum()),
    )


def _positions(same: Array) -> Array:
    return np.argsort(np.argsort(same, kind="stable"), kind="stable")


@cache
def repeated(dtype: DType, which: Which) -> Pairs:
    """Repeat the pairs so that v can be at every position of an array that otherwise contains copies of u.

    Both (u, v) and (v, u) are pairs, so either value is at every position among copies of the other.
    """
    table = pairs(dtype, which)
    if not 0 < table.different < MAX_LENGTH:
        return table
    count = MAX_LENGTH if table.different == 2 else -(-MAX_LENGTH // table.different)
    names = ("u", "v", "expected", "alone", "without_nan", "alone_without_nan")
    arrays: dict[str, Any] = {name: np.repeat(getattr(table, name), count) for name in names}
    return replace(
        table,
        **arrays,
        position=_positions(np.repeat(table.position >= table.different, count)),
        different=table.different * count,
    )


def bands(count: int) -> list[range]:
    """Split the lengths from 1 to 130 into `count` parts."""
    size = len(BANDS) // count
    return [range(BANDS[start][0], BANDS[start + size - 1][1] + 1) for start in range(0, len(BANDS), size)]


def between(lengths: range) -> str:
    """Return lengths in words."""
    return f"of lengths {lengths.start} to {lengths.stop - 1}"


def meanings(dtype: DType) -> list[tuple[Which, str, str]]:
    """Return the tests for a type's pairs: the kind of pairs, the meaning of the clause, and a description."""
    found: list[tuple[Which, str, str]] = [("value", "value", "each pair of boundary values")]
    if dtype.kind == "float":
        found.append(("nan", "propagates", "each pair with a NaN"))
        found.append(("zeros", "zeros", "zeros of both signs"))
    return found


def lowest_alone(dtype: DType) -> tuple[Which, str, str]:
    """Return the test for the lowest value, which detects loops that start from a higher value."""
    return "lowest", "value", "-Inf alone" if dtype.kind == "float" else "the lowest value alone"


def tiled(array: Array) -> Array:
    """Repeat the array so that every rotation is a slice."""
    return np.concatenate([array] * (-(-(len(array) + MAX_LENGTH) // len(array))))
