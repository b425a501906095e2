"""The kernel of ReduceMax: tiles of kept by reduced elements, for rows, columns and everything between."""

# ruff: noqa: N803, RET505 - constants of a kernel are in capitals, and its branches on them are told apart by else
# Kernels are in Triton's language, which has no types of Python's.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

from maxops.engines.gpu.order import bits_of, keys
from maxops.engines.gpu.walk import offset, spread


@triton.jit
def reduce(
    data,
    indices,
    out,
    out_indices,
    kept_sizes,
    kept_strides,
    out_strides,
    reduced_sizes,
    reduced_strides,
    kept,
    length,
    share,
    initial,
    FORMAT: tl.constexpr,
    OUT_FORMAT: tl.constexpr,
    LOWEST: tl.constexpr,
    NOWHERE: tl.constexpr,
    INDICES: tl.constexpr,
    HAS_INDICES: tl.constexpr,
    HAS_INITIAL: tl.constexpr,
    WIDE: tl.constexpr,
    ACROSS: tl.constexpr,
    KEPT: tl.constexpr,
    REDUCED: tl.constexpr,
):
    """Reduce one share of the reduced elements for KEPT of the kept ones; `out` has one line for each share.

    ACROSS: kept elements lie side by side in memory, and are the tile's inner axis. `indices`, if there, says where
    the keys that an earlier pass left were found; NOWHERE is past every index.
    """
    program = tl.program_id(0)
    line = tl.program_id(1)
    if WIDE:
        program = program.to(tl.int64)
        line = line.to(tl.int64)
    k = program * KEPT + tl.arange(0, KEPT)
    begin = line * share
    end = tl.minimum(begin + share, length)
    whole = begin + (end - begin) // REDUCED * REDUCED
    axis: tl.constexpr = 0 if ACROSS else 1
    start = offset(k, kept_sizes, kept_strides)
    best = keys(tl.full((REDUCED, KEPT) if ACROSS else (KEPT, REDUCED), LOWEST, data.dtype.element_ty), FORMAT)
    found = tl.full(best.shape, NOWHERE, tl.int64 if WIDE else tl.int32)
    # Whole tiles go without a mask along the reduced axis, which would split their loads; the rest comes after.
    for at in range(begin, whole, REDUCED):
        r = at + tl.arange(0, REDUCED)
        from_kept, from_reduced = spread(start, offset(r, reduced_sizes, reduced_strides), ACROSS)
        inside, number = spread(k < kept, r, ACROSS)
        position = from_kept + from_reduced
        key = keys(tl.load(data + position, mask=inside, other=LOWEST), FORMAT)
        if HAS_INDICES:
            number = tl.load(indices + position, mask=inside, other=-1).to(found.dtype)
            number = tl.where(number < 0, NOWHERE, number)
        best, found = better(best, found, key, number, INDICES)
    if whole < end:
        r = whole + tl.arange(0, REDUCED)
        from_kept, from_reduced = spread(start, offset(r, reduced_sizes, reduced_strides), ACROSS)
        inside, number = spread(k < kept, r, ACROSS)
        inside = inside & (number < end)
        position = from_kept + from_reduced
        key = keys(tl.load(data + position, mask=inside, other=LOWEST), FORMAT)
        if HAS_INDICES:
            number = tl.load(indices + position, mask=inside, other=-1).to(found.dtype)
        best, found = better(best, found, key, tl.where(inside & (number >= 0), number, NOWHERE), INDICES)
    top, where = first_best(best, found, axis, NOWHERE, INDICES)
    if HAS_INITIAL:
        first = tl.full(top.shape, initial, top.dtype)
        where = tl.where(first > top, -1, where)
        top = tl.maximum(top, first)
    position = line * kept + offset(k, kept_sizes, out_strides)
    tl.store(out + position, bits_of(top, OUT_FORMAT, out.dtype.element_ty), mask=k < kept)
    if INDICES:
        tl.store(out_indices + position, where.to(tl.int64), mask=k < kept)


@triton.jit
def better(best, best_index, key, index, INDICES: tl.constexpr):
    """The higher of two keys, and with INDICES its index: of equal ones the first."""
    if INDICES:
        take = (key > best) | ((key == best) & (index < best_index))
        return tl.where(take, key, best), tl.where(take, index, best_index)
    else:
        return tl.maximum(best, key), best_index


@triton.jit
def first_best(best, found, axis: tl.constexpr, NOWHERE: tl.constexpr, INDICES: tl.constexpr):
    """The highest keys along an axis of a tile, and with INDICES their first indices, or -1."""
    top = tl.max(best, axis)
    if INDICES:
        where = tl.min(tl.where(best == tl.expand_dims(top, axis), found, NOWHERE), axis)
        return top, tl.where(where == NOWHERE, -1, where)
    else:
        return top, top
