"""Plain calls on JAX arrays are planned once for each combination of shapes, dtypes and options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from maxops import errors
from maxops.engines.base import as_tuple

jax = pytest.importorskip("jax")
engine = pytest.importorskip("maxops.engines.jax")
jnp = jax.numpy
X = np.array([[1, 5, 2], [4, 3, 6]], np.float32)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Yield a list of the calls that are planned, with an empty cache at first."""
    calls: list[Any] = []

    def watch(name: str) -> None:
        plan = getattr(engine, name)

        def watched(call: Any) -> Any:
            calls.append(call)
            return plan(call)

        monkeypatch.setattr(engine, name, watched)

    watch("_plan_maximum")
    watch("_plan_reduce_max")
    monkeypatch.setattr(engine, "_planned", {})
    with jax.enable_x64(True):
        yield calls


CALLS: dict[str, Any] = {
    "maximum": lambda x: mo.maximum(x, x[:1]),
    "ties": lambda x: mo.maximum(x, x[:1], ties="first"),
    "types": lambda x: mo.maximum(x.astype(jnp.int8), x[:1].astype(jnp.int8)),
    "shapes": lambda x: mo.maximum(x, x[:, :1]),
    "three": lambda x: mo.maximum(x, x[:1], x[:1]),
    "all": mo.reduce_max,
    "axis": lambda x: mo.reduce_max(x, 1),
    "axes": lambda x: mo.reduce_max(x, [0, 1]),
    "other axes": lambda x: mo.reduce_max(x, (0,)),
    "no axes": lambda x: mo.reduce_max(x, [], noop_with_empty_axes=True),
    "rank": lambda x: mo.reduce_max(x, 1, keepdims=False),
    "indices": lambda x: mo.reduce_max(x, 1, return_indices=True),
    "first": lambda x: mo.reduce_max(x, 1, ties="first"),
    "numpy": lambda x: mo.maximum(x, X),
    "float": lambda x: mo.maximum(x, 2.5),
    "int": lambda x: mo.maximum(3, x),
    "bool": lambda x: mo.maximum(x > 2, True),
    "initial": lambda x: mo.reduce_max(x, 1, initial=4.5, return_indices=True),
}


def test_each_call_is_planned_once(planned: list[Any]) -> None:
    """Test that each call is planned only once, even under transforms, and returns the results of NumPy arrays."""
    x = jnp.asarray(X)
    for _ in range(3):
        for call in CALLS.values():
            for one, other in zip(as_tuple(call(x)), as_tuple(call(X)), strict=True):
                assert_same_bits(np.asarray(one), other)
    assert len(planned) == len(CALLS)
    assert_same_bits(np.asarray(jax.jit(lambda x: mo.maximum(x, x[:1]))(x)), np.maximum(X, X[:1]))
    assert_same_bits(np.asarray(jax.vmap(mo.reduce_max)(jnp.stack([x, x]))), np.full((2, 1, 1), 6, X.dtype))
    assert_same_bits(
        np.asarray(jax.grad(lambda x: mo.maximum(x, x[:1]).sum())(x)), np.array([[1, 2, 1], [1, 0, 1]], X.dtype)
    )


def test_calls_that_are_planned_each_time(planned: list[Any]) -> None:
    """Test calls whose plan depends on more than shapes and types."""
    x = jnp.asarray(X)
    calls: list[Any] = [
        lambda: mo.maximum(x, X.astype(">f4")),
        lambda: mo.maximum(x, jnp.asarray(2.0)),  # a weak type: its value matters
        lambda: mo.reduce_max(x, np.array([1])),
        lambda: mo.reduce_max(x, np.int64(1)),
        lambda: mo.reduce_max(x, initial=np.float32(2)),
        lambda: mo.reduce_max(x, keepdims=1),
    ]
    for call in calls * 2:
        call()
    assert len(planned) == 2 * len(calls)
    mo.maximum(x, x)
    mo.reduce_max(x, 1)
    wrongs: list[Any] = [
        lambda: mo.reduce_max(x, True),
        lambda: mo.reduce_max(x, [True]),
        lambda: mo.reduce_max(x, 1.0),  # type: ignore[call-overload]
        lambda: mo.maximum(x, x, out=X),
        lambda: mo.reduce_max(x, 1, out=X),
        lambda: mo.maximum(x, x, ties="last"),  # type: ignore[call-overload]
    ]
    for call in wrongs * 2:
        with pytest.raises(errors.MaxopsError):
            call()


def test_the_values_of_scalars_are_checked_in_each_call(planned: list[Any]) -> None:
    """Test that a plan applies to other values of its scalars, each rounded once, and rejects invalid values."""
    x, small = jnp.asarray(X), jnp.asarray([1, 2], jnp.int8)
    mo.maximum(x, 1.0)
    mo.maximum(small, 1)
    mo.reduce_max(x, initial=1)
    before = len(planned)
    for value in (-np.inf, np.nan, -0.0, 5.5, 1 + 2.0**-24 + 2.0**-40):
        assert_same_bits(np.asarray(mo.maximum(x, value)), mo.maximum(X, value))
    assert_same_bits(np.asarray(mo.reduce_max(x, initial=9)), mo.reduce_max(X, initial=9))
    assert len(planned) == before
    wrongs: list[tuple[Callable[[], Any], str]] = [
        (lambda: mo.maximum(x, 1e39), "1e\\+39"),
        (lambda: mo.maximum(small, 300), "300"),
        (lambda: mo.maximum(small, 1.0), "1.0"),
        (lambda: mo.maximum(x, True), "True"),
        (lambda: mo.reduce_max(x, initial=2**24 + 1), "16777217"),
    ]
    for call, text in wrongs:
        for _ in range(2):
            with pytest.raises(errors.DTypeError, match=text):
                call()


def test_the_configuration_counts(planned: list[Any]) -> None:
    x = jnp.asarray(X, jnp.float64)
    for _ in range(2):
        assert mo.maximum(x, x).dtype == jnp.float64
        with jax.enable_x64(False), pytest.raises(errors.DTypeError, match="jax_enable_x64"):
            mo.maximum(x, x)
        with engine.only_integer_keys():
            assert "maxops_maximum" not in jax.jit(lambda x: mo.maximum(x, x)).lower(x).as_text()
    assert len(planned) == 1 + 2 + 2  # traced calls are planned each time


def test_plans_do_not_pile_up(planned: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_MOST_PLANS", 3)
    for size in (1, 2, 3, 4, 1, 4):
        x = jnp.ones(size)
        assert mo.maximum(x, x).shape == (size,)
        assert len(engine._planned) <= 3
    assert len(planned) == 5
