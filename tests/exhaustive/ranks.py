"""Tests high ranks with few elements: each axis has size 0, 1 or 2, and is broadcast or not, kept or reduced."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

import maxops as mo
from maxops.errors import ShapeError

from .states import Array, counted, fail

Shape = tuple[int, ...]


def numbers(shape: Shape, seed: int = 0) -> Array:
    """Return distinct numbers in random order."""
    count = int(np.prod(shape))
    return np.random.default_rng([seed, *shape]).permutation(count).astype(np.float32).reshape(shape)


def orders(rank: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield orders of axes: unchanged, reversed, with the first axis last, and random ones."""
    axes = tuple(range(rank))
    yield from (axes, axes[::-1], (*axes[1:], 0))
    random = np.random.default_rng(rank)
    yield from (tuple(random.permutation(rank).tolist()) for _ in range(count - 3))


def laid(values: Array, order: tuple[int, ...], *, apart: bool = False) -> Array:
    """Return the values with this order of axes in memory, outermost first. `apart` adds gaps and reverses axes."""
    inner = values.transpose(order)
    if apart:
        room = np.full([2 * size for size in inner.shape], np.float32(np.inf))
        place = tuple(slice(None, None, 2) if axis % 2 else slice(-2, None, -2) for axis in range(inner.ndim))
        made = room[place]
        made[...] = inner
    else:
        made = inner.copy(order="C")
    return made.transpose(*np.argsort(order))


def broadcasts(rank: int, every: int = 1) -> None:
    """Test Max of two and three inputs. Each axis is broadcast in one of four ways.

    Only every `every`-th combination is tested. `every` is odd, so that each axis takes all four ways.
    """
    ways = list(itertools.product(((1, 2), (2, 1), (2, 2), (1, 1)), repeat=rank))
    layouts = list(orders(rank, 8))
    for number, pairs in enumerate(ways[::every]):
        first, second = (numbers(tuple(pair[k] for pair in pairs), k) for k in (0, 1))
        order, other = layouts[number % 8], layouts[number // 8 % 8]
        expected = np.maximum(first, second)
        lead = next((axis for axis, size in enumerate(second.shape) if size != 1), rank)
        given: list[Array] = [
            laid(first, order, apart=number % 3 == 0),
            laid(second, other).reshape(second.shape[lead:]),
        ]
        for inputs in (given, given[::-1], [*given, laid(first, other, apart=True)]):
            got = mo.maximum(*inputs)
            if got.shape != expected.shape or got.tobytes() != expected.tobytes():
                fail("maximum, ranks", expected, got, inputs=inputs)
        out = laid(np.zeros(expected.shape, np.float32), other, apart=number % 2 == 0)
        mo.maximum(*given, out=out)
        if out.tobytes() != expected.tobytes():
            fail("maximum, ranks, out", expected, out, inputs=given)
        counted["maximum: ranks"] += 4


def sizes(rank: int, every: int = 1) -> None:
    """Test sizes 0, 1 and 2 against each other along each axis: the shape, or an error by NumPy's or SONNX's rule."""
    strict = mo.operator("SONNX", "Max")
    for pairs in itertools.islice(
        itertools.product(itertools.product(range(3), repeat=2), repeat=rank), 0, None, every
    ):
        inputs = [np.zeros([pair[k] for pair in pairs], np.float32) for k in (0, 1)]
        go = all(a == b or 1 in (a, b) for a, b in pairs)
        shape = tuple(b if a == 1 else a for a, b in pairs)
        for function, is_valid in ((mo.maximum, go), (strict, go and not any({0, 1} == {*pair} for pair in pairs))):
            call: Any = function
            try:
                got: Any = call(*inputs).shape
            except ShapeError:
                got = None
            if got != (shape if is_valid else None):
                fail("maximum, ranks, sizes", shape if is_valid else "a ShapeError", got, inputs=inputs)
            counted["maximum: ranks, sizes"] += 1


def reductions(rank: int, layouts: int = 8) -> None:
    """Test ReduceMax along every set of axes, with and without keepdims, of shapes with several axes of size 1."""
    for number, mask in enumerate(itertools.product((False, True), repeat=rank)):
        axes = tuple(axis for axis in range(rank) if mask[axis]) or tuple(range(rank))
        shapes: list[Shape] = [(2,) * rank, tuple(1 + ((number >> axis % 4) + axis) % 2 for axis in range(rank))]
        for shape, order in itertools.product(shapes, orders(rank, layouts)):
            values = numbers(shape, number)
            given = laid(values, order, apart=(number + order[0]) % 2 == 0)
            kept = [axis for axis in range(rank) if axis not in axes]
            flat = values.transpose(*kept, *axes).reshape(*(shape[axis] for axis in kept), -1)
            for keepdims in (False, True):
                expected = values.max(axes, keepdims=keepdims)
                named = axes if number % 2 else tuple(axis - rank for axis in axes[::-1])
                got, places = mo.reduce_max(given, named, keepdims=keepdims, return_indices=True)
                if got.shape != expected.shape or got.tobytes() != np.asarray(expected).tobytes():
                    fail("reduce_max, ranks", expected, got, data=given, axes=named)
                if places.tobytes() != flat.argmax(-1).tobytes():
                    fail("reduce_max, ranks, indices", flat.argmax(-1), places, data=given, axes=named)
                out = laid(np.zeros(got.shape, np.float32), tuple(range(got.ndim))[::-1])
                mo.reduce_max(given, named, keepdims=keepdims, out=out)
                if out.tobytes() != np.asarray(expected).tobytes():
                    fail("reduce_max, ranks, out", expected, out, data=given, axes=named)
                counted["reduce_max: ranks"] += 2


def segments(rank: int, layouts: int = 12) -> None:
    """Test SegmentMax of rows with many axes: sorted, unsorted, with indices, along each axis, and with `out`."""
    ids = np.array([0, 0, 2, 2, 2])
    for number, order in enumerate(orders(rank, layouts)):
        values = numbers((5, *(1 + (axis + number) % 3 % 2 for axis in range(rank - 1))), number)
        expected = np.zeros((3, *values.shape[1:]), np.float32)
        places = np.full(expected.shape, -1)
        for segment in (0, 2):
            expected[segment] = values[ids == segment].max(0)
            places[segment] = values[ids == segment].argmax(0) + np.flatnonzero(ids == segment)[0]
        mixed = [2, 0, 3, 1, 4]
        for apart in (False, True):
            given = laid(values, order, apart=apart)
            out = laid(np.ones(expected.shape, np.float32), order, apart=apart)
            got, found = mo.segment_max(given, ids, fill_mode="ZERO", return_indices=True)
            shuffled = mo.segment_max(given[mixed], ids[mixed], fill_mode="ZERO", sorted=False)
            mo.segment_max(given, offsets=np.array([0, 2, 2, 5]), fill_mode="ZERO", out=out)
            for what in (got, shuffled, out):
                if what.tobytes() != expected.tobytes():
                    fail("segment_max, ranks", expected, what, data=given, ids=ids)
            if found.tobytes() != places.tobytes():
                fail("segment_max, ranks, indices", places, found, data=given, ids=ids)
            for axis in range(rank):
                moved = np.moveaxis(given, 0, axis)
                to = laid(np.moveaxis(np.ones(expected.shape, np.float32), 0, axis), order)
                named = axis if number % 2 else axis - rank
                got, found = mo.segment_max(moved, ids, fill_mode="ZERO", axis=named, return_indices=True)
                alone = mo.segment_max(moved, ids, fill_mode="ZERO", axis=named)
                mo.segment_max(moved, offsets=np.array([0, 2, 2, 5]), fill_mode="ZERO", axis=named, out=to)
                for what in (got, alone, to):
                    if np.moveaxis(what, axis, 0).tobytes() != expected.tobytes():
                        fail("segment_max, axis, ranks", expected, what, data=moved, ids=ids, axis=named)
                if np.moveaxis(found, axis, 0).tobytes() != places.tobytes():
                    fail("segment_max, axis, ranks, indices", places, found, data=moved, ids=ids, axis=named)
            counted["segment_max: ranks"] += 3 * (1 + rank)
