"""Axes of tensors as kernels walk them: as few as the strides allow, the innermost first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Axes:
    """Sizes of axes, innermost first, and for each tensor its strides along them, in elements.

    There is always one axis at least; one of size 1 stands for none.
    """

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def furthest(self) -> int:
        """The highest offset that any of the tensors is looked at with."""
        return max(
            sum((size - 1) * abs(stride) for size, stride in zip(self.sizes, strides, strict=True))
            for strides in self.strides
        )


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]], *, keep_order: bool = False) -> Axes:
    """Merge axes that every tensor steps through as through one.

    >>> collapse((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
    Axes(sizes=(12, 2), strides=((1, 12), (1, 0)))

    Axes of size 1 go. The first tensor's steps decide which is inner, unless the axes must keep their order, as where
    indices are counted in it.
    """
    axes = [(size, tuple(along)) for size, along in zip(shape, zip(*strides, strict=True), strict=True) if size != 1]
    if not keep_order:
        axes.sort(key=lambda axis: [abs(step) for step in axis[1]], reverse=True)
    merged: list[tuple[int, tuple[int, ...]]] = []
    for size, steps in reversed(axes):
        if merged:
            inner_size, inner = merged[-1]
            if all(step == along * inner_size for step, along in zip(steps, inner, strict=True)):
                merged[-1] = (size * inner_size, inner)
                continue
        merged.append((size, steps))
    if not merged:
        merged.append((1, (0,) * len(strides)))
    return Axes(tuple(size for size, _ in merged), tuple(zip(*(steps for _, steps in merged), strict=True)))
