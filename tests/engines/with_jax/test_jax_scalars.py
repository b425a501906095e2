"""Weak types in JAX: a traced Python scalar behaves like the Python scalar."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from maxops import errors

jax = pytest.importorskip("jax")
pytest.importorskip("maxops.engines.jax")
jnp = jax.numpy

IDS = np.zeros(3, np.int32)
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
]
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "last": mo.maximum,
    "first": lambda x, scalar: mo.maximum(scalar, x),
    "among": lambda x, scalar: mo.maximum(x, scalar, x[:1]),
    "reduce-initial": lambda x, scalar: mo.reduce_max(x, initial=scalar),
    "segment-initial": lambda x, scalar: mo.segment_max(x, IDS, 2, initial=scalar),
}
TRACED: dict[str, Callable[[Callable[..., Any]], Callable[[Any, Any], Any]]] = {
    "jit": jax.jit,
    "vmap": lambda f: lambda x, scalar: jax.vmap(f, (0, None))(x[None], scalar)[0],
    "jit of vmap": lambda f: lambda x, scalar: jax.jit(jax.vmap(f, (0, None)))(x[None], scalar)[0],
    "known": lambda f: lambda x, scalar: f(x, jnp.asarray(scalar)),
}


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return np.asarray(function(*args))
    except errors.DTypeError:
        return None


# Every fourth type in turn: a signed integer, an unsigned integer, and a float.
@pytest.mark.parametrize(
    ("dtype", "call", "traced", "disabled"),
    [
        pytest.param(dtype, *case, id="-".join((dtype, *case[:2], ("compiled", "disable_jit")[case[2]])))
        for turn, case in enumerate(product(CALLS, TRACED, (False, True)))
        if not (case[1].startswith("jit") and case[2])  # would not compile anything
        for dtype in DTYPES[(turn + turn // 8) % 4 :: 4]
    ],
)
def test_a_weakly_typed_scalar_is_a_python_scalar(dtype: str, call: str, traced: str, disabled: bool) -> None:
    with jax.enable_x64(True), jax.disable_jit(disabled):
        x = jnp.asarray([1, 3, 0]).astype(dtype)
        for scalar in (True, 2, 2.5, 2.5j):
            expected = outcome(CALLS[call], x, scalar)
            result = outcome(TRACED[traced](CALLS[call]), x, scalar)
            assert (result is None) == (expected is None), scalar
            if result is not None:
                assert_same_bits(result, expected)
            if result is not None and call == "last":
                assert result.dtype == jnp.maximum(x, scalar).dtype


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_beside_a_weakly_typed_scalar(dtype: str) -> None:
    with jax.enable_x64(True):
        x = jnp.asarray([1, 3, 0]).astype(dtype)
        for scalar in (2, 2.5):
            gradient = jax.jit(jax.grad(lambda x, scalar: mo.maximum(x, scalar).sum()))(x, scalar)
            assert_same_bits(np.asarray(gradient), np.asarray(jnp.asarray([0, 1, 0]).astype(dtype)))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
def test_weakly_typed_integers_beside_a_python_float(call: str, wide: bool) -> None:
    with jax.enable_x64(wide):
        x = jax.lax.full((3,), 1)  # weakly typed
        expected = outcome(jax.jit(CALLS[call]), x, 2.5)
        assert expected is not None
        for result in (outcome(CALLS[call], x, 2.5), outcome(jax.jit(lambda x: CALLS[call](x, 2.5)), x)):
            assert_same_bits(result, expected)


def test_a_known_value_that_the_type_does_not_hold_is_refused() -> None:
    with pytest.raises(errors.DTypeError, match="300"):
        mo.maximum(jnp.asarray([1], jnp.int8), jnp.asarray(300))


def test_random_keys_are_refused() -> None:
    """Test every argument with an array whose dtype NumPy does not have."""
    key, x = jax.random.key(0), jnp.ones(3)
    calls: dict[str, Callable[[], Any]] = {
        "input 1": lambda: mo.maximum(x, key),
        "data": lambda: mo.reduce_max(key),
        "initial": lambda: mo.reduce_max(x, initial=key),
        "segment_ids": lambda: mo.segment_max(x, jax.random.split(key, 3), 2, fill_mode="ZERO"),
        "num_segments": lambda: mo.segment_max(x, IDS, key, fill_mode="ZERO"),
        "fill_value": lambda: mo.segment_max(x, IDS, 2, fill_value=key),
    }
    for name, call in calls.items():
        with pytest.raises(errors.DTypeError, match=f"{name} must have a NumPy dtype, got key<"):
            call()


ALONE: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda x: mo.maximum(x, x[:1]),
    "reduce": lambda x: mo.reduce_max(x, 0),
    "indices": lambda x: mo.reduce_max(x, 0, return_indices=True)[0],
    "segments": lambda x: mo.segment_max(x, IDS, 2, initial=0.0),
    "segment-indices": lambda x: mo.segment_max(x, IDS, 2, fill_mode="ZERO", return_indices=True)[0],
    "offsets": lambda x: mo.segment_max(x, offsets=np.array([0, 1, 3], np.int32), fill_mode="ZERO"),
}
MANNERS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "plain": lambda f, x: f(x),
    "vmap": lambda f, x: jax.vmap(f)(x[None]),
    "grad": lambda f, x: jax.grad(lambda x: f(x).sum())(x),
    "jvp": lambda f, x: jax.jvp(f, (x,), (x,)),
}


# Only every second pair of a call and a manner is also tested with disable_jit.
@pytest.mark.parametrize(
    ("call", "manner", "disabled"),
    [
        pytest.param(*case, disabled, id="-".join((*case, ("compiled", "disable_jit")[disabled])))
        for turn, case in enumerate(product(ALONE, MANNERS))
        for disabled in (False, True)[: 1 + (turn + turn // 4) % 2]
    ],
)
def test_nothing_is_compiled_twice(call: str, manner: str, disabled: bool) -> None:
    compiled: list[str] = []

    def note(event: str, *_: object, **__: object) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    x = jnp.asarray([[1.0, 3.0], [3.0, 3.0], [0.5, 2.0]])
    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        with jax.disable_jit(disabled):
            MANNERS[manner](ALONE[call], x)
            compiled.clear()
            MANNERS[manner](ALONE[call], x)
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert not compiled
