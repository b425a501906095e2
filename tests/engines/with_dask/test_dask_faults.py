"""Invalid ids in Dask arrays: for any chunks, the error equals the error of a call in memory."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from dask_chunks import lazy
from maxops import errors
from maxops.plan import Array

da = pytest.importorskip("dask.array")
parts = pytest.importorskip("maxops.engines.dask.parts")
segments = pytest.importorskip("maxops.engines.dask.segments")

RULES = [*product([True, False], [None, "error", "drop"], [None, 0, 2])]  # sorted, out_of_range, num_segments


def cuts(size: int) -> list[tuple[int, ...]]:
    """Return all ways to split an axis into nonempty blocks, and one with empty blocks at both ends."""
    borders = [[0, *(n for n in range(1, size) if mask >> n - 1 & 1), size] for mask in range(1 << max(size - 1, 0))]
    return [*(tuple(np.diff(border).tolist()) for border in borders), (0, size, 0)]


def outcome(function: Any) -> tuple[Any, ...]:
    """Return the bits of the result, or the class and text of the error."""
    try:
        result = function()
    except errors.MaxopsError as error:
        return type(error), str(error), error.clause
    return result.shape, result.tobytes()


def by_parts(ids: Array, sizes: tuple[int, ...], options: dict[str, Any]) -> Any:
    """Return the result of the tasks of a call, run one after the other and merged in pairs."""
    data = np.arange(len(ids), dtype=np.float32)
    asked = segments.SegmentCall(None, fill_mode="ZERO", **options)
    if not asked.sorted and asked.out_of_range is None:
        asked = asked._replace(out_of_range="error")  # as in the plan
    stops = np.cumsum(sizes)
    blocks = [
        parts.of_ids(data[stop - size : stop], ids[stop - size : stop], call=asked)
        for size, stop in zip(sizes, stops, strict=True)
    ]
    part = reduce(lambda one, other: parts.merged([one, other], call=asked), blocks)
    return parts.finished([part], call=asked, count=asked.num_segments)


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(map(str, rules)))
def test_all_small_ids_however_they_are_cut(rules: Any) -> None:
    options = dict(zip(("sorted", "out_of_range", "num_segments"), rules, strict=True))
    for size in range(5):
        data = np.arange(size, dtype=np.float32)
        every_cut = cuts(size)
        for turn, listed in enumerate(product([-1, 0, 1, 2], repeat=size)):
            ids = np.array(listed, np.int32)
            expected = outcome(lambda ids=ids, data=data: mo.segment_max(data, ids, fill_mode="ZERO", **options))
            for sizes in every_cut if size < 4 else every_cut[turn % 3 :: 3]:
                actual = outcome(lambda ids=ids, sizes=sizes: by_parts(ids, sizes, options))
                assert actual == expected, (listed, sizes)


@pytest.mark.parametrize(
    ("dtype", "least"),
    [(np.int8, 1), (np.int64, 1 << 20), (np.uint64, 1)],
    ids=["int8-many blocks", "int64-one block", "uint64-many blocks"],
)
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(map(str, rules)))
def test_calls_with_several_faults(monkeypatch: pytest.MonkeyPatch, rules: Any, dtype: Any, least: int) -> None:
    monkeypatch.setattr(segments, "LEAST_BYTES", least)
    options: Any = {**dict(zip(("sorted", "out_of_range", "num_segments"), rules, strict=True)), "fill_mode": "ZERO"}
    unsigned, wide = dtype is np.uint64, options["num_segments"] is not None
    cases = [[2, 2, 0, -2, 2], [0, 1, 0, -1, 5], [5, 0, 1, 1, 0], [-1, 5, 0, 5, -1], [0, 0, 1, 1, 3]]
    for listed, sizes in product(cases, [(2, 2, 1), (1, 1, 1, 1, 1), (3, 0, 2)]):
        ids = np.array([value % 2**64 if wide else abs(value) for value in listed] if unsigned else listed, dtype)
        data = np.arange(5, dtype=np.float32)
        expected = outcome(lambda ids=ids, data=data: mo.segment_max(data, ids, **options))

        def compute(ids: Any = ids, data: Any = data, sizes: Any = sizes) -> Any:
            return mo.segment_max(lazy(data, (sizes,)), lazy(ids, (sizes,)), **options).compute(scheduler="sync")

        assert outcome(compute) == expected, (listed, sizes)


@pytest.mark.parametrize("in_memory", [False, True], ids=["Dask array", "in memory"])
def test_all_small_offsets_however_data_and_offsets_are_cut(in_memory: bool) -> None:
    data = np.arange(3, dtype=np.float32)
    for length in range(4):
        every_cut = [((3,), (length,)), ((1, 2), cuts(length)[-2]), ((0, 1, 1, 1), (0, length))]
        for turn, listed in enumerate(product([-1, 0, 1, 3], repeat=length)):
            offsets = np.array(listed, np.int64)
            for number in (None, 2):
                given: Any = {"fill_mode": "ZERO", "num_segments": number}
                expected = outcome(lambda offsets=offsets, given=given: mo.segment_max(data, offsets=offsets, **given))
                for rows, sizes in every_cut if length < 3 else every_cut[turn % 3 :: 3]:

                    def compute(
                        rows: Any = rows, sizes: Any = sizes, offsets: Any = offsets, given: Any = given
                    ) -> Any:
                        bounds = offsets if in_memory else lazy(offsets, (sizes,))
                        return mo.segment_max(lazy(data, (rows,)), offsets=bounds, **given).compute(scheduler="sync")

                    assert outcome(compute) == expected, (listed, rows, sizes)
