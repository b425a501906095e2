"""`maximum`, `max` and `argmax` of the array API standard (2025.12) for every array that maxops accepts.

>>> import numpy as np
>>> from maxops.compat import array_api
>>> array_api.max(np.array([[1, 5], [7, 2]]), axis=0)
array([7, 5])

NaN propagates. Where the standard does not specify the result, +0 is greater than -0, and the maximum of an empty array
is -Inf, the lowest integer or False. bool is supported, but complex numbers are not.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxops import ops
from maxops.compat import at_once
from maxops.engines.base import is_of
from maxops.shapes import is_empty_along

__all__ = ["argmax", "max", "maximum"]

_maximum = at_once("maximum")


def maximum(x1: Any, x2: Any, /) -> Any:
    """Return the element-wise maximum of two arrays, or of an array and a Python scalar.

    >>> import numpy as np
    >>> maximum(np.array([1, 5], np.int8), np.array([4, 2], np.int16))
    array([4, 5], dtype=int16)

    Arrays of different dtypes are promoted by the rules of their library. If only one of them is a NumPy array, the
    rules of the other array's library apply.

    Source: array API standard 2025.12, `maximum`.
    """
    result = _maximum(x1, x2)
    return ops.maximum(*_promoted(x1, x2)) if result is None else result


def _promoted(*arrays: Any) -> tuple[Any, ...]:
    """Promote arrays by their library's rules. If this fails, return them unchanged, and `maximum` raises an error."""
    try:
        return _in_one_type(*arrays)
    except (TypeError, ValueError, OverflowError):
        return arrays


def _in_one_type(*arrays: Any) -> tuple[Any, ...]:
    """Promote arrays to a common dtype by their library's rules. Convert a Python int to float for float arrays."""
    typed = [array for array in arrays if hasattr(array, "dtype")]
    if typed and int in map(type, arrays) and "float" in str(typed[0].dtype):
        arrays = tuple([float(array) if type(array) is int else array for array in arrays])
    if all(array.dtype == typed[0].dtype for array in typed[1:]):
        return arrays
    tensors = [is_of(type(array), "torch:Tensor") for array in typed]
    if any(tensors) and not all(tensors):  # no library promotes both; `maximum` raises an error for different dtypes
        return arrays
    first = next((array for array in typed if not isinstance(array, (np.ndarray, np.generic))), typed[0])
    if hasattr(first, "__array_namespace__"):
        namespace = first.__array_namespace__()
        common = namespace.result_type(*typed)
        return tuple(
            [namespace.astype(array, common, copy=False) if hasattr(array, "dtype") else array for array in arrays]
        )
    if tensors[0]:
        import torch  # noqa: PLC0415 - already imported, because an array is a tensor

        common = functools.reduce(torch.promote_types, [array.dtype for array in typed])
        return tuple([array.to(common) if hasattr(array, "dtype") else array for array in arrays])
    common = np.result_type(*[array.dtype for array in typed])
    return tuple([array.astype(common) if hasattr(array, "dtype") else array for array in arrays])


def max(x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """Return the maximum along the given axes or, by default, of all elements.

    >>> import numpy as np
    >>> max(np.array([[1, 5], [7, 2]]), axis=1, keepdims=True)
    array([[5],
           [7]])

    Source: array API standard 2025.12, `max`.
    """
    return ops.reduce_max(x, axis=axis, keepdims=keepdims)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the first maximum along an axis or, by default, in the flattened array.

    >>> import numpy as np
    >>> argmax(np.array([[1, 5], [7, 2]]), axis=1)
    array([1, 0])

    Raises ValueError if there are no elements to select from.

    Source: array API standard 2025.12, `argmax`.
    """
    if isinstance(axis, Sequence):
        raise TypeError(f"argmax() axis must be an integer or None, got {axis!r}")
    indices = ops.reduce_max(x, axis=axis, keepdims=keepdims, return_indices=True)[1]
    shape = tuple(x.shape if hasattr(x, "shape") else np.shape(x))
    if is_empty_along(shape, axis):
        raise _no_elements(shape)
    if is_of(type(x), "dask.array:Array") and any(map(np.isnan, shape)):  # unknown sizes are checked in tasks
        return indices.map_blocks(_checked, shape=shape, dtype=indices.dtype, meta=indices._meta)
    return indices


def _checked(indices: Any, *, shape: tuple[float, ...]) -> Any:
    """Return indices in a task, or raise an error for -1, the index of the maximum of no elements."""
    if (indices < 0).any():
        raise _no_elements(shape)
    return indices


def _no_elements(shape: tuple[float, ...]) -> ValueError:
    return ValueError(f"argmax() got an array of shape {shape}, which has no elements along the reduced axes")
