"""JAX transforms: any mapped arguments and axes, and each transform inside each other one.

A loop over the members verifies a mapped call. The same transforms of a formula with JAX operations verify derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes
from maxops.plan import Array

jax = pytest.importorskip("jax")
pytest.importorskip("maxops.engines.jax")
jnp, lax = jax.numpy, jax.lax
pytestmark = pytest.mark.usefixtures("lowering")

ALL: dict[str, Any] = {"return_indices": True, "return_empty": True}
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def _64_bits() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def compiled(function: Function, *arguments: Any) -> Any:
    """Return the results of a function compiled without XLA's optimizations, which would take most of the time."""
    quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return jax.jit(lambda *a: function(*a)).lower(*arguments).compile(compiler_options=quick)(*arguments)  # noqa: PLW0108


def results(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


# ---------------------------------------------------------------------------------------- vmap of each argument

# Without bfloat16: without optimizations, XLA flushes its subnormals in copies.
DTYPES = (dtypes.FLOAT32, dtypes.FLOAT16, dtypes.INT64)
ROWS = 4
IDS = {
    "sorted": [[0, 0, 2, 4], [1, 1, 1, 1], [0, 2, 3, 3], [2, 3, 3, 3]],
    "any": [[4, 0, 2, 0], [1, 3, 1, 1], [3, 2, 3, 0], [0, 0, 4, 4]],
    "dropped": [[4, -1, 2, 9], [1, 3, -5, 1], [7, 7, 7, 7], [0, 0, 4, 4]],
    "offsets": [[0, 1, 1, 4], [0, 0, 0, 4], [0, 4, 4, 4], [0, 1, 2, 4]],
}

# name -> the call, and the shape of each argument, or a name in IDS: ids or offsets for each member of a batch.
MAPPED: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "maximum": (mo.maximum, ((2, 3), (3,))),
    "maximum-ranks": (lambda a, b, c: mo.maximum(a, 1, b, c), ((), (2, 1), (3,))),
    "maximum-nothing": (mo.maximum, ((2, 0), ())),
    "reduce-two": (lambda x, i: mo.reduce_max(x, (2, 0), initial=i, return_indices=True), ((2, 3, 2), ())),
    "reduce-initial": (lambda x, i: mo.reduce_max(x, -2, keepdims=False, initial=i), ((2, 3), ())),
    "reduce-all": (lambda x: mo.reduce_max(x, return_indices=True), ((2, 3),)),
    "reduce-rank-0": (lambda x, i: mo.reduce_max(x, initial=i, return_indices=True), ((), ())),
    "reduce-noop": (lambda x: mo.reduce_max(x, noop_with_empty_axes=True, return_indices=True), ((2, 3),)),
    "reduce-nothing": (lambda x, i: mo.reduce_max(x, 1, initial=i, return_indices=True), ((2, 0), ())),
    "segments": (lambda x, ids: mo.segment_max(x, ids, 5, fill_mode="LOWEST", **ALL), ((ROWS, 2), "sorted")),
    "segments-fewer": (lambda x, ids: mo.segment_max(x, ids, 3, fill_value=7), ((ROWS,), "sorted")),
    "segments-any": (
        lambda x, ids, i: mo.segment_max(x, ids, 5, initial=i, sorted=False, **ALL),
        ((ROWS, 2), "any", ()),
    ),
    "segments-dropped": (
        lambda x, ids: mo.segment_max(x, ids, 5, fill_mode="ZERO", sorted=False, out_of_range="drop", **ALL),
        ((ROWS, 1, 2), "dropped"),
    ),
    "segments-nothing": (
        lambda x, ids: mo.segment_max(x, ids, 5, fill_mode="ZERO", check_ids=False, **ALL),
        ((ROWS, 0), "sorted"),
    ),
    "offsets": (lambda x, o: mo.segment_max(x, offsets=o, fill_mode="LOWEST", **ALL), ((ROWS, 2), "offsets")),
    "offsets-padded": (
        lambda x, o, i: mo.segment_max(x, offsets=o, num_segments=5, initial=i, **ALL),
        ((ROWS,), "offsets", ()),
    ),
}


def argument(shape: Any, sizes: tuple[int, ...], dtype: Any, seed: int) -> Array:
    """Return an argument of a call, with leading batch axes."""
    if isinstance(shape, str):
        ids = np.resize(np.array(IDS[shape]), (*sizes, len(IDS[shape][0])))
        return ids.astype((np.int64, np.int32)[seed % 2])
    return mixed(dtype, (*sizes, *shape), seed, nans=0.2)


def places(shape: Any) -> list[int | None]:
    """Return the positions of the batch axis in an argument: none, first, second and last."""
    return [None, 0, -1] if shape == () else [None, 0, 1, -1]


def loop(function: Function, axes: tuple[int | None, ...]) -> Function:
    """Return a loop over NumPy arrays that is equivalent to jax.vmap."""

    def mapped(*arguments: Any) -> tuple[Any, ...]:
        size = next(a.shape[axis] for a, axis in zip(arguments, axes, strict=True) if axis is not None)
        members = [
            results(
                function(*(a if axis is None else np.take(a, k, axis) for a, axis in zip(arguments, axes, strict=True)))
            )
            for k in range(size)
        ]
        return tuple(map(np.stack, zip(*members, strict=True)))

    return mapped


Mapped = tuple[Function, Function, tuple[int | None, ...], list[Any]]


def some(trials: list[Any], count: int) -> list[Any]:
    """Return at most `count` evenly spaced trials, because JAX compiles each for a tenth of a second."""
    return trials[:: -(-len(trials) // count)]


EVERY = pytest.mark.parametrize("count", [8, pytest.param(10**6, marks=pytest.mark.release, id="all")])


def check_mapped(trials: list[Mapped], lowering: str, count: int) -> None:
    """Compare mapped functions with loops, with the mapped axis last in the results; all are compiled together.

    Both lowerings have the same batching rules, so fewer trials suffice for the one that takes longer to compile.
    """
    trials = some(trials, count if lowering == "custom-calls" else count // 4)
    every = [jax.vmap(function, in_axes=axes, out_axes=-1) for function, _, axes, _ in trials]
    got = compiled(
        lambda each: [function(*arguments) for function, arguments in zip(every, each, strict=True)],
        [arguments for *_, arguments in trials],
    )
    for found, (_, one_by_one, _, arguments) in zip(got, trials, strict=True):
        for part, expected in zip(results(found), one_by_one(*arguments), strict=True):
            assert_same_bits(np.asarray(part), np.ascontiguousarray(np.moveaxis(expected, 0, -1)))


@EVERY
@pytest.mark.parametrize("name", MAPPED)
def test_a_mapped_call_is_its_members_one_by_one(name: str, count: int, lowering: str) -> None:
    """Test every set of mapped arguments, and every position of the mapped axis in each."""
    function, shapes = MAPPED[name]
    trials: list[Mapped] = []
    for number, axes in enumerate(product(*map(places, shapes))):
        if not any(axis is not None for axis in axes):
            continue
        dtype, size = DTYPES[number % 3], (3, 1)[number % 5 == 4]
        arguments = [
            argument(shape, () if axis is None else (size,), dtype, seed)
            for seed, (shape, axis) in enumerate(zip(shapes, axes, strict=True), number)
        ]
        moved = [a if axis is None else np.moveaxis(a, 0, axis) for a, axis in zip(arguments, axes, strict=True)]
        trials.append((function, loop(function, axes), axes, moved))
    check_mapped(trials, lowering, count)


@EVERY
@pytest.mark.parametrize("name", MAPPED)
def test_a_mapped_mapped_call_is_its_members_one_by_one(name: str, count: int, lowering: str) -> None:
    """Test each argument mapped by the outer vmap, the inner vmap, both or neither."""
    function, shapes = MAPPED[name]
    trials: list[Mapped] = []
    for number, axes in enumerate(product([(None, None), (0, None), (None, -1), (-1, 0), (0, 1)], repeat=len(shapes))):
        outer, inner = tuple(axis for axis, _ in axes), tuple(axis for _, axis in axes)
        if set(outer) == {None} or set(inner) == {None}:
            continue
        if any(into == 1 and shape == () for (_, into), shape in zip(axes, shapes, strict=True)):
            continue
        arguments = []
        for seed, (shape, (out, into)) in enumerate(zip(shapes, axes, strict=True), count):
            sizes = (2,) * (out is not None) + (3,) * (into is not None)
            value = argument(shape, sizes, DTYPES[number % 3], seed)
            if into is not None:
                first = len(sizes) - 1
                value = np.moveaxis(value, first, value.ndim - 1 if into == -1 else first + into)
            arguments.append(value if out is None else np.moveaxis(value, 0, out))
        mapped = jax.vmap(function, in_axes=inner)
        trials.append((mapped, loop(loop(function, inner), outer), outer, arguments))
    check_mapped(trials, lowering, count)


# ------------------------------------------------------------------------------------- each transform in each other

# Values with ties of two and of four elements, so that even shares are exact.
X = np.array([[3.0, 1.0, 3.0], [1.0, 5.0, -1.0], [2.0, 5.0, 0.0], [2.0, 4.0, 6.0]])
ROW = np.array([2.0, 5.0, -2.0])
SORTED, MIXED, BOUNDS = np.array([0, 0, 2, 2]), np.array([2, -1, 2, 0]), np.array([0, 1, 1, 4])


def held(elements: Any, mask: Any, axis: int, ties: str, start: Any = -np.inf, empty: float = -np.inf) -> Any:
    """Return the maxima of the masked elements along an axis, and their indices, by JAX operations.

    Each maximum is a constant, to which the elements that are equal to it add their derivatives.
    """
    fixed = lax.stop_gradient(elements if mask is None else jnp.where(mask, elements, -jnp.inf))
    top = fixed.max(axis, keepdims=True)
    holds = (fixed == top) & (top >= start) & (top > -jnp.inf)
    first = holds & (holds.cumsum(axis) == 1)
    share = holds / jnp.maximum(holds.sum(axis, keepdims=True), 1) if ties == "even" else first.astype(fixed.dtype)
    moved = (jnp.where(holds, elements - lax.stop_gradient(elements), 0) * share).sum(axis)
    top = top.squeeze(axis)
    value = jnp.maximum(jnp.where(top == -jnp.inf, empty, top), start) + moved
    shape = [-1] + [1] * (elements.ndim - axis - 1)
    index = jnp.where(first, jnp.arange(elements.shape[axis]).reshape(shape), 0).sum(axis)
    return value, index - (~first.any(axis)).astype(int)


def in_segments(x: Any, ids: Any, count: int, **how: Any) -> Any:
    mask = ids[None] == np.arange(count)[:, None]
    return held(jnp.broadcast_to(x, (count, *x.shape)), mask.reshape(*mask.shape, *[1] * (x.ndim - 1)), 1, **how)


def both(pair: Any) -> Any:
    """Combine a value and an index in one array."""
    value, index = pair
    return value + index.astype(value.dtype) / 8


def own_ids(x: Any) -> Any:
    """Return ids of the rows that depend on their values and differ between members of a batch."""
    return (x[:, 0] > 1.5).astype(int)


def own_offsets(x: Any) -> Any:
    """Return offsets that depend on the values and differ between members of a batch."""
    count = own_ids(x).sum()
    return jnp.stack([count * 0, count, count * 0 + 4])


def of_maximum(*arrays: Any, ties: str) -> Any:
    return held(jnp.stack(jnp.broadcast_arrays(*arrays)), None, 0, ties)[0]


# name -> the call of an array of shape (4, 3), and the same with JAX operations.
PAIRED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "maximum": (
        lambda x, ties: mo.maximum(x, ROW, 2.0 * x[:1], 0.5, ties=ties),
        lambda x, ties: of_maximum(x, ROW, 2.0 * x[:1], 0.5, ties=ties),
    ),
    "reduce": (
        lambda x, ties: both(mo.reduce_max(x, 0, keepdims=False, return_indices=True, ties=ties)),
        lambda x, ties: both(held(x, None, 0, ties)),
    ),
    "reduce-initial": (
        lambda x, ties: both(mo.reduce_max(x, -1, keepdims=True, initial=3.0, return_indices=True, ties=ties)),
        lambda x, ties: both(held(x, None, 1, ties, start=3.0))[:, None],
    ),
    "reduce-own-initial": (
        lambda x, ties: both(mo.reduce_max(x, 1, keepdims=False, initial=x[0, 0], return_indices=True, ties=ties)),
        lambda x, ties: both(held(x, None, 1, ties, start=lax.stop_gradient(x[0, 0]))),
    ),
    "segments-own-ids": (
        lambda x, ties: both(
            mo.segment_max(x, own_ids(x), 3, fill_mode="ZERO", sorted=False, return_indices=True, ties=ties)
        ),
        lambda x, ties: both(in_segments(x, own_ids(x), 3, ties=ties, empty=0.0)),
    ),
    "own-offsets": (
        lambda x, ties: both(
            mo.segment_max(x, offsets=own_offsets(x), initial=x[1, 1], return_indices=True, ties=ties)
        ),
        lambda x, ties: both(
            in_segments(
                *(x, (np.arange(4) >= own_offsets(x)[1]).astype(int), 2), ties=ties, start=lax.stop_gradient(x[1, 1])
            )
        ),
    ),
    "noop": (
        lambda x, ties: mo.reduce_max(x, noop_with_empty_axes=True, ties=ties),
        lambda x, ties: x,
    ),
    "segments": (
        lambda x, ties: both(mo.segment_max(x, SORTED, 4, fill_mode="ZERO", return_indices=True, ties=ties)),
        lambda x, ties: both(in_segments(x, SORTED, 4, ties=ties, empty=0.0)),
    ),
    "segments-dropped": (
        lambda x, ties: both(
            mo.segment_max(
                *(x, MIXED, 3), sorted=False, out_of_range="drop", initial=2.5, return_indices=True, ties=ties
            )
        ),
        lambda x, ties: both(in_segments(x, MIXED, 3, ties=ties, start=2.5)),
    ),
    "offsets": (
        lambda x, ties: both(mo.segment_max(x, offsets=BOUNDS, fill_value=-7.0, return_indices=True, ties=ties)),
        lambda x, ties: both(in_segments(x, np.array([0, 2, 2, 2]), 3, ties=ties, empty=-7.0)),
    ),
}


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


def squares(function: Function) -> Function:
    """Return a scalar whose second derivatives are not all zero."""
    return lambda x: (function(x) ** 2).sum()


def custom_vjp(function: Function) -> Function:
    run = jax.custom_vjp(function)
    run.defvjp(lambda x: jax.vjp(function, x), lambda back, tangent: back(tangent))
    return run  # type: ignore[no-any-return]


def custom_jvp(function: Function) -> Function:
    run = jax.custom_jvp(function)
    run.defjvp(lambda x, moved: jax.jvp(function, x, moved))
    return run  # type: ignore[no-any-return]


def zeros(function: Function, x: Any) -> Any:
    """Return zeros like the result."""
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
ADDS_AN_AXIS = ("vmap", "vmap-last", "map")


def nested(function: Function, names: tuple[str, ...]) -> Function:
    """Apply transforms to a function; the first one is the innermost."""
    for name in names:
        function = TRANSFORMS[name](function)
    return function


def batched(names: tuple[str, ...]) -> Array:
    """Return an array with a batch axis for each vmap."""
    x = X
    for name in names:
        if name in ADDS_AN_AXIS:
            x = np.stack([x, np.roll(x, 1, 0), 1 - x], -1 if name == "vmap-last" else 0)
    return x


FORMULAS: dict[Any, Array] = {}  # results of the formula, which are independent of the lowering


def check_nested(every: list[tuple[str, ...]], *, whole: bool) -> None:
    """Check nested transforms, compiled together; the formula is computed once for both lowerings."""
    new = [names for names in every if (names, whole) not in FORMULAS]

    def run(ours: list[Any], formulas: list[Any]) -> Any:
        return [
            [nested(calls(which, names, whole), names)(x) for names, x in zip(of, given, strict=True)]
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
    inner = some(list(TRANSFORMS), 18 if (outer, lowering) == ("grad", "custom-calls") else 6)
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
