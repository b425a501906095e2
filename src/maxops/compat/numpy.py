"""NumPy's maximum functions: `maximum` with its methods, `max`, `amax`, `argmax`, `fmax`, `nanmax` and `nanargmax`.

>>> import numpy as np
>>> from maxops.compat import numpy as mnp
>>> mnp.maximum(np.array([1.0, 4.0]), 2.5)
array([2.5, 4. ])
>>> mnp.maximum.reduceat(np.array([3, 1, 5, 2]), [0, 2])
array([3, 5])

Signatures, defaults, type promotion, results and errors are the same as in NumPy. For example, a result of rank 0 is a
NumPy scalar. All other names of NumPy are also available in this module, so ``from maxops.compat import numpy as np``
is the only change that a program needs. Differences:

- NaN results are always the quiet NaN with sign bit 0, and +0 is greater than -0.
- If an array contains only NaN and -inf, `nanargmax` returns the index of -inf, but NumPy returns the index of the
  first NaN.
- maxops passes unsupported calls to NumPy: calls with complex numbers, dates, strings, objects, longdouble, subclasses
  such as masked arrays, or arrays of other libraries such as Series; calls with ``casting=`` and similar arguments;
  reductions with an ``out`` of another dtype, because NumPy computes in that dtype; and ``reduceat`` with indices that
  are not increasing.
"""

from __future__ import annotations

import math
import operator
import warnings
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from maxops import _native, ops
from maxops import dtypes as _dtypes  # NumPy also has the name `dtypes`
from maxops.dtypes import REAL, DType
from maxops.shapes import is_empty_along
from maxops.typing import NanRule

__all__ = ["amax", "argmax", "fmax", "max", "maximum", "nanargmax", "nanmax"]

_NUMPYS = ("argmax", "fmax", "max", "maximum", "nanargmax", "nanmax")
# NumPy's own functions, even if a program replaces them in the module `numpy`.
_numpys: Any = SimpleNamespace(**{name: getattr(np, name) for name in _NUMPYS})
_NOT_GIVEN: Any = np._NoValue  # NumPy's default, so that the signatures are equal
_ARRAY, _BFLOAT16 = np.ndarray, _dtypes.BFLOAT16.numpy
_FALSE = np.asarray(False)  # promotion with bool does not change the other dtype
_BLOCK = 16384  # number of elements that are converted at a time, so that they stay in the cache
_LITERALS = frozenset({list, tuple, bool, int, float})
_USUAL = {np.dtype(kind).char for kind in (bool, int, float)}  # the dtypes of arrays that NumPy creates from literals
_PLAIN = frozenset({_ARRAY, bool, int, float})  # arrays are promoted by dtype, and Python scalars by kind
_DEFAULTS = {"dtype": None, "out": None, "keepdims": False, "where": True}


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__version__":  # such as __path__, which would turn this module into a package
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(np, name)


def __dir__() -> list[str]:
    return sorted({*dir(np), *__all__})


@lru_cache(maxsize=256, typed=True)
def _promoted(one: Any, other: Any) -> DType | None:
    """Return the common dtype by NumPy's promotion rules, or None if the call must be passed to NumPy.

    Each argument is a dtype or, for a Python scalar, any value of its type.
    """
    if float in (type(one), type(other)) and _BFLOAT16 in (one, other):
        return _dtypes.FLOAT32  # as NumPy's functions do; `np.result_type` returns float64
    try:
        row = _dtypes.of(np.result_type(one, other))
    except TypeError:  # NumPy raises its own error
        return None
    return None if row is REAL else row


def _common(one: Any, other: Any = _FALSE, dtype: Any = None) -> tuple[DType | None, Any, Any]:
    """Return the common dtype by NumPy's promotion rules, and the two inputs as arrays.

    The dtype is None if the call must be passed to NumPy. Python scalars are converted to the common dtype. Arrays are
    converted only if `dtype` is given.
    """
    if dtype is None and type(one) in _LITERALS and type(other) in _LITERALS:  # promoted as arrays
        first, second = np.asarray(one), np.asarray(other)
        if first.dtype.char in _USUAL and second.dtype.char in _USUAL:
            one, other = first, second
    if type(one) is type(other) is _ARRAY and dtype is None:
        return _promoted(one.dtype, other.dtype), one, other
    pair = []
    for value in (one, other):
        if type(value) in _PLAIN:
            pair.append(value)
        elif _overrides(value) or type(array := np.asanyarray(value)) is not _ARRAY:
            return None, one, other
        else:
            pair.append(array)
    try:
        row = _promoted(*[each.dtype if type(each) is _ARRAY else type(each)() for each in pair])
        if dtype is not None:
            found = np.dtype(dtype)
            can_cast = all(np.can_cast(np.result_type(each), found, "same_kind") for each in pair)
            row = _dtypes.of(found) if can_cast and found.isnative else None  # NumPy rejects other byte orders
        if row is None or row is REAL:
            return None, one, other
        one, other = [each if type(each) is _ARRAY and dtype is None else np.asarray(each, row.numpy) for each in pair]
    except (TypeError, OverflowError):  # NumPy raises its own error
        return None, one, other
    return row, one, other


def _overrides(value: Any) -> bool:
    """Return whether NumPy returns results of a value's own type, as it does for Series, tensors and Dask arrays."""
    kind = type(value)
    is_numpys = kind in _PLAIN or kind in (list, tuple) or isinstance(value, (np.ndarray, np.generic))
    return not is_numpys and (hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_wrap__"))


def _pass_on(function: Any, *arrays: Any, **options: Any) -> Any:
    """Call NumPy's function without default options, because functions of other libraries may not accept them."""
    given = {
        key: value
        for key, value in options.items()
        if value is not _NOT_GIVEN and value is not _DEFAULTS.get(key, _NOT_GIVEN)
    }
    return function(*arrays, **given)


def _integers(axis: Any) -> Any:
    """Convert the axis or axes of a reduction to integers, as NumPy does."""
    return tuple(map(_integer, axis)) if isinstance(axis, tuple) else _integer(axis)


def _integer(axis: Any) -> Any:
    if axis is None or type(axis) is int:
        return axis
    if type(axis) is bool:
        raise TypeError(f"axis must be an integer, got {axis}")
    return operator.index(axis)


def _given(result: Any, out: Any, where: Any = True) -> Any:
    """Return a result as NumPy does. If it has rank 0 and `out` is not passed, return a scalar."""
    if out is not None:
        _check_out(out, result, where)
        np.copyto(out, result, casting="same_kind", where=where)
        return out
    if where is not True:
        out = np.empty(np.broadcast(result, where).shape, result.dtype)
        np.copyto(out, result, where=where)
        result = out
    return result if result.ndim else result[()]


def _check_out(out: Any, *inputs: Any) -> None:
    """Raise NumPy's error if the inputs cannot be broadcast to `out`."""
    if np.broadcast(out, *inputs).shape != np.shape(out):
        raise ValueError(
            f"non-broadcastable output operand with shape {np.shape(out)} doesn't match the broadcast shape "
            f"{np.broadcast(*inputs).shape}"
        )


def _holds(out: Any, row: DType | None) -> bool:
    """Return whether maxops supports the dtype of a reduction, and whether `out` is None or has this dtype."""
    return row is not None and _is_plain(out) and (out is None or _dtypes.of(out.dtype) is row)


def _from_tuple(out: Any) -> Any:
    """Return the array in a tuple of one array. Return all other values, which NumPy handles, unchanged."""
    is_in_tuple = isinstance(out, tuple) and len(out) == 1 and out[0] is not None and _is_plain(out[0])
    return out[0] if is_in_tuple else out


def _is_plain(out: Any) -> bool:
    """Return whether `out` is None or a plain array. NumPy runs calls with other values, such as subclasses."""
    return out is None or type(out) in (_ARRAY, np.memmap)


def _reduced(result: Any, out: Any) -> Any:
    """Return the result of a reduction as NumPy does. `out` must have the shape of the result."""
    if out is not None and np.shape(out) != result.shape:
        raise ValueError(f"out has shape {np.shape(out)}, but the result has shape {result.shape}")
    return _given(result, out)


def _element_wise(
    name: str, nan: NanRule, /, *inputs: Any, out: Any = _NOT_GIVEN, where: Any = True, dtype: Any = None, **more: Any
) -> Any:
    """Run a call of `maximum` or `fmax` that the native core does not handle."""
    if len(inputs) == 3 and (out is not _NOT_GIVEN or isinstance(inputs[2], tuple) or inputs[2] is ...):
        more = more if out is _NOT_GIVEN else more | {"out": out}
        return getattr(_numpys, name)(*inputs, **more)  # NumPy raises its own error
    if len(inputs) == 3:
        *inputs, out = inputs  # type: ignore[assignment]
    elif out is _NOT_GIVEN or (isinstance(out, tuple) and len(out) == 1 and out[0] is None):
        out = None
    else:
        out = _from_tuple(out)
    row = None
    if len(inputs) == 2 and not more and _is_plain(out) and not _overrides(where):
        # NumPy scalars are promoted by their dtype, like arrays
        one, other = [np.asarray(each) if isinstance(each, np.generic) else each for each in inputs]
        if type(one) is type(other) is _ARRAY and dtype is None:  # inlined from `_common`, for speed
            row = _promoted(one.dtype, other.dtype)
        else:
            row, one, other = _common(one, other, dtype)
    if row is None:
        return _pass_on(getattr(_numpys, name), *inputs, out=out, where=where, dtype=dtype, **more)
    if where is True and (one.size > _BLOCK or other.size > _BLOCK):
        return _in_blocks(row, one, other, out, nan)
    if one.dtype is not row.numpy:
        one = one.astype(row.numpy)
    if other.dtype is not row.numpy:
        other = other.astype(row.numpy)
    result = _native.maximum(one, other, out=out, nan=nan) if where is True else None
    if result is not None:
        return result if result.ndim or out is not None else result[()]
    return _given(ops.maximum(one, other, nan=nan), out, where)


def _in_blocks(row: DType, one: Any, other: Any, out: Any, nan: NanRule) -> Any:
    """Compute the maximum of two arrays block by block, so that the converted elements stay in the cache."""
    if out is not None:
        _check_out(out, one, other)
    flags: Any = ["external_loop", "buffered", "copy_if_overlap", "zerosize_ok"]
    same = "overlap_assume_elementwise"  # an input may be `out` itself
    access: Any = [["readonly", same], ["readonly", same], ["writeonly", "allocate", same]]
    with np.nditer([one, other, out], flags, access, [row.numpy] * 3, casting="same_kind", buffersize=_BLOCK) as blocks:
        for left, right, result in blocks:
            ops.maximum(left, right, out=result, nan=nan)
        return blocks.operands[2] if out is None else out


def _has_nan_or_negative_zero(array: Any, row: DType) -> bool:
    """Return whether an array contains NaN or -0, for which NumPy and maxops may return different bits."""
    has_nan = math.isnan(ops.reduce_max(array, axis=None).item())
    return has_nan or bool(np.count_nonzero(array.view(row.word) == 1 << row.bits - 1))


def _by_position(given: Any, out: Any) -> Any:
    """Return an `out` that was passed by position. As in NumPy, only a keyword may be a tuple or "..."."""
    if out is not None:
        raise TypeError("out was passed both by position and by keyword")
    if not hasattr(type(given), "__array_ufunc__"):
        raise TypeError(f"a positional out must be an array, got {type(given).__name__}")
    return given


class _Maximum(_native.Ufunc):
    """A replacement for `numpy.maximum` or `numpy.fmax`. Attributes not defined here are those of NumPy's function.

    >>> fmax(np.array([np.nan, 2.0]), 1.0)
    array([1., 2.])
    """

    _nan: NanRule
    _numpys: Any  # NumPy's function

    def __new__(cls, name: str, nan: NanRule) -> Self:
        function = partial(_element_wise, name, nan)
        self = super().__new__(cls, function, "maximum", keywords=("out",), ignores_nan=nan == "ignore")
        self.__dict__.update(__name__=name, __qualname__=name, _nan=nan, _numpys=getattr(_numpys, name))
        self.__doc__ = f"Drop-in replacement for `numpy.{name}`."
        return self

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._numpys, attribute)

    def __repr__(self) -> str:
        return f"<maxops.compat.numpy.{self.__name__}>"

    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        _out: Any = None,
        keepdims: bool = False,
        initial: Any = _NOT_GIVEN,
        where: Any = True,
        *,
        out: Any = None,
    ) -> Any:
        """Return the maximum along the given axis. The default is the first axis.

        Source: NumPy 2.4, `numpy.ufunc.reduce`.
        """
        if _out is not None:
            out = _by_position(_out, out)
        if axis is not None and type(axis) is not int:
            axis = _integers(axis)
        if type(keepdims) is not bool:
            keepdims = bool(operator.index(keepdims))  # NumPy raises the same TypeError for None and for np.True_
        out = _from_tuple(out)
        if type(array) in _LITERALS:
            array = np.asarray(array)
        first = None if initial is _NOT_GIVEN else initial
        is_simple = dtype is None and where is True and type(array) is _ARRAY and array.size
        # NumPy rounds Python floats to half precision differently
        if is_simple and (first is None or type(first) is int or (type(first) is float and array.itemsize > 2)):
            result = _native.reduce_max(array, axis=axis, keepdims=keepdims, out=out, initial=first, nan=self._nan)
            if result is not None:
                return result if result.ndim or out is not None else result[()]
        row, data, _ = _common(array, dtype=dtype)
        # NumPy rejects most initial values that are not scalars
        is_plain = where is True and (first is None or np.ndim(first) == 0) and _holds(out, row)
        if not is_plain or (initial is None and is_empty_along(np.shape(array), axis)):
            given = {"dtype": dtype, "out": out, "keepdims": keepdims, "initial": initial, "where": where}
            return _pass_on(self._numpys.reduce, array, axis=axis, **given)
        if first is not None:
            if data.dtype.kind == "i" and isinstance(first, (np.integer, np.floating)):
                first = int(first)  # so that a value out of range raises an error, as in NumPy for signed integers
            first = np.asarray(first, data.dtype)
        elif is_empty_along(data.shape, axis):
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
        if data.ndim == 0 and axis in (0, -1):  # NumPy accepts these axes for scalars
            axis = None
        if axis == () and first is not None:
            return _reduced(ops.maximum(data, first, nan=self._nan), out)
        return _reduced(ops.reduce_max(data, axis=axis, keepdims=keepdims, initial=first, nan=self._nan), out)

    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, _out: Any = None, *, out: Any = None
    ) -> Any:
        """Return the maximum of each slice between consecutive indices.

        Source: NumPy 2.4, `numpy.ufunc.reduceat`.
        """
        if _out is not None:
            out = _by_position(_out, out)
        out = _from_tuple(out)
        if dtype is None and out is None and type(array) is _ARRAY:
            result = _native.reduceat(array, indices, axis, self._nan)
            if result is not None:
                return result
        (row, data, _), starts = _common(array, dtype=dtype), np.asarray(indices)
        # NumPy does not accept uint64 indices
        is_index = starts.dtype.kind == "i" or (starts.dtype.kind == "u" and starts.itemsize < 8)
        is_plain = is_index and starts.ndim == 1 and starts.size and starts.item(0) >= 0
        if not _holds(out, row) or not is_plain or np.count_nonzero(starts[1:] <= starts[:-1]):
            return self._numpys.reduceat(array, indices, axis, dtype, out=out)
        if axis is None:
            axis = (*range(data.ndim),)
        if isinstance(axis, tuple):
            if len(axis) != 1:
                return self._numpys.reduceat(array, indices, axis, dtype, out=out)
            (axis,) = axis
        axis = _integer(axis)
        rows = data.shape[axis] if -data.ndim <= axis < data.ndim else 0
        if starts.item(-1) >= rows:
            return self._numpys.reduceat(array, indices, axis, dtype, out=out)
        offsets = np.empty(len(starts) + 1, np.int64)
        offsets[:-1], offsets[-1] = starts, rows
        if first := starts.item(0):
            data = data[(slice(None),) * (axis % data.ndim) + (slice(first, None),)]
            offsets -= first
        return _reduced(ops.segment_max(data, offsets=offsets, fill_mode="ZERO", axis=axis, nan=self._nan), out)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, _out: Any = None, *, out: Any = None) -> Any:
        """Return the running maximum along an axis.

        Source: NumPy 2.4, `numpy.ufunc.accumulate`.
        """
        if _out is not None:
            out = _by_position(_out, out)
        out = _from_tuple(out)
        row, data, _ = _common(array, dtype=dtype)
        if row is None or row.kind != "float" or not _holds(out, row):
            return self._numpys.accumulate(array, axis, dtype, out=out)
        data = data.astype(row.numpy, copy=False)  # converts to native byte order
        if not _has_nan_or_negative_zero(data, row):
            return self._numpys.accumulate(data, axis, out=out)
        with np.errstate(invalid="ignore"):  # some of NumPy's loops warn about NaN
            result = self._numpys.accumulate(data, axis)
        words = result.view(row.word)
        is_negative = words == 1 << row.bits - 1
        if np.count_nonzero(is_negative):  # NumPy does not order -0 and +0
            words[is_negative & np.logical_or.accumulate(data.view(row.word) == 0, axis)] = 0
        return _reduced(ops.maximum(result, out=result), out)  # replaces each NaN with the quiet NaN

    def outer(self, x1: Any, x2: Any, /, **more: Any) -> Any:
        """Return the maximum of every pair of elements from two arrays.

        Source: NumPy 2.4, `numpy.ufunc.outer`.
        """
        if _overrides(x1) or _overrides(x2):
            return self._numpys.outer(x1, x2, **more)
        one, other = np.asanyarray(x1), np.asanyarray(x2)
        if not type(one) is type(other) is _ARRAY:  # NumPy rejects matrices
            return self._numpys.outer(x1, x2, **more)
        return self(one.reshape(one.shape + (1,) * other.ndim), other, **more)

    def at(self, a: Any, indices: Any, b: Any, /) -> Any:
        """Set the elements at `indices` to their maximum with `b`, in place. Repeated indices accumulate.

        Source: NumPy 2.4, `numpy.ufunc.at`.
        """
        row = _dtypes.of(a.dtype) if type(a) is _ARRAY else None
        common, _, others = _common(a, b) if row is not None and row.kind == "float" else (None, a, b)
        if row is None or common is not row:
            return self._numpys.at(a, indices, b)
        others = np.asarray(others, row.numpy)
        touched = np.asarray(a if a.size <= others.size else a[indices], row.numpy)
        if not (_has_nan_or_negative_zero(touched, row) or _has_nan_or_negative_zero(others, row)):
            return self._numpys.at(a, indices, others)
        expected = ops.maximum(np.asarray(a[indices], row.numpy), others, nan=self._nan)  # b may be a view of a
        with np.errstate(invalid="ignore"):  # some of NumPy's loops warn about NaN
            self._numpys.at(a, indices, others)
        # NumPy does not order -0 and +0, and it keeps the bits of NaN
        a[indices] = result = ops.maximum(np.asarray(a[indices], row.numpy), expected, nan=self._nan)
        words = a.view(row.word if a.dtype.isnative else row.word.newbyteorder())
        np.minimum.at(words, indices, result.view(row.word))  # the maximum is +0 if any zero is +0
        return None


maximum: _Maximum = _Maximum("maximum", "propagate")
fmax: _Maximum = _Maximum("fmax", "ignore")


def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _NOT_GIVEN,
    initial: Any = _NOT_GIVEN,
    where: Any = _NOT_GIVEN,
) -> Any:
    """Return the maximum along the given axes or, by default, of all elements.

    >>> max(np.array([[1, 5], [7, 2]]), axis=0)
    array([7, 5])

    Raises ValueError for an empty reduction without ``initial``, as NumPy does.

    Source: NumPy 2.4, `numpy.max`.
    """
    is_array = type(a) is _ARRAY or type(a) in _LITERALS
    if where is not _NOT_GIVEN or not is_array:
        return _pass_on(_numpys.max, a, axis=axis, out=out, keepdims=keepdims, initial=initial, where=where)
    # as in NumPy, by position, so that a tuple is rejected
    return maximum.reduce(a, axis, None, out, keepdims is not _NOT_GIVEN and keepdims, initial)


amax = max


def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = _NOT_GIVEN) -> Any:
    """Return the index of the first maximum along an axis or, by default, in the flattened array.

    >>> argmax(np.array([[1, 5], [7, 2]]), axis=1)
    array([1, 0])

    Source: NumPy 2.4, `numpy.argmax`.
    """
    axis = _integer(axis)
    if type(a) in _LITERALS:
        a = np.asarray(a)
    if out is None and type(a) is _ARRAY and a.size:
        pair = _native.reduce_max(a, axis=axis, keepdims=keepdims is not _NOT_GIVEN and keepdims, return_indices=True)
        if pair is not None:
            return pair[1] if pair[1].ndim else pair[1][()]
    row = _dtypes.of(a.dtype) if type(a) is _ARRAY else None
    if row in (None, REAL) or not _holds(out, _dtypes.INT64) or is_empty_along(a.shape, axis):
        return _pass_on(_numpys.argmax, a, axis=axis, out=out, keepdims=keepdims)
    keeps = keepdims is not _NOT_GIVEN and bool(keepdims)
    along = None if a.ndim == 0 and axis in (0, -1) else axis
    return _reduced(ops.reduce_max(a, axis=along, keepdims=keeps, return_indices=True)[1], out)


def nanmax(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = _NOT_GIVEN,
    initial: Any = _NOT_GIVEN,
    where: Any = _NOT_GIVEN,
) -> Any:
    """Return the maximum along axes, ignoring NaN. If all elements are NaN, warn and return NaN.

    >>> nanmax(np.array([[1.0, np.nan], [7.0, 2.0]]), axis=1)
    array([1., 7.])

    Source: NumPy 2.4, `numpy.nanmax`.
    """
    if where is not _NOT_GIVEN or type(a) is not _ARRAY or _dtypes.of(a.dtype) in (None, REAL):
        return _pass_on(_numpys.nanmax, a, axis=axis, out=out, keepdims=keepdims, initial=initial, where=where)
    result = fmax.reduce(a, axis, keepdims=keepdims is not _NOT_GIVEN and keepdims, initial=initial, out=out)
    if a.dtype.kind not in "biu" and np.isnan(result).any():
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=2)
    return result


def nanargmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = _NOT_GIVEN) -> Any:
    """Return the index of the first maximum along an axis, ignoring NaN.

    >>> nanargmax(np.array([np.nan, 1.0, 3.0]))
    np.int64(2)

    Raises ValueError if all elements are NaN, as NumPy does.

    Source: NumPy 2.4, `numpy.nanargmax`.
    """
    if type(a) is _ARRAY and a.dtype.kind in "iub":
        return argmax(a, axis, out, keepdims=keepdims)
    axis = _integer(axis)
    row = _dtypes.of(a.dtype) if type(a) is _ARRAY else None
    if row is None or row.kind != "float" or a.size == 0 or not _holds(out, _dtypes.INT64):
        return _pass_on(_numpys.nanargmax, a, axis=axis, out=out, keepdims=keepdims)
    keeps = keepdims is not _NOT_GIVEN and bool(keepdims)
    along = None if a.ndim == 0 and axis in (0, -1) else axis
    values, indices = ops.reduce_max(a, axis=along, keepdims=keeps, return_indices=True, nan="ignore")
    if np.isnan(values).any():
        raise ValueError("All-NaN slice encountered")
    return _reduced(indices, out)
