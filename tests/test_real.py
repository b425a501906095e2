"""`real`: object arrays of exact rationals, against Python's own comparison."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import maxops as mo
from bits import Array
from maxops import reference
from maxops.errors import DTypeError, EmptyReductionError, OutputError

HUGE = 10**400  # past any float
VALUES: list[Any] = [
    *(Fraction(n, d) for n in (-7, -1, 0, 1, 3) for d in (1, 2, 3, HUGE)),
    *(-HUGE, -(2**64), -1, 0, 1, 2**53, 2**53 + 1, HUGE, Fraction(1, HUGE), Fraction(HUGE + 1, HUGE)),
]
rationals = st.one_of(st.sampled_from(VALUES), st.integers(), st.fractions())


def real(values: Any, shape: tuple[int, ...] | None = None) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array if shape is None else array.reshape(shape)


def assert_same(got: Array, want: Array) -> None:
    """Equal in value, place for place, and exact all of them."""
    assert type(got) is np.ndarray
    assert got.dtype == object
    assert got.shape == want.shape
    for place in np.ndindex(want.shape):
        assert type(got[place]).__name__ in ("int", "Fraction")
        assert got[place] == want[place], f"at {place}: {got[place]} is not {want[place]}"


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
    want = real([max(a, b) for a in VALUES for b in VALUES], (len(VALUES), len(VALUES)))
    assert_same(call(column, row), want)
    assert_same(call(row, column), want)
    assert_same(call(column, row, column, row), want)
    assert_same(reference.maximum(column, row), want)


def test_exactness_past_every_float() -> None:
    a, b = real([Fraction(10**30 + 1, 10**30), 2**53]), real([1, 2**53 + 1])
    assert mo.maximum(a, b).tolist() == [Fraction(10**30 + 1, 10**30), 2**53 + 1]


def test_python_scalars_beside_rationals() -> None:
    data = real([Fraction(1, 3), 5])
    assert_same(mo.maximum(data, Fraction(1, 2), 1), real([1, 5]))
    for value in (0.5, True, float("nan"), float("inf")):
        with pytest.raises(DTypeError):
            mo.maximum(data, value)


def test_rank_0() -> None:
    data = np.array(Fraction(1, 3), object)
    assert_same(mo.maximum(data), np.array(Fraction(1, 3), object))
    assert_same(mo.maximum(data, np.array(1, object)), np.array(1, object))
    assert_same(mo.reduce_max(data), np.array(Fraction(1, 3), object))


def test_reduce_max() -> None:
    data = real([Fraction(n, d) for n in range(-2, 3) for d in (1, 2, 3, 7)], (5, 2, 2))
    for axes in [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)]:
        for keepdims in (True, False):
            want = reference.reduce_max(data, axes, keepdims=keepdims)
            assert_same(mo.reduce_max(data, axes, keepdims), want)
    assert_same(mo.reduce_max(data, (), noop_with_empty_axes=True), data)


def test_reduce_max_of_nothing() -> None:
    """Rationals have no lowest value: a maximum of nothing is an error, and no maximum is none."""
    for shape, axes in [((0,), ()), ((0, 3), (0,)), ((3, 0), ()), ((2, 0, 3), (1,))]:
        with pytest.raises(EmptyReductionError, match=r"\[maxops.reduce_max.empty\]"):
            mo.reduce_max(np.empty(shape, object), axes)
    assert_same(mo.reduce_max(np.empty((0, 3), object), (1,)), np.empty((0, 1), object))


def test_segment_max() -> None:
    data = real([Fraction(n, 3) for n in range(-6, 6)], (6, 2))
    for ids in ([0, 0, 1, 1, 1, 2], [0, 2, 2, 2, 5, 5]):
        for count in (0, 1, 3, 6, 8):
            want = reference.segment_max(data, np.array(ids), count, "ZERO")
            assert_same(mo.segment_max(data, np.array(ids), count, fill_mode="ZERO"), want)
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
    with pytest.raises(DTypeError, match=r"input 1 holds .* position \(2,\).*\[maxops.maximum.types\]"):
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
    want = real([3, Fraction(5, 2), 3])
    out = np.empty(3, object)
    mo.maximum(a, b, out=out)
    assert_same(out, want)
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
    want = np.empty(drawn.result_shape, object)
    spread = np.broadcast_arrays(*inputs)
    for place in np.ndindex(want.shape):
        want[place] = max(array[place] for array in spread)
    assert_same(mo.maximum(*inputs), want)
    assert_same(reference.maximum(*inputs), want)
    assert_same(mo.reduce_max(inputs[0]), np.full([1] * inputs[0].ndim, max(inputs[0].reshape(-1).tolist()), object))


def test_options() -> None:
    """Where maxima stand, what they begin with, ids in any order, offsets: as for every type."""
    data = np.array([[1, Fraction(7, 2)], [3, Fraction(7, 2)], [3, -1]], object)
    values, places = mo.reduce_max(data, 0, keepdims=False, initial=Fraction(10, 3), return_indices=True)
    assert_same(values, real([Fraction(10, 3), Fraction(7, 2)]))
    assert places.tolist() == [-1, 0]
    assert_same(mo.reduce_max(data[:0], 0, keepdims=False, initial=5), real([5, 5]))
    ids = np.array([2, 0, 2])
    values, rows, empty = mo.segment_max(
        data, ids, fill_mode="ZERO", sorted=False, return_indices=True, return_empty=True
    )
    assert_same(values, np.array([[3, Fraction(7, 2)], [0, 0], [3, Fraction(7, 2)]], object))
    assert rows.tolist() == [[1, 1], [-1, -1], [2, 0]]
    assert empty.tolist() == [False, True, False]
    values, rows = mo.segment_max(data, offsets=np.array([0, 0, 3]), initial=Fraction(16, 5), return_indices=True)
    assert_same(values, np.array([[Fraction(16, 5), Fraction(16, 5)], [Fraction(16, 5), Fraction(7, 2)]], object))
    assert rows.tolist() == [[-1, -1], [-1, 0]]
    with pytest.raises(EmptyReductionError, match="fill_mode is LOWEST and a segment is empty"):
        mo.segment_max(data, offsets=np.array([0, 0, 3]), fill_mode="LOWEST")


def test_places_with_an_output_over_the_data() -> None:
    """Where maxima stand is looked up in the data as they were."""
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


@pytest.mark.parametrize("offsets", [[0, 3, 1, 4], [0, 2], [-5, 2, 9], [2, 1, 0]])
def test_bad_offsets_that_are_not_checked(offsets: list[int]) -> None:
    """A wrong result and no error, as for other types."""
    values = mo.segment_max(real([1, 5, 2, 7]), offsets=np.array(offsets), fill_mode="ZERO", check_ids=False)
    assert_same(values, real([0] * (len(offsets) - 1)))
