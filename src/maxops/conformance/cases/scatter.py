"""ScatterElements and ScatterND with the reduction "max": pairs of values, indices of every kind, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input
from maxops.conformance.cases.family import Quick, compute, refuse, rows, stored, subsampled
from maxops.conformance.cases.pairs import meanings, pairs
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.shapes import Shape
from maxops.spec import SCATTERS, Spec


def cases() -> Iterator[Case]:
    """Yield the cases of both operators."""
    for operator in SCATTERS:
        for row in rows(operator):
            for dtype in stored(row):
                yield from _values(row, dtype)
                yield from subsampled(row, dtype, _elements(row, dtype) if row.has("axis") else _slices(row, dtype))
            yield from _refusals(row)


def scattering(
    row: Spec,
    dtype: DType,
    ranks: tuple[int, int, int] = (1, 1, 1),
    *,
    index: DType = dtypes.INT64,
    axis: int | None = None,
) -> Call:
    """Return a call of any sizes, with these ranks of data, indices and updates."""
    names = zip(("data", "indices", "updates"), (dtype, index, dtype), ranks, strict=True)
    attributes: tuple[tuple[str, Any], ...] = () if axis is None else (("axis", axis),)
    inputs = tuple(Input(name, each, (None,) * rank) for name, each, rank in names)
    return Call(row, inputs, (*attributes, ("reduction", "max")), ranks[0])


def _vector(row: Spec, dtype: DType) -> Call:
    """Return a call that updates elements of a vector. ScatterND has indices with one more axis."""
    return scattering(row, dtype, (1, 1 if row.has("axis") else 2, 1))


def _at(row: Spec, data: Array, places: list[int] | Array, updates: Array) -> Feed:
    """Return a feed that updates elements of a vector."""
    indices = np.array(places, np.int64)
    return data, indices if row.has("axis") else indices.reshape(-1, 1), updates


def _values(row: Spec, dtype: DType) -> Iterator[Case]:
    call = _vector(row, dtype)
    plain = _at(row, pool.distinct(dtype, (5,)), [3, 0], pool.distinct(dtype, (2,), 1))
    yield from compute("T", "two updates of a short vector", call, plain, quick="each type and row")
    for which, meaning, words in meanings(dtype):
        of = pairs(dtype, which)
        quick: Quick = "each type"
        single = _at(row, of.u, np.arange(len(of)), of.v)
        yield from compute(meaning, f"an element and its update, {words}", call, single, quick=quick)
        low = np.full(len(of), pool.of_words(dtype, [dtype.lowest_bits])[0], dtype.numpy)
        twice = _at(row, low, np.tile(np.arange(len(of)), 2), np.concatenate([of.u, of.v]))
        yield from compute(meaning, f"two updates of one element, {words}", call, twice)
    data = np.concatenate([pool.ordinary(dtype), pool.nans(dtype)])
    kept = _at(row, data, [0], data[:1])
    yield from compute("copy", "elements without updates, of every kind", call, kept, quick=True)


def _elements(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases of ScatterElements: axes, types of indices, negative indices, and indices smaller than data."""
    whole: Shape = (3, 4, 2)
    for meaning, words, shape, axis, index in (
        ("axis", "the first axis by default", (5, 4, 2), None, dtypes.INT64),
        ("axis", "axis 1", (3, 7, 2), 1, dtypes.INT64),
        ("axis", "axis -1", (3, 4, 5), -1, dtypes.INT64),
        ("T_IDX", "int32 indices", (5, 4, 2), 0, dtypes.INT32),
        ("indices.shape", "indices of the rank of data", (2, 4, 2), 0, dtypes.INT64),
        ("indices.size", "indices smaller than data", (2, 1, 1), 0, dtypes.INT64),
        ("updates.shape", "one update", (1, 1, 1), 0, dtypes.INT64),
        ("shape", "no indices", (0, 4, 2), 0, dtypes.INT64),
        ("inputs", "three inputs", (2, 4, 2), 0, dtypes.INT64),
        ("reduction", "the reduction max", (2, 4, 2), 0, dtypes.INT64),
    ):
        size = whole[0 if axis is None else axis]
        indices = (np.arange(int(np.prod(shape))).reshape(shape) * 5 % size).astype(index.numpy)
        call = scattering(row, dtype, (3, 3, 3), index=index, axis=axis)
        feed = pool.distinct(dtype, whole), indices, pool.distinct(dtype, shape, 2)
        yield from compute(meaning, words, call, feed, quick=True)
    yield from _places(row, dtype)


def _slices(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases of ScatterND: elements and slices, with indices of rank 1 to 3."""
    whole: Shape = (3, 4, 2)
    for meaning, words, outer, depth in (
        ("indices.shape", "slices of rank 2", (5,), 1),
        ("indices.shape", "slices of rank 1", (5,), 2),
        ("indices.shape", "single elements", (7,), 3),
        ("indices.shape", "one slice, of indices of rank 1", (), 1),
        ("updates.shape", "indices of rank 3", (2, 3), 2),
        ("shape", "no indices", (0,), 2),
        ("T_IDX", "int64 indices", (4,), 2),
        ("inputs", "three inputs", (4,), 1),
        ("reduction", "the reduction max", (4,), 3),
    ):
        numbers = np.arange(int(np.prod(outer)))
        places = [(numbers * 5 + axis) % size for axis, size in enumerate(whole[:depth])]
        indices = np.stack(places, axis=-1).reshape(*outer, depth)
        updates = pool.distinct(dtype, (*outer, *whole[depth:]), 2)
        call = scattering(row, dtype, (3, len(outer) + 1, updates.ndim))
        feed = pool.distinct(dtype, whole), indices, updates
        yield from compute(meaning, words, call, feed, quick=words != "slices of rank 1")
    yield from _places(row, dtype)


def _places(row: Spec, dtype: DType) -> Iterator[Case]:
    """Yield cases with indices into a vector. ONNX does not require the indices of ScatterND to be in range."""
    meaning = "indices" if row.has("axis") else "value"
    call, data = _vector(row, dtype), pool.distinct(dtype, (9,))
    for words, places in (
        ("indices from the start and from the end", [0, -1, 8, -9, 4]),
        ("one element many times", [4] * 40),
        ("one element by two indices", [-1, 8, 8, -1]),
        ("every element", list(range(9))),
    ):
        updates = pool.distinct(dtype, (len(places),), 3)
        is_quick = words.startswith("indices")
        yield from compute(meaning, words, call, _at(row, data, places, updates), quick=is_quick)
    matrix = scattering(row, dtype, (2, 2, 2) if row.has("axis") else (2, 2, 1))
    yield from compute("data", "a vector of one element", call, _at(row, data[:1], [0, 0], data[1:3]), quick=True)
    feed = data.reshape(3, 3), np.array([[0, 1]], np.int64), data[:2].reshape(1, 2) if row.has("axis") else data[:1]
    yield from compute("data", "a matrix", matrix, feed)


def _refusals(row: Spec) -> Iterator[Case]:
    dtype = dtypes.FLOAT32
    data, updates = pool.distinct(dtype, (5,)), pool.distinct(dtype, (2,), 1)
    call = _vector(row, dtype)
    good = _at(row, data, [3, 0], updates)
    for words, places in (
        ("an index past the end", [3, 5]),
        ("an index before the start", [-6, 0]),
        ("an index far past the end", [2**40, 0]),
        ("the lowest index there is", [-(2**63), 0]),
    ):
        quick = words in ("an index past the end", "an index before the start")
        yield from refuse("indices", words, call, _at(row, data, places, updates), quick=quick)
    for words, other in (("float64 updates", dtypes.FLOAT64), ("int32 updates", dtypes.INT32)):
        mixed = replace(call, inputs=(*call.inputs[:2], Input("updates", other, (None,))))
        yield from refuse("T", words, mixed, (*good[:2], pool.distinct(other, (2,))), quick=True)
    index = np.dtype(np.float32)
    floats = replace(call, inputs=(call.inputs[0], Input("indices", dtype, (None,) * good[1].ndim), call.inputs[2]))
    yield from refuse("T_IDX", "float32 indices", floats, (data, good[1].astype(index), updates), quick=True)
    yield from refuse("inputs", "no updates", replace(call, inputs=call.inputs[:2]), good[:2], quick=True)
    yield from refuse("updates.shape", "fewer updates than indices", call, (*good[:2], updates[:1]), quick=True)
    yield from refuse("updates.shape", "more updates than indices", call, (*good[:2], data[:3]))
    scalar = scattering(row, dtype, (0, 1, 1 if row.has("axis") else 0))
    nowhere = np.zeros((), np.float32), np.zeros(1 if row.has("axis") else (0,), np.int64)
    alone = updates[:1] if row.has("axis") else updates[0].reshape(())
    yield from refuse("data", "data a scalar", scalar, (*nowhere, alone), quick=True)
    if row.has("axis"):
        for axis in (1, -2):
            yield from refuse(
                "axis", f"axis {axis} of a vector", replace(scattering(row, dtype, axis=axis)), good, quick=True
            )
        flat = scattering(row, dtype, (1, 2, 2))
        feed = data, np.zeros((1, 2), np.int64), updates.reshape(1, 2)
        yield from refuse("indices.shape", "indices of another rank", flat, feed, quick=True)
        wide = scattering(row, dtype, (2, 2, 2))
        wider = data.reshape(5, 1), np.zeros((1, 2), np.int64), updates.reshape(1, 2)
        yield from refuse("indices.size", "indices wider than data", wide, wider, quick=True)
    else:
        deep = data, np.zeros((1, 2), np.int64), updates[:1]
        yield from refuse("indices.shape", "more axes than data has", call, deep, quick=True)
