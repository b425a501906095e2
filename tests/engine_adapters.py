"""How the tests reach each engine: arrays into its own kind, and results back, which must be of that kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pytest

from bits import STORED
from maxops.dtypes import DType
from maxops.plan import Array


@dataclass(frozen=True)
class Adapter:
    """An engine to the tests: the package that it needs, and both ways between NumPy's arrays and its own.

    `take` raises for an array of another kind. `types` are those that the framework has.
    """

    name: str
    package: str | None
    give: Callable[[Array], Any]
    take: Callable[[Any], Array]
    types: tuple[DType, ...] = STORED

    def need(self) -> None:
        """Skip the test if the package is not there; in CI that is a failure."""
        if self.package is not None:
            pytest.importorskip(self.package)


def _dask(cut: Callable[[Array], Any]) -> Callable[[Array], Any]:
    def give(array: Array) -> Any:
        import dask.array as da  # noqa: PLC0415  (not everywhere)

        return da.from_array(array, chunks=cut(array))

    return give


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
    Adapter("numpy", None, lambda array: array, lambda array: array),
    Adapter("dask", "dask.array", _dask(lambda array: -1), _of_dask),
    Adapter("dask-ones", "dask.array", _dask(lambda array: tuple(2 - axis % 2 for axis in range(array.ndim))), _of_dask),
    Adapter("dask-unknown", "dask.array", _dask_unknown, _of_dask),
)
