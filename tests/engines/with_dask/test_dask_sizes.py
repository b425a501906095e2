"""Data that is communicated between tasks reports its size, which Dask uses to plan memory and transfers."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

pytest.importorskip("dask.array")

from dask.sizeof import sizeof

from maxops.calls import SegmentCall
from maxops.engines.dask import parts, reduction

CALL = SegmentCall(None, num_segments=9, fill_mode="ZERO", return_indices=True)


def test_parts_of_segments_weigh_their_arrays() -> None:
    part = parts.of_ids(np.zeros((6, 1000), np.float32), np.array([0, 0, 1, 1, 4, 4]), call=CALL)
    assert part.values.shape == part.indices.shape == (3, 1000)
    assert 3 * 12_000 <= sizeof(part) <= 3 * 12_000 + 1000


def test_parts_of_reductions_weigh_their_arrays() -> None:
    part = reduction.part_of_block(
        np.zeros((6, 1000), np.float32), axis=(0,), keepdims=True, indices=True, nan="propagate"
    )
    assert 12_000 <= sizeof(part) <= 12_000 + 1000


def test_a_part_without_segments_keeps_no_block_alive() -> None:
    part = parts.of_ids(np.zeros((6, 1000), np.float32), np.full(6, 99), call=CALL)
    assert len(part.ids) == 0
    assert part.values.base is None


def test_a_block_makes_nothing_of_offsets_that_are_not_its_own() -> None:
    """Test that a block ignores offsets of other blocks, or else costs would grow with blocks times segments."""
    offsets, block = np.arange(1_000_001), np.zeros((10, 2), np.float32)
    tracemalloc.start()
    part = parts.of_offsets(
        block,
        offsets,
        np.array([[0, 500, 1_000_000]]),
        call=CALL._replace(num_segments=1_000_000, check_ids=False),
        are_whole=True,
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert part.ids == range(500, 510)
    assert peak < 1_000_000
