"""Gradients of JAX arrays: split evenly or assigned to the first maximum, in forward and reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.engine_transforms import HALF_CALLS, HALF_TYPES
from maxops.plan import Array
from maxops.typing import Ties

jax = pytest.importorskip("jax")
engine = pytest.importorskip("maxops.engines.jax")
jnp = jax.numpy
NAN = np.nan


pytestmark = pytest.mark.usefixtures("lowering")


@pytest.fixture(autouse=True)
def _64_bits() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def gradients(function: Callable[..., Any], *args: Any) -> tuple[Array, ...]:
    """Return the gradients of a weighted sum of the results."""

    def total(*args: Any) -> Any:
        result = function(*args)
        return (result * (1 + jnp.arange(result.size, dtype=result.dtype).reshape(result.shape))).sum()

    return tuple(map(np.asarray, jax.jit(jax.grad(total, tuple(range(len(args)))))(*args)))


def test_maximum_gives_all_to_the_first_that_holds_it_or_splits_evenly() -> None:
    a, b, c = np.array([1.0, 2, 3, NAN]), np.array([1.0, 5, 3, 1]), np.array([0.0, 5, 3, NAN])
    got = gradients(lambda *x: mo.maximum(*x, ties="first"), a, b, c)
    np.testing.assert_array_equal(got, [[1, 0, 3, 4], [0, 2, 0, 0], [0, 0, 0, 0]])
    got = gradients(mo.maximum, a, b, c)
    np.testing.assert_array_equal(got, [[0.5, 0, 1, 2], [0.5, 1, 1, 0], [0, 1, 1, 2]])


def test_zeros_of_both_signs_are_no_tie() -> None:
    got = gradients(mo.maximum, np.array([-0.0, 0.0]), np.array([0.0, 0.0]))
    np.testing.assert_array_equal(got, [[0, 1], [1, 1]])


def test_maximum_sums_over_what_it_broadcast() -> None:
    got = gradients(mo.maximum, np.array([[2.0], [0.0]]), np.array([1.0, 3.0, 2.0]))
    np.testing.assert_array_equal(got[0], [[2.5], [0]])
    np.testing.assert_array_equal(got[1], [4, 7, 7.5])


def test_the_default_is_that_of_jax() -> None:
    x, y, ids = np.array([[1.0, 3, 3], [3, 3, 0]]), np.array([3.0, 3, 1]), np.array([0, 0])
    for ours, theirs in (
        (mo.maximum, jnp.maximum),
        (lambda x, y: mo.reduce_max(x) + y, lambda x, y: jnp.max(x) + y),
        (lambda x, y: mo.reduce_max(x, 0, keepdims=False) * y, lambda x, y: jnp.max(x, 0) * y),
        (lambda x, y: mo.segment_max(x, ids, fill_mode="ZERO") * y, lambda x, y: jax.ops.segment_max(x, ids, 1) * y),
    ):
        for got, expected in zip(gradients(ours, x, y), gradients(theirs, x, y), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float32, np.float64], ids=str)
def test_reduce_max(dtype: Any) -> None:
    x = np.array([[1, 3, 3], [NAN, 2, NAN]], dtype)
    (first,) = gradients(lambda d: mo.reduce_max(d, 1, ties="first"), x)
    np.testing.assert_array_equal(first, np.array([[0, 1, 0], [2, 0, 0]], dtype))
    assert first.dtype == dtype
    (even,) = gradients(lambda d: mo.reduce_max(d, 1), x)
    np.testing.assert_array_equal(even, np.array([[0, 0.5, 0.5], [1, 0, 1]], dtype))


def test_reduce_max_over_several_axes_and_an_initial_value() -> None:
    x = np.array([[[1.0, 3], [5, 0]], [[3, 3], [5, 5]]])
    (first,) = gradients(lambda d: mo.reduce_max(d, (2, 0), keepdims=False, ties="first"), x)
    np.testing.assert_array_equal(first, [[[0, 1], [2, 0]], [[0, 0], [0, 0]]])
    (even,) = gradients(lambda d: mo.reduce_max(d, (2, 0), keepdims=False, initial=4), x)
    np.testing.assert_allclose(even, np.array([[[0, 0], [2, 0]], [[0, 0], [2, 2]]]) / 3)
    (level,) = gradients(lambda d: mo.reduce_max(d, (2, 0), keepdims=False, ties="first", initial=3), x)
    np.testing.assert_array_equal(level, first)


def test_noop_is_the_identity() -> None:
    (got,) = gradients(lambda d: mo.reduce_max(d, noop_with_empty_axes=True), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(got, [1, 2])


NAMED: dict[str, tuple[dict[str, Any], list[int]]] = {
    "sorted": ({"segment_ids": [0, 0, 2, 2, 2]}, [0, 1, 2, 3, 4]),
    "any": ({"segment_ids": [2, 0, 2, 0, 2], "sorted": False}, [1, 3, 0, 2, 4]),
    "offsets": ({"offsets": [0, 2, 2, 5]}, [0, 1, 2, 3, 4]),
    "drop": ({"segment_ids": [-1, 0, 0, 2, 2, 2, 9], "out_of_range": "drop"}, [-1, 0, 1, 2, 3, 4, -1]),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("ties", ["first", "even"])
def test_segment_max(name: str, ties: Ties) -> None:
    options, order = NAMED[name]
    named: dict[str, Any] = {
        key: np.array(value) if isinstance(value, list) else value for key, value in options.items()
    }
    rows = np.array([[1.0, 2], [1, 0], [4, 7], [6, 7], [6, 7]])
    expected = {
        "first": np.array([[1.0, 2], [0, 0], [0, 6], [5, 0], [0, 0]]),
        "even": np.array([[0.5, 2], [0.5, 0], [0, 2], [2.5, 2], [2.5, 2]]),
    }[ties]
    if name == "any":  # the rows of each segment keep their order
        order = [1, 3, 0, 2, 4]
        data = np.empty_like(rows)
        data[order] = rows
        spread = np.empty_like(expected)
        spread[order] = expected
    else:
        inside = [place >= 0 for place in order]
        data, spread = np.full((len(order), 2), 99.0), np.zeros((len(order), 2))
        data[inside], spread[inside] = rows, expected
    (got,) = gradients(lambda d: mo.segment_max(d, num_segments=3, fill_mode="ZERO", ties=ties, **named), data)
    np.testing.assert_array_equal(got, spread)


def test_nobody_has_the_gradient_of_what_only_the_initial_value_holds() -> None:
    def call(d: Any, initial: Any) -> Any:
        return mo.segment_max(d, np.array([0, 1, 1]), 3, initial=initial)

    got, of_initial = gradients(call, np.array([1.0, 5.0, 2.0]), np.array(2.0))
    np.testing.assert_array_equal(got, [0, 2, 0])
    np.testing.assert_array_equal(of_initial, 0)


@pytest.mark.parametrize("ties", ["first", "even"])
def test_data_without_elements(ties: Ties) -> None:
    none, no_ids = np.zeros((0, 2)), np.zeros(0, np.int32)
    for function in (
        lambda x: mo.segment_max(x, no_ids, 3, fill_mode="LOWEST", ties=ties),
        lambda x: mo.segment_max(x, offsets=np.array([0, 0]), initial=1.5, ties=ties),
        lambda x: mo.reduce_max(x, 0, ties=ties),
        lambda x: mo.maximum(x, 1.0, ties=ties),
    ):
        assert gradients(function, none)[0].shape == (0, 2)
        values, moved = jax.jvp(function, (none,), (none,))
        np.testing.assert_array_equal(moved, np.zeros(values.shape))


def test_integers_have_none() -> None:
    x = np.array([1, 2, 3])
    values, tangents = jax.jvp(mo.reduce_max, (x,), (np.zeros(3, jax.dtypes.float0),))
    assert values.tolist() == [3]
    assert tangents.dtype == jax.dtypes.float0
    got = jax.grad(lambda d: (mo.reduce_max(x) * d).sum())(2.0)  # another argument has a gradient
    assert got == 3.0


def test_indices_and_empty_segments_have_none() -> None:
    def call(d: Any) -> Any:
        values, indices, empty = mo.segment_max(
            d, np.array([0, 0, 2]), 3, fill_mode="ZERO", return_indices=True, return_empty=True
        )
        return (values * jnp.where(empty, 0, indices)).sum()

    np.testing.assert_array_equal(jax.jit(jax.grad(call))(np.array([1.0, 3.0, 2.0])), [0, 1, 2])


@partial(jax.jit, static_argnums=(1, 2))  # compiled as a whole, which takes a fraction of the time
def derivatives(x: Any, call: str, ties: Ties) -> Any:
    """Return the values, their tangent and the gradient of a call if all tangents and gradients are one."""
    function = partial(HALF_CALLS[call][1], ties=ties)
    values, back = jax.vjp(function, x)
    return values, jax.jvp(function, (x,), (jnp.ones_like(x),))[1], back(jnp.ones_like(values))[0]


@cache
def exact_shares(call: str, ties: Ties) -> Any:
    """Return, in float64, the shares of a gradient of one."""
    return np.asarray(derivatives(jnp.ones(HALF_CALLS[call][0], np.float64), call, ties)[2])


# Both lowerings count ties in the same way.
@pytest.mark.parametrize("lowering", ["custom-calls"], indirect=True)
@pytest.mark.parametrize(("dtype", "ties"), HALF_TYPES)
@pytest.mark.parametrize("call", HALF_CALLS)
def test_the_forward_gradient_is_the_mean_of_all_that_tie(call: str, dtype: str, ties: Ties) -> None:
    """Test that tangents of one give a tangent of one for any type, and that backward gradients are the shares."""
    x = jnp.ones(HALF_CALLS[call][0], dtype)
    values, tangent, back = derivatives(x, call, ties)
    assert tangent.dtype == values.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(tangent, np.float64), np.asarray(values, np.float64))
    exact = exact_shares(call, ties)
    np.testing.assert_allclose(np.asarray(back, np.float64), exact, rtol=2.0**-7, atol=2.0**-23)
