"""The tests' adapters for Dask: arrays with one block, with small blocks, and with blocks of unknown size."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np

from helpers.engine_adapter import Adapter
from maxops.plan import Array


def in_blocks(cut: Callable[[Array], Any]) -> Callable[[Array], Any]:
    def give(array: Array) -> Any:
        import dask.array as da  # noqa: PLC0415  (optional)

        return da.from_array(array, chunks=cut(array))

    return give


def _ones(array: Array) -> tuple[int, ...]:
    """Return the sizes of blocks: one or two elements or, along a long axis, a twelfth of the axis."""
    return tuple(max(2 - axis % 2, size // 12) for axis, size in enumerate(array.shape))


def _dask_unknown(array: Array) -> Any:
    """Return a Dask array with blocks of two rows or with a dozen blocks, and an unknown number of rows."""
    import dask.array as da  # noqa: PLC0415

    if array.ndim == 2 and array.shape[1] == 1:  # the error for ids of a wrong rank names their shape
        return da.from_array(array)
    if not array.ndim:
        return da.from_array(array)
    rows = max(2, len(array) // 12)
    lazy = da.from_array(array, chunks=(rows, *[-1] * (array.ndim - 1)))
    return lazy[da.from_array(np.ones(len(array), np.bool), chunks=rows)]


def _all_unknown(arrays: dict[str, Array] | tuple[Array, ...], axis: Any) -> Any:
    """Return all arrays with blocks of unknown size. The data has them along the axis of the segments."""
    if isinstance(arrays, tuple):
        return tuple(map(_dask_unknown, arrays))
    given = {name: _dask_unknown(array) for name, array in arrays.items()}
    rank = arrays["data"].ndim
    if type(axis) is int and axis and -rank <= axis < rank:
        import dask.array as da  # noqa: PLC0415

        given["data"] = da.moveaxis(_dask_unknown(np.moveaxis(arrays["data"], axis, 0)), 0, axis)
    return given


def of_dask(result: Any) -> Array:
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
    Adapter("dask", "dask.array", in_blocks(lambda array: -1), of_dask, knows_no_types=True),
    Adapter("dask-ones", "dask.array", in_blocks(_ones), of_dask, knows_no_types=True),
    Adapter(
        "dask-unknown",
        "dask.array",
        _dask_unknown,
        of_dask,
        give_all=_all_unknown,
        words={  # errors name the shape of a block
            "segment_max-refused-axis-length": ", got (1,)",
            "segment_max-refused-axis-rank": ", got ()",
        },
        knows_no_types=True,
    ),
)
