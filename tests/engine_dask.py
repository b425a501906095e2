"""How the tests reach Dask's arrays: in one block, in small ones, and in blocks of unknown size."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np

from engine_adapter import Adapter
from maxops.plan import Array


def _dask(cut: Callable[[Array], Any]) -> Callable[[Array], Any]:
    def give(array: Array) -> Any:
        import dask.array as da  # noqa: PLC0415  (not everywhere)

        return da.from_array(array, chunks=cut(array))

    return give


def _ones(array: Array) -> tuple[int, ...]:
    return tuple(2 - axis % 2 for axis in range(array.ndim))


def _dask_unknown(array: Array) -> Any:
    """In blocks of two rows whose number nobody knows beforehand."""
    import dask.array as da  # noqa: PLC0415

    lazy = da.from_array(array, chunks=(2, *[-1] * (array.ndim - 1)) if array.ndim else ())
    return lazy[da.from_array(np.ones(len(array), np.bool), chunks=2)] if array.ndim else lazy


def _of_dask(result: Any) -> Array:
    import dask.array as da  # noqa: PLC0415

    assert isinstance(result, da.Array), f"got a {type(result).__name__}"
    computed = result.compute(scheduler="sync")
    assert type(computed) is np.ndarray
    assert result.dtype == computed.dtype
    assert all(said in (size, None) for said, size in zip(_sizes(result), computed.shape, strict=True))
    return computed


def _sizes(result: Any) -> list[int | None]:
    return [None if isnan(size) else size for size in result.shape]


ADAPTERS = (
    Adapter("dask", "dask.array", _dask(lambda array: -1), _of_dask),
    Adapter("dask-ones", "dask.array", _dask(_ones), _of_dask),
    Adapter("dask-unknown", "dask.array", _dask_unknown, _of_dask),
)
