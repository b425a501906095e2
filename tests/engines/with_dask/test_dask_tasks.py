"""The number of tasks of SegmentMax, and their work for each number of data and result chunks."""

from __future__ import annotations

from itertools import product
from math import log2
from typing import Any

import numpy as np
import pytest

import maxops as mo
from dask_chunks import lazy
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
segments = pytest.importorskip("maxops.engines.dask.segments")
shuffle = pytest.importorskip("maxops.engines.dask.shuffle")

EVERYTHING = {"return_indices": True, "return_empty": True}
OPTIONS: dict[str, dict[str, Any]] = {
    "fill": {"fill_mode": "ZERO"},
    "initial": {"initial": 0.0},
    "indices": {"fill_value": 1.0, "return_indices": True},
    "empty": {"fill_mode": "LOWEST", "return_empty": True},
    "everything": {"fill_mode": "ZERO", **EVERYTHING},
    "unchecked": {"fill_mode": "ZERO", "check_ids": False, **EVERYTHING},
}
# How the ids are given: as an array in memory, or as a Dask array with the same or other blocks.
PLACES = ["in memory", "same blocks", "other blocks", "unknown blocks"]
NAMED = [
    (named, place, unknown)
    for named, place, unknown in product(["ids", "unsorted ids", "offsets"], PLACES, [False, True])
    if named == "offsets" or not unknown or place in ("same blocks", "unknown blocks")  # otherwise, the call fails
]


def keys(*arrays: Any) -> set[Any]:
    return {key for array in arrays if isinstance(array, da.Array) for key in dict(array.__dask_graph__())}


def call(rows: int, size: int, named: str, place: str, unknown: bool, options: dict[str, Any]) -> tuple[Any, set[Any]]:
    """Return results with one segment per row, with data in blocks of `size` rows, and the keys of input tasks."""
    data = lazy(np.zeros(rows, np.float32), size, unknown=unknown)
    array = np.arange(rows + (named == "offsets"))
    if place == "in memory":
        given: Any = array
    else:
        given = lazy(array, size + (place == "other blocks"), unknown=place == "unknown blocks")
    if named == "offsets":
        result = mo.segment_max(data, offsets=given, num_segments=rows, **options)
    else:
        result = mo.segment_max(data, given, rows, sorted=named == "ids", **options)
    return result if isinstance(result, tuple) else (result,), keys(data, given)


@pytest.mark.parametrize("blocks", [64, 256])
@pytest.mark.parametrize(("named", "place", "unknown"), NAMED)
def test_tasks_grow_as_n_log_n(
    monkeypatch: pytest.MonkeyPatch, named: str, place: str, unknown: bool, blocks: int
) -> None:
    monkeypatch.setattr(segments, "LEAST_BYTES", 8)
    size = 3
    monkeypatch.setattr(segments, "_rows_at_once", lambda found, count: size)  # also for unknown blocks
    for options in OPTIONS.values() if blocks < 256 else [OPTIONS["everything"]]:
        results, given = call(size * blocks, size, named, place, unknown, options)
        assert results[0].numblocks == (blocks,)
        assert len(keys(*results) - given) <= 4 * blocks * log2(blocks)


@pytest.mark.parametrize("fan_in", [2, 16])
@pytest.mark.parametrize("blocks", [1, 2, 3, 5, 17])
def test_each_number_of_blocks_of_data_and_result(monkeypatch: pytest.MonkeyPatch, blocks: int, fan_in: int) -> None:
    monkeypatch.setattr(segments, "LEAST_BYTES", 1)
    monkeypatch.setattr(shuffle, "AT_ONCE", fan_in)
    rows = 40
    random = np.random.default_rng(blocks)
    array = mixed(dtypes.FLOAT32, (rows, 2), 5)
    for of_result, is_sorted, dense in product([2, 5, 17], [True, False], [True, False]):
        monkeypatch.setattr(segments, "_rows_at_once", lambda found, count, n=of_result: -(-count // n))
        count = 2 * of_result + 1 if dense else 5 * of_result + 2
        ids = random.integers(0, count, rows)
        ids = np.sort(ids) if is_sorted else ids
        given: dict[str, Any] = {"fill_mode": "LOWEST", "num_segments": count, "sorted": is_sorted, **EVERYTHING}
        correct = mo.segment_max(array, ids, **given)
        for named in (ids, lazy(ids, 7)):
            got = mo.segment_max(lazy(array, (-(-rows // blocks), 1)), named, **given)
            for result, expected in zip(dask.base.compute(*got, scheduler="sync"), correct, strict=True):
                assert_same_bits(result, expected)
