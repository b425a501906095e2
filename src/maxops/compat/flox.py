"""flox's `groupby_reduce` and `xarray_reduce` (0.11), computed with maxops, and the aggregations `max` and `nanmax`.

>>> import numpy as np
>>> from maxops.compat.flox import groupby_reduce
>>> x, by = np.array([3.0, np.nan, 5.0, 1.0]), np.array(["b", "a", "b", "a"])
>>> groupby_reduce(x, by, func="nanmax")
(array([1., 5.]), array(['a', 'b'], dtype='<U1'))

The functions compute "max" and "nanmax" with maxops, for NumPy and Dask arrays and for every ``method``. They pass all
other reductions to flox. You can also pass `max` and `nanmax` to flox's own functions, as ``func``. Groups, fill values
and promotion are the same as in flox. ``engine`` has no effect. Differences:

- NaN results are always the quiet NaN with sign bit 0, and +0 is greater than -0.
- Arrays of bool, complex numbers, dates or strings, and sparse arrays, are passed to flox.
- `nanmax` of integers is exact, but flox converts integers to float, which rounds large integers. With several ``by``
  and a ``fill_value``, absent groups have the fill value, but in flox they have the lowest integer. With
  ``fill_value=0``, all-NaN groups are 0, but in flox they are NaN.
- Object arrays raise an error.
- ``expected_groups`` may be any `pandas.RangeIndex`, but flox supports only those that start with 0 and have step 1.
- If you pass `max` or `nanmax` to flox's own functions, do not pass ``skipna``, because `max` propagates NaN, and
  `nanmax` skips it. With ``fill_value``, `nanmax` fills all-NaN groups only if ``min_count`` is at least 1.
  Results of bool arrays are int64, because flox converts them for custom aggregations.
- `xarray_reduce` passes datasets that mix floats with other dtypes, and reductions along unlabeled dimensions, to flox.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from maxops.extras import needed

with needed("maxops.compat.flox", "flox"):
    import flox
    import pandas as pd
    from flox import xrdtypes
    from flox.aggregations import Aggregation, generic_aggregate

from maxops import dtypes, ops
from maxops.typing import NanRule

__all__ = ["groupby_reduce", "max", "nanmax", "xarray_reduce"]


def _grouped(
    group_idx: Any,
    array: Any,
    *,
    nan: NanRule,
    axis: int = -1,
    size: int | None = None,
    fill_value: Any = None,
    dtype: Any = None,
    **options: Any,
) -> Any:
    """Return the maximum of each group along an axis, with the arguments that flox passes to its engines."""
    dtype = np.dtype(array.dtype if dtype is None else dtype)
    row = dtypes.of(dtype)
    if type(array) is not np.ndarray or row is None or row is dtypes.REAL:
        name = "max" if nan == "propagate" else "nanmax"
        given = {"size": size, "fill_value": fill_value, "dtype": dtype, **options}
        return generic_aggregate(group_idx, array, axis=axis, engine="numpy", func=name, **given)
    if array.shape[axis] != len(group_idx):
        raise ValueError(f"expected {array.shape[axis]} labels for axis {axis}, got {len(group_idx)}")
    fill = np.asarray(fill_value, dtype)[()]
    data = array.astype(dtype, copy=False)
    return ops.segment_max(data, group_idx, size, fill_value=fill, sorted=False, axis=axis, nan=nan)


def _merged(*arrays: Any, nan: NanRule, axis: Any = None, keepdims: bool = True, **options: Any) -> Any:
    """Merge the maxima of blocks. `arrays` is one array, merged along axes, or ids and an array, merged by id."""
    if len(arrays) > 1:
        return _grouped(*arrays, nan=nan, axis=axis, **options)
    (array,) = arrays
    if type(array) is not np.ndarray or dtypes.of(array.dtype) in (None, dtypes.REAL):
        return (np.max if nan == "propagate" else np.nanmax)(array, axis=axis, keepdims=keepdims)
    return ops.reduce_max(array, axis=axis, keepdims=keepdims, nan=nan)


def _aggregation(name: str, nan: NanRule) -> Any:
    of_groups = partial(_grouped, nan=nan)
    return Aggregation(
        f"maxops.{name}",
        numpy=of_groups,
        chunk=of_groups,
        combine=(partial(_merged, nan=nan),),
        fill_value=xrdtypes.NINF if nan == "propagate" else xrdtypes.NA,
        preserves_dtype=True,
    )


max: Any = _aggregation("max", "propagate")
nanmax: Any = _aggregation("nanmax", "ignore")
_HERE = {"max": max, "nanmax": nanmax}


def _chosen(func: str, by: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Add the aggregation of maxops to the options. With a fill value, nanmax fills all-NaN groups, as in flox."""
    is_filled = func == "nanmax" and options.get("fill_value") is not None and not options.get("min_count")
    changed = {"func": _HERE[func]} | ({"min_count": 1} if is_filled else {})
    if (groups := options.get("expected_groups")) is not None:
        are_positions = all(getattr(getattr(each, "dtype", None), "kind", None) in ("i", "u") for each in by)
        listed = tuple(
            each.to_numpy()  # flox uses labels as positions in a RangeIndex
            if isinstance(each, pd.RangeIndex) and not (are_positions and each.start == 0 and each.step == 1)
            else each
            for each in (groups if isinstance(groups, tuple) else (groups,))
        )
        changed["expected_groups"] = listed if isinstance(groups, tuple) else listed[0]
    return options | changed


def groupby_reduce(array: Any, *by: Any, func: Any, **options: Any) -> Any:
    """Reduce groups like `flox.groupby_reduce`: "max" and "nanmax" with maxops, and all other reductions with flox."""
    is_here = isinstance(func, str) and func in _HERE and getattr(array, "dtype", None) != dtypes.BOOL.numpy
    return flox.groupby_reduce(array, *by, **(_chosen(func, by, options) if is_here else options | {"func": func}))


def xarray_reduce(obj: Any, *by: Any, func: Any, skipna: bool | None = None, **options: Any) -> Any:
    """Reduce groups like `flox.xarray.xarray_reduce`: maxima with maxops, and all other reductions with flox."""
    from flox.xarray import xarray_reduce as reduce  # noqa: PLC0415  (flox does not require xarray)

    theirs = partial(reduce, obj, *by, func=func, skipna=skipna, **options)
    if not isinstance(func, str) or func not in _HERE:
        return theirs()
    arrays = obj.data_vars.values() if hasattr(obj, "data_vars") else [obj]
    if not all(hasattr(array, "dtype") for array in arrays):
        return theirs()
    are_floats = {array.dtype.kind in "cfO" for array in arrays}  # flox skips NaN in floats by default
    if len(are_floats) > 1 or any(array.dtype == dtypes.BOOL.numpy for array in arrays):
        return theirs()
    skips = are_floats == {True} if skipna is None else skipna
    try:
        return reduce(obj, *by, **_chosen("nanmax" if skips else func, by, options))
    except NotImplementedError:  # flox does not support custom aggregations along a dimension without labels
        return theirs()
