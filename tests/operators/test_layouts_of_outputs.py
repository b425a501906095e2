"""Data and outputs with gaps and any order of axes: the bits equal those of arrays in C order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from exhaustive import ranks
from maxops import _native
from maxops.plan import Array

Give = Callable[[Array], Any]
SIZES = (5, 4, 7)  # so many results that they are not written one by one if their order differs from that of the data
ORDERS = list(permutations(range(3)))


@pytest.fixture(params=["numpy", "torch"])
def give(request: pytest.FixtureRequest) -> Give:
    """Return an array or the tensor that shares its memory. The core accepts both."""
    if request.param == "numpy":
        return lambda array: array
    torch: Any = pytest.importorskip("torch")
    if _native.is_miniature:
        pytest.skip("the miniature leaves all but a few bytes to Python")
    mo.maximum(torch.ones(1))  # the first call registers the engine
    from_numpy: Give = torch.from_numpy
    return from_numpy


def laid_out(array: Array, order: tuple[int, ...], gap: int) -> Array:
    """Return the elements with this order of axes, outermost first, and this stride in elements."""
    whole = np.full([gap * size for size in np.array(array.shape)[list(order)]], 99, array.dtype)
    there = whole[(slice(None, None, gap),) * array.ndim].transpose(np.argsort(order))
    there[...] = array
    return there


def outputs(expected: Array) -> Iterator[Array]:
    for order in permutations(range(expected.ndim)):
        for gap in (1, 2):
            yield laid_out(np.full_like(expected, 99), order, gap)


def numbers(kind: Any) -> Array:
    return np.random.default_rng(1).integers(0, 50, SIZES).astype(kind)


def same(found: Any, expected: Array) -> bool:
    return bool(np.asarray(found).shape == expected.shape and np.array_equal(np.asarray(found), expected))


@pytest.mark.parametrize("kind", ["f4", "i1"])
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_reduce_max(order: tuple[int, ...], kind: str, give: Give) -> None:
    array = numbers(kind)
    every: list[Any] = [0, 1, 2, (0, 2)]
    for axes, gap in product(every, (1, 2)):
        data = give(laid_out(array, order, gap))
        expected = array.max(axes)
        if gap == 1:
            assert same(_native.reduce_max(data, axes, False), expected)
        for room in outputs(expected):
            out = give(room)
            assert _native.reduce_max(data, axes, False, out=out) is out
            assert same(room, expected)
            if isinstance(axes, int):
                values, indices = _native.reduce_max(data, axes, False, out=out, return_indices=True)
                assert values is out
                assert same(room, expected)
                assert same(indices, array.argmax(axes))


@pytest.mark.parametrize("kind", ["f4", "i1"])
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("in_order", [True, False], ids=["sorted", "any"])
def test_segment_max(order: tuple[int, ...], kind: str, in_order: bool, give: Give) -> None:
    array = numbers(kind)
    for axis, gap in product(range(3), (1, 2)):
        data = give(laid_out(array, order, gap))
        rows = np.moveaxis(array, axis, 0)
        ids = np.arange(len(rows)) * 3 // len(rows) * (1 if in_order else -1) % 3
        each = [np.flatnonzero(ids == segment) for segment in range(3)]
        expected = np.moveaxis(np.stack([rows[of].max(0) for of in each]), 0, axis)
        places = np.moveaxis(np.stack([of[rows[of].argmax(0)] for of in each]), 0, axis)
        options = {"fill_mode": "ZERO", "sorted": in_order, "axis": axis}
        indexes = give(ids)
        if gap == 1:
            assert same(_native.segment_max(data, indexes, 3, **options), expected)
        for room in outputs(expected):
            out = give(room)
            assert _native.segment_max(data, indexes, 3, out=out, **options) is out
            assert same(room, expected)
        values, indices = _native.segment_max(data, indexes, 3, out=give(room), return_indices=True, **options)
        assert same(values, expected)
        assert same(indices, places)


@pytest.mark.parametrize("orders", list(product(ORDERS, repeat=2)), ids=str)
def test_maximum(orders: tuple[tuple[int, ...], tuple[int, ...]], give: Give) -> None:
    a, b = numbers("f4"), numbers("f4")[::-1]
    first, second = (give(laid_out(array, order, 1)) for array, order in zip((a, b), orders, strict=True))
    expected = np.maximum(a, b)
    assert same(_native.maximum(first, second), expected)
    for room in outputs(expected):
        out = give(room)
        assert _native.maximum(first, second, out=out) is out
        assert same(room, expected)


def test_an_output_that_is_the_data_in_another_order(give: Give) -> None:
    cube = np.random.default_rng(2).integers(0, 50, (6, 6, 6)).astype("f4")
    for order in ORDERS:
        room = cube.copy()
        out = give(room.transpose(order))
        assert _native.maximum(give(room), 20.0, out=out) is out
        assert same(room.transpose(order), np.maximum(cube, 20))
        room = cube.copy()
        target = room[0].T
        expected = cube.max(1)
        assert _native.reduce_max(give(room), 1, False, out=give(target)) is not None
        assert same(target, expected)


def test_an_output_of_another_rank_goes_to_python(give: Give) -> None:
    """Test an output of another rank, even if its first axes match the result."""
    data, ids = give(numbers("f4")), give(np.zeros(SIZES[0], int))
    calls: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
        (lambda out: _native.maximum(data, data, out=out), SIZES),
        (lambda out: _native.reduce_max(data, 0, False, out=out), SIZES[1:]),
        (lambda out: _native.segment_max(data, ids, 1, fill_mode="ZERO", out=out), (1, *SIZES[1:])),
    ]
    for call, shape in calls:
        for other in ((*shape, 1), (*shape, 2), (1, *shape), shape[:-1], ()):
            assert call(give(np.zeros(other, np.float32))) is None
        assert call(give(np.zeros(shape, np.float32))) is not None


@pytest.mark.parametrize("rank", [5, 6, 7, 8])
def test_a_new_output_has_the_order_of_the_data(rank: int) -> None:
    for order in ranks.orders(rank, 60):
        data = ranks.laid(ranks.numbers((2,) * rank), order)
        assert mo.maximum(data, data).strides == data.strides
        for axis in range(rank):
            kept = [other - (other > axis) for other in order if other != axis]
            expected = ranks.laid(ranks.numbers((2,) * (rank - 1)), tuple(kept)).strides
            assert mo.reduce_max(data, axis, keepdims=False).strides == expected


LARGE = (168, 160, 1, 161)  # bytes: the core counts allocated outputs of at least 4 MiB


def allocated_by(operator: Any, *arrays: Any, **options: Any) -> int:
    """Return the number of large outputs that a call allocates."""
    before = mo.memory_info()
    operator(*arrays, **options)
    after = mo.memory_info()
    return after.reused + after.fresh - before.reused - before.fresh


def large(order: tuple[int, ...], step: int) -> Array:
    """Return an array with this order of axes in memory, the axis of size 1 innermost, and a strided outermost axis."""
    order = (*(np.array([0, 1, 3])[list(order)]), 2)
    outer, *inner = np.array(LARGE)[list(order)]
    return np.zeros((abs(step) * outer, *inner), np.int8)[::step].transpose(np.argsort(order))


@pytest.mark.skipif(bool(_native.is_miniature), reason="has other sizes")
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_an_output_in_the_order_of_the_data_is_written_without_a_copy(order: tuple[int, ...]) -> None:
    """Test that ReduceMax writes directly with gaps and backwards, SegmentMax without gaps, and Max in all cases."""
    rows = large(order, 1)
    data = np.lib.stride_tricks.as_strided(rows, (2, *LARGE), (0, *rows.strides))
    ids = np.arange(len(rows))
    assert allocated_by(mo.reduce_max, data, 0, keepdims=False) == 1
    for other, step in product(ORDERS, (1, 2, -1)):
        out = large(other, step)
        is_in_order = other == order
        assert allocated_by(mo.reduce_max, data, 0, keepdims=False, out=out) == (not is_in_order)
        copies = not (is_in_order and step == 1)
        assert allocated_by(mo.segment_max, rows, ids, len(rows), fill_mode="ZERO", out=out) == copies
        assert allocated_by(mo.maximum, rows, rows, out=out) == 0
