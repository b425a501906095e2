"""`real`: object arrays of exact rationals, compared with Python's own comparison."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import maxops as mo
from helpers.bits import Array
from maxops import reference
from maxops.errors import DTypeError, EmptyReductionError, OutputError

HUGE = 10**400  # above the maximum of float64
VALUES: list[Any] = [
    *(Fraction(n, d) for n in (-7, -1, 0, 1, 3) for d in (1, 2, 3, HUGE)),
    *(-HUGE, -(2**64), -1, 0, 1, 2**53, 2**53 + 1, HUGE, Fraction(1, HUGE), Fraction(HUGE + 1, HUGE)),
]
rationals = st.one_of(st.sampled_from(VALUES), st.integers(), st.fractions())


def real(values: Any, shape: tuple[int, ...] | None = None) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array if shape is None else array.reshape(shape)


def assert_same(got: Array, expected: Array) -> None:
    """Check that two arrays are equal element by element, and that all elements are exact."""
    assert type(got) is np.ndarray
    assert got.dtype == object
    assert got.shape == expected.shape
    for place in np.ndindex(expected.shape):
        assert type(got[place]).__name__ in ("int", "Fraction")
        assert got[place] == expected[place], f"at {place}: {got[place]} is not {expected[place]}"


def test_comparison_fails() -> None:
    with pytest.raises(AssertionError, match=r"at \(1,\)"):
        assert_same(real([1, Fraction(1, 3)]), real([1, Fraction(1, 2)]))
    with pytest.raises(AssertionError):
        assert_same(real([1, 0.5]), real([1, Fraction(1, 2)]))
    with pytest.raises(AssertionError):
        assert_same(real([1]), real([1], (1, 1)))


@pytest.mark.parametrize("call", [mo.maximum, mo.operator("SONNX", "Max")], ids=["maximum", "SONNX"])
def test_every_pair(call: Callable[..., Array]) -> None:
    column, row = real(VALUES, (-1, 1)), real(VALUES)
    expected = real([max(a, b) for a in VALUES for b in VALUES], (len(VALUES), len(VALUES)))
    assert_same(call(column, row), expected)
    assert_same(call(row, column), expected)
    assert_same(call(column, row, column, row), expected)
    assert_same(reference.maximum(column, row), expected)


def test_exactness_past_every_float() -> None:
    a, b = real([Fraction(10**30 + 1, 10**30), 2**53]), real([1, 2**53 + 1])
    assert mo.maximum(a, b).tolist() == [Fraction(10**30 + 1, 10**30), 2**53 + 1]


def test_python_scalars_beside_rationals() -> None:
    data = real([Fraction(1, 3), 5])
    assert_same(mo.maximum(data, Fraction(1, 2), 1), real([1, 5]))
    for value in (0.5, True, float("nan"), float("inf")):
        with pytest.raises(DTypeError):
            mo.maximum(data, value)


def test_reduce_max_of_nothing() -> None:
    """Test that the maximum of no elements is an error, because rationals have no lowest value."""
    for shape, axes in [((0,), ()), ((0, 3), (0,)), ((3, 0), ()), ((2, 0, 3), (1,))]:
        with pytest.raises(EmptyReductionError, match=r"\[maxops.reduce_max.empty\]"):
            mo.reduce_max(np.empty(shape, object), axes)
    assert_same(mo.reduce_max(np.empty((0, 3), object), (1,)), np.empty((0, 1), object))


def test_segment_max() -> None:
    data = real([Fraction(n, 3) for n in range(-6, 6)], (6, 2))
    for ids in ([0, 0, 1, 1, 1, 2], [0, 2, 2, 2, 5, 5]):
        for count in (0, 1, 3, 6, 8):
            expected = reference.segment_max(data, np.array(ids), count, "ZERO")
            assert_same(mo.segment_max(data, np.array(ids), count, fill_mode="ZERO"), expected)
    full = mo.segment_max(data, np.array([0, 0, 1, 1, 2, 2]), fill_mode="LOWEST")
    assert_same(full, reference.segment_max(data, np.array([0, 0, 1, 1, 2, 2]), 3, "ZERO"))
    for gaps, segments in [([0, 0, 2, 2, 2, 2], 3), ([0] * 6, 2), ([1] * 6, None)]:
        with pytest.raises(EmptyReductionError, match=r"\[maxops.segment_max.fill_mode\]"):
            mo.segment_max(data, np.array(gaps), segments, fill_mode="LOWEST")


@pytest.mark.parametrize(
    "value",
    [0.5, float("nan"), float("inf"), True, None, "1", Decimal(1), 1j, np.float64(1), np.int64(1), [1], (1, 2)],
    ids=repr,
)
def test_anything_else_among_rationals_is_an_error(value: object) -> None:
    data = np.empty(4, object)
    data[:] = [Fraction(1, 2), 3, 1, 1]
    data[2] = value
    good, out = real([1, 2, 3, 4]), real([9, 9, 9, 9])
    with pytest.raises(DTypeError, match=r"input 1 of dtype object .* position \(2,\).*\[maxops.maximum.types\]"):
        mo.maximum(good, data, out=out)
    with pytest.raises(DTypeError, match=r"\[SONNX.Max.T\]"):
        mo.operator("SONNX", "Max")(data, out=out)
    with pytest.raises(DTypeError, match=r"\[maxops.reduce_max.types\]"):
        mo.reduce_max(data, out=out[:1])
    with pytest.raises(DTypeError, match=r"\[maxops.segment_max.types\]"):
        mo.segment_max(data, np.array([0, 1, 2, 3]), fill_mode="ZERO", out=out)
    assert out.tolist() == [9, 9, 9, 9]


def test_an_unset_object_array_is_an_error() -> None:
    with pytest.raises(DTypeError, match="None"):
        mo.maximum(np.empty(3, object))


def test_subclasses_of_rationals_are_not_guessed() -> None:
    class Odd(Fraction):
        def __lt__(self, other: object) -> bool:
            return True

    with pytest.raises(DTypeError, match="Odd"):
        mo.maximum(real([Odd(1, 2)]))


def test_out() -> None:
    a, b = real([1, 2, 3]), real([3, Fraction(5, 2), 1])
    expected = real([3, Fraction(5, 2), 3])
    out = np.empty(3, object)
    mo.maximum(a, b, out=out)
    assert_same(out, expected)
    mo.maximum(a, b[::-1], out=b)
    assert_same(b, real([1, Fraction(5, 2), 3]))
    buffer = real([5, 1, 4, 2])
    mo.maximum(buffer[:-1], out=buffer[1:])
    assert_same(buffer, real([5, 5, 1, 4]))
    with pytest.raises(OutputError):
        mo.maximum(a, out=np.empty(3))


def test_neither_mixes_with_floats() -> None:
    with pytest.raises(DTypeError, match="input 1 is float64, but input 0 is real"):
        mo.maximum(real([1]), np.array([1.0]))


@given(data=st.data())
def test_anything_goes(data: st.DataObject) -> None:
    drawn = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3))
    inputs = [data.draw(hnp.arrays(object, shape, elements=rationals)) for shape in drawn.input_shapes]
    expected = np.empty(drawn.result_shape, object)
    spread = np.broadcast_arrays(*inputs)
    for place in np.ndindex(expected.shape):
        expected[place] = max(array[place] for array in spread)
    assert_same(mo.maximum(*inputs), expected)
    assert_same(reference.maximum(*inputs), expected)
    assert_same(mo.reduce_max(inputs[0]), np.full([1] * inputs[0].ndim, max(inputs[0].reshape(-1).tolist()), object))


def test_places_with_an_output_over_the_data() -> None:
    """Test that indices are found in the original data, although the output overwrites it."""
    data = real([1, 5, 2, 7])
    values, places = mo.reduce_max(data, out=data[:1], return_indices=True)
    assert places.tolist() == [3]
    assert_same(data, real([7, 5, 2, 7]))
    assert np.shares_memory(values, data)
    data = real([1, 5, 2, 7])
    values, rows = mo.segment_max(data, np.array([0, 0, 1, 1]), fill_mode="ZERO", out=data[:2], return_indices=True)
    assert rows.tolist() == [1, 3]
    assert_same(data, real([5, 7, 2, 7]))
    assert np.shares_memory(values, data)


# The first of equal values is kept; its Python type identifies it.
FEW: list[Any] = [0, 1, Fraction(1)]


def first_of(elements: list[Any]) -> tuple[Any, int]:
    """Return the first of the maximum elements and its index, or -1 without elements."""
    return (max(elements), elements.index(max(elements))) if elements else (None, -1)


def assert_identical(got: Array, expected: Array) -> None:
    assert_same(got, expected)
    assert [type(value) for value in got.flat] == [type(value) for value in expected.flat]


def test_of_equal_rationals_the_first_is_kept() -> None:
    for values in product(FEW, repeat=3):
        assert_identical(mo.maximum(*(real([value]) for value in values)), real([first_of(list(values))[0]]))


@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (1, 2, 2), (3, 1, 2), (0, 2), (2, 0), ()], ids=str)
def test_every_reduction_of_few_rationals(shape: tuple[int, ...]) -> None:
    """Test each order of each set of axes against Python's own maximum."""
    sets = [axes for count in range(len(shape) + 1) for axes in permutations(range(len(shape)), count)]
    for number, values in enumerate(product(FEW, repeat=int(np.prod(shape)))):
        if number % 31 and len(values) > 4:
            continue
        data = real(values, shape)
        for axes, initial, keepdims in product(sets, (None, 1, Fraction(2)), (False, True)):
            taken = axes or tuple(range(len(shape)))
            kept = [1 if axis in taken else size for axis, size in enumerate(shape)]
            expected, places = np.empty(kept, object), np.empty(kept, np.int64)
            for place in np.ndindex(*kept):
                lines = tuple(slice(None) if axis in taken else at for axis, at in enumerate(place))
                highest, index = first_of(np.atleast_1d(data[lines]).ravel().tolist())
                if initial is not None and (highest is None or highest < initial):
                    highest, index = initial, -1
                expected[place], places[place] = highest, index
            if None in expected.ravel().tolist():
                continue
            if not keepdims:
                expected, places = expected.squeeze(taken), places.squeeze(taken)
            options: dict[str, Any] = {"keepdims": keepdims, "initial": initial}
            got, indices = mo.reduce_max(data, axes, return_indices=True, **options)
            assert_identical(np.asarray(got, object), expected)
            assert (indices.dtype, indices.shape, indices.tolist()) == (np.int64, places.shape, places.tolist())
            assert_identical(np.asarray(mo.reduce_max(data, axes, **options), object), expected)
        same, zeros = mo.reduce_max(data, noop_with_empty_axes=True, return_indices=True)
        assert not np.shares_memory(same, data)
        assert_identical(np.asarray(same, object), data)
        assert zeros.dtype == np.int64
        assert zeros.shape == shape
        assert not zeros.any()


@pytest.mark.parametrize("width", [None, 0, 2])
def test_every_segment_of_few_rationals(width: int | None) -> None:
    """Test unsorted ids, ids out of range, and valid and invalid offsets against Python's own maximum."""
    rows, count = 3, 2
    shape = (rows,) if width is None else (rows, width)
    every = [real(values, shape) for values in product(FEW, repeat=int(np.prod(shape)))][::13]
    unsorted: dict[str, Any] = {"sorted": False, "out_of_range": "drop"}
    named = [({"segment_ids": np.array(ids), **unsorted}, ids) for ids in product((-1, 0, 1, 2), repeat=rows)]
    for offsets in product((0, 1, 3, 4), repeat=count + 1):
        valid = offsets[0] == 0 and offsets[-1] == rows and list(offsets) == sorted(offsets)
        ids = tuple(np.repeat([0, 1], np.diff(offsets))) if valid else (-1,) * rows
        named.append(({"offsets": np.array(offsets), "check_ids": False}, ids))
    fills: list[dict[str, Any]] = [{"fill_mode": "ZERO"}, {"fill_value": Fraction(1)}, {"initial": 1}]
    for number, ((names, ids), fill) in enumerate(product(named, fills)):
        data = every[number % len(every)]
        expected, places = np.empty((count, *shape[1:]), object), np.empty((count, *shape[1:]), np.int64)
        for place in np.ndindex(expected.shape):
            mine = [row for row in range(rows) if ids[row] == place[0]]
            highest, index = first_of([data[(row, *place[1:])] for row in mine])
            if highest is None:
                highest = next(iter(fill.values()))
                expected[place], places[place] = 0 if highest == "ZERO" else highest, -1
            elif highest < fill.get("initial", highest):
                expected[place], places[place] = fill["initial"], -1
            else:
                expected[place], places[place] = highest, mine[index]
        got, indices, empty = mo.segment_max(
            data, num_segments=count, **names, **fill, return_indices=True, return_empty=True
        )
        assert_identical(got, expected)
        assert (indices.dtype, indices.tolist()) == (np.int64, places.tolist())
        assert (empty.dtype, empty.tolist()) == (np.bool, [segment not in ids for segment in range(count)])
