"""JAX transforms: any mapped arguments and axes, and every pair of nested transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from helpers.bits import assert_same_bits
from helpers.engine_transforms import MAPPED, Function, Trial, batched, mapped, mapped_twice, nested, paired, squares
from maxops import dtypes
from maxops.engines.base import as_tuple
from maxops.plan import Array

jax = pytest.importorskip("jax")
pytest.importorskip("maxops.engines.jax")
jnp, lax = jax.numpy, jax.lax
pytestmark = pytest.mark.usefixtures("lowering")


@pytest.fixture(autouse=True)
def _64_bits() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def compiled(function: Function, *arguments: Any) -> Any:
    """Return the results of a function compiled without XLA's optimizations, which would take most of the time."""
    quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return jax.jit(lambda *a: function(*a)).lower(*arguments).compile(compiler_options=quick)(*arguments)  # noqa: PLW0108


# ---------------------------------------------------------------------------------------- vmap of each argument

# bfloat16 is omitted, because XLA without optimizations flushes its subnormals in copies.
DTYPES = (dtypes.FLOAT32, dtypes.FLOAT16, dtypes.INT64)


def some(trials: list[Any], count: int) -> list[Any]:
    """Return at most `count` evenly spaced trials, because JAX compiles each for a tenth of a second."""
    return trials[:: -(-len(trials) // count)]


EVERY = pytest.mark.parametrize("count", [6, pytest.param(10**6, marks=pytest.mark.release, id="all")])


def check_mapped(trials: list[Trial], lowering: str, count: int) -> None:
    """Compare mapped functions with loops, with the mapped axis last in the results. All are compiled together.

    Both lowerings have the same batching rules, so fewer trials suffice for the one that takes longer to compile.
    """
    trials = some(trials, count if lowering == "custom-calls" else count // 3)
    every = [jax.vmap(trial.function, in_axes=trial.axes, out_axes=-1) for trial in trials]
    got = compiled(
        lambda each: [function(*arguments) for function, arguments in zip(every, each, strict=True)],
        [trial.arguments for trial in trials],
    )
    for found, trial in zip(got, trials, strict=True):
        for part, expected in zip(as_tuple(found), trial.expected(*trial.arguments), strict=True):
            assert_same_bits(np.asarray(part), np.ascontiguousarray(np.moveaxis(expected, 0, -1)))


@EVERY
@pytest.mark.parametrize("name", MAPPED)
def test_a_mapped_call_is_its_members_one_by_one(name: str, count: int, lowering: str) -> None:
    """Test every set of mapped arguments, and every position of the mapped axis in each."""
    check_mapped([*mapped(*MAPPED[name], DTYPES)], lowering, count)


@EVERY
@pytest.mark.parametrize("name", MAPPED)
def test_a_mapped_mapped_call_is_its_members_one_by_one(name: str, count: int, lowering: str) -> None:
    """Test each argument mapped by the outer vmap, the inner vmap, both or neither."""
    check_mapped([*mapped_twice(jax.vmap, *MAPPED[name], DTYPES)], lowering, count)


# ------------------------------------------------------------------------------------------ nested transforms

PAIRED = paired(jnp, np.asarray, lax.stop_gradient)


def calls(which: int, names: tuple[str, ...], whole: bool) -> Function:
    """Return a function that makes all calls inside these transforms, each with its own ties, and returns a vector.

    Unless `whole`, it makes the first call and every third of the others, because JAX traces each for 0.1 s.
    """
    turn = sum(map(list(TRANSFORMS).index, names))

    def function(x: Any) -> Any:
        every = [
            pair[which](x, ("even", "first")[(place + turn) % 2])
            for place, pair in enumerate(PAIRED.values())
            if whole or place == 0 or (place + turn) % 3 == 0
        ]
        return jnp.concatenate([each.ravel() for each in every])

    return function


def custom_vjp(function: Function) -> Function:
    run = jax.custom_vjp(function)
    run.defvjp(lambda x: jax.vjp(function, x), lambda back, tangent: back(tangent))
    return run  # type: ignore[no-any-return]


def custom_jvp(function: Function) -> Function:
    run = jax.custom_jvp(function)
    run.defjvp(lambda x, moved: jax.jvp(function, x, moved))
    return run  # type: ignore[no-any-return]


def zeros(function: Function, x: Any) -> Any:
    """Return zeros with the shape and dtype of the result."""
    return jnp.zeros_like(jax.eval_shape(function, x))


def sharded(function: Function) -> Function:
    mesh = jax.make_mesh((1,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec()
    run: Function = jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return run


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "vmap": jax.vmap,
    "vmap-last": lambda function: jax.vmap(function, in_axes=-1, out_axes=1),
    "grad": lambda function: jax.grad(squares(function)),
    "vjp": lambda function: lambda x: jax.vjp(function, x)[1](lax.stop_gradient(function(x)) + 1)[0],
    "jvp": lambda function: lambda x: jax.jvp(function, (x,), (x + 1,))[1],
    "linearize": lambda function: lambda x: jax.linearize(function, x)[1](x + 1),
    "jacrev": jax.jacrev,
    "jacfwd": jax.jacfwd,
    "hessian": lambda function: jax.hessian(squares(function)),
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "custom_vjp": custom_vjp,
    "custom_jvp": custom_jvp,
    "scan": lambda function: lambda x: lax.scan(lambda _, x: (None, function(x)), None, x[None])[1][0],
    "map": lambda function: lambda x: lax.map(function, x),
    "while_loop": lambda function: lambda x: lax.fori_loop(0, 1, lambda _, y: y + function(x), zeros(function, x)),
    "cond": lambda function: lambda x: lax.cond(x.sum() < 1e9, function, lambda x: zeros(function, x), x),
    "shard_map": sharded,
}
FORWARD = ("jvp", "linearize", "jacfwd", "hessian")


FORMULAS: dict[Any, Array] = {}  # results of the formula, which are independent of the lowering


def check_nested(every: list[tuple[str, ...]], *, whole: bool) -> None:
    """Check nested transforms, compiled together. The formula is computed once for both lowerings."""
    new = [names for names in every if (names, whole) not in FORMULAS]

    def run(ours: list[Any], formulas: list[Any]) -> Any:
        return [
            [nested(TRANSFORMS, calls(which, names, whole), names)(x) for names, x in zip(of, given, strict=True)]
            for which, (of, given) in enumerate(((every, ours), (new, formulas)))
        ]

    results, formulas = compiled(run, *([batched(names) for names in of] for of in (every, new)))
    FORMULAS.update(zip([(names, whole) for names in new], formulas, strict=True))
    for names, got in zip(every, results, strict=True):
        expected = FORMULAS[names, whole]
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), names
        assert np.array_equal(got, expected), names


def goes(names: tuple[str, ...]) -> bool:
    """Return whether JAX supports nesting: a custom_vjp has no forward derivatives, and meshes do not nest."""
    forward = any(name == "custom_vjp" and set(FORWARD) & set(names[at:]) for at, name in enumerate(names))
    return not forward and names.count("shard_map") < 2


@pytest.mark.parametrize("outer", ["vmap-last", "grad", "jvp"])
def test_a_transform_in_each_other(outer: str, lowering: str) -> None:
    inner = some(list(TRANSFORMS), 3 if lowering == "integer-keys" else 9 if outer == "grad" else 6)
    check_nested([(each, outer) for each in inner if goes((each, outer))], whole=False)


def test_derivatives_of_a_batch_of_batches(lowering: str) -> None:
    check_nested([("vmap-last", "vmap", "grad")], whole=lowering == "custom-calls")


# Both lowerings share the rules of transforms, and tracing and compiling takes minutes.
@pytest.mark.release
@pytest.mark.parametrize("lowering", ["custom-calls"], indirect=True)
@pytest.mark.parametrize("outer", TRANSFORMS)
def test_each_transform_in_each_other(outer: str) -> None:
    check_nested([(each, outer) for each in TRANSFORMS if goes((each, outer))], whole=True)


@pytest.mark.release
@pytest.mark.parametrize("lowering", ["custom-calls"], indirect=True)
@pytest.mark.parametrize("outer", ["vmap-last", "grad", "jvp"])
def test_three_transforms_in_each_other(outer: str) -> None:
    every = [(*inner, outer) for inner in product(("vmap", "vmap-last", "grad", "jvp", "scan"), repeat=2)]
    check_nested(every, whole=True)
