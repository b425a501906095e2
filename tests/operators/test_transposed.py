"""Max of inputs with transposed layouts: tiles of 64 columns by 256 bytes, transposed in blocks of 16 bytes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, each_width, fast_maximum, mixed
from maxops.dtypes import FLOAT32, DType

pytestmark = pytest.mark.usefixtures("isa")


SIZES = (1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 129, 257)


@pytest.mark.parametrize("columns", SIZES)
@each_width
def test_every_size_about_the_tiles(dtype: DType, columns: int) -> None:
    for rows in SIZES:
        a, b = mixed(dtype, (rows, columns), 1, nans=0.01), mixed(dtype, (columns, rows), 2, nans=0.01)
        expected = fast_maximum(a, b.T)
        assert_same_bits(mo.maximum(a, b.T), expected)
        assert_same_bits(mo.maximum(b.T, a), expected)


@each_width
def test_layouts_of_rows_and_columns(dtype: DType) -> None:
    """Test strided, reversed and repeated rows and columns."""
    wide = mixed(dtype, (130, 140), 3, nans=0.01)
    a = mixed(dtype, (70, 65), 4, nans=0.01)
    for b in (wide[:65, :70].T, wide[::2, 5:75].T[:, ::-1][:70, :65], wide[:65, 70::-1][:, :70].T, wide[64::-1, :70].T):
        assert_same_bits(mo.maximum(a, b), fast_maximum(a, b))
    once = np.broadcast_to(wide[0, :70], (65, 70)).T
    assert_same_bits(mo.maximum(a, once), fast_maximum(a, once))


@pytest.mark.parametrize("transposed", range(1, 5))
@pytest.mark.parametrize("inputs", [2, 3, 4, 5, 8, 9])
def test_how_many_are_turned(inputs: int, transposed: int) -> None:
    """Test up to four transposed inputs, one more than tiles support, with and without a kernel for all inputs."""
    arrays = [mixed(FLOAT32, (50, 90), number, nans=0.01) for number in range(inputs)]
    arrays[:transposed] = [np.asfortranarray(array) for array in arrays[:transposed]]
    assert_same_bits(mo.maximum(*arrays), fast_maximum(*arrays))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_three_axes(order: tuple[int, ...]) -> None:
    cube = mixed(FLOAT32, (40, 40, 40), 5, nans=0.01)
    other = mixed(FLOAT32, (40, 40, 40), 6, nans=0.01).transpose(order)
    assert_same_bits(mo.maximum(cube, other), fast_maximum(cube, other))
    assert_same_bits(
        mo.maximum(cube, other, cube.transpose(1, 2, 0)), fast_maximum(cube, other, cube.transpose(1, 2, 0))
    )


@each_width
def test_in_place_and_over_itself(dtype: DType) -> None:
    data, other = mixed(dtype, (100, 100), 7, nans=0.01), mixed(dtype, (100, 100), 8, nans=0.01)
    expected = fast_maximum(data, other.T)
    own = data.copy()
    assert mo.maximum(own, other.T, out=own) is own
    assert_same_bits(own, expected)
    own = data.copy()
    mo.maximum(own, own.T, out=own)
    assert_same_bits(own, fast_maximum(data, data.T))


def test_in_shares(threads: int) -> None:
    """Test data above 1 MiB: threads share bands of rows."""
    del threads
    data, other = mixed(FLOAT32, (1100, 900), 9, nans=1e-4), mixed(FLOAT32, (900, 1100), 10, nans=1e-4)
    assert_same_bits(mo.maximum(data, other.T), fast_maximum(data, other.T))
