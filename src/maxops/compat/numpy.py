"""NumPy's maxima: `maximum` with its methods, `max`, `amax`, `argmax`, `fmax`, `nanmax` and `nanargmax`.

>>> import numpy as np
>>> from maxops.compat import numpy as mnp
>>> mnp.maximum(np.array([1.0, 4.0]), 2.5)
array([2.5, 4. ])
>>> mnp.maximum.reduceat(np.array([3, 1, 5, 2]), [0, 2])
array([3, 5])

Signatures, defaults, promotion of types, results (scalars at rank 0) and errors are NumPy's. What differs:

- Every NaN among the results is the quiet NaN with sign 0, and +0 is above -0.
- NumPy computes the rest: complex numbers, dates, strings, objects, longdouble, subclasses such as masked
  arrays, ``casting=`` and its like, and ``reduceat`` with indices that do not increase.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np

from maxops import _native, dtypes, ops, order
from maxops.dtypes import REAL, DType
from maxops.shapes import is_empty_along

__all__ = ["amax", "argmax", "fmax", "max", "maximum", "nanargmax", "nanmax"]

_NUMPYS = ("fmax", "argmax", "max", "maximum", "nanargmax", "nanmax")
_numpys: Any = SimpleNamespace(**{name: getattr(np, name) for name in _NUMPYS})  # should ours take their places there
_NOT_GIVEN: Any = np._NoValue  # NumPy's own default, for signatures that are as its


def _common(*values: Any, dtype: Any = None) -> tuple[DType, list[Any]] | None:
    """Arrays in their common type, by NumPy's promotion; None for what goes to NumPy."""
    if dtype is None and len(values) == 1 and type(values[0]) is np.ndarray:
        row = dtypes.of(values[0].dtype)
        return None if row is None or row is REAL else (row, [*values])
    arrays = [value if type(value) in (bool, int, float) else np.asanyarray(value) for value in values]
    if any(type(array) not in (np.ndarray, bool, int, float) for array in arrays):
        return None
    try:
        found = np.result_type(*arrays) if dtype is None else np.dtype(dtype)
        row = dtypes.of(found)
        if row is None or row is REAL:
            return None
        if dtype is not None and not all(np.can_cast(np.result_type(each), found, "same_kind") for each in arrays):
            return None
        return row, [np.asarray(array, found) for array in arrays]
    except (TypeError, OverflowError):  # as NumPy says in its own words
        return None


def _are_plain(*values: Any) -> bool:
    """Whether values are arrays or Python's numbers, and one of them an array."""
    kinds = [type(value) for value in values]
    return np.ndarray in kinds and all(kind in (np.ndarray, float, int, bool) for kind in kinds)


def _given(result: Any, out: Any, where: Any = True) -> Any:
    """A result as NumPy returns it: in `out`, where it is asked for; or a scalar at rank 0."""
    if isinstance(out, tuple):
        (out,) = out
    if out is None and where is True:
        return result[()] if result.ndim == 0 else result
    if out is None:
        out = np.empty_like(result)
    np.copyto(out, result, casting="same_kind", where=where)
    return out


def _reduced(result: Any, out: Any) -> Any:
    """The same of a reduction, whose `out` has the result's shape."""
    if isinstance(out, tuple):
        (out,) = out
    if out is not None and np.shape(out) != result.shape:
        raise ValueError(f"out has shape {np.shape(out)}, but the result has shape {result.shape}")
    return _given(result, out)


class _Ufunc:
    """A universal function of NumPy's, by its name: what a class below does not have is NumPy's."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = f"As `numpy.{name}`."

    def __reduce__(self) -> str:
        """Pickled and copied by name, as NumPy's."""
        return self.__name__

    def __getattr__(self, attribute: str) -> Any:
        return getattr(getattr(_numpys, self.__name__), attribute)

    def __repr__(self) -> str:
        return f"<maxops.compat.numpy.{self.__name__}>"


class _Maximum(_Ufunc):
    """`numpy.maximum`, the universal function."""

    def __call__(
        self, x1: Any, x2: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None, **more: Any
    ) -> Any:
        """The element-wise maximum.

        Source: NumPy 2.4, `numpy.maximum`.
        """
        if where is True and dtype is None and not more and _are_plain(x1, x2):
            # None for what it does not take at once
            result = _native.maximum(x1, x2) if out is None else _native.maximum(x1, x2, out=out)
            if result is not None:
                return result if result.ndim or out is not None else result[()]
        found = None if more else _common(x1, x2, dtype=dtype)
        if found is None:
            named = {} if dtype is None else {"dtype": dtype}
            return _numpys.maximum(x1, x2, out=out, where=where, **named, **more)
        _, arrays = found
        return _given(ops.maximum(*arrays), out, where)

    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = _NOT_GIVEN,
        where: Any = True,
    ) -> Any:
        """The maximum along an axis, the first by default.

        Source: NumPy 2.4, `numpy.ufunc.reduce`.
        """
        is_simple = dtype is None and out is None and initial is _NOT_GIVEN and where is True
        if is_simple and type(array) is np.ndarray and array.size:
            result = _native.reduce_max(array, axis=axis, keepdims=keepdims)
            if result is not None:
                return result if result.ndim else result[()]
        found = None if where is not True else _common(array, dtype=dtype)
        if found is None or (initial is None and is_empty_along(np.shape(array), axis)):
            return _numpys.maximum.reduce(array, axis, dtype, out, keepdims, initial, where)
        _, (data,) = found
        first = None
        if initial is not _NOT_GIVEN and initial is not None:
            first = np.asarray(initial, data.dtype)
        elif is_empty_along(data.shape, axis):
            raise ValueError("zero-size array to reduction operation maximum which has no identity")
        if data.ndim == 0 and axis in (0, -1):  # which NumPy lets a scalar have
            axis = None
        if axis == () and first is not None:
            return _reduced(ops.maximum(data, first), out)
        return _reduced(ops.reduce_max(data, axis=axis, keepdims=bool(keepdims), initial=first), out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The maxima of the slices from each index to the next.

        Source: NumPy 2.4, `numpy.ufunc.reduceat`.
        """
        found, starts = _common(array, dtype=dtype), np.asarray(indices)
        is_plain = found is not None and starts.ndim == 1 and starts.size and starts.dtype.kind in "iu"
        if not is_plain or found is None or not (starts[1:] > starts[:-1]).all() or starts[0] < 0:
            return _numpys.maximum.reduceat(array, indices, axis, dtype, out)
        _, (data,) = found
        rows = data.shape[axis] if -data.ndim <= axis < data.ndim else 0
        if starts[-1] >= rows:
            return _numpys.maximum.reduceat(array, indices, axis, dtype, out)
        offsets = np.empty(len(starts) + 1, np.int64)
        offsets[:-1], offsets[-1] = starts, rows
        if starts[0]:
            data = data[(slice(None),) * (axis % data.ndim) + (slice(starts[0], None),)]
            offsets -= offsets[0]
        return _reduced(ops.segment_max(data, offsets=offsets, fill_mode="ZERO", axis=axis), out)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The maxima of all elements up to each along an axis.

        Source: NumPy 2.4, `numpy.ufunc.accumulate`.
        """
        found = _common(array, dtype=dtype)
        if found is None:
            return _numpys.maximum.accumulate(array, axis, dtype, out)
        row, (data,) = found
        keys = _numpys.maximum.accumulate(order.keys_of(np, np.ascontiguousarray(data).reshape(data.shape), row), axis)
        return _reduced(_values(keys, row), out)

    def outer(self, x1: Any, x2: Any, /, **more: Any) -> Any:
        """The maximum of each pair of elements of two arrays.

        Source: NumPy 2.4, `numpy.ufunc.outer`.
        """
        one, other = np.asanyarray(x1), np.asanyarray(x2)
        return self(one.reshape(one.shape + (1,) * other.ndim), other, **more)

    def at(self, a: Any, indices: Any, b: Any, /) -> None:
        """Raise elements of an array, in place, to others; an element that is named twice, to both.

        Source: NumPy 2.4, `numpy.ufunc.at`.
        """
        found = _common(a, b) if type(a) is np.ndarray else None
        if found is None or found[1][0].dtype != a.dtype or not a.dtype.isnative:
            _numpys.maximum.at(a, indices, b)
            return
        row, (_, others) = found
        keys = order.keys_of(np, np.ascontiguousarray(a).reshape(a.shape), row)
        _numpys.maximum.at(keys, indices, order.keys_of(np, np.ascontiguousarray(others).reshape(others.shape), row))
        touched = np.zeros(a.shape, bool)
        touched[indices] = True
        np.copyto(a, _values(keys, row), where=touched)


def _values(keys: Any, row: DType) -> Any:
    """The elements of keys; NumPy has no bfloat16 by name."""
    if row is dtypes.BFLOAT16:
        return order.values_of(_WithBfloat16, keys, row)
    return order.values_of(np, keys, row)


class _WithBfloat16:
    bfloat16 = dtypes.BFLOAT16.numpy


maximum: _Maximum = _Maximum("maximum")


def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _NOT_GIVEN,
    initial: Any = _NOT_GIVEN,
    where: Any = _NOT_GIVEN,
) -> Any:
    """Return the maximum along axes, or of all elements.

    >>> max(np.array([[1, 5], [7, 2]]), axis=0)
    array([7, 5])

    Raises ValueError for the maximum of no elements without ``initial``, as NumPy.

    Source: NumPy 2.4, `numpy.max`.
    """
    if where is not _NOT_GIVEN or type(a) not in (np.ndarray, list, tuple, bool, int, float):
        return _numpys.max(a, axis, out, keepdims, initial, where)
    return maximum.reduce(a, axis, None, out, keepdims is not _NOT_GIVEN and keepdims, initial)


amax = max


def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = _NOT_GIVEN) -> Any:
    """Return the index of the first maximum along an axis, or in all elements in C order.

    >>> argmax(np.array([[1, 5], [7, 2]]), axis=1)
    array([1, 0])

    Source: NumPy 2.4, `numpy.argmax`.
    """
    if out is None and type(a) is np.ndarray and a.size:
        pair = _native.reduce_max(a, axis=axis, keepdims=keepdims is not _NOT_GIVEN and keepdims, return_indices=True)
        if pair is not None:
            return pair[1] if pair[1].ndim else pair[1][()]
    found = _common(a) if type(a) in (np.ndarray, list, tuple, bool, int, float) else None
    if found is None or is_empty_along(found[1][0].shape, axis):
        return _numpys.argmax(a, axis, out, keepdims=keepdims)
    (data,) = found[1]
    keeps = keepdims is not _NOT_GIVEN and bool(keepdims)
    along = None if data.ndim == 0 and axis in (0, -1) else axis
    return _reduced(ops.reduce_max(data, axis=along, keepdims=keeps, return_indices=True)[1], out)


class _Fmax(_Ufunc):
    """`numpy.fmax`, whose methods are NumPy's."""

    def __call__(
        self, x1: Any, x2: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None, **more: Any
    ) -> Any:
        """Return the element-wise maximum; NaN only where both are NaN.

        >>> fmax(np.array([np.nan, 2.0]), 1.0)
        array([1., 2.])

        Source: NumPy 2.4, `numpy.fmax`.
        """
        found = None if more else _common(x1, x2, dtype=dtype)
        if found is None:
            named = {} if dtype is None else {"dtype": dtype}
            return _numpys.fmax(x1, x2, out=out, where=where, **named, **more)
        row, (one, other) = found
        result = ops.maximum(one, other)
        if row.kind == "float" and np.isnan(ops.reduce_max(result, axis=None)):
            one, other = np.where(np.isnan(one), other, one), np.where(np.isnan(other), one, other)
            result = ops.maximum(one, other)
        return _given(result, out, where)


fmax: _Fmax = _Fmax("fmax")


def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _NOT_GIVEN,
    initial: Any = _NOT_GIVEN,
    where: Any = _NOT_GIVEN,
) -> Any:
    """Return the maximum of the elements that are not NaN; NaN, with a warning, where all are.

    >>> nanmax(np.array([[1.0, np.nan], [7.0, 2.0]]), axis=1)
    array([1., 7.])

    Source: NumPy 2.4, `numpy.nanmax`.
    """
    found = _common(a) if type(a) is np.ndarray and where is _NOT_GIVEN else None
    if found is None or found[0].kind != "float":
        if where is _NOT_GIVEN and found is not None:
            return max(a, axis, out, keepdims, initial)
        return _numpys.nanmax(a, axis, out, keepdims, initial, where)
    (data,) = found[1]
    keeps = keepdims is not _NOT_GIVEN and bool(keepdims)
    if data.size and not np.isnan(ops.reduce_max(data, axis=None)):
        return max(data, axis, out, keeps, initial)
    missing = np.isnan(data)
    result = np.asarray(max(np.where(missing, data.dtype.type(-np.inf), data), axis, None, keeps, initial))
    if initial is _NOT_GIVEN and (alone := np.asarray(np.all(missing, axis=axis, keepdims=keeps))).any():
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=2)
        result = np.where(alone, data.dtype.type(np.nan), result)
    return _reduced(result, out)


def nanargmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = _NOT_GIVEN) -> Any:
    """Return the index of the first maximum of the elements that are not NaN.

    >>> nanargmax(np.array([np.nan, 1.0, 3.0]))
    np.int64(2)

    Raises ValueError where all elements are NaN, as NumPy.

    Source: NumPy 2.4, `numpy.nanargmax`.
    """
    found = _common(a) if type(a) is np.ndarray else None
    if found is None or found[0].kind != "float" or found[1][0].size == 0:
        return _numpys.nanargmax(a, axis, out, keepdims=keepdims)
    (data,) = found[1]
    missing = np.isnan(data)
    if np.all(missing, axis=axis).any():
        raise ValueError("All-NaN slice encountered")
    return argmax(np.where(missing, data.dtype.type(-np.inf), data), axis, out, keepdims=keepdims)
