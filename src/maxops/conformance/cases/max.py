"""Max: every pair of values in every lane, and many inputs in every order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Feed, Input, Trial
from maxops.conformance.cases.family import Quick, ask, compute, computed, is_current, is_quick, judges, rows, stored
from maxops.conformance.cases.pairs import SAMPLE, Pairs, Which, bands, between, meanings, pairs, tiled
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.spec import Spec

NAMES = "abcdefgh"
SPACING = 11  # a sample's short vectors start this many pairs apart; every value still occurs as u and as v


def cases() -> Iterator[Case]:
    """Yield the cases that test the values of Max."""
    for row in rows("Max"):
        for dtype in stored(row):
            yield from _of_type(row, dtype)
        for profile in judges(row)[1:]:
            if dtypes.REAL in profile.dtypes:
                yield from _real(row, profile)


def _of_type(row: Spec, dtype: DType) -> Iterator[Case]:
    plain = pool.distinct(dtype, (5,)), pool.distinct(dtype, (5,), 1)
    yield from compute("T", "two short vectors", call(row, dtype, 2), plain, quick="each type and row")
    for which, meaning, words in meanings(dtype):
        quick: Quick = "each type and row" if which == "value" else "each type"
        if is_quick(row, dtype, quick):  # a full run covers these lengths below
            sample = partial(_lanes, row, dtype, which, SAMPLE, True)
            yield from ask(row, meaning, dtype, f"{words}, a sample of lengths 1 to 130", sample, quick=quick)
        if row.broadcast == "none":  # a few lengths are enough for versions without broadcasting
            full = partial(_lanes, row, dtype, which, SAMPLE, False)
            yield from ask(row, meaning, dtype, f"{words} in each lane of some lengths 1 to 130", full)
        else:
            for lengths in bands(1 if which == "zeros" else 6 if is_current(row) else 3):
                full = partial(_lanes, row, dtype, which, lengths, False)
                yield from ask(row, meaning, dtype, f"{words} in each lane {between(lengths)}", full)
        for count in (8, 40):
            make = partial(_one_among, row, dtype, which, count)
            sentence = f"{words}, one value among {count - 1} copies of the other in each order"
            yield from ask(row, meaning, dtype, sentence, make)
        if which != "zeros":
            make = partial(_threes, row, dtype, which)
            yield from ask(row, meaning, dtype, f"{words.replace('pair', 'three')}, in each order", make)
    yield from compute("inputs", "one input", call(row, dtype, 1), (pool.ordinary(dtype),), quick=True)
    for count in (3, 8, 40):
        feed = tuple(pool.distinct(dtype, (5,), turn) for turn in range(count))
        yield from compute("inputs", f"{count} inputs", call(row, dtype, count), feed)
    if dtype.kind == "float":
        yield from compute("nan", "one input of NaNs", call(row, dtype, 1), (pool.nans(dtype),), quick=True)
    for constant, words in (((0,), "the first input"), ((1,), "the second input"), ((0, 1), "both inputs")):
        yield from compute("value", f"{words} a constant of the model", *_constant(row, dtype, constant))
    if "consumed_inputs" in row.attributes:
        for given in ([0, 0], [1, 1]):
            with_it = replace(call(row, dtype, 2), attributes=(("consumed_inputs", given),))
            yield from compute("consumed_inputs", f"consumed_inputs {given}", with_it, plain, quick="each row")


def call(row: Spec, dtype: DType, count: int, rank: int = 1) -> Call:
    """Return a call of Max with `count` inputs of one rank and of any sizes."""
    return Call(row, tuple(Input(name(number), dtype, (None,) * rank) for number in range(count)), (), rank)


def name(number: int) -> str:
    """Return the name of an input."""
    return NAMES[number] if number < len(NAMES) else f"x{number}"


def _lanes(row: Spec, dtype: DType, which: Which, lengths: Sequence[int], sample: bool) -> Trial:
    """Return a trial with vectors of each length. Each pair is in every lane or, with `sample`, in some lanes."""
    table = pairs(dtype, which)
    u, v, best, other = map(tiled, (table.u, table.v, table.expected, table.without_nan))
    spacing = min(SPACING, len(table) // SPACING)
    slices = [
        slice(start, start + length)
        for length in lengths
        for start in range(0, len(table), max(length, spacing) if sample else 1)
    ]
    return _looked_up(call(row, dtype, 2), table, [(u[part], v[part]) for part in slices], best, other, slices)


def _looked_up(
    asked: Call, table: Pairs, feeds: Sequence[Feed], best: Array, other: Array, parts: Sequence[slice]
) -> Trial:
    without = tuple(other[part] for part in parts) if table.has_nan else ()
    return Trial(asked, tuple(feeds), tuple(best[part] for part in parts), without)


def _one_among(row: Spec, dtype: DType, which: Which, count: int) -> Trial:
    """Return a trial in which, for each pair (u, v) and each input, this input has v where all other inputs have u."""
    table = pairs(dtype, which)
    feed = []
    for number in range(count):
        array = np.repeat(table.u, count)
        array[number::count] = table.v
        feed.append(array)
    best, other = (np.repeat(each, count) for each in (table.expected, table.without_nan))
    return _looked_up(call(row, dtype, count), table, [tuple(feed)], best, other, [slice(None)])


def _threes(row: Spec, dtype: DType, which: Which) -> Trial:
    """Return a trial with three inputs and all triples of a few values, so each set of three occurs in every order."""
    values = pool.ordinary(dtype)[:: 1 if len(pool.ordinary(dtype)) < 6 else 2]
    nans = pool.nans(dtype) if which == "nan" else pool.nans(dtype)[:0]
    values = np.concatenate([values[:6], nans])
    indices = np.array(list(product(range(len(values)), repeat=3)))
    if which == "nan":
        indices = indices[pool.is_nan(values)[indices].any(axis=1)]
    return computed(row, call(row, dtype, 3), [tuple(values[column] for column in indices.T)])


def _constant(row: Spec, dtype: DType, constant: tuple[int, ...]) -> tuple[Call, Feed]:
    arrays = pool.distinct(dtype, (2, 5)), pool.distinct(dtype, (2, 5), 1)
    inputs = tuple(
        Input(name(number), dtype, (2, 5), array if number in constant else None) for number, array in enumerate(arrays)
    )
    feed = tuple(array for number, array in enumerate(arrays) if number not in constant)
    return Call(row, inputs, (), 2), feed


def _real(row: Spec, profile: Spec) -> Iterator[Case]:
    """Yield cases of exact rationals, which only functions support, because models cannot contain them."""
    real = dtypes.REAL
    values = pool.ordinary(real)
    u, v = (each.reshape(-1) for each in np.meshgrid(values, values, indexing="ij"))
    for meaning, sentence, feed in (
        ("T", "two short vectors", (pool.distinct(real, (5,)), pool.distinct(real, (5,), 1))),
        ("value", "each pair of some rationals", (u, v)),
        ("inputs", "one input", (values,)),
        ("inputs", "three inputs", tuple(pool.distinct(real, (5,), turn) for turn in range(3))),
        ("shape", "vectors of one size", (pool.distinct(real, (7,)), pool.distinct(real, (7,), 1))),
    ):
        yield from compute(meaning, sentence, call(row, real, len(feed)), feed, quick="each type", among=[profile])
