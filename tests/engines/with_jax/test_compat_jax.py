"""`maxops.compat.jax`, compared with JAX."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from maxops.errors import DTypeError, SegmentIdsError

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from maxops.compat import jax as compat  # noqa: E402

FEW: list[Any] = [
    np.arange(6, dtype=np.float32).reshape(2, 3) % 4,
    np.array([[3, -1, 3]], np.int8),
    np.array([[True], [False]]),
    np.float16(2),
    3,
    2.5,
    True,
]
ROWS = np.array([[1, 8], [2, 7], [9, 3], [2, 2]])


def same(found: Any, expected: Any) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("place", range(len(FEW)))
def test_maximum(place: int) -> None:
    """Test each pair in one of the two orders, because types are promoted in the same way in both."""
    for turn, other in enumerate(FEW[: place + 1]):
        one, two = (FEW[place], other)[:: 1 - 2 * (turn % 2)]
        same(compat.maximum(one, two), jnp.maximum(one, two))
        same(jax.jit(compat.maximum)(one, two), jnp.maximum(one, two))


AXES: list[Any] = [None, 0, -1, (0, 1), ()]


@pytest.mark.parametrize("number", range(len(AXES)), ids=lambda number: str(AXES[number]))
def test_max(number: int) -> None:
    """Test each array with each axis. `keepdims`, `initial`, `where` and the function vary from call to call."""
    axis = AXES[number]
    for turn, array in enumerate((*FEW[:3], np.zeros((2, 0, 3), np.int32), np.zeros((0, 2), np.float32)), number):
        keepdims, initial = turn % 2 == 0, (1, 3)[turn // 2 % 2]
        try:
            expected = jnp.max(array, axis, keepdims=keepdims)
        except ValueError:
            with pytest.raises(ValueError, match="zero-size array to reduction operation max"):
                compat.max(array, axis, keepdims=keepdims)
        else:
            same(compat.max(array, axis, keepdims=keepdims), expected)
            same(compat.amax(array, axis, keepdims=keepdims), expected)
        where = np.arange(array.shape[-1]) % 2 == 0
        options: dict[str, Any] = {"keepdims": keepdims, "initial": initial}
        same(compat.max(array, axis, **options), jnp.max(array, axis, **options))
        for function in ("max", "nanmax"):
            mine, theirs = getattr(compat, function), getattr(jnp, function)
            same(mine(array, axis, **options, where=where), theirs(array, axis, **options, where=where))


@pytest.mark.parametrize("axis", [np.int64(0), np.array(1), jnp.array(-1), [0], (0, np.int32(1))], ids=repr)
def test_axes_of_every_kind_of_integer(axis: Any) -> None:
    same(compat.max(ROWS, axis=axis), jnp.max(ROWS, axis=axis))
    same(compat.nanmax(ROWS, axis=axis), jnp.max(ROWS, axis=axis))  # JAX's nanmax accepts only some of the options
    if not isinstance(axis, (list, tuple)):
        same(compat.argmax(ROWS, axis=axis), jnp.argmax(ROWS, axis=axis))


def test_nan_is_ignored() -> None:
    nan, inf = np.nan, np.inf
    data = np.array([[nan, 2, -inf], [nan, nan, nan], [1, nan, inf], [-inf, nan, -inf]], np.float32)
    same(compat.fmax(data, data[0]), jnp.fmax(data, data[0]))
    same(compat.fmax(data[0], 1), jnp.fmax(data[0], 1))
    for axis in (None, 0, -1, (0, 1)):
        same(compat.nanmax(data, axis), jnp.nanmax(data, axis))
        same(jax.jit(partial(compat.nanmax, axis=axis))(data), jnp.nanmax(data, axis))
        more: dict[str, Any] = {"keepdims": True, "where": np.array([True, False, True])}
        for initial in (1, -1, -inf, nan):
            more["initial"] = initial
            same(compat.nanmax(data, axis, **more), jnp.nanmax(data, axis, **more))
            same(compat.nanmax(data, axis, initial=initial), jnp.nanmax(data, axis, initial=initial))
            same(compat.max(data, axis, initial=initial), jnp.max(data, axis, initial=initial))
    same(compat.nanmax(FEW[1]), jnp.nanmax(FEW[1]))
    same(jax.grad(compat.nanmax)(data[0]), np.array([0, 1, 0], np.float32))
    with pytest.raises(ValueError, match="zero-size array to reduction operation nanmax"):
        compat.nanmax(np.zeros(0, np.float32))
    with pytest.raises(NotImplementedError, match=r"jnp\.nanmax"):
        compat.nanmax(data, out=data)  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_argmax(axis: int | None) -> None:
    for array in FEW[:3]:
        for keepdims in (None, True):
            same(compat.argmax(array, axis, keepdims=keepdims), jnp.argmax(array, axis, keepdims=keepdims))
    for wrong in (np.zeros((2, 0)), np.zeros(0)):
        with pytest.raises(ValueError, match="attempt to get argmax of an empty sequence"):
            compat.argmax(wrong, None if axis is None else -1)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, np.bool_], ids=lambda kind: kind.__name__)
def test_segment_max(dtype: Any) -> None:
    data = ROWS.astype(dtype)
    for ids in ([0, 2, 2, 0], [3, 3, 3, 3], [0, -1, 9, 1]):
        given = jnp.array(ids)
        for count in (None, 4, 2):
            same(compat.segment_max(data, given, count), jax.ops.segment_max(jnp.asarray(data), given, count))
        jitted = jax.jit(compat.segment_max, static_argnums=2)
        same(jitted(data, given, 5), jax.ops.segment_max(jnp.asarray(data), given, 5))


def test_gradients() -> None:
    data, ids = jnp.array([3.0, 1.0, 3.0, 5.0]), jnp.array([0, 0, 0, 2])
    found = jax.grad(lambda x: compat.segment_max(x, ids, 3)[0])(data)
    same(found, jax.grad(lambda x: jax.ops.segment_max(x, ids, 3)[0])(data))
    same(jax.grad(compat.max)(data), jax.grad(jnp.max)(data))
    for initial, axis in product((2.0, 5.0, 9.0), (None, 0, ())):
        found, expected = (
            jax.grad(lambda x, start, m=m: m.max(x, axis=axis, initial=start).sum(), (0, 1))(data, initial)  # noqa: B023
            for m in (compat, jnp)
        )
        for one, other in zip(found, expected, strict=True):
            same(one, other)


def test_what_differs() -> None:
    with pytest.raises(Exception, match="must be non-decreasing") as caught:
        compat.segment_max(ROWS, jnp.array([1, 0, 0, 0]), 2, indices_are_sorted=True)
    assert isinstance(caught.value, SegmentIdsError)
    for more in ({"bucket_size": 2}, {"mode": "clip"}):
        with pytest.raises(NotImplementedError):
            compat.segment_max(ROWS, jnp.array([0, 0, 1, 1]), **more)
    functions: list[Any] = [compat.max, compat.argmax]
    for function in functions:
        with pytest.raises(NotImplementedError):
            function(ROWS, out=ROWS)
    with pytest.raises(ValueError, match="requires initial="):
        compat.max(ROWS, where=ROWS > 1)
    for where in (ROWS, ROWS[0] * 1.0, (ROWS > 1)[None]):
        with pytest.raises(ValueError, match="where= to be a bool array of at most 2 dimensions, got"):
            compat.max(ROWS, where=where, initial=0)
    with pytest.raises(ValueError, match="initial must be a scalar, got shape"):
        compat.max(ROWS, axis=0, initial=jnp.ones(2))


@pytest.mark.parametrize("dtype", ["complex64", "int4", "uint4", "float8_e4m3fn"])
def test_types_that_are_not_supported(dtype: str) -> None:
    data = jnp.ones(2, dtype)
    calls: list[Any] = [
        lambda: compat.maximum(data, data),
        lambda: compat.max(data),
        lambda: compat.argmax(data),
        lambda: compat.segment_max(data, jnp.array([0, 0]), 1),
    ]
    for call in calls:
        with pytest.raises(DTypeError, match=f"unsupported dtype {dtype}"):
            call()


@pytest.mark.parametrize("mode", [None, "drop", "fill", jax.lax.GatherScatterMode.FILL_OR_DROP], ids=str)
def test_modes(mode: Any) -> None:
    ids = jnp.array([0, 9, -1, 1])
    same(compat.segment_max(ROWS, ids, 3, mode=mode), jax.ops.segment_max(jnp.asarray(ROWS), ids, 3, mode=mode))
