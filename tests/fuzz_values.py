#!/usr/bin/env python
"""Fuzzes values: random ids, shapes and broadcasts, with all types, options, layouts and numbers of threads.

Runs until Ctrl-C, or for `--seconds`, on the ordinary build, with lengths around its boundaries, or on the miniature.
A failure is printed with its seed, which reproduces it:

    PYTHONPATH=tests python tests/fuzz_values.py --seconds 60
    PYTHONPATH=tests python tests/fuzz_values.py --seed 123 --calls 1
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Callable

import numpy as np

import maxops as mo
from helpers import run_words
from helpers.bits import (
    LAYOUTS,
    STORED,
    Array,
    assert_same_bits,
    distinct,
    fast_first_in_axes,
    fast_first_in_segments,
    fast_maximum,
    fast_reduce_max,
    fast_segment_max,
    fast_unsorted_max,
    mixed,
)
from maxops import _native
from maxops.conformance import runs
from maxops.dtypes import DType
from maxops.typing import FillMode

NAMES = tuple(LAYOUTS)


def _length(chosen: random.Random, itemsize: int, most: int) -> int:
    near: tuple[int, ...] = (*range(1, 9), *runs.lengths(most), *run_words.sizes(itemsize, most))
    length: int = chosen.choice(near) * chosen.choice((1, 1, 1, 2)) + chosen.choice((0, 0, 0, 1))
    return min(length, most)


def _values(chosen: random.Random, dtype: DType, shape: tuple[int, ...]) -> Array:
    make = chosen.choice((mixed, distinct, distinct))
    return make(dtype, shape, chosen.randrange(1 << 30))


def _laid(chosen: random.Random, array: Array) -> Array:
    if chosen.random() < 0.6:
        return array
    return LAYOUTS[chosen.choice(NAMES)](array)


def segments(chosen: random.Random, dtype: DType) -> str:
    """Test SegmentMax with sorted ids or offsets, fewer or more segments, and a new or given output."""
    width = chosen.choice((0, 0, 1, 2, 3, 4, 5, 8, _length(chosen, dtype.numpy.itemsize, 20_000)))
    word = run_words.any_word(chosen, 3000 if width < 9 else 40)
    ids = runs.ids_of(word)
    data = _values(chosen, dtype, (len(ids), width) if width else (len(ids),))
    own = int(ids[-1]) + 1
    count = chosen.choice((None, own, own + 3, own // 2, 20 * own if own < 1000 else own))
    mode: FillMode = chosen.choice(("ZERO", "LOWEST"))
    size = own if count is None else count
    expected = fast_segment_max(data, ids, size, mode)
    given_ids = _laid(chosen, ids.astype(chosen.choice((np.int32, np.int64))))
    given = _laid(chosen, data)
    said = f"{', '.join(map(str, word))}; width {width}, {count} segments, {mode}, {given.strides}"
    how = chosen.randrange(4)
    if how == 0:
        offsets = np.searchsorted(ids, np.arange(own + 1))
        got = mo.segment_max(given, offsets=offsets, num_segments=count, fill_mode=mode)
    elif how == 1:
        out = LAYOUTS[chosen.choice([name for name in NAMES if name != "read_only"])](np.ones_like(expected))
        mo.segment_max(given, given_ids, count, fill_mode=mode, out=out)
        got = np.ascontiguousarray(out).astype(dtype.numpy)
    else:
        got = mo.segment_max(given, given_ids, count, fill_mode=mode, check_ids=how == 2)
    assert_same_bits(got, expected)
    if chosen.random() < 0.3:
        places = mo.segment_max(given, given_ids, count, fill_mode=mode, return_indices=True)[1]
        has_rows = np.isin(np.arange(size), ids).reshape(-1, *[1] * (data.ndim - 1))
        assert_same_bits(places, np.where(has_rows, fast_first_in_segments(data, ids, expected), -1))
    return said


def unsorted(chosen: random.Random, dtype: DType) -> str:
    """Test SegmentMax with unsorted ids."""
    width = chosen.choice((0, 0, 1, 2, 3, 5, _length(chosen, dtype.numpy.itemsize, 20_000)))
    word = run_words.any_word(chosen, 3000 if width < 9 else 40)
    ids = runs.ids_of(word)
    chosen_rows = np.random.default_rng(chosen.randrange(1 << 30)).permutation(len(ids))
    ids = ids[chosen_rows]
    data = _values(chosen, dtype, (len(ids), width) if width else (len(ids),))
    count = int(ids.max()) + chosen.choice((1, 4))
    count = max(count // chosen.choice((1, 1, 2)), 1)
    expected = fast_unsorted_max(data, ids, count, "ZERO")
    got = mo.segment_max(
        _laid(chosen, data), _laid(chosen, ids), count, fill_mode="ZERO", sorted=False, out_of_range="drop"
    )
    assert_same_bits(got, expected)
    return f"{', '.join(map(str, word))} in any order; width {width}, {count} segments"


def reductions(chosen: random.Random, dtype: DType) -> str:
    """Test ReduceMax along random axes of shapes with one long axis."""
    rank = chosen.randint(1, 4)
    shape = [chosen.choice((1, 2, 3, 5)) for _ in range(rank)]
    shape[chosen.randrange(rank)] = _length(chosen, dtype.numpy.itemsize, 20_000)
    axes = tuple(axis for axis in range(rank) if chosen.random() < 0.5) or (chosen.randrange(rank),)
    data = _values(chosen, dtype, tuple(shape))
    given = _laid(chosen, data)
    keepdims = chosen.random() < 0.5
    got, places = mo.reduce_max(given, axes, keepdims, return_indices=True)
    assert_same_bits(np.ascontiguousarray(got).reshape(got.shape), fast_reduce_max(data, axes, keepdims))
    assert_same_bits(np.ascontiguousarray(places).reshape(places.shape), fast_first_in_axes(data, axes, keepdims))
    return f"{shape} along {axes}, {given.strides}"


def elementwise(chosen: random.Random, dtype: DType) -> str:
    """Test Max of up to nine inputs, each broadcast along random axes."""
    rank = chosen.randint(1, 3)
    shape = [chosen.choice((1, 2, 3, 5)) for _ in range(rank)]
    shape[chosen.randrange(rank)] = _length(chosen, dtype.numpy.itemsize, 20_000)
    inputs = []
    for _ in range(chosen.choice((1, 2, 2, 2, 3, 4, 5, 8, 9))):
        own = tuple(size if chosen.random() < 0.7 else 1 for size in shape)
        inputs.append(_values(chosen, dtype, own[chosen.randrange(rank) if set(own[:-1]) == {1} else 0 :]))
    given = [_laid(chosen, each) for each in inputs]
    got = mo.maximum(*given)
    assert_same_bits(np.ascontiguousarray(got).reshape(got.shape), fast_maximum(*inputs))
    return f"{[each.shape for each in inputs]}"


KINDS: tuple[Callable[[random.Random, DType], str], ...] = (segments, segments, unsorted, reductions, elementwise)


def attempt(seed: int) -> str:
    """Test one random call that the seed determines, and return its description."""
    chosen = random.Random(seed)
    isa = chosen.choice(_native.isas())
    assert _native.use_isa(isa)
    mo.set_num_threads(chosen.choice((1, 1, 2, 3)))
    dtype = chosen.choice(STORED)
    return f"{dtype} on {isa}: {chosen.choice(KINDS)(chosen, dtype)}"


def main() -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=float("inf"), help="default: until Ctrl-C")
    options.add_argument("--calls", type=int, default=sys.maxsize)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    chosen = options.parse_args()
    began = time.monotonic()
    done = 0
    print(f"from seed {chosen.seed} on", flush=True)
    try:
        for seed in itertools.count(chosen.seed):
            if done >= chosen.calls or time.monotonic() - began > chosen.seconds:
                break
            try:
                attempt(seed)
            except AssertionError as error:
                print(f"WRONG with --seed {seed} --calls 1: {error}", file=sys.stderr)
                return 1
            done += 1
    except KeyboardInterrupt:
        print()
    print(f"{done} calls in {time.monotonic() - began:.0f} s, and not a bit wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
