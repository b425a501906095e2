"""The tests' adapters for xarray: axes are named from the last axis, "a1", to the first.

`give` makes the wrapped data an array of another engine. The ids stay in memory, because their values determine the
number of segments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from helpers.engine_adapter import Adapter
from helpers.engine_dask import in_blocks, of_dask
from maxops.plan import Array

Arrays = dict[str, Array] | tuple[Array, ...]


def named(array: Any, axes: tuple[int, ...] | None = None) -> Any:
    """Return a DataArray whose axes are named by number. By default, the last axis has number 1."""
    xr = import_module("xarray")
    numbers = range(array.ndim, 0, -1) if axes is None else axes
    return xr.DataArray(array, dims=[f"a{number}" for number in numbers])


def give_all(arrays: Arrays, axis: Any = 0, give: Callable[[Array], Any] = lambda array: array) -> Any:
    """Return the arrays of a call: the inputs of Max share names of axes, and ids have the name of the row axis."""
    if isinstance(arrays, tuple):
        left = [_broadcast_by_name(array, arrays) for array in arrays]
        return tuple(named(give(array), axes) for array, axes in left)
    rank = arrays["data"].ndim
    result = {"data": named(give(arrays["data"]))}
    if "segment_ids" in arrays:
        ids = arrays["segment_ids"]
        along = max(rank, 1) - (axis % rank if isinstance(axis, int) and -rank <= axis < rank else 0)
        axes = tuple(range(along, along - ids.ndim, -1))
        result["segment_ids"] = named(ids, axes)
    if "offsets" in arrays:
        result["offsets"] = named(arrays["offsets"], (99,) * arrays["offsets"].ndim)
    return result


def _broadcast_by_name(array: Array, beside: tuple[Array, ...]) -> tuple[Array, tuple[int, ...]]:
    """Return an array without the axes of size 1 that are larger in another array, and the remaining axes.

    NumPy broadcasts axes of size 1, and xarray broadcasts missing names.
    """
    axes = range(array.ndim, 0, -1)
    spread = [
        array.shape[-axis] == 1 and any(axis <= other.ndim and other.shape[-axis] != 1 for other in beside)
        for axis in axes
    ]
    left = tuple(axis for axis, gone in zip(axes, spread, strict=True) if not gone)
    return np.squeeze(array, tuple(i for i, gone in enumerate(spread) if gone)), left


def take(result: Any) -> Array:
    """Return the wrapped array, with its axes from the first to the last."""
    xr = import_module("xarray")
    assert type(result) is xr.DataArray, f"got a {type(result).__name__}"
    ordered = result.transpose(*sorted(result.dims, key=lambda name: -int(str(name)[1:])))
    return ordered.data  # type: ignore[no-any-return]


def _adapter(name: str, give: Callable[[Array], Any], back: Callable[[Any], Array]) -> Adapter:
    """Return an adapter. Its errors name dimensions."""
    words = {
        "maximum-refused-shapes": "axis -1 has size 2, expected 3",
        "reduce_max-refused-dim": "dim must be a dimension of data ('a2', 'a1'), got 'x'",
        "segment_max-refused-dim": "dim is 'x', but segment_ids has dimension 'a2'",
    }
    return Adapter(name, "xarray", give, back, give_all=partial(give_all, give=give), words=words, knows_no_types=True)


def _halves(array: Array) -> tuple[int, ...]:
    return tuple(max(1, (size + 1) // 2) for size in array.shape)


ADAPTERS = (
    _adapter("xarray", lambda array: array, take),
    _adapter("xarray-dask", in_blocks(_halves), lambda result: of_dask(take(result))),
)
