"""Kernels of SegmentMax for ids in any order: atomic maxima of integer keys, which no order of arrival can change."""

# ruff: noqa: N803 - constants of a kernel are in capitals, and its branches on them are told apart by else
# Kernels are in Triton's language, which has no types of Python's.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

from maxops.engines.gpu.order import bits_of, keys


@triton.jit
def _lane(data, row_step, column_step, ids, ids_step, rows, width, count, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """The bits of a block of elements, their rows, their offsets in the result, and which have one."""
    kind: tl.constexpr = tl.int64 if WIDE else tl.int32
    element = tl.program_id(0).to(kind) * BLOCK + tl.arange(0, BLOCK)
    row = element // width
    column = element - row * width
    there = row < rows
    segment = tl.load(ids + row * ids_step, mask=there, other=-1).to(tl.int64)
    there = there & (segment >= 0) & (segment < count)
    bits = tl.load(data + (row * row_step + column * column_step), mask=there, other=0)
    return bits, row, segment, segment * width + column, there, column == 0


@triton.jit
def scatter_keys(
    data,
    row_step,
    column_step,
    ids,
    ids_step,
    rows,
    width,
    count,
    work,
    seen,
    FORMAT: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Raise the keys in `work` to those of the data, and note in `seen` which segments have rows."""
    bits, _, segment, position, there, leads = _lane(
        data, row_step, column_step, ids, ids_step, rows, width, count, WIDE, BLOCK
    )
    tl.atomic_max(work + position, keys(bits, FORMAT), mask=there, sem="relaxed")
    tl.store(seen + segment, tl.full((BLOCK,), 1, tl.int8), mask=there & leads)


@triton.jit
def scatter_indices(
    data,
    row_step,
    column_step,
    ids,
    ids_step,
    rows,
    width,
    count,
    work,
    indices,
    FORMAT: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Lower `indices` to the first rows that hold the keys in `work`."""
    bits, row, _, position, there, _ = _lane(
        data, row_step, column_step, ids, ids_step, rows, width, count, WIDE, BLOCK
    )
    holds = there & (tl.load(work + position, mask=there, other=0) == keys(bits, FORMAT))
    tl.atomic_min(indices + position, row.to(tl.int64), mask=holds, sem="relaxed")


@triton.jit
def finish(
    work,
    seen,
    indices,
    constant,
    out,
    total,
    width,
    FORMAT: tl.constexpr,
    NOWHERE: tl.constexpr,
    INDICES: tl.constexpr,
    HAS_INITIAL: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Bits of the keys in `work`, with `initial` or what empty segments hold; indices without a row become -1."""
    kind: tl.constexpr = tl.int64 if WIDE else tl.int32
    k = tl.program_id(0).to(kind) * BLOCK + tl.arange(0, BLOCK)
    top = tl.load(work + k, mask=k < total, other=0)
    other = tl.full((BLOCK,), constant, top.dtype)
    if INDICES:
        where = tl.load(indices + k, mask=k < total, other=0)
        where = tl.where(where == NOWHERE, -1, where)
        if HAS_INITIAL:
            where = tl.where(other > top, -1, where)
        tl.store(indices + k, where, mask=k < total)
    if HAS_INITIAL:
        top = tl.maximum(top, other)
    else:
        top = tl.where(tl.load(seen + k // width, mask=k < total, other=0) == 0, other, top)
    tl.store(out + k, bits_of(top, FORMAT, out.dtype.element_ty), mask=k < total)
