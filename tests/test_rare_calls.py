"""Calls of which counting what tests reach (proofs/covered.py) showed that none was made."""

from __future__ import annotations

import platform
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops as mo
from bits import Array, assert_same_bits, fast_first_in_segments, fast_maximum, fast_reduce_max, fast_segment_max, mixed
from instruction_sets import on_each_isa
from maxops import _native
from maxops.dtypes import FLOAT32
from maxops.errors import DTypeError, OutputTooLargeError, SegmentIdsError
from test_paths import float_modes

BLOCK = 1 << 20  # ids that are looked at together, one by one (native/api_segments.cpp)
FLUSHES = 0x8040  # subnormals are taken for zero, as an input and as a result


def segments(ids: Any, dtype: type = np.int64, **options: Any) -> Any:
    given: Array = np.array(ids, dtype)
    return mo.segment_max(np.ones(len(given), np.int8), given, fill_mode="ZERO", **options)


# ------------------------------------------------------------------------------------------------ segment ids


def test_dropped_negative_ids_do_not_hide_a_decrease() -> None:
    assert segments([-1, 0, 2], sorted=True, out_of_range="drop").tolist() == [1, 0, 1]
    with pytest.raises(SegmentIdsError, match=r"position 2 holds 2 after 3 \[maxops.segment_max.ids\]"):
        segments([-1, 3, 2], sorted=True, out_of_range="drop")


def test_sorted_ids_past_num_segments() -> None:
    with pytest.raises(SegmentIdsError, match=r"position 1 holds 3.*\[maxops.segment_max.out_of_range\]"):
        segments([0, 3], num_segments=2, out_of_range="error")
    assert segments([0, 3], num_segments=4, out_of_range="error").tolist() == [1, 0, 0, 1]
    assert segments([0, 3], out_of_range="error").tolist() == [1, 0, 0, 1]  # all ids lie below what they give
    with pytest.raises(SegmentIdsError, match=r"position 1 holds 1 after 3 \[maxops.segment_max.ids\]"):
        segments([3, 1], out_of_range="error")


@pytest.mark.parametrize("rows", [100, 5000])
def test_a_long_run_after_one_of_a_higher_id(rows: int) -> None:
    for ids in ([5, 3], [0, 5, 3, 7]):
        with pytest.raises(SegmentIdsError, match=r"holds 3 after 5 \[maxops.segment_max.ids\]"):
            segments(np.repeat(ids, rows))


@pytest.mark.parametrize("sorted", [True, False])
def test_the_highest_id_there_is(sorted: bool) -> None:
    with pytest.raises(OutputTooLargeError, match=r"\[maxops.segment_max.shape\]"):
        segments([0, 2**63 - 1], sorted=sorted)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_first_fault_lies_behind_the_first_block_of_ids(dtype: type) -> None:
    ids: Array = np.zeros(BLOCK + 2, dtype)
    ids[-1] = -1
    with pytest.raises(SegmentIdsError, match=rf"negative: position {BLOCK + 1} holds -1"):
        segments(ids, dtype, sorted=False, num_segments=1)
    ids[-1] = 1
    with pytest.raises(SegmentIdsError, match=rf"num_segments, which is 1: position {BLOCK + 1} holds 1"):
        segments(ids, dtype, sorted=False, num_segments=1)


def test_indices_of_strided_rows_that_fill_the_buffer() -> None:
    """Of rows that are gathered, and too wide for that at once."""
    whole = mixed(FLOAT32, (7, 2 * 5000))
    data, ids = whole[:, ::2], np.array([0, 0, 1, 3, 3, 3, 4])
    values, rows = mo.segment_max(data, ids, fill_mode="ZERO", return_indices=True)
    assert_same_bits(values, fast_segment_max(data.copy(), ids, 5, "ZERO"))
    assert_same_bits(rows, fast_first_in_segments(data.copy(), ids, values))


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="of x86-64 and glibc")
def test_a_long_run_of_subnormals_where_the_processor_would_flush_them() -> None:
    data = np.arange(1, 513, dtype=np.uint32).view(np.float32)
    with float_modes(FLUSHES):
        result = mo.segment_max(data, np.repeat([0, 1], 256), fill_mode="ZERO")
    assert result.view(np.uint32).tolist() == [256, 512]


# ------------------------------------------------------------------------------------------------ layouts


def test_an_output_that_begins_where_a_smaller_input_does() -> None:
    data, other = np.array([3, 1, 2, 5], np.float32), np.array([0, 4, 0, 0], np.float32)
    assert mo.maximum(data[:1], other, out=data) is data
    assert data.tolist() == [3, 4, 3, 3]


def test_columns_of_long_rows_in_reverse() -> None:
    data = mixed(FLOAT32, (40, 3000))
    expected = fast_reduce_max(data, (0,))
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(data[::-1], (0,)), expected))


def test_a_row_whose_parts_are_of_several_streams_each() -> None:
    """Without a highest value, which would end them early."""
    data = np.random.default_rng(0).random(6_000_000, np.float32)
    expected = data.max(keepdims=True)
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(data), expected))


def test_reduced_rows_that_are_long_and_apart() -> None:
    """Longer than are taken together (native/reduce.cpp), and one among ones that are not."""
    for length in (100, 20_000):
        data = mixed(FLOAT32, (5, length + 3))[:, :length]
        assert_same_bits(mo.reduce_max(data, (0, 1)), fast_reduce_max(data.copy(), (0, 1)))


def test_every_second_of_many() -> None:
    data, other = mixed(FLOAT32, (3, 1000)), mixed(FLOAT32, (3, 500), 1)
    expected = fast_maximum(data[:, ::2].copy(), other)
    on_each_isa(lambda: assert_same_bits(mo.maximum(data[:, ::2], other), expected))


@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.parametrize("length", [4, 8])
def test_few_short_rows(rows: int, length: int) -> None:
    data = mixed(FLOAT32, (rows, length))
    expected = fast_reduce_max(data, (1,))
    on_each_isa(lambda: assert_same_bits(mo.reduce_max(data, (1,)), expected))


# ------------------------------------------------------------------------------------------------ types


def test_cs_other_name_of_int64() -> None:
    data = np.array([1, 5], np.int64)
    assert_same_bits(mo.maximum(data, np.longlong(3)), fast_maximum(data, np.array([3, 3])))
    assert_same_bits(mo.reduce_max(data, initial=np.longlong(7)), np.array([[7]][0]))


def test_types_and_scalars_that_are_none_of_ours() -> None:
    with pytest.raises(DTypeError, match=r"\[maxops.maximum.types\]"):
        mo.maximum(np.zeros(2, ml_dtypes.float8_e5m2), np.zeros(2, ml_dtypes.float8_e5m2))
    with pytest.raises(DTypeError, match=r"\[maxops.reduce_max.initial\]"):
        mo.reduce_max(np.zeros(2, np.int64), initial=np.uint64(7))


def test_an_instruction_set_that_is_none() -> None:
    assert not _native.use_isa("z80")


def test_a_build_says_which_sources_it_is_of() -> None:
    """As `maxops evidence` compares them; which they are, tests/test_evidence.py looks at."""
    assert re.fullmatch("[0-9a-f]{64}", _native.sources())
