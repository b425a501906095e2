"""Kernels on ids and offsets: the first that is wrong, and where each segment of sorted ids begins."""

# ruff: noqa: N803 - constants of a kernel are in capitals, and its branches on them are told apart by else
# Kernels are in Triton's language, which has no types of Python's.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def first_wrong(
    ids,
    step,
    length,
    count,
    wrong,
    NEGATIVE: tl.constexpr,
    PAST: tl.constexpr,
    SORTED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Lower `wrong` to the first position that holds what it must not: a negative, one of `count` or more, a fall."""
    position = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = tl.load(ids + position * step, mask=position < length, other=0)
    before = here
    if SORTED:
        before = tl.load(ids + (position - 1) * step, mask=(position > 0) & (position < length), other=0)
        before = tl.where(position > 0, before, here)
    _note_wrong(position, here, before, length, count, wrong, NEGATIVE, PAST, SORTED)


@triton.jit
def _note_wrong(
    position,
    here,
    before,
    length,
    count,
    wrong,
    NEGATIVE: tl.constexpr,
    PAST: tl.constexpr,
    SORTED: tl.constexpr,
):
    bad = position < 0
    if NEGATIVE:
        bad = bad | (here < 0)
    if PAST:
        bad = bad | (here.to(tl.int64) >= count)
    if SORTED:
        bad = bad | (here < before)
    first = tl.min(tl.where(bad & (position < length), position, length), 0)
    if first < length:
        tl.atomic_min(wrong, first, sem="relaxed")


@triton.jit
def bounds(
    ids,
    step,
    length,
    count,
    wrong,
    starts,
    CHECK: tl.constexpr,
    NEGATIVE: tl.constexpr,
    PAST: tl.constexpr,
    SHORT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write to `starts` where each of `count` segments of sorted ids begins, then where the last ends; check the ids.

    One pass: a position writes the starts of all segments past the id before it, up to its own. Ids that are not
    sorted leave starts unwritten, and nothing is written out of bounds.
    """
    position = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    own = tl.load(ids + position * step, mask=position < length, other=0)
    previous = tl.load(ids + (position - 1) * step, mask=(position > 0) & (position <= length), other=0)
    if CHECK:
        _note_wrong(position, own, tl.where(position > 0, previous, own), length, count, wrong, NEGATIVE, PAST, True)
    # Ids out of range are dropped: those below lie before segment 0, those past are a segment past the last.
    here = tl.minimum(tl.maximum(own.to(tl.int64), -1), count)
    here = tl.where(position < length, here, count)
    before = tl.minimum(tl.maximum(previous.to(tl.int64), -1), count)
    before = tl.where(position > 0, before, -1)
    gap = tl.where(position <= length, here - before, 0)
    kind = starts.dtype.element_ty
    for back in range(0, tl.minimum(tl.max(gap, 0), SHORT)):
        tl.store(starts + (here - back), position.to(kind), mask=back < gap)
    # A long gap, of which a block has few or the segments are mostly empty, is written by all lanes together.
    rest = gap - SHORT
    longest = tl.max(rest, 0)
    while longest > 0:
        at = tl.min(tl.where(rest == longest, position, length + 1), 0)
        first = tl.max(tl.where(position == at, before + 1, 0), 0)
        for begin in range(0, longest, BLOCK):
            number = begin + tl.arange(0, BLOCK)
            value = tl.full((BLOCK,), 0, tl.int64) + at
            tl.store(starts + (first + number), value.to(kind), mask=number < longest)
        rest = tl.where(position == at, 0, rest)
        longest = tl.max(rest, 0)
