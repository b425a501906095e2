"""SegmentMax: every pair of values in segments of every length, at every position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input, Trial
from maxops.conformance.cases.family import ask, compute, is_quick, rows, stored
from maxops.conformance.cases.pairs import SAMPLE, Which, bands, between, lowest_alone, meanings, repeated
from maxops.conformance.cases.reduce_max import along, how_quick
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.spec import Spec

Layout = Literal["segments of a vector", "columns of a segment"]
LAYOUTS: tuple[Layout, ...] = ("segments of a vector", "columns of a segment")


def cases() -> Iterator[Case]:
    """Yield the cases that test the values of SegmentMax."""
    for row in rows("SegmentMax"):
        for dtype in stored(row):
            plain = pool.distinct(dtype, (5,)), np.array([0, 0, 1, 1, 1], np.int64)
            sentence = "a short vector in two segments"
            yield from compute("T", sentence, segments(row, dtype), plain, quick="each type and row")
            for layout in LAYOUTS:
                yield from _of_layout(row, dtype, layout)
            yield from _below_zero(row, dtype)


def _of_layout(row: Spec, dtype: DType, layout: Layout) -> Iterator[Case]:
    for which, meaning, words in (*meanings(dtype), lowest_alone(dtype)):
        if which == "lowest":
            for mode in ("ZERO", "LOWEST"):
                make = partial(_along, row, dtype, which, layout, range(1, 131), mode)
                sentence = f"{layout} of {words}, of lengths 1 to 130, {mode}"
                yield from ask(row, meaning, dtype, sentence, make)
            continue
        sentence = f"{layout} with {words}, one among copies of the other"
        quick = how_quick(dtype, which, first=layout == LAYOUTS[0])
        if is_quick(row, dtype, quick):  # a full run has these lengths below
            sample = partial(_along, row, dtype, which, layout, SAMPLE)
            yield from ask(row, meaning, dtype, f"{sentence}, a sample of lengths 1 to 130", sample, quick=quick)
        for lengths in bands(1 if which == "zeros" else 3):
            make = partial(_along, row, dtype, which, layout, lengths)
            yield from ask(row, meaning, dtype, f"{sentence} at each place, {between(lengths)}", make)


def segments(
    row: Spec,
    dtype: DType,
    mode: str | None = "ZERO",
    rank: int = 1,
    *,
    ids: DType | Array = dtypes.INT64,
    number: DType | Array | None = None,
) -> Call:
    """Return a call of SegmentMax of any sizes. Ids and num_segments are inputs of a given type, or constant arrays."""
    inputs = [Input("data", dtype, (None,) * rank), _index("segment_ids", ids, (None,))]
    if number is not None:
        inputs.append(_index("num_segments", number, ()))
    attributes: tuple[tuple[str, Any], ...] = () if mode is None else (("fill_mode", mode),)
    return Call(row, tuple(inputs), attributes, rank)


def _index(name: str, given: DType | Array, dims: tuple[int | None, ...]) -> Input:
    if isinstance(given, DType):
        return Input(name, given, dims)
    dtype = dtypes.of(given.dtype)
    assert dtype is not None
    return Input(name, dtype, given.shape, given)


def _along(row: Spec, dtype: DType, which: Which, layout: Layout, lengths: Sequence[int], mode: str = "ZERO") -> Trial:
    is_flat = layout == "segments of a vector"

    def laid(array: Array) -> list[tuple[Feed, Any]]:
        count, length = array.shape
        if is_flat:
            return [((array.reshape(-1), np.repeat(np.arange(count), length)), ...)]
        return [((np.ascontiguousarray(array.T), np.zeros(length, np.int64)), np.newaxis)]

    return along(repeated(dtype, which), segments(row, dtype, mode, 1 if is_flat else 2), lengths, laid)


def _below_zero(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases with values below the fill value, which only empty segments get."""
    if dtype.kind == "uint":
        return
    data = np.array([-3, -7, -1, -2, -128], dtype.numpy)
    ids = np.array([0, 0, 2, 2, 3], np.int64)
    for mode in ("ZERO", "LOWEST"):
        call = segments(row, dtype, mode)
        yield from compute("value", f"segments below zero, {mode}", call, (data, ids), quick=mode == "ZERO")
