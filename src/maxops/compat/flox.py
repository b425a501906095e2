"""The maxima of flox (0.11), as its aggregations: `max` and `nanmax`.

>>> import numpy as np
>>> from flox import groupby_reduce
>>> from maxops.compat import flox as mflox
>>> x, by = np.array([3.0, np.nan, 5.0, 1.0]), np.array(["b", "a", "b", "a"])
>>> groupby_reduce(x, by, func=mflox.nanmax)
(array([1., 5.]), array(['a', 'b'], dtype='<U1'))

An aggregation is given as ``func=`` of `flox.groupby_reduce` and of `flox.xarray.xarray_reduce`, on arrays of NumPy and
Dask, by every method. Groups, fill values and promotion are flox's; ``engine`` has no effect. What differs:

- Every NaN among the results is the quiet NaN with sign 0, and +0 is above -0.
- flox computes complex numbers, dates and strings, which maxops lacks, and sparse arrays.
- Bools give int64, to which flox converts them for other than its own aggregations, and arrays of objects are an error.
- `xarray_reduce` takes no ``skipna`` beside an aggregation: `max` propagates NaN, and `nanmax` skips it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from maxops.extras import needed

with needed("maxops.compat.flox", "flox"):
    from flox import xrdtypes
    from flox.aggregations import Aggregation, generic_aggregate

from maxops import dtypes, ops
from maxops.typing import NanRule

__all__ = ["max", "nanmax"]


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
    """The maxima of the groups along the last axis, as flox's engines have them."""
    dtype = np.dtype(array.dtype if dtype is None else dtype)
    row = dtypes.of(dtype)
    if type(array) is not np.ndarray or row is None or row is dtypes.REAL:
        name = "max" if nan == "propagate" else "nanmax"
        given = {"size": size, "fill_value": fill_value, "dtype": dtype, **options}
        return generic_aggregate(group_idx, array, axis=axis, engine="numpy", func=name, **given)
    fill = np.asarray(fill_value, dtype)[()]
    data = array.astype(dtype, copy=False)
    return ops.segment_max(data, group_idx, size, fill_value=fill, sorted=False, axis=axis, nan=nan)


def _merged(*arrays: Any, nan: NanRule, axis: Any = None, keepdims: bool = True, **options: Any) -> Any:
    """The maxima of blocks' maxima: of one array along axes, or of ids and an array by ids."""
    if len(arrays) > 1:
        return _grouped(*arrays, nan=nan, axis=-1 if axis is None else axis, **options)
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
