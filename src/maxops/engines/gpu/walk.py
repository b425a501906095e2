"""Offsets and tiles inside kernels."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def offset(number, sizes, strides):
    """The offset of an element by its number, through axes whose sizes and strides come innermost first."""
    found = number * 0
    for axis in tl.static_range(len(sizes) - 1):
        outer = number // sizes[axis]
        found += (number - outer * sizes[axis]) * strides[axis]
        number = outer
    return found + number * strides[len(sizes) - 1]


@triton.jit
def spread(kept, reduced, ACROSS: tl.constexpr):  # noqa: N803
    """Kept elements and reduced ones along the two axes of a tile; with ACROSS the kept ones are the inner."""
    if ACROSS:
        return kept[None, :], reduced[:, None]
    else:
        return kept[:, None], reduced[None, :]
