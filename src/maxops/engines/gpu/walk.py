"""Offsets and tiles inside kernels."""

# ruff: noqa: N803, RET505 - constants of a kernel are in capitals, and its branches on them are told apart by else
# Kernels are in Triton's language, which has no types of Python's.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

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
def spread(kept, reduced, ACROSS: tl.constexpr):
    """Kept elements and reduced ones along the two axes of a tile; with ACROSS the kept ones are the inner."""
    if ACROSS:
        return kept[None, :], reduced[:, None]
    else:
        return kept[:, None], reduced[None, :]
