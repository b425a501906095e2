"""The data that tasks communicate grows with the result, not with chunks times segments, and reports its size."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from math import ceil, log
from typing import Any

import numpy as np
import pytest

import maxops as mo
from dask_chunks import lazy
from maxops.calls import SegmentCall

dask = pytest.importorskip("dask")
sizeof = pytest.importorskip("dask.sizeof").sizeof
parts = pytest.importorskip("maxops.engines.dask.parts")
reduction = pytest.importorskip("maxops.engines.dask.reduction")
segments = pytest.importorskip("maxops.engines.dask.segments")


def size_of(result: Any) -> int:
    """Return the bytes of a task's result if the engine's tasks compute it from the data."""
    if isinstance(result, parts.Part):
        ids = 0 if isinstance(result.ids, range) else result.ids.nbytes
        return int(ids + result.values.nbytes + (0 if result.indices is None else result.indices.nbytes))
    return sum(map(size_of, result)) if isinstance(result, (list, tuple)) else 0


def handed_on(*results: Any) -> tuple[int, int]:
    """Return the bytes of all communicated parts, and of the largest part."""
    sizes: list[int] = []

    def weigh(key: Any, result: Any, *_: Any) -> None:
        sizes.append(size_of(result))

    with dask.callbacks.Callback(posttask=weigh):
        dask.base.compute(*results, scheduler="sync")
    return sum(sizes), max(sizes)


def calls(blocks: Iterable[int], segments: int, width: int = 4, **options: Any) -> list[tuple[int, int]]:
    """Return the communicated bytes for the same rows in several numbers of blocks."""
    data = np.zeros((4096, width), np.float32)
    ids = np.sort(np.random.default_rng(1).permutation(np.arange(4096) % segments))
    sized = [4096 // count for count in blocks]
    return [
        handed_on(mo.segment_max(lazy(data, (size, width)), lazy(ids, size), segments, fill_mode="ZERO", **options))
        for size in sized
    ]


def test_more_blocks_hand_on_little_more() -> None:
    result = 1024 * 4 * 4
    few, many = calls((8, 128), 1024)
    assert few[0] <= 1.1 * result  # each segment is sent once, and segments at block borders are sent twice
    # With more than 16 blocks, the tree has another level.
    assert many[0] <= 2 * result + 128 * 4 * 4 * 2
    assert many[0] < 128 * result / 16  # blocks times segments would be 16 times as large


def test_more_segments_hand_on_as_the_result_grows() -> None:
    ((small, _),), ((large, _),) = calls((64,), 256), calls((64,), 2048)
    assert large <= 1.1 * 8 * small


def test_one_segment_hands_on_a_row_for_each_block() -> None:
    ((total, largest),) = calls((128,), 1)
    assert largest == 4 * 4
    assert total <= (128 + 128 // 16) * 4 * 4


def test_ids_in_any_order_hand_on_what_blocks_touch() -> None:
    data = np.zeros((4096, 4), np.float32)
    ids = np.random.default_rng(2).integers(0, 1 << 20, 4096)
    given: dict[str, Any] = {"num_segments": 1 << 20, "fill_mode": "ZERO", "sorted": False}
    total, _ = handed_on(mo.segment_max(lazy(data, (64, 4)), lazy(ids, 64), **given))
    once = 4096 * (16 + 8)  # a row and its id
    assert total <= 6 * once  # sent as computed, in groups, and split for each block of the result
    assert total < 64 * (1 << 20) * 16 / 1000  # a thousandth of blocks times segments


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("blocks", [16, 64, 250])
def test_a_result_in_many_blocks_is_communicated_twice_a_stage_in_parts_of_one_block(
    monkeypatch: pytest.MonkeyPatch, blocks: int, is_sorted: bool
) -> None:
    monkeypatch.setattr(segments, "LEAST_BYTES", 8)
    rows, width = 40 * blocks, 16
    ids = np.arange(rows) if is_sorted else np.random.default_rng(3).permutation(rows)
    data = lazy(np.zeros((rows, width), np.float32), (40, width))
    result = mo.segment_max(data, lazy(ids, 37), rows, fill_mode="ZERO", sorted=is_sorted)
    assert result.numblocks[0] == blocks
    total, largest = handed_on(result)
    row = 4 * width + (0 if is_sorted else 8)  # a row with its id
    stages = ceil(log(blocks, 4))
    assert total <= 2 * stages * rows * row
    assert largest <= (1.1 if is_sorted else 1.6) * 40 * row


# ---------------------------------------------------- reported sizes, with which Dask plans memory and transfers

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
    """Test that a block ignores offsets of other blocks. If not, costs would grow with blocks times segments."""
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
