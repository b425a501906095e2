"""The planner alone: what calls of NumPy arrays have from the native core, and those of other arrays from it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxops import dtypes, reference
from maxops.calls import ReduceCall, SegmentCall
from maxops.errors import MaxopsError
from maxops.plan import abstract, default_num_segments, plan_reduce_max, plan_segment_max
from maxops.plan.faults import message

DATA, IDS = np.zeros((2, 3), np.float32), np.array([0, 1])


@pytest.mark.parametrize(
    ("options", "clause"),
    [
        ({"segment_ids": IDS, "offsets": IDS}, "inputs"),
        ({}, "inputs"),
        ({"offsets": IDS, "sorted": False}, "offsets"),
        ({"offsets": IDS, "out_of_range": "drop"}, "offsets"),
        ({"offsets": IDS[:0]}, "offsets"),
        ({"offsets": IDS.reshape(1, 2)}, "offsets"),
        ({"segment_ids": IDS, "fill_value": 1}, "fill_mode"),
        ({"segment_ids": IDS, "fill_mode": None, "fill_value": 1, "initial": 2}, "fill_value"),
        ({"segment_ids": IDS, "out_of_range": "wrap"}, "out_of_range"),
        ({"segment_ids": IDS, "sorted": 2}, "sorted"),
        ({"segment_ids": IDS, "fill_mode": None, "initial": np.zeros(1, np.float32)}, "initial"),
        ({"segment_ids": IDS, "fill_mode": None, "initial": np.float64(1)}, "initial"),
        ({"segment_ids": IDS, "fill_mode": None, "initial": Fraction(1, 2)}, "scalars"),
    ],
    ids=str,
)
def test_calls_of_segments_that_break_a_clause(options: dict[str, Any], clause: str) -> None:
    with pytest.raises(MaxopsError) as raised:
        plan_segment_max(SegmentCall(DATA, **{"fill_mode": "ZERO", **options}))
    assert raised.value.clause == f"maxops.segment_max.{clause}"


def test_the_identity_has_no_initial() -> None:
    with pytest.raises(MaxopsError) as raised:
        plan_reduce_max(ReduceCall(DATA, noop_with_empty_axes=True, initial=1))
    assert raised.value.clause == "maxops.reduce_max.noop_with_empty_axes"


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        ({"fill_mode": "ZERO"}, 0),
        ({"fill_mode": "LOWEST"}, dtypes.FLOAT32.lowest_finite_bits),
        ({"fill_value": -1}, 0xBF800000),
        ({"fill_value": float("nan")}, dtypes.FLOAT32.nan_bits),
        ({"fill_value": np.array([0xFFFFFFFF], np.uint32).view(np.float32)[0]}, dtypes.FLOAT32.nan_bits),
    ],
    ids=str,
)
def test_the_bits_of_empty_segments(options: dict[str, Any], bits: int) -> None:
    assert plan_segment_max(SegmentCall(DATA, IDS, **options)).fill_bits == bits


def test_without_values_ids_are_not_looked_at() -> None:
    plan = plan_segment_max(
        SegmentCall(abstract((5,), DATA.dtype), abstract((5,), np.dtype(np.int8)), fill_mode="ZERO"),
        values_known=False,
    )
    assert plan.num_segments == 0
    assert plan.segment_ids is not None
    assert plan.segment_ids.dtype == np.int32


def test_a_scalar_as_an_array_of_rank_0() -> None:
    plan = plan_reduce_max(ReduceCall(DATA, initial=np.zeros((), np.float32)))
    assert plan.initial is not None
    assert plan.initial.shape == ()


def test_a_memory_map_is_planned_as_an_array(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "data", np.float32, "w+", shape=(2, 3))
    assert type(plan_reduce_max(ReduceCall(mapped)).data) is np.ndarray


def test_the_reference_finds_no_index_of_what_is_not_there() -> None:
    assert reference.first_in_axes(DATA, (1,), np.ones((2, 1), np.float32)).tolist() == [[-1], [-1]]


def test_default_num_segments() -> None:
    assert [default_num_segments(np.array(ids), False) for ids in ([], [3, 1], [-2])] == [0, 4, 0]


def test_every_fault_in_words() -> None:
    """As XLA's custom calls report them, which know of num_segments alone."""
    kinds = ("negative_id", "id_too_large", "ids_decrease", "offsets_begin", "offsets_decrease", "offsets_end")
    texts = [message(kind, 4, 7, 9, 5) for kind in kinds]
    assert len({*texts}) == len(kinds)
    assert all("position 4 holds 7" in text for text in texts)
