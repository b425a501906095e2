"""Kernels of SegmentMax where each segment's rows lie together: each output is found by one program, without atomics.

A segment of more than two chunks would keep its program long after the others have ended. So the whole chunks inside
such segments are reduced first, each by programs of its own; what is left of any segment is short.
"""

# ruff: noqa: N803 - constants of a kernel are in capitals, and its branches on them are told apart by else
# Kernels are in Triton's language, which has no types of Python's.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

from maxops.engines.gpu.order import bits_of, keys
from maxops.engines.gpu.reduce_kernels import better, first_best
from maxops.engines.gpu.walk import spread


@triton.jit
def _rows_of(segment, starts, known, rows, mask, kind: tl.constexpr):
    """Where the rows of segments begin and end: within the data, whatever the starts hold."""
    mask = mask & (segment < known)
    begin = tl.load(starts + segment, mask=mask, other=0)
    end = tl.load(starts + segment + 1, mask=mask, other=0)
    begin = tl.minimum(tl.maximum(begin, 0), rows).to(kind)
    return begin, tl.maximum(tl.minimum(end, rows).to(kind), begin)


@triton.jit
def chunk_maxima(
    data,
    row_step,
    column_step,
    owners,
    starts,
    known,
    rows,
    width,
    part,
    part_indices,
    FORMAT: tl.constexpr,
    LOWEST: tl.constexpr,
    NOWHERE: tl.constexpr,
    INDICES: tl.constexpr,
    WIDE: tl.constexpr,
    ACROSS: tl.constexpr,
    KEPT: tl.constexpr,
    REDUCED: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """The keys of the maxima of whole chunks of rows that lie inside one long segment; other chunks are passed over."""
    kind: tl.constexpr = tl.int64 if WIDE else tl.int32
    blocks = tl.cdiv(width, KEPT)
    chunk = (tl.program_id(0) // blocks).to(kind)
    column = tl.program_id(0) % blocks * KEPT + tl.arange(0, KEPT)
    owner = tl.load(owners + chunk)
    begin, end = _rows_of(owner, starts, known, rows, owner >= 0, kind)
    if (begin <= chunk * CHUNK) & (end >= (chunk + 1) * CHUNK) & (end - begin > 2 * CHUNK):
        axis: tl.constexpr = 0 if ACROSS else 1
        best = keys(tl.full((REDUCED, KEPT) if ACROSS else (KEPT, REDUCED), LOWEST, data.dtype.element_ty), FORMAT)
        found = tl.full(best.shape, NOWHERE, kind)
        for at in range(0, CHUNK, REDUCED):
            row = chunk * CHUNK + at + tl.arange(0, REDUCED)
            from_column, from_row = spread(column.to(kind) * column_step, row * row_step, ACROSS)
            inside, number = spread(column < width, row, ACROSS)
            key = keys(tl.load(data + from_column + from_row, mask=inside, other=LOWEST), FORMAT)
            best, found = better(best, found, key, number, INDICES)
        top, where = first_best(best, found, axis, NOWHERE, INDICES)
        tl.store(part + chunk * width + column, top, mask=column < width)
        if INDICES:
            tl.store(part_indices + chunk * width + column, where.to(tl.int64), mask=column < width)


@triton.jit
def _with_parts(
    best,
    found,
    part,
    part_indices,
    first,
    chunks,
    column,
    width,
    one,
    LOWEST_KEY: tl.constexpr,
    NOWHERE: tl.constexpr,
    INDICES: tl.constexpr,
    ACROSS: tl.constexpr,
):
    """What was found so far, with what `chunk_maxima` left of the chunks from `first` on."""
    for at in range(0, tl.max(chunks, 0), one.shape[0]):
        limit, step = spread(chunks, at + one, ACROSS)
        origin, _ = spread(first, one, ACROSS)
        lane, _ = spread(column, one, ACROSS)
        inside = step < limit
        position = (origin + step) * width + lane
        key = tl.load(part + position, mask=inside, other=LOWEST_KEY)
        number = step
        if INDICES:
            number = tl.load(part_indices + position, mask=inside, other=0).to(found.dtype)
        best, found = better(best, found, key, tl.where(inside, number, NOWHERE), INDICES)
    return best, found


@triton.jit
def segments(
    data,
    row_step,
    column_step,
    starts,
    known,
    rows,
    count,
    width,
    part,
    part_indices,
    constant,
    out,
    out_indices,
    empty,
    FORMAT: tl.constexpr,
    LOWEST: tl.constexpr,
    LOWEST_KEY: tl.constexpr,
    NOWHERE: tl.constexpr,
    INDICES: tl.constexpr,
    HAS_INITIAL: tl.constexpr,
    CHUNKED: tl.constexpr,
    WIDE: tl.constexpr,
    ACROSS: tl.constexpr,
    KEPT: tl.constexpr,
    REDUCED: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """The maxima of KEPT outputs, each a column of a segment; `constant` is `initial`, or what empty segments hold."""
    kind: tl.constexpr = tl.int64 if WIDE else tl.int32
    k = tl.program_id(0).to(kind) * KEPT + tl.arange(0, KEPT)
    there = k < count * width
    segment = k // width
    column = k - segment * width
    begin, end = _rows_of(segment, starts, known, rows, there, kind)
    length = end - begin
    head = length
    skipped = length * 0
    first = length * 0
    if CHUNKED:
        first = (begin + CHUNK - 1) // CHUNK
        is_long = length > 2 * CHUNK
        head = tl.where(is_long, first * CHUNK - begin, length)
        skipped = tl.where(is_long, (end // CHUNK - first) * CHUNK, 0)
    axis: tl.constexpr = 0 if ACROSS else 1
    best = keys(tl.full((REDUCED, KEPT) if ACROSS else (KEPT, REDUCED), LOWEST, data.dtype.element_ty), FORMAT)
    found = tl.full(best.shape, NOWHERE, kind)
    one = tl.arange(0, REDUCED).to(kind)
    for at in range(0, tl.max(length - skipped, 0), REDUCED):
        limit, step = spread(length - skipped, at + one, ACROSS)
        early, _ = spread(head, one, ACROSS)
        late, _ = spread(skipped, one, ACROSS)
        origin, _ = spread(begin, one, ACROSS)
        lane, _ = spread(column * column_step, one, ACROSS)
        row = origin + step
        if CHUNKED:
            row += tl.where(step >= early, late, 0)
        inside = step < limit
        key = keys(tl.load(data + (row * row_step + lane), mask=inside, other=LOWEST), FORMAT)
        best, found = better(best, found, key, tl.where(inside, row, NOWHERE), INDICES)
    if CHUNKED:
        chunks = skipped // CHUNK
        best, found = _with_parts(
            best, found, part, part_indices, first, chunks, column, width, one, LOWEST_KEY, NOWHERE, INDICES, ACROSS
        )
    top, where = first_best(best, found, axis, NOWHERE, INDICES)
    other = tl.full(top.shape, constant, top.dtype)
    if HAS_INITIAL:
        where = tl.where(other > top, -1, where)
        top = tl.maximum(top, other)
    else:
        top = tl.where(length == 0, other, top)
    tl.store(out + k, bits_of(top, FORMAT, out.dtype.element_ty), mask=there)
    if INDICES:
        tl.store(out_indices + k, where.to(tl.int64), mask=there)
    tl.store(empty + segment, (length == 0).to(tl.int8), mask=there & (column == 0))
