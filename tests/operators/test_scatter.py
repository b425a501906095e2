"""ScatterElements and ScatterND with the reduction "max", compared with the reference for all indices and arrays."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import STORED, Array, assert_same_bits, mixed, of_words, swapped
from maxops import reference
from maxops.dtypes import BOOL, FLOAT32, INT8, DType
from maxops.errors import AttributeValueError, IndicesError, MaxopsError, OutputError, OutputTooLargeError

ELEMENTS, ND = mo.operator("ONNX", "ScatterElements", 18), mo.operator("ONNX", "ScatterND", 18)


def scatter_elements(data: Any, indices: Any, updates: Any, axis: int = 0, **more: Any) -> Array:
    result: Array = ELEMENTS(data, indices, updates, axis=axis, reduction="max", **more)
    return result


def scatter_nd(data: Any, indices: Any, updates: Any, **more: Any) -> Array:
    result: Array = ND(data, indices, updates, reduction="max", **more)
    return result


def shapes(most: int) -> Iterator[tuple[int, ...]]:
    for rank in (1, 2, 3):
        yield from product(range(most + 1), repeat=rank)


def drawn(sizes: tuple[int, ...], shape: tuple[int, ...], seed: int) -> Array:
    """Return random indices into these sizes, or into one size, half of them negative."""
    bounds = np.broadcast_to(np.array(sizes, np.int64), shape).reshape(
        -1
    )  # NumPy's random functions support up to 32 axes
    return (np.random.default_rng(seed).integers(-bounds, bounds) if bounds.size else bounds).reshape(shape)


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_elements_of_every_small_shape(axis: int) -> None:
    count = 0
    for number, shape in enumerate(shapes(2)):
        if not -len(shape) <= axis < len(shape):
            continue
        for inner in product(
            *(range(4) if place == axis % len(shape) else range(size + 1) for place, size in enumerate(shape))
        ):
            if shape[axis] == 0 and 0 not in inner:
                continue
            data, updates = mixed(INT8, shape, number), mixed(INT8, inner, number + 1)
            indices = drawn((shape[axis],), inner, number)
            expected = reference.scatter_max(data, indices, updates, axis % len(shape))
            assert_same_bits(scatter_elements(data, indices, updates, axis), expected)
            count += 1
    assert count > 100


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_slices_of_every_small_shape(depth: int) -> None:
    count = 0
    for number, shape in enumerate(shapes(2)):
        for outer in ((), (0,), (3,), (2, 2), (2, 0)):
            if depth > len(shape) or (0 in shape[:depth] and 0 not in outer):
                continue
            indices = drawn(shape[:depth], (*outer, depth), number)
            data, updates = mixed(INT8, shape, number), mixed(INT8, (*outer, *shape[depth:]), number + 1)
            assert_same_bits(scatter_nd(data, indices, updates), reference.scatter_max(data, indices, updates))
            count += 1
    assert count > 30


@pytest.mark.parametrize("dtype", [*STORED, BOOL], ids=str)
def test_every_type(dtype: DType) -> None:
    """Test native and swapped bytes, and several updates of an element."""
    data, updates = mixed(dtype, (40, 3), 1, nans=0.2), mixed(dtype, (500, 3), 2, nans=0.2)
    indices = drawn((40,), (500, 3), 3)
    expected = reference.scatter_max(data, indices, updates, 0)
    assert_same_bits(scatter_elements(data, indices, updates), expected)
    assert_same_bits(scatter_elements(swapped(data), swapped(indices), swapped(updates)), expected)
    assert_same_bits(scatter_elements(data, indices.astype(np.int32), updates), expected)
    rows = indices[:, :1]
    assert_same_bits(scatter_nd(data, rows, updates), reference.scatter_max(data, rows, updates))


def test_layouts_are_of_no_importance() -> None:
    data, updates, indices = mixed(FLOAT32, (6, 8), 1), mixed(FLOAT32, (10, 8), 2), drawn((6,), (10, 8), 3)
    expected = scatter_elements(data, indices, updates)
    fortran = [np.asfortranarray(each) for each in (data, indices, updates)]
    reversed_twice = [np.flip(np.flip(each, 1).copy(), 1) for each in (data, indices, updates)]
    for arrays in (fortran, reversed_twice):
        assert_same_bits(scatter_elements(*arrays), expected)
    repeated = np.broadcast_to(updates[:1], updates.shape)
    assert_same_bits(scatter_elements(data, indices, repeated), scatter_elements(data, indices, repeated.copy()))


@pytest.mark.parametrize("rank", [5, 32, 64])
def test_high_ranks(rank: int) -> None:
    shape = (2,) * 5 + (1,) * (rank - 5)
    data, updates, indices = mixed(FLOAT32, shape, 1), mixed(FLOAT32, shape, 2), drawn((2,), shape, 3)
    result = scatter_elements(data, indices, updates)
    flat, names, news = (each.reshape(shape[:5]) for each in (data, indices, updates))
    assert_same_bits(result.reshape(shape[:5]), reference.scatter_max(flat, names, news, 0))
    if rank < 64:
        names = drawn((2, 2), (7, 2), 4)
        slices = mixed(FLOAT32, (7, *shape[2:]), 5)
        flat_slices = slices.reshape(7, *shape[2:5])
        expected = reference.scatter_max(flat, names, flat_slices)
        assert_same_bits(scatter_nd(data, names, slices).reshape(shape[:5]), expected)


def test_elements_without_updates_keep_their_bits() -> None:
    """Test that elements with updates are canonical like other results: any NaN becomes the quiet NaN."""
    words = [0xFFC00005, 0x7F800001, 0xFF800001, 0x80000000, 0xFFC00005]
    data = of_words(FLOAT32, words)
    result = scatter_elements(data, np.array([4]), np.array([1], np.float32))
    assert result.view(np.uint32).tolist() == [*words[:4], FLOAT32.nan_bits]
    assert scatter_elements(data, np.zeros(0, np.int64), np.zeros(0, np.float32)).view(np.uint32).tolist() == words


def test_out_may_be_the_data() -> None:
    data, updates, indices = mixed(FLOAT32, (50,), 1), mixed(FLOAT32, (200,), 2), drawn((50,), (200,), 3)
    expected = scatter_elements(data, indices, updates)
    swapped_out = np.empty(50, ">f4")
    assert scatter_elements(data, indices, updates, out=swapped_out) is swapped_out
    assert_same_bits(swapped_out.astype("f4"), expected)
    assert scatter_elements(data, indices, updates, out=data) is data
    assert_same_bits(data, expected)


def test_out_is_unchanged_by_an_error() -> None:
    out = np.full(3, 7, np.float32)
    data = np.zeros(3, np.float32)
    with pytest.raises(IndicesError):
        scatter_elements(data, np.array([0, 3]), np.ones(2, np.float32), out=out)
    assert out.tolist() == [7, 7, 7]
    with pytest.raises(OutputError, match=r"out has shape \(2,\), but the result has shape \(3,\)"):
        scatter_elements(data, np.array([0]), np.ones(1, np.float32), out=out[:2])


@pytest.mark.parametrize(
    ("indices", "position", "held", "bounds"),
    [
        ([[0, 3]], (0, 1), 3, "-3 and 2"),
        ([[-4, 0]], (0, 0), -4, "-3 and 2"),
        ([[0, 0], [2**63 - 1, 0]], (1, 0), 2**63 - 1, "-3 and 2"),
        ([[-(2**63), 0]], (0, 0), -(2**63), "-3 and 2"),
    ],
)
def test_an_index_out_of_range(indices: list[list[int]], position: Any, held: int, bounds: str) -> None:
    data, given = np.zeros((3, 2), np.float32), np.array(indices)
    with pytest.raises(IndexError) as caught:
        scatter_elements(data, given, np.zeros(given.shape, np.float32))
    expected = f"indices must be between {bounds} for an axis of size 3, got {held} at position {position}"
    assert expected in str(caught.value)
    assert isinstance(caught.value, IndicesError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.clause == "ONNX.ScatterElements-18.indices"


def test_an_index_of_each_axis_has_bounds_of_its_own() -> None:
    data = np.zeros((3, 2), np.float32)
    assert scatter_nd(data, np.array([[2, 1], [-3, -2]]), np.array([5, 6], np.float32)).tolist() == [
        [6, 0],
        [0, 0],
        [0, 5],
    ]
    with pytest.raises(IndicesError, match=r"between -2 and 1 for an axis of size 2, got 2 at position \(1, 1\)"):
        scatter_nd(data, np.array([[2, 1], [0, 2]]), np.array([5, 6], np.float32))
    with pytest.raises(IndicesError, match=r"must be empty for an axis of size 0, got 0 at position \(0,\)"):
        scatter_nd(np.zeros((0, 2), np.float32), np.array([0]), np.zeros(2, np.float32))


def floats(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def ints(*shape: int, of: Any = np.int64) -> Array:
    return np.zeros(shape, of)


A_LIST = "must be a NumPy array, got list; convert it with np.asarray(...) [T]"


@pytest.mark.parametrize(
    ("operator", "arguments", "text"),
    [
        (ELEMENTS, (floats(), ints(), floats()), "data must have rank 1 or more, got rank 0 [data]"),
        (ND, (floats(), ints(0), floats()), "data must have rank 1 or more, got rank 0 [data]"),
        (ELEMENTS, (floats(3, 2), ints(2), floats(2)),
         "indices must have the same rank as data (2), got shape (2,) [indices.shape]"),
        (ELEMENTS, (floats(3, 2), ints(1, 3), floats(1, 3)),
         "indices of shape (1, 3) must have at most 2 elements along axis 1 for data of shape (3, 2) [indices.size]"),
        (ELEMENTS, (floats(3), ints(1), floats(3)),
         "updates must have shape (1,) for indices of shape (1,), got (3,) [updates.shape]"),
        (ND, (floats(3, 2), ints(), floats()),
         "indices must have rank 1 or more, and their last axis must have at most 2 elements (the rank of data), "
         "got shape () [indices.shape]"),
        (ND, (floats(3, 2), ints(1, 3), floats(1)),
         "indices must have rank 1 or more, and their last axis must have at most 2 elements (the rank of data), "
         "got shape (1, 3) [indices.shape]"),
        (ND, (floats(3, 2), ints(4, 1), floats(4)),
         "updates must have shape (4, 2) for indices of shape (4, 1) and data of shape (3, 2), got (4,) "
         "[updates.shape]"),
        (ELEMENTS, (floats(3), ints(1), np.zeros(1)),
         "updates must have the same dtype as data (float32), got float64 [T]"),
        *((ELEMENTS, (floats(3), ints(1, of=dtype), floats(1)),
           f"indices must have dtype int32 or int64, got {np.dtype(dtype)}; convert it to int64 [T_IDX]")
          for dtype in (np.uint64, np.int8, np.bool)),
        (ND, (floats(3), ints(1, 1, of=np.int32), floats(1)),
         "indices must have dtype int64, got int32; convert it to int64 [T_IDX]"),
        (ELEMENTS, ([0], ints(1), floats(1)), f"data {A_LIST}"),
        (ELEMENTS, (floats(1), [0], floats(1)), f"indices {A_LIST}"),
        (ELEMENTS, (floats(1), ints(1), [0]), f"updates {A_LIST}"),
    ],
    ids=lambda value: value.partition("[")[2] if isinstance(value, str) else "",
)  # fmt: skip
def test_types_that_do_not_go_together(operator: Any, arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(MaxopsError) as caught:
        operator(*arguments, reduction="max")
    assert str(caught.value) == f"{operator.spec.name} {text.replace('[', f'[ONNX.{operator.spec.name}.')}"


@pytest.mark.parametrize("reduction", ["none", "add", "MAX", None, 1, np.array(["max", "x"])], ids=repr)
def test_other_reductions(reduction: Any) -> None:
    data = np.zeros(3, np.float32)
    with pytest.raises(AttributeValueError, match="reduction must be 'max', got") as caught:
        ELEMENTS(data, np.array([0]), data[:1], reduction=reduction)
    assert caught.value.clause == "ONNX.ScatterElements-18.reduction"


@pytest.mark.parametrize("updates", [1, 7, 24, 25, 26, 99, 100, 101, 400])
def test_few_updates_of_many_elements_and_many_of_few(updates: int) -> None:
    """Test many elements without updates, whose rows are skipped."""
    data, given = mixed(FLOAT32, (100,), 1, nans=0.3), mixed(FLOAT32, (updates,), 2, nans=0.3)
    places = drawn((100,), (updates,), 3)
    assert_same_bits(scatter_elements(data, places, given), reference.scatter_max(data, places, given, 0))
    rows, new = data.reshape(50, 2), mixed(FLOAT32, (updates, 2), 4, nans=0.3)
    names = drawn((50,), (updates, 1), 5)
    assert_same_bits(scatter_nd(rows, names, new), reference.scatter_max(rows, names, new))


def test_a_tiny_update_takes_no_more_than_the_result() -> None:
    data = np.zeros(1 << 22, np.float32)
    tracemalloc.start()
    try:
        scatter_elements(data, np.array([5]), np.ones(1, np.float32))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < data.nbytes * 1.01


def test_indices_that_no_memory_holds() -> None:
    places = np.broadcast_to(np.zeros(1, np.int64), (1 << 45,))
    updates = np.broadcast_to(np.zeros(1, np.float32), (1 << 45,))
    with pytest.raises(OutputTooLargeError, match=r"indices of shape \(35184372088832,\): Unable to allocate"):
        scatter_elements(np.zeros(3, np.float32), places, updates)


def test_a_result_that_no_memory_holds() -> None:
    data = np.broadcast_to(np.zeros(1, np.float32), (1 << 45,))
    with pytest.raises(OutputTooLargeError, match=r"output of shape .* needs .* GiB, but this machine has "):
        scatter_elements(data, np.array([0]), np.ones(1, np.float32))
