"""The arrays and the expected result of a case. The same case id always produces the same arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from maxops import dtypes, reference
from maxops.bench.grid import EMPTY_EACH, Case, Operand, View
from maxops.dtypes import DType
from maxops.plan import Array

FILL_MODE = "LOWEST"
BY_REFERENCE = 2_000  # the largest number of elements for which the reference computes the expected result
_BLOCK = (1 << 20) + 7  # number of random values, which are repeated; odd, so that blocks of a power of two differ
# Page offsets of arrays: 16 bytes past the start of a cache line, as in NumPy, with a different line for each array.
_PAGE, _PAST, _APART = 4096, 16, 17 * 64


@dataclass(frozen=True)
class Work:
    """A case with its arrays, which are views of `bases` (in C order). If `out` is None, calls allocate the output."""

    case: Case
    bases: tuple[Array, ...]
    arrays: tuple[Array, ...]
    ids: Array | None = None
    out: Array | None = None

    @property
    def data(self) -> Array:
        """The first input."""
        return self.arrays[0]

    @property
    def named(self) -> dict[str, Array]:
        """All arrays by their names in the candidates' code."""
        named = {f"x{number}": array for number, array in enumerate(self.arrays)}
        others = {"data": self.data, "ids": self.ids, "out": self.out}
        return named | {name: array for name, array in others.items() if array is not None}

    @property
    def axes(self) -> tuple[int, ...] | None:
        """The reduced axes, or None for all axes."""
        return None if len(self.case.axes) == self.data.ndim else self.case.axes

    @property
    def has_empty(self) -> bool:
        """Whether some segments have no rows."""
        return self.ids is not None and self.case.shape[0] > len(np.unique(self.ids))

    @property
    def lowest(self) -> Any:
        """The value of empty segments under LOWEST, as a NumPy scalar."""
        dtype = self.case.dtype
        return np.array(dtype.lowest_finite_bits, dtype.word).view(dtype.numpy)[()]


def build(case: Case) -> Work:
    """Build the arrays of a case."""
    random = np.random.default_rng(crc32(case.id.encode()))
    bases = tuple(values(case, operand, random, number) for number, operand in enumerate(case.operands))
    arrays = tuple(view(base, operand.view) for base, operand in zip(bases, case.operands, strict=True))
    ids = _segment_ids(case, random) if case.operator == "SegmentMax" else None
    out = empty(prod(case.shape), case.dtype.numpy, len(bases) + 1).reshape(case.shape) if case.out else None
    return Work(case, bases, arrays, ids, out)


def empty(size: int, dtype: Any, number: int) -> Array:
    """Return an array whose page offset depends only on its number.

    The offset changes times by a factor of up to 1.4.
    """
    dtype = np.dtype(dtype)
    room = np.zeros(size * dtype.itemsize + _PAGE, np.uint8)
    start = (_PAST + number * _APART - room.ctypes.data) % _PAGE
    return np.asarray(room[start : start + size * dtype.itemsize].view(dtype))


def view(base: Any, kind: View) -> Any:
    """Return the view of a base that a case requires. A base may be any array that supports NumPy's slices."""
    if kind == "transposed":
        return base.T
    if kind == "half-rows":
        return base[..., : base.shape[-1] // 2]
    return base[..., ::2] if kind == "every-second" else base


def values(case: Case, operand: Operand, random: np.random.Generator, number: int) -> Array:
    """Return values without NaN and float zeros and, except for bool, without the extreme values of the type.

    A reduction could stop early when it reaches the highest value.
    """
    size = prod(operand.base_shape)
    array = empty(size, case.dtype.numpy, number)
    if case.dtype is dtypes.BOOL and case.operator == "ReduceMax":
        array[-1] = True
        return array.reshape(operand.base_shape)
    block = _ordinary(case.dtype, min(size, _BLOCK), random)
    for start in range(0, size, _BLOCK):
        array[start : start + _BLOCK] = block[: size - start]
    return array.reshape(operand.base_shape)


def _ordinary(dtype: DType, size: int, random: np.random.Generator) -> Array:
    if dtype.kind == "float":
        normal = random.standard_normal(size).astype(dtype.numpy)
        normal[normal == 0] = 0.5
        return np.asarray(normal)
    if dtype.kind == "bool":
        return random.integers(0, 2, size).astype(bool)
    info = np.iinfo(dtype.numpy)
    return np.asarray(random.integers(info.min + 1, info.max, size, dtype.numpy))


def _segment_ids(case: Case, random: np.random.Generator) -> Array:
    """Return sorted ids with exactly the case's number of segments."""
    rows, count = case.operands[0].shape[0], case.shape[0]
    ids = empty(rows, case.id_type, len(case.operands))
    if case.lengths == "mean-1":
        ids[:] = np.arange(rows)
        return ids
    empty_each = EMPTY_EACH if case.lengths == "many-empty" else 1
    filled = count // empty_each
    used = np.arange(filled) * empty_each + random.integers(0, empty_each, filled)
    used[-1] = count - 1
    ids[:] = np.repeat(used.astype(ids.dtype), _lengths(case.lengths == "zipf", rows, filled, random))
    return ids


def _lengths(zipf: bool, rows: int, count: int, random: np.random.Generator) -> Array:
    """Return `count` lengths of at least 1 that add up to `rows`."""
    weights = random.permutation(1 / np.arange(1, count + 1) ** 1.1) if zipf else random.integers(1, 4, count)
    ends = np.rint(np.cumsum(weights) * ((rows - count) / weights.sum())).astype(np.int64)
    return np.asarray(1 + np.diff(ends, prepend=0))


def expected_result(work: Work, *, by_reference: bool | None = None) -> Array:
    """Return the expected result. NumPy computes it if the reference would be too slow.

    For the values of `build`, NumPy's maximum is exact in every bit. These values contain no NaN or floating-point
    zero, so equal values have equal bits.
    """
    case, data, ids = work.case, work.data, work.ids
    if max(array.size for array in work.arrays) <= BY_REFERENCE if by_reference is None else by_reference:
        if case.operator == "Max":
            return reference.maximum(*work.arrays)
        if ids is None:
            return reference.reduce_max(data, case.axes, keepdims=False)
        return reference.segment_max(data, ids, case.shape[0], FILL_MODE)
    if case.operator == "Max":
        return reduce(np.maximum, work.arrays)
    if ids is None:
        return np.asarray(np.maximum.reduce(data, case.axes))
    result = np.full(case.shape, work.lowest, case.dtype.numpy)
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    result[ids[starts]] = np.maximum.reduceat(data, starts, axis=0)
    return result


def bits(array: Array) -> Array:
    """Return the elements' bits."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def same_bits(actual: Array, expected: Array) -> bool:
    """Return whether two arrays agree in type, shape and every bit."""
    same = (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    return same and bool(np.array_equal(bits(actual), bits(expected)))
