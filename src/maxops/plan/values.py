"""The values of a call: arrays as they are, their types, and the Python scalars beside them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import copysign, frexp, inf, isfinite, isinf, isnan, ldexp
from operator import index
from typing import Any, TypeGuard, cast

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
    """The shape and type of an array elsewhere; sizes may be symbols, which are equal, or not, as integers are."""

    shape: tuple[Any, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The rank, which is known."""
        return len(self.shape)


def abstract(shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Array:
    """An array that the planner knows by its shape and type alone.

    >>> abstract((1 << 20, 1 << 20), np.dtype("f4")).shape
    (1048576, 1048576)
    """
    return cast(Array, AbstractArray(shape, dtype))


PYTHON_SCALARS = (bool, int, float, Fraction)


def how_to_convert(value: object) -> str:
    """The advice for an object that is not an array."""
    if isinstance(value, complex):
        return "complex numbers have no order; give .real, .imag or np.abs(...)"
    if isinstance(value, Decimal):
        return "give fractions.Fraction(...) in an object array, which is exact, or float(...), which rounds"
    if is_python_scalar(value):
        return "give a NumPy array or scalar, such as np.float32(...)"
    if value is None:
        return "give an array"
    if isinstance(value, str):
        return "give numbers, such as np.asarray(...) of them"
    if isinstance(value, Mapping):
        return "np.asarray(list(... .values())) makes an array of its values"
    if isinstance(value, Iterable) and not isinstance(value, Sequence):
        return "np.asarray(list(...)) makes an array of it"
    if isinstance(value, (Sequence, array, memoryview)):
        return "np.asarray(...) makes an array of it"
    return "give a NumPy array, or an array with __dlpack__ on the CPU or __array__"


def is_python_scalar(value: object) -> bool:
    """Whether a value takes the type of the array beside it."""
    return isinstance(value, PYTHON_SCALARS) and not isinstance(value, np.generic)


def array_of(spec: Spec, name: str, value: object) -> Array:
    """The value as a plain array, without conversion: an ndarray, a memory map or a NumPy scalar.

    Another thread may set an array's shape or dtype at any time. So the result is a new view, which has its own.
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
        hint = "fill what is masked (.filled(...), or dask.array.ma.filled) or leave it out (.compressed())"
    elif isinstance(value, np.ndarray):
        hint = f"maxops does not know what {what} adds to an array; np.asarray(...) takes the plain array out of it"
    else:
        hint = how_to_convert(value)
    raise DTypeError(f"{spec.name} {name} is of type {what}, not a NumPy array; {hint}", spec.clause("arrays", "T"))


def dtype_of(spec: Spec, name: str, array: Array) -> DType:
    """The row of an array's type, if the operator takes it."""
    dtype = dtypes.of(array.dtype)
    if dtype not in spec.dtypes:
        listed = ", ".join(map(str, spec.dtypes))
        raise DTypeError(
            f"{spec.name} {name} is {dtype or array.dtype}; the types are {listed}"
            + (" (object arrays of Fraction and int)" if dtypes.REAL in spec.dtypes else ""),
            spec.clause("T", "types"),
        )
    assert dtype is not None
    if dtype is dtypes.REAL and not isinstance(array, AbstractArray):
        _check_rationals(spec, name, array)
    return dtype


def _check_rationals(spec: Spec, name: str, array: Array) -> None:
    # of an array that repeats one element, as numpy.broadcast_to makes them, that one
    distinct = array[(*(slice(None if step else 1) for step in array.strides), ...)]
    for flat, value in enumerate(distinct.reshape(-1)):  # not numpy.ndenumerate, which ends at rank 32
        if type(value) not in (Fraction, int):
            position = tuple(map(int, np.unravel_index(flat, distinct.shape)))
            where = f" at position {position}" if position else ""
            raise DTypeError(
                f"{spec.name} {name} holds {shown(value)} of type {type(value).__name__}{where}; an object array holds "
                "exact rationals only: fractions.Fraction and int",
                spec.clause("T", "types"),
            )


def scalar_as(spec: Spec, name: str, value: Any, dtype: DType, beside: str) -> Array:
    """A Python scalar in the type of the arrays beside it.

    Plain functions round a float to nearest, ties to even. Every other value the type holds exactly, or it is an error.
    """
    if spec.explicit_types:
        raise DTypeError(
            f"{spec.name} {name} is a Python {type(value).__name__} without a type of its own; "
            f"{spec.standard} requires explicit types: give a NumPy array or scalar",
            spec.clause("GR2"),
        )
    # of a subclass, whose hooks might give another number each time, the number that it holds
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
            f"{given}, but {beside} is {dtype}: a Python {type(value).__name__} goes with {takes} only; "
            f"{_other_spelling(value, dtype)}",
            clause,
        )
    if rounds:
        highest = float(np.array(dtype.infinity_bits - 1, dtype.word).view(dtype.numpy))
        raise DTypeError(
            f"{given}, past the range of {dtype}, the type of {beside}, which ends at {copysign(highest, value)!r}; "
            f"write float('{copysign(inf, value)}'), or convert the array, as in .astype(...)",
            clause,
        )
    raise DTypeError(
        f"{given}, which {dtype}, the type of {beside}, does not hold exactly; convert it, as in "
        f"np.{dtype}(...), or the array, as in .astype(...)",
        clause,
    )


# The kinds of element types that each kind of Python's numbers goes with.
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
    """How to write a number of another kind so that a type takes it."""
    if dtype.kind == "bool" and value in (0, 1):
        return f"write {bool(value)}"
    if dtype.kind == "real" and isfinite(value):
        return f"write {int(value)}" if isinstance(value, bool) else "write fractions.Fraction(...)"
    if dtype.kind == "float":
        return f"write {float(value)!r}" if isinstance(value, bool) else "write float(...), which rounds"
    if dtype.kind in ("int", "uint") and isfinite(value) and value == int(value):
        return f"write {int(value)}"
    return "convert the array, as in .astype(...)"


def _has_kind(dtype: DType, value: Any) -> bool:
    return dtype.kind in _KINDS_BESIDE[_python_kind(value)]


def _held(dtype: DType, value: Any, *, exactly: bool) -> Array | None:
    """A number of the right kind in a type; None for one that the type does not hold, or does not hold exactly."""
    array = np.empty((), dtype.numpy)
    if dtype.kind == "float":
        try:
            bits = _rounded_bits(float(value), dtype)
        except OverflowError:  # an integer past every float
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
    """The bits of the nearest value of a float type, the even one of two; None for a finite number past its range.

    NumPy and ml_dtypes convert to bfloat16 by way of float32, and so round twice.
    """
    if isnan(value):
        return dtype.nan_bits
    sign = int(copysign(1, value) < 0) << dtype.bits - 1
    if isinf(value):
        return sign | dtype.infinity_bits
    lowest = 2 - (1 << dtype.exponent_bits - 1)  # exponent of normal numbers
    exponent = max(frexp(value)[1] - 1, lowest) if value else lowest
    significand = round(ldexp(abs(value), dtype.mantissa_bits - exponent))
    # The significand's first bit adds 1 to the exponent, and so does a carry.
    bits = (exponent - lowest << dtype.mantissa_bits) + significand
    return sign | bits if bits < dtype.infinity_bits else None


def index_dtype(spec: Spec, name: str, array: Array) -> None:
    """Raise unless an array is of a type for ids."""
    if dtypes.of(array.dtype) not in spec.index_dtypes:
        *first, last = map(str, spec.index_dtypes)
        listed = f"{', '.join(first)} or {last}" if first else last
        raise DTypeError(
            f"{spec.name} {name} is {array.dtype}; it is {listed}; {_how_to_index(array.dtype.kind)}",
            spec.clause("T_IDX", "index_types"),
        )


_FROM_LABELS = "pd.factorize(...)[0], or np.unique(..., return_inverse=True)[1], numbers labels from 0"


def _how_to_index(kind: str) -> str:
    """How values of a NumPy kind, as `dtype.kind` names it, become integers."""
    return _FROM_LABELS if kind in "OSTU" else ".astype(np.int64) converts it"


def integers_of(spec: Spec, name: str, value: Any) -> Any:
    """Ids or offsets in a list, a tuple or a range of integers as an int64 array; other values as they are.

    >>> from maxops.spec import SEGMENT_MAX
    >>> integers_of(SEGMENT_MAX, "segment_ids", [0, 0, 2])
    array([0, 0, 2])
    """
    if not isinstance(value, (list, tuple, range)):
        return value
    if isinstance(value, range) and value[_LONG_RANGE:]:
        return _of_long_range(spec, name, value)
    clause = spec.clause("index_types")
    # hooks of subclasses run once: list() would also ask for the length, and drop its TypeError
    items = allocate(list, value) if type(value) in (list, tuple) else [item for item in value]  # noqa: C416
    for position, item in enumerate(items):
        if type(item) is int:
            continue
        if not is_integer(item):
            hint = _FROM_LABELS if isinstance(item, str) else "np.asarray(...).astype(np.int64) converts numbers"
            raise DTypeError(
                f"{spec.name} {name} position {position} holds {shown(item)} of type {type(item).__name__}; "
                f"a list of {name} holds integers: {hint}",
                clause,
            )
        items[position] = int_of(item)
    array: Array = allocate(np.empty, len(items), np.int64)
    try:
        for begin in range(0, len(items), _LONG_RANGE):  # NumPy asks for no signals
            array[begin : begin + _LONG_RANGE] = items[begin : begin + _LONG_RANGE]
    except OverflowError:
        position = next(i for i, item in enumerate(items) if not _is_int64(item))
        raise _past_int64(spec, name, position, items[position]) from None
    return array


def allocate(make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function that allocates. If it runs out of memory, release the cache of outputs and call it again."""
    try:
        return make(*args, **options)
    except MemoryError:
        if not _native.empty_cache():
            raise
        return make(*args, **options)


_LONG_RANGE = 1 << 16


def _of_long_range(spec: Spec, name: str, values: range) -> Array:
    """The same of a range that may be longer than any list."""
    count = (values[-1] - values[0]) // values.step + 1  # len() stops at 2^63 - 1
    if count * 8 > physical_memory():
        raise (SegmentIdsError if name == "segment_ids" else OffsetsError)(
            f"{spec.name} {name} is a range of {shown(count)} integers, more than this machine's memory; give one "
            "id for each row of data, or one offset more than there are segments",
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
        f"{spec.name} {name} position {position} holds {shown(value)}, which int64 does not hold; {_FROM_LABELS}",
        spec.clause("index_types"),
    )


def widened_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that engines have for ids of a type: int32 or int64."""
    if dtypes.of(dtype) in (dtypes.INT32, dtypes.INT64):
        return dtype
    return np.dtype(np.int32 if dtype.itemsize < 4 else np.int64)


def widened(ids: Array) -> Array:
    """Ids or offsets of any integer type in one that engines have, by one pass at most.

    All values stay but those of uint64 past 2^63 - 1, which become that: it too is past every number of segments.

    >>> widened(np.array([1, 2**64 - 1], np.uint64)).tolist()
    [1, 9223372036854775807]
    """
    return ids if widened_dtype(ids.dtype) == ids.dtype else _native.widened(ids)


def is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Whether a value is a Python or NumPy integer. A NumPy duration is not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def int_of(value: int | np.integer[Any]) -> int:
    """An integer as Python's own. Hooks of a user's class run once; subclasses of int give the number that they hold.

    >>> int_of(np.uint8(3))
    3
    """
    return int.__index__(value) if isinstance(value, int) else index(value)


def flag(spec: Spec, name: str, value: object) -> bool:
    """The value of an attribute that is 0 or 1."""
    if isinstance(value, (bool, np.bool)):
        return bool(value)
    if is_integer(value) and (number := int_of(value)) in (0, 1):
        return number == 1
    raise AttributeValueError(f"{spec.name} {name} is {shown(value)}; it is 0 or 1 (False or True)", spec.clause(name))


def choice(spec: Spec, name: str, value: object, choices: tuple[str, ...]) -> str:
    """The value of an option that is one of a few words."""
    if isinstance(value, str) and value in choices:
        return choices[choices.index(value)]  # a plain str, also for one of a subclass
    raise AttributeValueError(
        f"{spec.name} {name} is {shown(value)}; it is {' or '.join(map(repr, choices))}", spec.clause(name)
    )


def nan_rule(spec: Spec, value: object) -> str:
    """The value of the option `nan`, which no standard has."""
    return choice(spec, "nan", value, _NAN_RULES if spec.parameters else _NAN_RULES[:1])


def scalar_of(spec: Spec, name: str, value: object, dtype: DType) -> Array | None:
    """A scalar that goes with the data, as an array of rank 0 in its type."""
    if value is None:
        return None
    if is_python_scalar(value):
        return scalar_as(spec, name, value, dtype, beside="data")
    array = array_of(spec, name, value)
    if array.ndim != 0:
        raise ShapeError(f"{spec.name} {name} has shape {array.shape}; it is a scalar", spec.clause(name))
    if (found := dtype_of(spec, name, array)) is not dtype:
        raise DTypeError(f"{spec.name} {name} is {found}, but data is {dtype}; both have one type", spec.clause(name))
    return array
