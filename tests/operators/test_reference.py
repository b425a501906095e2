"""The reference: its results for calls that the engines do not make. test_bits.py compares its order of values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from maxops import reference
from maxops.plan import Array
from maxops.shapes import MismatchError, broadcast


def test_each_byte_but_0_is_true() -> None:
    array = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert reference.maximum(array).view(np.uint8).tolist() == [0, 1, 1, 1]
    assert reference.reduce_max(array, (0,)).view(np.uint8).tolist() == [1]


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i2", ">i2"])
def test_bytes_in_either_order(dtype: str) -> None:
    array = np.array([[1, -2], [3, 258]], dtype)
    assert reference.reduce_max(array, (0,), keepdims=False).tolist() == [3, 258]


DATA = np.array([[1, 5, 2], [4, 3, 4]], np.int16)
INITIAL = np.array(4, np.int16)


def test_one_element_more() -> None:
    assert reference.reduce_max(DATA, (1,), keepdims=False, initial=INITIAL).tolist() == [5, 4]
    assert reference.reduce_max(DATA, (1,), initial=INITIAL).tolist() == [[5], [4]]
    ids = np.array([2, 2])
    assert reference.segment_max(DATA, ids, 3, initial=INITIAL).tolist() == [[4, 4, 4], [4, 4, 4], [4, 5, 4]]


@pytest.mark.parametrize(("mode", "fill"), [("ZERO", 0), ("LOWEST", -(2**15))])
def test_segments_without_rows(mode: str, fill: int) -> None:
    ids = np.array([3, 1])
    expected = [[fill] * 3, [4, 3, 4], [fill] * 3]
    assert reference.segment_max(DATA, ids, 3, mode).tolist() == expected
    assert reference.segment_max(DATA, np.array([-1, 1]), 3, mode).tolist() == expected


RATIONALS = np.array([Fraction(1, 3), Fraction(1, 2)], object)


def test_rationals() -> None:
    assert reference.maximum(RATIONALS, RATIONALS[::-1]).tolist() == [Fraction(1, 2)] * 2
    assert reference.reduce_max(RATIONALS, (0,), initial=np.array(1, object)).tolist() == [1]
    for mode in ("ZERO", "LOWEST"):
        found = reference.segment_max(RATIONALS, np.array([1, 1]), 2, mode).tolist()
        assert [(each, type(each)) for each in found] == [(0, Fraction), (Fraction(1, 2), Fraction)]
    with pytest.raises(ValueError, match="empty"):  # has no lowest value
        reference.reduce_max(RATIONALS[:0], (0,))


@pytest.mark.parametrize(
    ("axes", "indices"), [((0,), [[1, 0, 1]]), ((1,), [[1], [0]]), ((), [[1]]), ((0, 1), [[1]])], ids=str
)
def test_the_first_index(axes: tuple[int, ...], indices: list[Any]) -> None:
    result = reference.reduce_max(DATA, axes)
    assert reference.first_in_axes(DATA, axes, result).tolist() == indices


def test_no_index_of_what_is_not_there() -> None:
    missing = np.full((2, 1), 7, np.int16)
    missing[0] = 5
    assert reference.first_in_axes(DATA, (1,), missing).tolist() == [[1], [-1]]
    assert reference.first_in_axes(RATIONALS, (0,), np.array([Fraction(1, 2)], object)).tolist() == [1]


@pytest.mark.parametrize(
    ("ids", "rows"),
    [
        ([0, 0], [[1, 0, 1], [-1, -1, -1]]),
        ([1, 1], [[-1, -1, -1], [1, 0, 1]]),
        ([1, 0], [[1, 1, 1], [0, 0, 0]]),
        ([-1, 2], [[-1, -1, -1], [-1, -1, -1]]),
        ([1, -7], [[-1, -1, -1], [0, 0, 0]]),
    ],
    ids=str,
)
def test_the_first_row(ids: list[int], rows: list[list[int]]) -> None:
    result = reference.segment_max(DATA, np.array(ids), 2)
    assert reference.first_in_segments(DATA, np.array(ids), result).tolist() == rows


def test_no_row_of_what_is_not_there() -> None:
    """Test that a result that no row contains has the index -1, as with an initial value above all rows."""
    result: Array = np.array([[1, 9, 4]], np.int16)
    assert reference.first_in_segments(DATA, np.array([0, 0]), result).tolist() == [[0, -1, 1]]


def test_equal_zeros_and_nans_are_the_first_of_their_kind() -> None:
    data = np.array([-0.0, 0.0, 0.0, np.nan, -np.nan], np.float32)
    assert reference.first_in_axes(data[:3], (0,), reference.reduce_max(data[:3], (0,))).tolist() == [1]
    assert reference.first_in_axes(data, (0,), reference.reduce_max(data, (0,))).tolist() == [3]
    assert reference.first_in_axes(data[[0, 4, 3]], (0,), reference.reduce_max(data, (0,))).tolist() == [1]


def test_what_does_not_broadcast() -> None:
    assert broadcast([(1,), (0,)]) == reference.maximum(np.zeros(1), np.zeros(0)).shape == (0,)
    with pytest.raises(MismatchError) as raised:
        broadcast([(1, 4), (2, 4), (3, 4)])
    error = raised.value
    assert (error.number, error.axis, error.size, error.other) == (2, -2, 3, 2)
    assert str(error) == "input 2 has size 3 along axis -2, expected 2"
    with pytest.raises(MismatchError) as raised:
        broadcast([(1,), (0,)], zero_with_one=False)
    assert (raised.value.size, raised.value.other) == (0, 1)
