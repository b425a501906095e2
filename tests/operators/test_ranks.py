"""Arrays of rank 5 to 8: every way to broadcast each axis, every set of reduced axes, and any order of axes.

Sizes are 0, 1 and 2, so that the number of cases depends only on the rank. These tests are a sample of
`tests/exhaustive/ranks.py`.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import maxops as mo
from exhaustive import ranks
from exhaustive.states import counted

RANKS = [5, 6, 7, 8]


@pytest.mark.parametrize(("rank", "every"), [*zip(RANKS, (1, 3, 13, 53), strict=True)])
def test_broadcasting(rank: int, every: int) -> None:
    before = counted["maximum: ranks"]
    ranks.broadcasts(rank, every)
    assert counted["maximum: ranks"] - before > 700


@pytest.mark.parametrize(("rank", "every"), [*zip(RANKS, (11, 103, 925, 8303), strict=True)])
def test_sizes_that_do_not_go_together(rank: int, every: int) -> None:
    before = counted["maximum: ranks, sizes"]
    ranks.sizes(rank, every)
    assert counted["maximum: ranks, sizes"] - before > 1000


@pytest.mark.parametrize("rank", RANKS)
def test_reductions(rank: int) -> None:
    before = counted["reduce_max: ranks"]
    ranks.reductions(rank, 3)
    assert counted["reduce_max: ranks"] - before >= 2**rank * 6


@pytest.mark.parametrize("rank", RANKS)
def test_axes_that_are_named_twice(rank: int) -> None:
    data: Any = ranks.numbers((1,) * rank)
    for first, second in itertools.product(range(rank), repeat=2):
        for axes in ((first, second), (first, second - rank), (first - rank, second)):
            if first == second:
                with pytest.raises(mo.errors.AxesError, match=f"axis {first} twice"):
                    mo.reduce_max(data, axes)
            else:
                assert mo.reduce_max(data, axes, keepdims=False).ndim == rank - 2


@pytest.mark.parametrize("rank", RANKS)
def test_segments(rank: int) -> None:
    before = counted["segment_max: ranks"]
    ranks.segments(rank, 6)
    assert counted["segment_max: ranks"] - before > 20


@pytest.mark.parametrize("rank", RANKS)
def test_layouts_of_new_outputs(rank: int) -> None:
    """Test that new outputs have the data's order of axes in memory."""
    for order in ranks.orders(rank, 60):
        data = ranks.laid(ranks.numbers((2,) * rank), order)
        assert mo.maximum(data, data).strides == data.strides
        for axis in range(rank):
            kept = [other - (other > axis) for other in order if other != axis]
            expected = ranks.laid(ranks.numbers((2,) * (rank - 1)), tuple(kept)).strides
            assert mo.reduce_max(data, axis, keepdims=False).strides == expected
