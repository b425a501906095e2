"""Tests Dask's `array.query-planning`, which Dask reads on import. test_dask.py runs this file in a new process."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes, errors


def main() -> None:
    """Run every function with all its results, in one block and in several."""
    import dask  # noqa: PLC0415

    dask.config.set({"array.query-planning": True})
    import dask.array as da  # noqa: PLC0415

    from maxops.engines.dask import segments  # noqa: PLC0415

    assert "_array_expr" in da.Array.__module__
    warnings.simplefilter("error", FutureWarning)

    def same(got: Any, expected: Any) -> None:
        together = zip(*[one if isinstance(one, tuple) else (one,) for one in (got, expected)], strict=True)
        for lazy, array in together:
            assert isinstance(lazy, da.Array)
            assert_same_bits(lazy.compute(scheduler="sync"), array)

    for shape, cut in product([(24,), (24, 5)], [24, 5]):
        array, ids = mixed(dtypes.FLOAT32, shape, 3), np.random.default_rng(3).integers(0, 9, 24)
        data = da.from_array(array, chunks=cut)
        same(
            mo.maximum(data, da.from_array(array[::-1], chunks=7), array[:1]), mo.maximum(array, array[::-1], array[:1])
        )
        for options in ({"axes": (0,)}, {"keepdims": False}, {"axes": (), "noop_with_empty_axes": True}):
            given: dict[str, Any] = {**options, "return_indices": True}
            same(mo.reduce_max(data, **given), mo.reduce_max(array, **given))
        bounds = np.array([0, 3, 3, 24])
        for offsets in (bounds, da.from_array(bounds, chunks=2)):
            same(
                mo.segment_max(data, offsets=offsets, fill_mode="ZERO"),
                mo.segment_max(array, offsets=bounds, fill_mode="ZERO"),
            )
        for is_sorted, in_memory, least, everything in product([False, True], repeat=4):
            segments.LEAST_BYTES = 8 if least else 1 << 20  # several blocks of the result, or one
            own = np.sort(ids) if is_sorted else ids
            named = own if in_memory else da.from_array(own, chunks=7)
            given = {"sorted": is_sorted, "return_indices": everything, "return_empty": everything, "initial": 0.0}
            same(mo.segment_max(data, named, 11, **given), mo.segment_max(array, own, 11, **given))
            if in_memory or len(shape) == 1:
                same(mo.segment_max(data, named, **given), mo.segment_max(array, own, **given))
                continue
            with pytest.raises(errors.EngineError, match=r"requires num_segments.*rank 2.*array\.query-planning"):
                mo.segment_max(data, named, **given)  # if Dask supports this, the error can be removed


if __name__ == "__main__":
    main()
