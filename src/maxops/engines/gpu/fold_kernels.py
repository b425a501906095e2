"""The kernel of Max: one pass over several tensors that broadcast together."""

# ruff: noqa: N803 - constants of a kernel are in capitals, and its branches on them are told apart by else
# Kernels are in Triton's language, which has no types of Python's.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

from maxops.engines.gpu.order import bits_of, keys
from maxops.engines.gpu.walk import offset


@triton.jit
def fold(
    inputs,
    out,
    sizes,
    strides,
    out_strides,
    rows,
    columns,
    scalar,
    FORMAT: tl.constexpr,
    HAS_SCALAR: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Max of `inputs` into `out`, a tile per program. Strides are the column's, then those of the axes of rows."""
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    across = tl.cdiv(columns, COLUMNS)
    row = program // across * ROWS + tl.arange(0, ROWS)
    column = program % across * COLUMNS + tl.arange(0, COLUMNS)
    # Only tiles at the edge are masked: a mask whose end is not a multiple of 16 would split every load.
    whole = (program // across + 1) * ROWS <= rows
    whole = whole & ((program % across + 1) * COLUMNS <= columns)
    if whole:
        _fold_tile(inputs, out, sizes, strides, out_strides, row, column, scalar, None, FORMAT, HAS_SCALAR)
    else:
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        _fold_tile(inputs, out, sizes, strides, out_strides, row, column, scalar, inside, FORMAT, HAS_SCALAR)


@triton.jit
def _fold_tile(
    inputs,
    out,
    sizes,
    strides,
    out_strides,
    row,
    column,
    scalar,
    inside,
    FORMAT: tl.constexpr,
    HAS_SCALAR: tl.constexpr,
):
    position = offset(row, sizes, strides[0][1:])[:, None] + column[None, :] * strides[0][0]
    best = keys(tl.load(inputs[0] + position, mask=inside), FORMAT)
    for number in tl.static_range(1, len(inputs)):
        position = offset(row, sizes, strides[number][1:])[:, None] + column[None, :] * strides[number][0]
        best = tl.maximum(best, keys(tl.load(inputs[number] + position, mask=inside), FORMAT))
    if HAS_SCALAR:
        best = tl.maximum(best, tl.full(best.shape, scalar, best.dtype))
    position = offset(row, sizes, out_strides[1:])[:, None] + column[None, :] * out_strides[0]
    tl.store(out + position, bits_of(best, FORMAT, out.dtype.element_ty), mask=inside)
