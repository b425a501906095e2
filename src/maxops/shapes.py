"""Compute the shapes of results. Rules that differ between standards are parameters of the functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

Shape = tuple[int, ...]
Size = TypeVar("Size")


class MismatchError(Exception):
    """An input does not broadcast with the inputs before it. `axis` is negative, and counts from the last axis."""

    number: int
    axis: int
    size: int
    other: int

    def __init__(self, number: int, axis: int, size: int, other: int) -> None:
        super().__init__(f"input {number} has size {size} along axis {axis}, expected {other}")
        self.number, self.axis, self.size, self.other = number, axis, size, other


def broadcast(shapes: Sequence[Shape], *, zero_with_one: bool = True) -> Shape:
    """Broadcast shapes by NumPy's rule. If `zero_with_one` is False, size 0 does not broadcast with size 1.

    >>> broadcast([(2, 1), (3,)])
    (2, 3)
    """
    rank = max(map(len, shapes))
    result = [1] * rank
    ones: set[int] = set()
    for number, shape in enumerate(shapes):
        for axis, size in enumerate((1,) * (rank - len(shape)) + shape):
            other = result[axis]
            differ = size != other and 1 not in (size, other)
            zero_and_one = size != other and 0 in (size, other) and (size == 1 or axis in ones)
            if differ or (zero_and_one and not zero_with_one):
                raise MismatchError(number, axis - rank, size, 1 if axis in ones and not differ else other)
            if size == 1:
                ones.add(axis)
            else:
                result[axis] = size
    return tuple(result)


def reduced(shape: Sequence[Size], axes: Collection[int], *, keepdims: bool) -> tuple[Size | int, ...]:
    """Return the shape after a reduction along `axes`, each in 0..r-1. Sizes may be names or symbols.

    >>> reduced((2, 3, 4), [1], keepdims=True), reduced((2, 3, 4), [1], keepdims=False)
    ((2, 1, 4), (2, 4))
    """
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def is_empty_along(shape: Shape, axis: int | Sequence[int] | None) -> bool:
    """Return whether one of the given axes (None: all axes) has size 0. NumPy and JAX define no maximum in that case.

    >>> is_empty_along((0, 3), 0), is_empty_along((0, 3), -1), is_empty_along((0, 0), 1)
    (True, False, True)
    """
    named = range(len(shape)) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    return any(size == 0 and (at in named or at - len(shape) in named) for at, size in enumerate(shape))
