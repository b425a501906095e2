"""Check the arguments of a call: arrays, dtypes, Python scalars, ids and options."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import copysign, frexp, inf, isfinite, isinf, isnan, ldexp
from operator import index
from typing import Any, SupportsIndex, TypeGuard, cast

import numpy as np

from maxops import _native, dtypes
from maxops.dtypes import DType
from maxops.errors import AttributeValueError, DTypeError, OffsetsError, SegmentIdsError, ShapeError
from maxops.physical_memory import physical_memory
from maxops.shown import shown
from maxops.spec import MAXIMUM, Spec

_NAN_RULES = MAXIMUM.choices("nan")

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class AbstractArray:
    """The shape and dtype of an array of another framework. Sizes may be symbols that compare like integers."""

    shape: tuple[Any, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


def abstract(shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array for the planner that has only a shape and a dtype.

    >>> abstract((1 << 20, 1 << 20), np.dtype("f4")).shape
    (1048576, 1048576)
    """
    return cast(Array, AbstractArray(shape, dtype))


PYTHON_SCALARS = (bool, int, float, Fraction)
WITH_ASTYPE = "with .astype(...) or, in PyTorch, .to(...)"
_ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")  # that np.asarray reads


def how_to_convert(value: object) -> str:
    """Return a hint that states how to convert an object to an array."""
    if isinstance(value, complex):
        return "complex numbers have no order; pass .real, .imag or np.abs(...)"
    if isinstance(value, Decimal):
        return "pass an object array of fractions.Fraction(...), which is exact, or float(...), which rounds"
    if is_python_scalar(value):
        return "pass a NumPy array or scalar, such as np.float32(...)"
    if value is None:
        return "pass an array"
    if isinstance(value, str):
        return "pass numbers, such as 1.0 or np.asarray([1.0, 2.0])"
    if isinstance(value, Mapping):
        return "convert its values with np.asarray(list(... .values()))"
    # Dynamo, which traces this function for lists, cannot search the name of a class
    if not isinstance(value, Sequence) and type(value).__name__.endswith("GroupBy"):
        return f"pass the values and the keys to segment_max, with sorted=False: {_FROM_LABELS}"
    for method in ("toarray", "todense", "collect", "compute"):  # sparse arrays, lazy tables and Dask collections
        if hasattr(type(value), method):
            return f"convert it with .{method}()"
    is_array = isinstance(value, (array, memoryview)) or any(hasattr(type(value), name) for name in _ARRAY_PROTOCOLS)
    if isinstance(value, Iterable) and not isinstance(value, Sequence) and not is_array:
        return "convert it with np.asarray(list(...))"
    if isinstance(value, Sequence) or is_array:
        return "convert it with np.asarray(...)"
    return "pass a NumPy array, or an array with __array__ or, on the CPU, __dlpack__"


def is_python_scalar(value: object) -> bool:
    """Return whether a value is a Python scalar, which takes the dtype of the arrays that it is combined with."""
    return isinstance(value, PYTHON_SCALARS) and not isinstance(value, np.generic)


def array_of(spec: Spec, name: str, value: object) -> Array:
    """Return an ndarray, a memory map or a NumPy scalar as a plain array, without converting elements.

    The result is a new view with its own shape and dtype, because another thread may set those of the argument.
    """
    if type(value) is np.ndarray:
        return value.view()
    if isinstance(value, AbstractArray):
        return cast(Array, value)
    if isinstance(value, np.memmap):
        return value.view(np.ndarray)
    if isinstance(value, np.generic):
        return np.asarray(value)
    what = type(value).__name__
    if isinstance(value, np.ma.MaskedArray):
        hint = "fill masked elements with .filled(...) or dask.array.ma.filled, or drop them with .compressed()"
    elif isinstance(value, np.ndarray):
        hint = f"maxops does not support subclasses such as {what}; convert it with np.asarray(...)"
    else:
        hint = how_to_convert(value)
    raise DTypeError(f"{spec.name} {name} must be a NumPy array, got {what}; {hint}", spec.clause("arrays", "T"))


def dtype_of(spec: Spec, name: str, array: Array) -> DType:
    """Return the DType of an array, or raise an error if the operator does not support its dtype."""
    dtype = dtypes.of(array.dtype)
    if dtype not in spec.dtypes:
        listed = ", ".join(map(str, spec.dtypes))
        raise DTypeError(
            f"{spec.name} {name} has unsupported dtype {dtype or array.dtype}; supported dtypes: {listed}"
            + (" (object arrays of Fraction and int)" if dtypes.REAL in spec.dtypes else ""),
            spec.clause("T", "types"),
        )
    assert dtype is not None
    if dtype is dtypes.REAL and not isinstance(array, AbstractArray):
        _check_rationals(spec, name, array)
    return dtype


def _check_rationals(spec: Spec, name: str, array: Array) -> None:
    # along axes with stride 0, such as those from numpy.broadcast_to, check only the first element
    distinct = array[(*(slice(None if step else 1) for step in array.strides), ...)]
    for flat, value in enumerate(distinct.reshape(-1)):  # not numpy.ndenumerate, which is limited to rank 32
        if type(value) not in (Fraction, int):
            position = tuple(map(int, np.unravel_index(flat, distinct.shape)))
            where = f" at position {position}" if position else ""
            raise DTypeError(
                f"{spec.name} {name} of dtype object must contain only fractions.Fraction and int, got {shown(value)} "
                f"of type {type(value).__name__}{where}",
                spec.clause("T", "types"),
            )


def scalar_as(spec: Spec, name: str, value: Any, dtype: DType, beside: str) -> Array:
    """Convert a Python scalar to `dtype`, the dtype of the argument whose name is `beside`.

    The functions of maxops round a float to the nearest value, ties to even. All other values must be exactly
    representable in `dtype`.
    """
    if spec.explicit_types:
        raise DTypeError(
            f"{spec.name} {name} is a Python {type(value).__name__}, but {spec.standard} requires explicit types; "
            "pass a NumPy array or scalar",
            spec.clause("GR2"),
        )
    # the number that a subclass stores, because its methods might return a different number each time
    if isinstance(value, float):
        value = float.__float__(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        value = int_of(value)
    rounds = spec.standard == "maxops" and isinstance(value, float)
    if _has_kind(dtype, value) and (array := _held(dtype, value, exactly=not rounds)) is not None:
        return array
    given = f"{spec.name} {name} is the Python {type(value).__name__} {shown(value)}"
    clause = spec.clause("scalars", "T")
    if not _has_kind(dtype, value):
        takes = " and ".join(dict.fromkeys(_KIND_NAMES[kind] for kind in _KINDS_BESIDE[_python_kind(value)]))
        raise DTypeError(
            f"{given}, but {beside} is {dtype}; a Python {type(value).__name__} can be combined only with {takes}: "
            f"{_other_spelling(value, dtype)}",
            clause,
        )
    if dtype.kind == "float" and _held(dtype, value, exactly=False) is None:
        sign = -1 if value < 0 else 1  # copysign does not accept integers beyond the range of float
        highest = float(np.array(dtype.infinity_bits - 1, dtype.word).view(dtype.numpy))
        raise DTypeError(
            f"{given}, which is out of range for {dtype}, the dtype of {beside} (limit {sign * highest!r}); "
            f"write float('{sign * inf}'), or convert the array {WITH_ASTYPE}",
            clause,
        )
    rounded = f"{dtype.numpy.type.__module__}.{dtype}(...)".replace("numpy.", "np.")
    advice = f"convert the scalar with {rounded}, or the array" if dtype.kind == "float" else "convert the array"
    raise DTypeError(
        f"{given}, which cannot be represented exactly in {dtype}, the dtype of {beside}; {advice} {WITH_ASTYPE}",
        clause,
    )


# The kinds of dtypes that each Python number type combines with.
_KINDS_BESIDE = {
    bool: ("bool",),
    int: ("int", "uint", "float", "real"),
    float: ("float",),
    Fraction: ("real",),
}
_KIND_NAMES = {
    "bool": "bool",
    "int": "integers",
    "uint": "integers",
    "float": "floats",
    "real": "rationals",
}


def _python_kind(value: object) -> type:
    return next(kind for kind in PYTHON_SCALARS if isinstance(value, kind))


def _other_spelling(value: Any, dtype: DType) -> str:
    """Return a hint that states how to write a number so that it has the kind of a dtype."""
    if dtype.kind == "bool" and value in (0, 1):
        return f"write {bool(value)}"
    if dtype.kind == "real" and isfinite(value):
        return f"write {int(value)}" if isinstance(value, bool) else "write fractions.Fraction(...)"
    if dtype.kind == "float":
        return f"write {float(value)!r}" if isinstance(value, bool) else "round it with float(...)"
    if dtype.kind in ("int", "uint") and isfinite(value) and value == int(value):
        return f"write {int(value)}"
    return f"convert the array {WITH_ASTYPE}"


def _has_kind(dtype: DType, value: Any) -> bool:
    return dtype.kind in _KINDS_BESIDE[_python_kind(value)]


def _held(dtype: DType, value: Any, *, exactly: bool) -> Array | None:
    """Convert a number to a dtype of its kind. Return None if it is out of range or, with `exactly`, not exact."""
    array = np.empty((), dtype.numpy)
    if dtype.kind == "float":
        try:
            bits = _rounded_bits(float(value), dtype)
        except OverflowError:  # an integer beyond the range of float
            return None
        if bits is None:
            return None
        array.view(dtype.word)[()] = bits
        return array if not exactly or float(array) == value or isnan(float(array)) else None
    if dtype.kind in ("int", "uint") and not np.iinfo(dtype.numpy).min <= value <= np.iinfo(dtype.numpy).max:
        return None
    array[()] = value
    return array


def _rounded_bits(value: float, dtype: DType) -> int | None:
    """Round a number to a float dtype, ties to even, and return the bits. Return None for a finite number out of range.

    NumPy and ml_dtypes convert to bfloat16 through float32, which rounds twice. This function rounds once.
    """
    if isnan(value):
        return dtype.nan_bits
    sign = int(copysign(1, value) < 0) << dtype.bits - 1
    if isinf(value):
        return sign | dtype.infinity_bits
    lowest = 2 - (1 << dtype.exponent_bits - 1)  # the lowest exponent of normal numbers
    exponent = max(frexp(value)[1] - 1, lowest) if value else lowest
    significand = round(ldexp(abs(value), dtype.mantissa_bits - exponent))
    # Both the leading bit of the significand and a carry from rounding add 1 to the exponent field.
    bits = (exponent - lowest << dtype.mantissa_bits) + significand
    return sign | bits if bits < dtype.infinity_bits else None


def index_dtype(spec: Spec, name: str, array: Array) -> None:
    """Raise an error unless an array has one of the operator's index dtypes."""
    if dtypes.of(array.dtype) not in spec.index_dtypes:
        *first, last = map(str, spec.index_dtypes)
        listed = f"{', '.join(first)} or {last}" if first else last
        raise DTypeError(
            f"{spec.name} {name} must have dtype {listed}, got {array.dtype}; {_how_to_index(array.dtype.kind)}",
            spec.clause("T_IDX", "index_types"),
        )


_FROM_LABELS = (
    "convert labels to ids that start at 0, with pd.factorize(...)[0] or np.unique(..., return_inverse=True)[1]"
)


def _how_to_index(kind: str) -> str:
    """Return a hint that states how to convert values with this `dtype.kind` to integers."""
    return _FROM_LABELS if kind in "OSTU" else "convert it to int64"


def integers_of(spec: Spec, name: str, value: Any) -> Any:
    """Convert ids or offsets in a list, tuple or range of integers to an int64 array. Return other values unchanged.

    >>> from maxops.spec import SEGMENT_MAX
    >>> integers_of(SEGMENT_MAX, "segment_ids", [0, 0, 2])
    array([0, 0, 2])
    """
    if not isinstance(value, (list, tuple, range)):
        return value
    if isinstance(value, range) and value[_LONG_RANGE:]:
        return _of_long_range(spec, name, value)
    clause = spec.clause("index_types")
    # run the methods of subclasses once: list() would also call __len__ and suppress its TypeError
    items = allocate(list, value) if type(value) in (list, tuple) else [item for item in value]  # noqa: C416
    for position, item in enumerate(items):
        if type(item) is int:
            continue
        if not is_integer(item):
            hint = _FROM_LABELS if isinstance(item, str) else "convert numbers with np.asarray(...).astype(np.int64)"
            raise DTypeError(
                f"{spec.name} {name} must be integers, got {shown(item)} of type {type(item).__name__} at position "
                f"{position}; {hint}",
                clause,
            )
        items[position] = int_of(item)
    array: Array = allocate(np.empty, len(items), np.int64)
    try:
        for begin in range(0, len(items), _LONG_RANGE):  # in parts, because NumPy does not check for Ctrl-C
            array[begin : begin + _LONG_RANGE] = items[begin : begin + _LONG_RANGE]
    except OverflowError:
        position = next(i for i, item in enumerate(items) if not _is_int64(item))
        raise _past_int64(spec, name, position, items[position]) from None
    return array


def allocate(make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function that allocates. If it runs out of memory, clear the cache of outputs and call it again."""
    try:
        return make(*args, **options)
    except MemoryError:
        if not _native.empty_cache():
            raise
        return make(*args, **options)


_LONG_RANGE = 1 << 16


def _of_long_range(spec: Spec, name: str, values: range) -> Array:
    """Convert a range, which may be longer than any list, to an int64 array."""
    count = (values[-1] - values[0]) // values.step + 1  # len() fails above 2^63 - 1
    if count * 8 > physical_memory():
        raise (SegmentIdsError if name == "segment_ids" else OffsetsError)(
            f"{spec.name} {name} is a range of {shown(count)} integers, which does not fit in memory; pass one id "
            "for each row of data, or num_segments + 1 offsets",
            spec.clause("ids.shape" if name == "segment_ids" else "offsets"),
        )
    first_wrong = bisect_left(range(count), True, key=lambda i: not _is_int64(values[i])) if _is_int64(values[0]) else 0
    if first_wrong < count:
        raise _past_int64(spec, name, first_wrong, values[first_wrong])
    array: Array = allocate(np.arange, count, dtype=np.int64)
    array *= values.step
    array += values[0]
    return array


def _is_int64(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _past_int64(spec: Spec, name: str, position: int, value: int) -> DTypeError:
    return DTypeError(
        f"{spec.name} {name} must fit in int64, got {shown(value)} at position {position}; {_FROM_LABELS}",
        spec.clause("index_types"),
    )


def widened_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype, int32 or int64, to which ids of a given dtype are converted for engines."""
    if dtypes.of(dtype) in (dtypes.INT32, dtypes.INT64):
        return dtype
    return np.dtype(np.int32 if dtype.itemsize < 4 else np.int64)


def widened(ids: Array) -> Array:
    """Convert ids or offsets of any integer dtype to int32 or int64 in at most one pass.

    Values of uint64 above 2^63 - 1 become 2^63 - 1, which is also above every number of segments.

    >>> widened(np.array([1, 2**64 - 1], np.uint64)).tolist()
    [1, 9223372036854775807]
    """
    return ids if widened_dtype(ids.dtype) == ids.dtype else _native.widened(ids)


def is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Return whether a value is a Python or NumPy integer, and not a bool or a timedelta."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def int_of(value: int | np.integer[Any]) -> int:
    """Convert an integer to a Python int. If its class is a subclass of int, run no methods of the subclass.

    >>> int_of(np.uint8(3))
    3
    """
    return int.__index__(value) if isinstance(value, int) else index(value)


def index_of(value: object) -> int | None:
    """Return an integer, or an object with `__index__`, as a Python int. Return None for bools and other objects.

    >>> index_of(np.array(3, np.uint8)), index_of(True), index_of(3.0)
    (3, None, None)
    """
    if is_integer(value):
        return int_of(value)
    is_bool = isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
    is_scalar = getattr(value, "ndim", 0) == 0  # a PyTorch tensor of one element and any rank has `__index__`
    if is_bool or not is_scalar or isinstance(value, np.timedelta64) or not hasattr(value, "__index__"):
        return None
    try:
        return index(cast(SupportsIndex, value))
    except (TypeError, ValueError, RuntimeError):
        if hasattr(value, "dtype") and not isinstance(value, np.generic):
            return None  # an array that has another dtype or more than one element, or whose value cannot be read
        raise


def flag(spec: Spec, name: str, value: object) -> bool:
    """Return a flag, which must be True, False, 1 or 0, as a bool."""
    if isinstance(value, (bool, np.bool)):
        return bool(value)
    if is_integer(value) and (number := int_of(value)) in (0, 1):
        return number == 1
    raise AttributeValueError(f"{spec.name} {name} must be True, False, 1 or 0, got {shown(value)}", spec.clause(name))


def choice(spec: Spec, name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return the value of an option, which must be one of `choices`."""
    if isinstance(value, str) and value in choices:
        return choices[choices.index(value)]  # a plain str, even for a str subclass
    raise AttributeValueError(
        f"{spec.name} {name} must be {' or '.join(map(repr, choices))}, got {shown(value)}", spec.clause(name)
    )


def nan_rule(spec: Spec, value: object) -> str:
    """Return the value of the option `nan`. Operators of standards accept only its default, "propagate"."""
    return choice(spec, "nan", value, _NAN_RULES if spec.parameters else _NAN_RULES[:1])


def scalar_of(spec: Spec, name: str, value: object, dtype: DType) -> Array | None:
    """Return a scalar argument as an array of rank 0 with the dtype of the data. Return None for None."""
    if value is None:
        return None
    if is_python_scalar(value):
        return scalar_as(spec, name, value, dtype, beside="data")
    array = array_of(spec, name, value)
    if array.ndim != 0:
        raise ShapeError(f"{spec.name} {name} must be a scalar, got shape {array.shape}", spec.clause(name))
    if (found := dtype_of(spec, name, array)) is not dtype:
        raise DTypeError(
            f"{spec.name} {name} must have the same dtype as data ({dtype}), got {found}", spec.clause(name)
        )
    return array
