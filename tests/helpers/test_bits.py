"""Tests of the test helpers: the comparison can fail, layouts keep their values, and the oracle is correct."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import isfinite

import numpy as np
import pytest

from helpers.bits import (
    LAYOUTS,
    Array,
    Guarded,
    assert_same_bits,
    at_offset,
    distinct,
    each_float,
    each_type,
    fast_maximum,
    fast_reduce_max,
    fast_segment_max,
    mixed,
    nan_words,
    of_words,
    pool,
    ranks,
    spread,
    swapped,
    words,
)
from maxops import reference
from maxops.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("got", "expected", "message"),
    [
        pytest.param(f32(-0.0), f32(0.0), r"80000000 .* is not 00000000", id="zeros"),
        pytest.param(of_words(FLOAT32, [0x7FC00001]), of_words(FLOAT32, [0x7FC00000]), "7FC00001 .*", id="payload"),
        pytest.param(of_words(FLOAT32, [0xFFC00000]), of_words(FLOAT32, [0x7FC00000]), "FFC00000", id="nan_sign"),
        pytest.param(np.zeros(2, np.int32), np.zeros(2, np.uint32), "dtype int32 is not uint32", id="dtype"),
        pytest.param(of_words(FLOAT16, [0]), of_words(BFLOAT16, [0]), "dtype float16 is not bfloat16", id="bfloat16"),
        pytest.param(np.zeros((2, 1), np.int8), np.zeros((1, 2), np.int8), r"shape \(2, 1\) is not", id="shape"),
        pytest.param(np.zeros(1, np.int8), np.zeros((), np.int8), r"shape \(1,\) is not \(\)", id="rank"),
        pytest.param(
            f32(1, 2, 3, 4).reshape(2, 2), f32(1, 2, 3, 5).reshape(2, 2), r"1 of 4 .* first at \(1, 1\)", id="place"
        ),
        pytest.param(np.float32(1), np.zeros((), np.float32), "got a float32, not an array", id="scalar"),
        pytest.param(None, np.zeros((), np.float32), "got a NoneType", id="nothing"),
    ],
)
def test_comparison_fails(got: Array, expected: Array, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_same_bits(got, expected)


@each_type
def test_comparison_sees_through_byte_order(dtype: DType) -> None:
    values = pool(dtype)
    assert_same_bits(swapped(values), values)
    if dtype.bits > 8:
        with pytest.raises(AssertionError, match="differ"):
            assert_same_bits(swapped(values).view(dtype.numpy), values)


@pytest.mark.parametrize("layout", LAYOUTS)
@each_type
def test_layout_keeps_the_bits(dtype: DType, layout: str) -> None:
    for shape in [(), (7,), (0, 3), (3, 4), (2, 3, 4)]:
        values = mixed(dtype, shape, nans=1)
        assert_same_bits(LAYOUTS[layout](values), values)


def test_layouts_are_what_they_say() -> None:
    values = np.arange(12, dtype=np.int32).reshape(3, 4)
    made = {name: layout(values) for name, layout in LAYOUTS.items()}
    assert made["strided"].strides == (2 * 12 * 4, 12)
    assert made["pitched"].strides == (32, 4)
    assert made["negative"].strides == (-16, -4)
    assert made["negative_apart"].strides == (2 * 12 * 4, -12)
    assert made["fortran"].flags.f_contiguous
    assert made["transposed"].strides == (4, 12)
    assert not made["swapped"].dtype.isnative
    assert not made["swapped_strided"].dtype.isnative
    assert not made["unaligned"].flags.aligned
    assert not made["read_only"].flags.writeable
    assert at_offset(values, 24).ctypes.data % 64 == 24


@each_float
def test_pool_holds_every_kind(dtype: DType) -> None:
    held = set(words(pool(dtype)).tolist())
    sign = 1 << dtype.bits - 1
    signalling = [nan for nan in nan_words(dtype) if not nan >> dtype.mantissa_bits - 1 & 1]
    assert {bool(nan & sign) for nan in signalling} == {False, True}
    assert held.issuperset(nan_words(dtype))
    for magnitude in (0, 1, (1 << dtype.mantissa_bits) - 1, 1 << dtype.mantissa_bits, dtype.infinity_bits - 1):
        assert {magnitude, magnitude | sign} <= held


@each_float
def test_a_spread_of_the_pool_holds_every_kind(dtype: DType) -> None:
    bits, sign = words(spread(dtype, 40)), 1 << dtype.bits - 1
    is_nan = bits & (sign - 1) > dtype.infinity_bits
    for kind in (is_nan, ~is_nan & (bits >= sign), ~is_nan & (bits < sign), is_nan & (bits >= sign)):
        assert kind.sum() > 2


@each_type
def test_distinct_is_distinct(dtype: DType) -> None:
    values = distinct(dtype, (13, 15))
    different = np.unique(ranks(values)).size
    assert different == (2 if dtype.kind == "bool" else 195)


@each_type
def test_ranks_follow_the_reference(dtype: DType) -> None:
    values = np.concatenate([pool(dtype), mixed(dtype, 500, nans=1)])
    by_rank = np.argsort(ranks(values), kind="stable")
    ordered = [reference.order(dtype, word) for word in words(values)[by_rank].tolist()]
    assert ordered == sorted(ordered)
    steps = np.diff(ranks(values)[by_rank]) > 0
    assert steps.tolist() == [a < b for a, b in pairwise(ordered)]


@each_float
def test_ranks_of_the_reference_hold_exact_values(dtype: DType) -> None:
    smallest = Fraction(float(of_words(dtype, [1])[0]))
    for value in filter(isfinite, map(float, spread(dtype, 500))):
        word = words(np.array(value, dtype.numpy)).item()
        assert reference.order(dtype, word)[1] * smallest == Fraction(value)


@each_type
def test_oracle_agrees_with_the_reference(dtype: DType) -> None:
    a, b = mixed(dtype, (9, 5), 1), mixed(dtype, (9, 1), 2)
    assert_same_bits(fast_maximum(a, b, a), reference.maximum(a, b, a))
    for axes in [(), (0,), (1,), (0, 1)]:
        assert_same_bits(fast_reduce_max(a, axes, False), reference.reduce_max(a, axes, keepdims=False))
        assert_same_bits(fast_reduce_max(a[:0], axes), reference.reduce_max(a[:0], axes))
    for ids in ([0, 0, 0, 1, 1, 4, 5, 5, 9], [3] * 9, [0, 1, 2, 3, 4, 5, 6, 7, 8]):
        for count in (0, 1, 4, 5, 12):
            for mode in ("ZERO", "LOWEST"):
                expected = reference.segment_max(a, np.array(ids), count, mode)
                assert_same_bits(fast_segment_max(a, np.array(ids), count, mode), expected)


@pytest.mark.parametrize(("place", "message"), [(-1, "before"), (4, "past")])
def test_guard_bytes_tell(place: int, message: str) -> None:
    guarded = Guarded(FLOAT32, (4,))
    guarded.array[...] = 1
    guarded.check()
    start = Guarded.MARGIN + 4 * place
    guarded._buffer[start : start + 4] = 0
    with pytest.raises(AssertionError, match=message):
        guarded.check()
