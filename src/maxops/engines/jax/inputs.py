"""The inputs of a call: JAX arrays, tracers, and the NumPy arrays that are passed with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.export import is_symbolic_dim

from maxops import _native as _native_core
from maxops import dtypes, plan
from maxops.engines.jax.segments import offsets_are_valid
from maxops.errors import AttributeValueError, DTypeError, MaxopsError, NumSegmentsError
from maxops.plan import Array
from maxops.spec import Spec

_offsets_are_valid: Any = jax.jit(offsets_are_valid, static_argnames="rows")
_SCALARS = (float, int, bool)
_EMPTY = {row.numpy: np.empty(0, row.numpy) for row in dtypes.ALL if row is not dtypes.REAL}
_INT32_MAX = int(np.iinfo(np.int32).max)


def is_tracer(value: object) -> bool:
    """Return whether a value is a tracer, which has only a shape and a dtype."""
    return isinstance(value, jax.core.Tracer)


def abstract_of(row: Spec, name: str, value: Any) -> Any:
    """Return an abstract array with the shape and dtype of a JAX array. Return other values unchanged."""
    if not isinstance(value, jax.Array):
        return value
    if not isinstance(value.dtype, np.dtype):
        raise DTypeError(f"{row.name} {name} must have a NumPy dtype, got {value.dtype}", row.clause("types"))
    return plan.abstract(value.shape, value.dtype)


def typed(arrays: Sequence[Any]) -> list[Any]:
    """Convert weakly typed arrays to the dtype of the other arrays, if their kinds allow it.

    JAX traces a Python scalar as a weakly typed array. Like Python scalars, weakly typed integers convert to integers
    and floats, and weakly typed floats convert to floats. The float may also be a Python scalar. If a scalar's value is
    known, it becomes a Python scalar, which the planner checks.
    """
    known = [array for array in arrays if hasattr(array, "dtype") and isinstance(array.dtype, np.dtype)]
    strong = [array.dtype for array in known if not _is_weak(array)]
    weak = [array.dtype for array in known if _is_weak(array)]
    if not weak:
        return list(arrays)
    if any(isinstance(array, float) for array in arrays):
        weak.append(jnp.result_type(float))
    target = strong[0] if strong else max(weak, key=lambda dtype: bool(jnp.issubdtype(dtype, np.floating)))
    return [_in_type(array, target, is_alone=not strong) if _is_weak(array) else array for array in arrays]


def _is_weak(value: Any) -> bool:
    return isinstance(value, jax.Array) and bool(getattr(value, "weak_type", False))


def _in_type(array: jax.Array, dtype: np.dtype[Any], *, is_alone: bool) -> Any:
    if not (is_alone or is_tracer(array) or array.ndim):
        return array.item()
    is_integer = jnp.issubdtype(array.dtype, np.integer)
    takes = jnp.issubdtype(dtype, np.floating) or (is_integer and jnp.issubdtype(dtype, np.integer))
    if array.dtype == dtype or not takes or not (is_integer or jnp.issubdtype(array.dtype, np.floating)):
        return array  # the planner rejects complex numbers, and other kinds that do not convert
    return jax.lax.convert_element_type(array, dtype)


def scalar_of(row: Spec, name: str, value: Any) -> Any:
    """Return a scalar for the planner. The fill value must be known, because it is compiled into the program."""
    if name != "fill_value" or not isinstance(value, jax.Array):
        return abstract_of(row, name, value)
    if is_tracer(value):
        raise AttributeValueError(
            f"{row.name} fill_value must be a constant, got a value traced by JAX", row.clause("fill_value")
        )
    return _known(row, name, value)


def _known(row: Spec, name: str, value: jax.Array) -> Array:
    """Return the elements of a JAX array that is not traced."""
    abstract_of(row, name, value)  # rejects random keys
    return np.asarray(value)


def as_jax(row: Spec, name: str, value: Any) -> Any:
    """Return a checked array as an argument for JAX. Raise an error if JAX would convert its elements."""
    if dtypes.of(np.dtype(value.dtype)) is dtypes.REAL:
        raise DTypeError(f"{row.name} {name} has dtype real, but JAX does not support rationals", row.clause("types"))
    native = value.dtype.newbyteorder("=")
    if jax.dtypes.canonicalize_dtype(native) != native:
        raise DTypeError(
            f"{row.name} {name} is {native}, which JAX supports only with jax_enable_x64; enable it, or convert the "
            "array",
            row.clause("types"),
        )
    return value if isinstance(value, jax.Array) else _native(value)


def initial_as_jax(row: Spec, value: Any, planned: Array | None) -> Any:
    """Return the initial value as an argument for JAX: the planned value, except that a JAX scalar is unchanged."""
    if planned is None:
        return None
    return as_jax(row, "initial", value if isinstance(value, jax.Array) else planned)


def are_on_cpu(*arrays: Any) -> bool:
    """Return whether the results of a call on these arrays are in host memory and have known sizes."""
    own = [array for array in arrays if isinstance(array, jax.Array)]
    if any(is_symbolic_dim(size) for array in own for size in array.shape):  # unknown until an exported program runs
        return False
    placed = [array.sharding for array in own if not is_tracer(array)]
    return all(map(_is_cpu, placed)) if placed else jax.default_backend() == "cpu"


def signature(*arrays: Any) -> Any:
    """Return a cache key for the plan of a call on JAX arrays, NumPy arrays and Python scalars, or None.

    The key does not contain the values of scalars, because each key has its own compiled function.
    """
    try:
        return jax.config.jax_enable_x64, *[  # type: ignore[attr-defined]
            kind
            if (kind := type(array)) in _SCALARS or array is None
            else (array.dtype, array.shape)
            if kind is np.ndarray
            else array.aval
            for array in arrays
        ]
    except AttributeError:
        return None


def with_scalars(arrays: Sequence[Any]) -> list[Any] | None:
    """Return the arguments of a plan, with Python scalars in the dtype of the first JAX array.

    Return None if the planner must check a scalar.
    """
    like = next(array for array in arrays if isinstance(array, jax.Array))
    converted = []
    for array in arrays:
        if type(array) in _SCALARS:
            array = _native_core.reduce_max(_EMPTY.get(like.dtype), keepdims=False, initial=array)  # noqa: PLW2901
            if array is None:
                return None
        converted.append(array)
    return converted


def is_plain(array: Any, planned: Any) -> bool:
    """Return whether a plan that uses `planned` for an array also applies to all arrays with the same signature."""
    if not isinstance(array, jax.Array):
        return type(array) in _SCALARS or planned is array
    return not is_tracer(array) and not _is_weak(array) and are_on_cpu(array)


@lru_cache(maxsize=64)
def _is_cpu(sharding: jax.sharding.Sharding) -> bool:
    devices: set[Any] = sharding.device_set
    return all(device.platform == "cpu" for device in devices)


def reject_traced(row: Spec, name: str, value: object, error: type[MaxopsError]) -> None:
    """Raise an error if an option is traced, because its value determines the shape of the result."""
    if is_tracer(value):
        raise error(
            f"{row.name} {name} must be known under jax.jit and similar transformations, because the shape of the "
            "result depends on this argument; list it in static_argnames",
            row.clause(name),
        )


def number_of_segments(row: Spec, value: Any) -> Any:
    """Return num_segments, which must be known or a symbolic size."""
    reject_traced(row, "num_segments", value, NumSegmentsError)
    return _known(row, "num_segments", value) if isinstance(value, jax.Array) else value


@dataclass(frozen=True)
class Bounds:
    """The ids or offsets of a call, as a NumPy or JAX array, with methods that check their values.

    `count` is None if the highest id determines the number of segments.
    """

    row: Spec
    name: str
    values: Any
    rows: int
    sorted: bool
    out_of_range: Any
    count: int | None

    @property
    def are_known(self) -> bool:
        """True if the values can be read now."""
        return not is_tracer(self.values)

    @property
    def _are_at_hand(self) -> bool:
        return not isinstance(self.values, jax.Array) or are_on_cpu(self.values)

    def check(self) -> None:
        """Raise the same errors as the NumPy engine. Arrays are copied from a device only if a value is invalid."""
        if not self._are_at_hand:
            with jax.ensure_compile_time_eval():
                if self._are_valid():
                    return
        values = np.asarray(self.values)  # without a copy on the CPU
        if self.name == "offsets":
            plan.check_offsets(self.row, values, self.rows)
        else:
            plan.check_segment_ids(
                self.row, values, sorted=self.sorted, out_of_range=self.out_of_range, num_segments=self.count
            )

    def _are_valid(self) -> bool:
        if self.name == "offsets":
            return bool(_offsets_are_valid(self.values, self.rows))
        most = self.count if self.out_of_range == "error" else None
        if most is not None and most > np.iinfo(self.values.dtype).max:
            most = None
        drops = self.out_of_range == "drop"
        return bool(_ids_are_valid(self.values, most, is_sorted=self.sorted, takes_negative=drops))

    def count_of_segments(self) -> int:
        """Return the number of segments in the result."""
        if self.count is not None:
            return self.count
        if not self.are_known:
            raise NumSegmentsError(
                f"{self.row.name} requires num_segments under jax.jit and similar transformations, because "
                f"{self.name} are traced and the result's shape is unknown; pass a Python integer",
                self.row.clause("num_segments"),
            )
        with jax.ensure_compile_time_eval():
            return plan.default_num_segments(np.asarray(self.values) if self._are_at_hand else self.values, self.sorted)

    def as_jax(self, count: int) -> Any:
        """Return the values as a JAX array.

        If 64-bit types are disabled in JAX, convert the values to int32, clipped so that invalid values remain invalid.
        """
        has_wide = jax.dtypes.canonicalize_dtype(np.int64) == np.int64
        if isinstance(self.values, jax.Array):
            return _widened(self.values, np.dtype(np.int64 if has_wide else np.int32))
        values = plan.widened(np.asarray(self.values))
        if dtypes.of(values.dtype) is dtypes.INT64 and not has_wide:
            # clip, because values below 0 are equivalent, as are values past the last segment or row
            most = self.rows if self.name == "offsets" else count
            return np.clip(values, -1, _INT32_MAX if is_symbolic_dim(most) else most).astype(np.int32)
        return as_jax(self.row, self.name, values)


def _widened(ids: jax.Array, widest: np.dtype[Any]) -> jax.Array:
    """Widen ids like `plan.widened`. Values above the range of JAX's type become its maximum."""
    wide = min(plan.widened_dtype(ids.dtype), widest, key=lambda dtype: dtype.itemsize)
    if wide == ids.dtype:
        return ids
    if ids.dtype.itemsize == wide.itemsize:  # unsigned
        ids = jnp.minimum(ids, np.iinfo(wide).max)
    return ids.astype(wide)


@partial(jax.jit, static_argnames=("is_sorted", "takes_negative"))
def _ids_are_valid(ids: jax.Array, most: int | None, *, is_sorted: bool, takes_negative: bool) -> jax.Array:
    valid: jax.Array = jnp.bool(True)
    if not takes_negative:
        valid &= (ids >= 0).all()
    if most is not None:
        valid &= (ids < most).all()
    if is_sorted:
        valid &= (ids[1:] >= ids[:-1]).all()
    return valid


def _native(array: Any) -> Array:
    """Convert a NumPy array to native byte order, the only byte order that JAX accepts."""
    return np.asarray(array).astype(array.dtype.newbyteorder("="), copy=False)
