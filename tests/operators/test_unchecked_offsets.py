"""Unchecked offsets, valid or invalid: every engine returns the same values, indices and empty segments.

All segments are empty if the offsets decrease or do not run from 0 to the number of rows.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS
from maxops.plan import Array

ROWS = np.array([[-5.0, -0.0], [-4.0, np.nan], [-7.0, 0.0]], np.float32)
OFFSETS = [np.array(offsets) for length in (1, 2, 3) for offsets in product(range(-1, 5), repeat=length)]
FAST = ("numpy", "torch", "torch-any-device")  # engines that are tested with all offsets
LONGER = [np.array(offsets) for offsets in ([0, 1, 1, 3], [0, 2, 1, 3], [0, 9, -9, 3], [1, 2, 3, 3], [0, 0, 0, 0])]
OPTIONS: dict[str, Any] = {"fill_mode": "ZERO", "check_ids": False, "return_indices": True, "return_empty": True}


def expected(data: Array, offsets: Array, count: int | None) -> list[Array]:
    """Return the results of one checked call per segment."""
    valid = offsets[0] == 0 and offsets[-1] == len(data) and bool((np.diff(offsets) >= 0).all())
    count = len(offsets) - 1 if count is None else count
    spans = list(pairwise(offsets.tolist())) if valid else []
    values, indices = np.zeros((count, *data.shape[1:]), data.dtype), np.full((count, *data.shape[1:]), -1)
    empty = np.ones(count, np.bool)
    for segment, (begin, end) in enumerate(spans[:count]):
        if begin < end:
            maxima, first = mo.reduce_max(data[begin:end], (0,), keepdims=False, return_indices=True)
            values[segment], indices[segment], empty[segment] = maxima, begin + first, False
    return [values, indices, empty]


COUNTS = [("rows", count) for count in (None, 0, 1, 2, 4)]
COUNTS += [(layout, count) for layout in ("one column", "no rows") for count in (None, 4)]


@pytest.mark.parametrize(("layout", "count"), COUNTS)
@pytest.mark.parametrize("adapter", [pytest.param(each, id=each.name) for each in ADAPTERS])
def test_every_engine_agrees(adapter: Adapter, count: int | None, layout: str) -> None:
    adapter.need()
    data = {"rows": ROWS, "one column": ROWS[:, 0].copy(), "no rows": ROWS[:0]}[layout]
    step = 1 if adapter.name in FAST else 17
    every = OFFSETS[::step] if layout == "rows" and count in (None, 2) else []
    with adapter.around():
        for offsets in (*every, *LONGER):
            index = (
                np.int32 if len(offsets) % 2 else np.int64
            )  # one type for each length, because JAX compiles for each
            given = adapter.given({"data": data, "offsets": offsets.astype(index)})
            result = mo.segment_max(**given, num_segments=count, **OPTIONS)
            for got, part in zip(result, expected(data, offsets, count), strict=True):
                assert_same_bits(adapter.take(got), part)


@pytest.mark.parametrize("offset_type", [np.int8, np.uint8, np.uint64, np.int32])
@pytest.mark.parametrize("adapter", [pytest.param(each, id=each.name) for each in ADAPTERS])
def test_every_type_of_offsets(adapter: Adapter, offset_type: Any) -> None:
    adapter.need()
    highest = np.iinfo(offset_type).max
    for given in ([0, 1, 3], [0, 2, 1], [1, 2, 3], [0, highest, 3], [highest, 0, 3], [0, 1, highest]):
        offsets = np.array(given, offset_type)
        with adapter.around():
            result = mo.segment_max(**adapter.given({"data": ROWS, "offsets": offsets}), **OPTIONS)
            for got, part in zip(result, expected(ROWS, np.array(given, object), None), strict=True):
                assert_same_bits(adapter.take(got), part)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("chunks", [1, 2, -1, (0, 3), (2, 0, 1)])
def test_dask_arrays_beside_offsets_of_either_kind(chunks: Any, in_memory: bool) -> None:
    da = pytest.importorskip("dask.array")
    for offsets in (*OFFSETS[::31], *LONGER):
        lazy = da.from_array(ROWS, chunks=(chunks, 1))
        result = mo.segment_max(lazy, offsets=offsets if in_memory else da.from_array(offsets, chunks=2), **OPTIONS)
        for got, part in zip(result, expected(ROWS, offsets, None), strict=True):
            assert_same_bits(got.compute(scheduler="sync"), part)
