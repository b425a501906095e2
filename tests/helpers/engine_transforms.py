"""Calls that test the transforms of torch and JAX with every set of mapped arguments, and with derivatives.

Mapped calls are compared with a loop over NumPy arrays. Derivatives are compared with the derivatives of an equivalent
formula, which uses only the framework's own operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import maxops as mo
from helpers.bits import mixed
from maxops.dtypes import DType
from maxops.engines.base import as_tuple
from maxops.plan import Array

Function = Callable[..., Any]
Shapes = tuple[Any, ...]
ALL: dict[str, Any] = {"return_indices": True, "return_empty": True}

# ---------------------------------------------------------------------------------------- vmap of each argument

ROWS = 4
IDS = {
    "sorted": [[0, 0, 2, 4], [1, 1, 1, 1], [0, 2, 3, 3], [2, 3, 3, 3]],
    "any": [[4, 0, 2, 0], [1, 3, 1, 1], [3, 2, 3, 0], [0, 0, 4, 4]],
    "dropped": [[4, -1, 2, 9], [1, 3, -5, 1], [7, 7, 7, 7], [0, 0, 4, 4]],
    "offsets": [[0, 1, 1, 4], [0, 0, 0, 4], [0, 4, 4, 4], [0, 1, 2, 4]],
}

# The calls by name, with the shape of each argument or, for ids and offsets, a name in IDS.
MAPPED: dict[str, tuple[Function, Shapes]] = {
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


class Trial(NamedTuple):
    """A function, the mapped axis of each of its arguments, the arguments, and a loop that computes the results."""

    function: Function
    axes: tuple[int | None, ...]
    arguments: list[Array]
    expected: Function


def argument(shape: Any, sizes: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Return an argument of a call, with leading batch axes."""
    if isinstance(shape, str):
        ids = np.resize(np.array(IDS[shape]), (*sizes, len(IDS[shape][0])))
        return ids.astype((np.int64, np.int32)[seed % 2])
    return mixed(dtype, (*sizes, *shape), seed, nans=0.2)


def loop(function: Function, axes: tuple[int | None, ...]) -> Function:
    """Return a loop over NumPy arrays that is equivalent to vmap."""

    def mapped(*arguments: Any) -> tuple[Any, ...]:
        size = next(a.shape[axis] for a, axis in zip(arguments, axes, strict=True) if axis is not None)
        members = [
            as_tuple(
                function(*(a if axis is None else np.take(a, k, axis) for a, axis in zip(arguments, axes, strict=True)))
            )
            for k in range(size)
        ]
        return tuple(map(np.stack, zip(*members, strict=True)))

    return mapped


def mapped(function: Function, shapes: Shapes, dtypes: tuple[DType, ...], *, same_ids: bool = False) -> Iterator[Trial]:
    """Yield every set of mapped arguments, and every position of the mapped axis in each. `same_ids` are not mapped."""
    choices = [
        [None] if same_ids and isinstance(shape, str) else [None, 0, -1] if shape == () else [None, 0, 1, -1]
        for shape in shapes
    ]
    for number, axes in enumerate(product(*choices)):
        if set(axes) == {None}:
            continue
        size = (3, 1)[number % 5 == 4]
        arguments = [
            argument(shape, () if axis is None else (size,), dtypes[number % len(dtypes)], seed)
            for seed, (shape, axis) in enumerate(zip(shapes, axes, strict=True), number)
        ]
        moved = [a if axis is None else np.moveaxis(a, 0, axis) for a, axis in zip(arguments, axes, strict=True)]
        yield Trial(function, axes, moved, loop(function, axes))


def mapped_twice(
    vmap: Function, function: Function, shapes: Shapes, dtypes: tuple[DType, ...], *, same_ids: bool = False
) -> Iterator[Trial]:
    """Yield trials with each argument mapped by the outer `vmap`, the inner one, both or neither."""
    pairs = [(0, None), (None, -1), (-1, 0), (None, None)]
    choices = [pairs[-1:] if same_ids and isinstance(shape, str) else pairs for shape in shapes]
    for number, axes in enumerate(product(*choices)):
        outer, inner = tuple(axis for axis, _ in axes), tuple(axis for _, axis in axes)
        if set(outer) == {None} or set(inner) == {None}:
            continue
        arguments = []
        for seed, (shape, (out, into)) in enumerate(zip(shapes, axes, strict=True), number):
            sizes = (2,) * (out is not None) + (3,) * (into is not None)
            value = argument(shape, sizes, dtypes[number % len(dtypes)], seed)
            if into is not None:
                value = np.moveaxis(value, len(sizes) - 1, value.ndim - 1 if into else len(sizes) - 1)
            arguments.append(value if out is None else np.moveaxis(value, 0, out))
        yield Trial(vmap(function, inner), outer, arguments, loop(loop(function, inner), outer))


# ------------------------------------------------------------------------------------------- shares of many ties

# Calls on arrays of ones, with more tied elements than a 16-bit float can count, and with broadcasting.
HALF_CALLS: dict[str, tuple[tuple[int, ...], Function]] = {
    "maximum": ((5, 2), lambda x, ties: mo.maximum(*(x[k] for k in range(5)), ties=ties)),
    "broadcast": ((3, 70_000), lambda x, ties: mo.maximum(x[0], x[1][:1], x[2][0], ties=ties)),
    "reduce": ((3, 70_000), lambda x, ties: mo.reduce_max(x, ties=ties)),
    "reduce-last": ((3, 70_000), lambda x, ties: mo.reduce_max(x, 1, ties=ties)),
    "sorted": ((4_100, 2), lambda x, ties: mo.segment_max(x, np.zeros(4_100, int), 2, fill_mode="ZERO", ties=ties)),
    "any": (
        (4_100, 2),
        lambda x, ties: mo.segment_max(x, np.arange(4_100) % 2, 2, sorted=False, fill_mode="ZERO", ties=ties),
    ),
    "offsets": ((4_100, 2), lambda x, ties: mo.segment_max(x, offsets=np.array([0, 4_100]), initial=1, ties=ties)),
    "reduce-initial": ((4_100, 2), lambda x, ties: mo.reduce_max(x, 0, initial=1, ties=ties)),
}
# float32 and float64 can count all elements of these shapes.
HALF_TYPES = [("float16", "even"), ("bfloat16", "even"), ("float16", "first")]


# ------------------------------------------------------------------------------------------ nested transforms

# Values with ties of two and of four elements, so that even shares are exact.
X = np.array([[3.0, 1.0, 3.0], [1.0, 5.0, -1.0], [2.0, 5.0, 0.0], [2.0, 4.0, 6.0]])


def paired(xp: Any, give: Callable[[Array], Any], stop: Callable[[Any], Any]) -> dict[str, tuple[Function, Function]]:
    """Return pairs of equivalent functions, of maxops and of a framework, that take a (4, 3) array and `ties`.

    `give` converts NumPy arrays to those of the framework `xp`, and `stop` makes an array a constant.
    """
    row, rows_of = give(np.array([2.0, 5.0, -2.0])), give(np.arange(4))
    ids, mixed_ids, bounds = (give(np.array(each)) for each in ([0, 0, 2, 2], [2, -1, 2, 0], [0, 1, 1, 4]))

    def held(elements: Any, mask: Any, axis: int, ties: str, start: Any = -np.inf, empty: float = -np.inf) -> Any:
        """Return the maxima of the masked elements along an axis, and their indices.

        Each maximum is a constant, to which the elements that are equal to it add their derivatives.
        """
        fixed = stop(elements if mask is None else xp.where(mask, elements, -np.inf))
        top = xp.amax(fixed, axis, keepdims=True)
        holds = (fixed == top) & (top >= start) & (top > -np.inf)
        first = holds & (holds.cumsum(axis) == 1)
        count = xp.sum(holds, axis, keepdims=True)
        share = holds / xp.where(count == 0, 1, count) if ties == "even" else xp.where(first, 1.0, 0.0)
        moved = (xp.where(holds, elements - stop(elements), 0) * share).sum(axis)
        top = top.squeeze(axis)
        high = xp.where(top == -np.inf, empty, top)
        places = xp.arange(elements.shape[axis]).reshape([-1] + [1] * (elements.ndim - axis - 1))
        index = xp.where(first, places, 0).sum(axis) - xp.where(first.any(axis), 0, 1)
        return xp.where(high > start, high, start) + moved, index

    def in_segments(x: Any, ids: Any, count: int, **how: Any) -> Any:
        mask = (ids[None] == xp.arange(count)[:, None])[..., None]
        return held(xp.broadcast_to(x, (count, *x.shape)), mask, 1, **how)

    def both(pair: Any) -> Any:
        """Combine a value and an index in one array."""
        value, index = pair
        return value + index / 8

    def own_ids(x: Any) -> Any:
        """Return ids that depend on the values of the rows, and therefore differ between members of a batch."""
        return xp.where(x[:, 0] > 1.5, 1, 0)

    def own_offsets(x: Any) -> Any:
        """Return offsets that depend on the values, and therefore differ between members of a batch."""
        count = own_ids(x).sum()
        return xp.stack([count * 0, count, count * 0 + 4])

    def of_maximum(*arrays: Any, ties: str) -> Any:
        whole = [xp.broadcast_to(array, (4, 3)) for array in arrays]
        return held(xp.stack(whole), None, 0, ties)[0]

    def places_of(function: Function) -> Function:
        return lambda *arrays, **options: both(function(*arrays, return_indices=True, **options))

    reduced, segments = places_of(mo.reduce_max), places_of(mo.segment_max)
    drop: dict[str, Any] = {"sorted": False, "out_of_range": "drop"}
    return {
        "maximum": (
            lambda x, ties: mo.maximum(x, row, 2.0 * x[:1], 0.5, ties=ties),
            lambda x, ties: of_maximum(x, row, 2.0 * x[:1], give(np.array(0.5)), ties=ties),
        ),
        "reduce": (
            lambda x, ties: reduced(x, 0, keepdims=False, ties=ties),
            lambda x, ties: both(held(x, None, 0, ties)),
        ),
        "reduce-initial": (
            lambda x, ties: reduced(x, -1, keepdims=True, initial=3.0, ties=ties),
            lambda x, ties: both(held(x, None, 1, ties, start=3.0))[:, None],
        ),
        "reduce-own-initial": (
            lambda x, ties: reduced(x, 1, keepdims=False, initial=x[0, 0], ties=ties),
            lambda x, ties: both(held(x, None, 1, ties, start=stop(x[0, 0]))),
        ),
        "segments-own-ids": (
            lambda x, ties: segments(x, own_ids(x), 3, fill_mode="ZERO", sorted=False, ties=ties),
            lambda x, ties: both(in_segments(x, own_ids(x), 3, ties=ties, empty=0.0)),
        ),
        "own-offsets": (
            lambda x, ties: segments(x, offsets=own_offsets(x), initial=x[1, 1], ties=ties),
            lambda x, ties: both(
                in_segments(x, xp.where(rows_of >= own_offsets(x)[1], 1, 0), 2, ties=ties, start=stop(x[1, 1]))
            ),
        ),
        "reduce-all": (
            lambda x, ties: reduced(x, ties=ties),
            lambda x, ties: both(held(x.reshape(12), None, 0, ties)).reshape(1, 1),
        ),
        "noop": (lambda x, ties: mo.reduce_max(x, noop_with_empty_axes=True, ties=ties), lambda x, ties: x * 1),
        "segments": (
            lambda x, ties: segments(x, ids, 4, fill_mode="ZERO", ties=ties),
            lambda x, ties: both(in_segments(x, ids, 4, ties=ties, empty=0.0)),
        ),
        "segments-dropped": (
            lambda x, ties: segments(x, mixed_ids, 3, initial=2.5, ties=ties, **drop),
            lambda x, ties: both(in_segments(x, mixed_ids, 3, ties=ties, start=2.5)),
        ),
        "offsets": (
            lambda x, ties: segments(x, offsets=bounds, fill_value=-7.0, ties=ties),
            lambda x, ties: both(in_segments(x, give(np.array([0, 2, 2, 2])), 3, ties=ties, empty=-7.0)),
        ),
    }


def squares(function: Function) -> Function:
    """Return a function whose result is a scalar, and whose second derivatives are not all zero."""
    return lambda x: (function(x) ** 2).sum()


def nested(transforms: dict[str, Callable[[Function], Function]], function: Function, names: tuple[str, ...]) -> Any:
    """Apply transforms to a function. The first one is the innermost."""
    for name in names:
        function = transforms[name](function)
    return function


def batched(names: tuple[str, ...]) -> Array:
    """Return an array with a batch axis for each transform that maps a function."""
    x = X
    for name in names:
        if name in ("vmap", "vmap-last", "map"):
            x = np.stack([x, np.roll(x, 1, 0), 1 - x], -1 if name == "vmap-last" else 0)
    return x
